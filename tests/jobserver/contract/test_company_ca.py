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
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("A company's CA", ca_key.public_key(), "A company's CA", ca_key, is_ca=True)
    certificate = _certificate("localhost", key.public_key(), "A company's CA", ca_key, is_ca=False)
    ca, chain, secret = folder / "ca.pem", folder / "server.pem", folder / "server.key"
    ca.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(*pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, secret)
    return CompanyCa(ca, context)


def _certificate(
    name: str, key: ec.EllipticCurvePublicKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey, *, is_ca: bool
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(_usage(is_ca=is_ca), critical=True)
    )
    names = [] if is_ca else [x509.DNSName(name)]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


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
    why = "its certificate is not trusted here (unable to get local issuer certificate)"
    assert told.endswith(f"cannot reach localhost: {why}; SSL_CERT_FILE can name a CA of your own")


async def test_a_certificate_for_another_name_is_refused(ca: CompanyCa) -> None:
    async with upstream_server(ca.server) as model:
        address = model.url.replace("localhost", "127.0.0.1")
        async with relay_world(address=f"{address}/v1") as world:
            headers = {"Content-Type": "application/json", "x-api-key": world.run.token}
            async with world.post(data=ASKED, headers=headers) as answer:
                assert "its certificate is not trusted here" in (await answer.json())["error"]["message"]
        assert model.asked == []
