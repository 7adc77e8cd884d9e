"""Finds private keys in a text, even if they are truncated (RFC 7468; for OpenPGP, RFC 9580)."""

import re
from collections.abc import Iterator

_DASHES, _DASHES_AFTER = "[-\u2013\u2014]{2,5} ?", " ?[-\u2013\u2014]{2,5}"
_BEGINNING = re.compile(
    rf"{_DASHES}BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?{_DASHES_AFTER}|PuTTY-User-Key-File-[0-9]"
)
_END = re.compile(
    rf"{_DASHES}END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?{_DASHES_AFTER}|Private-MAC: [0-9a-f]{{40,64}}"
)
_HEADER = re.compile(r"[A-Za-z\-]{1,30}: [^\n]{1,200}")
_WORD = re.compile(r"\S+")
_AROUND = "\"'`,;>|#+"
"""Characters around a key's lines in code and in quotations."""
_OF_A_KEY = re.compile(r"[A-Za-z0-9+/=\\]{16,}+")
_LAST = re.compile(r"[A-Za-z0-9+/\\]{1,75}={0,2}")
_LONGEST = 40_000
"""Characters from the first line to the last."""
_PART = re.compile(r"[A-Za-z0-9+/]{16,}+")
_SHORTEST_PART = 24
"""Characters of base64; with fewer between the two lines, it is a placeholder for a key."""


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and end of each key. Without a last line, a key ends where the text stops looking like one."""
    beginnings = [match.span() for match in _BEGINNING.finditer(text)]
    ends = [match.span() for match in _END.finditer(text)]
    next_end = 0
    for index, (start, body) in enumerate(beginnings):
        limit = beginnings[index + 1][0] if index + 1 < len(beginnings) else len(text)
        while next_end < len(ends) and ends[next_end][0] < body:
            next_end += 1
        whole = next_end < len(ends) and ends[next_end][0] < min(limit, body + _LONGEST)
        end = ends[next_end][1] if whole else _end_of_rest(text, body, limit)
        if _holds_key(text[body : ends[next_end][0] if whole else end]):
            yield start, end


def _holds_key(body: str) -> bool:
    return sum(len(part[0]) for part in _PART.finditer(body)) >= _SHORTEST_PART


def _end_of_rest(text: str, body: int, limit: int) -> int:
    """Returns the end of a key without its last line: after the last line, or word, that can belong to a key."""
    at = end = body
    for line in text[body:limit].splitlines(keepends=True):
        if end > body or not _HEADER.fullmatch(line.strip()):
            key_part = _key_part(line, after_key=end > body)
            end = at + key_part if key_part else end
            if key_part < len(line.rstrip()):
                break
        at += len(line)
    return end


def _key_part(line: str, *, after_key: bool) -> int:
    """Returns how much of a line, from its start, can belong to a key. A truncated key can end within a word."""
    length = 0
    for word in _WORD.finditer(line):
        bare = word[0].strip(_AROUND)
        last = after_key and _LAST.fullmatch(bare) and not bare.isalpha()
        if bare and not _OF_A_KEY.fullmatch(bare) and not last:
            return length
        length, after_key = word.end(), after_key or bool(bare)
    return length
