"""The forms in which a known value can stand in a file: as it is, encoded, escaped, parted. Pure."""

import base64
import html
import json
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""Characters, after squeezing: what is shorter stands in many files by chance."""
_PARTING = bytes(range(33)) + b"\"'`\\,+" + bytes(range(127, 256))
"""Bytes between the parts of a value: spaces, line breaks, what joins strings in code, signs that nobody sees, and the
other half of each character in UTF-16.
"""


def squeezed(data: bytes) -> bytes:
    """Returns the bytes without those that may stand between the parts of a value."""
    return data.translate(None, _PARTING)


def forms_of(value: str) -> frozenset[bytes]:
    """Returns what stands in squeezed bytes where this value does."""
    if len(value) < SHORTEST:
        return frozenset()
    found = {squeezed(form) for form in _forms(value)}
    return frozenset(form for form in found if len(form) >= SHORTEST)


def _forms(value: str) -> Iterator[bytes]:
    plain = value.encode()
    yield plain
    for text in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield text.encode()
        yield _lower_escapes(text).encode()
    yield html.escape(value).encode()
    yield json.dumps(value).encode()
    yield json.dumps(json.dumps(value)).encode()
    yield plain.hex().encode()
    yield plain.hex().upper().encode()
    yield "".join(f"%{byte:02X}" for byte in plain).encode()
    yield "".join(f"%{byte:02x}" for byte in plain).encode()
    yield from _base64_forms(plain)


def _lower_escapes(text: str) -> str:
    """Percent signs are followed by capitals, or by small letters."""
    parts = text.split("%")
    return "%".join([parts[0], *(f"{part[:2].lower()}{part[2:]}" for part in parts[1:])])


def _base64_forms(plain: bytes) -> Iterator[bytes]:
    """As it stands in base64 of more than this: it can begin at any byte of three; both alphabets."""
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + plain).rstrip(b"=")
        begin = (8 * shift + 5) // 6
        whole = (8 * (shift + len(plain))) // 6
        yield encoded[begin:whole]
        yield encoded[begin:whole].translate(bytes.maketrans(b"+/", b"-_"))
