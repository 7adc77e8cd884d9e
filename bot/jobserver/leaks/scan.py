"""Scans one file, or one name, for secrets. Pure; the worst texts take seconds per megabyte."""

import base64
import codecs
import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

from bot.jobserver.leaks.archives import TooMuchPackedError, unpacked
from bot.jobserver.repository.allowed_paths import matches
from bot.runtime.secrets.kinds import SecretKind
from bot.runtime.secrets.masking import find
from bot.runtime.text import without_misleading

_READABLE = rb"\t\n\r\x20-\x7e"
_RUN = re.compile(rb"[%b]{8,}" % _READABLE)
_RUN_LITTLE = re.compile(rb"(?:[%b]\0){8,}" % _READABLE)
_RUN_BIG = re.compile(rb"(?:\0[%b]){8,}" % _READABLE)
_BOMS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
SHORTEST = 8
"""Characters, after squeezing: what is shorter stands in many files by chance."""
_PARTING = bytes(range(33)) + b"\"'`\\,+" + bytes(range(127, 256))
"""Bytes between the parts of a value: spaces, line breaks, what joins strings in code, signs that nobody sees, and the
other half of each character in UTF-16.
"""
_LONGEST_LINE = 16
"""Lines of a secret that are looked for in what was there before; a private key has more, all drawn."""


def text_in(data: bytes) -> str:
    """Returns the text of UTF-8, Latin-1 or UTF-16, without characters that nobody sees.

    Of a binary it returns the runs of readable characters. Takes time linear in the data.
    """
    if b"\0" not in data:
        return without_misleading(data.decode(errors="replace"))
    encoding = _BOMS.get(data[:2])
    if encoding:
        return without_misleading(data.decode(encoding, errors="replace"))
    runs = [*_RUN.findall(data), *(run[::2] for run in _RUN_LITTLE.findall(data))]
    return b"\n".join([*runs, *(run[1::2] for run in _RUN_BIG.findall(data))]).decode("ascii")


def squeezed(data: bytes) -> bytes:
    """Returns the bytes without those that may stand between the parts of a value."""
    return data.translate(None, _PARTING)


def forms_of(value: str) -> frozenset[bytes]:
    """Returns what stands in squeezed bytes where this value does: as it is, encoded or escaped."""
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


@dataclass(frozen=True)
class Allowances:
    """What may be pushed, though it looks like a secret.

    `entries` are patterns of paths, each alone or with a colon and the one rule that does not hold there.
    """

    entries: tuple[str, ...] = ()

    def allows(self, path: str, rule: str) -> bool:
        return any(matches(pattern, path) for pattern, only in map(_parted, self.entries) if only in {"", rule})

    def allows_everything(self, path: str) -> bool:
        """Whether no rule holds there, so that it has not to be looked through by any."""
        return any(not only and matches(pattern, path) for pattern, only in map(_parted, self.entries))


def _parted(entry: str) -> Sequence[str]:
    pattern, _, rule = entry.partition(":")
    return pattern, rule


@dataclass(frozen=True)
class Suspicion:
    """A secret in a file. `lines` are what stands nowhere else if it is new."""

    path: str
    kind: SecretKind
    rule: str
    lines: tuple[str, ...]


class Scanner:
    """Knows the values of this server in all their forms, and what is allowed."""

    def __init__(self, known: tuple[str, ...], allowances: Allowances) -> None:
        self._known = tuple((value, forms_of(value)) for value in known)
        self._allowances = allowances

    def suspicions(self, path: str, data: bytes) -> Iterator[Suspicion]:
        """Yields what a file, or as `data` a name, holds, also packed: each value once.

        Raises:
            TooMuchPackedError: it packs more than is looked at, and is not allowed to hold what looks like a secret.
        """
        seen = set[tuple[str, ...]]()
        for content in self._contents(path, data):
            for one in self._suspicions(path, content):
                if one.lines not in seen:
                    seen.add(one.lines)
                    yield one

    def _contents(self, path: str, data: bytes) -> Iterator[bytes]:
        yield data
        try:
            yield from unpacked(data)
        except TooMuchPackedError:
            if not self._allowances.allows_everything(path):
                raise

    def _suspicions(self, path: str, data: bytes) -> Iterator[Suspicion]:
        yield from self._own(path, data)
        if self._allowances.allows_everything(path):
            return
        text = text_in(data)
        for finding in find(text):
            if not self._allowances.allows(path, finding.rule):
                yield Suspicion(path, finding.kind, finding.rule, _lines(text[finding.start : finding.end]))

    def _own(self, path: str, data: bytes) -> Iterator[Suspicion]:
        pressed = squeezed(data) if self._known else b""
        for value, forms in self._known:
            if any(form in pressed for form in forms):
                yield Suspicion(path, SecretKind.OWN, "", _lines(value))


def _lines(value: str) -> tuple[str, ...]:
    found = [line.strip() for line in value.splitlines()]
    return tuple(line for line in found if line)[:_LONGEST_LINE]
