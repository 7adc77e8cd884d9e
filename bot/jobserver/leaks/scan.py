"""Scans a file or a name for secrets. Pure; the worst texts take seconds per megabyte."""

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
"""The shortest secret, after squeezing, that is searched for: shorter ones occur in many files by chance."""
_SEPARATORS = bytes(range(33)) + b"\"'`\\,+" + bytes(range(127, 256))
"""Bytes that can separate the parts of a value: spaces, line breaks, string delimiters and operators in code, invisible
characters, and the other half of each character in UTF-16.
"""
_LONGEST_LINE = 16
"""How many lines of a secret are searched for in earlier versions; a private key has more, but all are random."""


def text_in(data: bytes) -> str:
    """Returns the text of UTF-8, Latin-1 or UTF-16 data without invisible characters.

    For binary data, returns its runs of readable characters. Takes linear time.
    """
    if b"\0" not in data:
        return without_misleading(data.decode(errors="replace"))
    encoding = _BOMS.get(data[:2])
    if encoding:
        return without_misleading(data.decode(encoding, errors="replace"))
    runs = [*_RUN.findall(data), *(run[::2] for run in _RUN_LITTLE.findall(data))]
    return b"\n".join([*runs, *(run[1::2] for run in _RUN_BIG.findall(data))]).decode("ascii")


def squeezed(data: bytes) -> bytes:
    """Returns the bytes without those that can separate the parts of a value."""
    return data.translate(None, _SEPARATORS)


def forms_of(value: str) -> frozenset[bytes]:
    """Returns the squeezed forms of a value: as it is, encoded, and escaped."""
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
    """Returns a text with its percent escapes in lower case."""
    parts = text.split("%")
    return "%".join([parts[0], *(f"{part[:2].lower()}{part[2:]}" for part in parts[1:])])


def _base64_forms(plain: bytes) -> Iterator[bytes]:
    """Yields what base64 of a longer text contains, for each alignment to three bytes and in both alphabets."""
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + plain).rstrip(b"=")
        begin = (8 * shift + 5) // 6
        whole = (8 * (shift + len(plain))) // 6
        yield encoded[begin:whole]
        yield encoded[begin:whole].translate(bytes.maketrans(b"+/", b"-_"))


@dataclass(frozen=True)
class Allowances:
    """Where things that look like secrets may be pushed.

    `entries` are patterns of paths, each alone or with a colon and the one rule that does not apply there.
    """

    entries: tuple[str, ...] = ()

    def allows(self, path: str, rule: str) -> bool:
        return any(matches(pattern, path) for pattern, only in map(_split_entry, self.entries) if only in {"", rule})

    def allows_everything(self, path: str) -> bool:
        """Tells whether no rule applies to a path."""
        return any(not only and matches(pattern, path) for pattern, only in map(_split_entry, self.entries))


def _split_entry(entry: str) -> Sequence[str]:
    pattern, _, rule = entry.partition(":")
    return pattern, rule


@dataclass(frozen=True)
class Suspicion:
    """A possible secret in a file. It is new if some of its `lines` are not in earlier versions."""

    path: str
    kind: SecretKind
    rule: str
    lines: tuple[str, ...]


class Scanner:
    """Finds this server's own secrets in all their forms, and anything that looks like a secret."""

    def __init__(self, known: tuple[str, ...], allowances: Allowances) -> None:
        self._known = tuple((value, forms_of(value)) for value in known)
        self._allowances = allowances

    def suspicions(self, path: str, data: bytes) -> Iterator[Suspicion]:
        """Yields each secret in a file, or in a name as `data`, once; also searches archives.

        Raises:
            TooMuchPackedError: the archive exceeds the limits, and its path does not allow everything.
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
        squeezed_data = squeezed(data) if self._known else b""
        for value, forms in self._known:
            if any(form in squeezed_data for form in forms):
                yield Suspicion(path, SecretKind.OWN, "", _lines(value))


def _lines(value: str) -> tuple[str, ...]:
    found = [line.strip() for line in value.splitlines()]
    return tuple(line for line in found if line)[:_LONGEST_LINE]
