"""A company's own certificate authority, and what a server on localhost needs of it."""

import datetime as dt
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

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
