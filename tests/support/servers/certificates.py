"""A certificate for servers of the tests at localhost."""

import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path) -> Path:
    """Returns a file with a certificate that is its own authority and its key; the certificate alone is beside it, as
    `.crt`. Skips the test where there is no openssl.
    """
    path = folder / "both.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(path), "-out", f"{path}.crt"]
    try:
        subprocess.run([*made, *named], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl, which makes the certificate, is not installed")
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path
