"""A company's certificate authority, which SSL_CERT_FILE names: for models, and for a proxy with TLS."""

import asyncio
import datetime as dt
import os
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.servers.connect_proxy import company_proxy
from support.servers.relayed_model import KEY, relay_world, upstream_server

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class CompanyCa:
    """`file` is its certificate, as SSL_CERT_FILE names it; `server` is the context of a server at localhost."""

    file: Path
    server: ssl.SSLContext


def company_ca(folder: Path) -> CompanyCa:
    """Makes a certificate for localhost that is its own authority."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]),
    )
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, secret = folder / "ca.pem", folder / "server.key"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(*pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, secret)
    return CompanyCa(file, context)


ASKED = '{"model": "m", "messages": []}'
TESTS = Path(__file__).parents[2]
PROGRAM = f"""
import asyncio, sys
from pathlib import Path
from support.servers.relayed_model import relay_world
from bot.jobserver.egress.proxy import ConnectProxy, EgressRefusals
from bot.jobserver.settings.sandbox import allowed_host

async def nowhere(name, port):
    raise OSError("no such name")

async def main(model, socket):
    headers = {{"Content-Type": "application/json"}}
    async with relay_world(address=model) as world:
        headers["x-api-key"] = world.run.token
        async with world.post(data={ASKED!r}, headers=headers) as answer:
            print(answer.status, await answer.text())
    proxy = ConnectProxy([allowed_host("registry.example:443")], EgressRefusals(), nowhere)
    async with proxy.listening(Path(socket)):
        reader, writer = await asyncio.open_unix_connection(socket)
        writer.write(b"CONNECT registry.example:443 HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nhello\\n")
        print((await reader.read()).decode().splitlines()[-1])
        writer.close()

asyncio.run(main(*sys.argv[1:]))
"""
"""In its own process: trusted authorities are read once, at its start."""


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> CompanyCa:
    return company_ca(tmp_path_factory.mktemp("ca"))


@pytest.mark.full
async def test_the_relay_and_listed_hosts_use_the_company_ca(ca: CompanyCa, tmp_path: Path) -> None:
    """Only this authority vouches for the certificates of the model's address and the proxy."""

    async def loudly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    async with (
        upstream_server(ca.server) as model,
        await asyncio.start_server(loudly, "127.0.0.1", 0) as registry,
        company_proxy(ca.server) as proxy,
    ):
        proxy.leads_to = {"registry.example:443": registry.sockets[0].getsockname()[1]}
        kept = {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")}
        told = {"SSL_CERT_FILE": str(ca.file), "HTTPS_PROXY": proxy.url, "PYTHONPATH": str(TESTS)}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, f"{model.url}/v1", str(tmp_path / "socket"),
            env={**kept, **told}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
    assert output.decode().splitlines() == ['200 {"ok": true}', "HELLO"]
    assert [request.headers["x-api-key"] for request, _ in model.asked] == [KEY]


async def test_an_untrusted_certificate_is_refused_with_a_reason(ca: CompanyCa) -> None:
    """No part of the request is sent, least of all the key."""
    async with upstream_server(ca.server) as model, relay_world(address=f"{model.url}/v1") as world:
        headers = {"Content-Type": "application/json", "x-api-key": world.run.token}
        async with world.post(data=ASKED, headers=headers) as answer:
            assert answer.status == 502
            told = (await answer.json())["error"]["message"]
        assert model.asked == []
    why = "its certificate is not trusted here (self-signed certificate)"
    assert told.endswith(f"cannot reach localhost: {why}; SSL_CERT_FILE can name a CA of your own")
