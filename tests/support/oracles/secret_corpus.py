"""Texts with secrets, and harmless ones, from templates in `secret_corpus.txt` and `harmless_corpus.txt`.

`⟦hex40⟧` is 40 random characters of that alphabet and `⟦uuid⟧` a UUID. They are secret, unless marked as `⟦!hex40⟧`;
so is `«a word»`. `⟦base64:…⟧` and `⟦hexed:…⟧` encode a text, `⟦zw:…⟧` puts invisible characters into it. `\\n` breaks
the line. `‡` interrupts published samples of keys, lest a scanner takes them for keys.
"""

import base64
import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LETTERS, _DIGITS = string.ascii_letters, string.digits
_ALPHABETS = {
    "an": _LETTERS + _DIGITS,
    "low": string.ascii_lowercase + _DIGITS,
    "up": string.ascii_uppercase + _DIGITS,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "b64": _LETTERS + _DIGITS + "+/",
    "url": _LETTERS + _DIGITS + "_-",
    "b32": string.ascii_uppercase + "234567",
    "dig": _DIGITS,
    "az": string.ascii_lowercase,
    "let": _LETTERS,
    "pass": _LETTERS + _DIGITS + "!@#%*_-+?",
}
_PART = re.compile(
    rf"⟦(?P<plain>!?)(?:(?P<uuid>uuid)|(?P<how>zw|base64|hexed):(?P<inner>[^⟦⟧]*)"
    rf"|(?P<alphabet>{'|'.join(_ALPHABETS)})(?P<length>\d+))⟧"
)
_INVISIBLE = "\u200b\u200c\u2060\ufeff\u00ad"
_WITHOUT_INVISIBLE = str.maketrans(dict.fromkeys(_INVISIBLE))
_LONGEST_LEFT = 7
"""Characters of a secret that may be left."""


@dataclass(frozen=True)
class Sample:
    """A text, its template, and the secrets in it."""

    text: str
    template: str
    secrets: tuple[str, ...]

    def survives(self, masked: str) -> bool:
        """Returns whether a part of a secret is left in the masked text."""
        rest = masked.translate(_WITHOUT_INVISIBLE)
        return any(
            secret[at : at + _LONGEST_LEFT + 1] in rest
            for secret in self.secrets
            for at in range(max(1, len(secret) - _LONGEST_LEFT))
        )


def samples(name: str, seed: int) -> Iterator[Sample]:
    """Yields the samples of a corpus, `secret` or `harmless`: the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - fakes, the same each time
    for line in Path(__file__).with_name(f"{name}_corpus.txt").read_text(encoding="utf-8").splitlines():
        if line and not re.match("# [A-Z]", line):
            yield _sample(line, chance)


def _sample(template: str, chance: random.Random) -> Sample:
    secrets: list[str] = []

    def filled(part: re.Match[str]) -> str:
        value = _value(part, chance)
        if not (part["plain"] or part["how"] == "zw"):
            secrets.append(value)
        return value

    text = template.replace("‡", "").replace("\\r", "\r")
    while _PART.search(text):
        text = _PART.sub(filled, text)
    secrets += re.findall("«(.*?)»", text)
    text = re.sub(r"(?<!\\)\\n", "\n", re.sub("[«»]", "", text)).replace("\\\\", "\\")
    visible = text.translate(_WITHOUT_INVISIBLE)
    return Sample(text, template, tuple(secret for secret in secrets if secret in visible))


def _value(part: re.Match[str], chance: random.Random) -> str:
    inner = part["inner"]
    match part["how"]:
        case "zw":
            return "".join(sign + (chance.choice(_INVISIBLE) if at % 4 == 1 else "") for at, sign in enumerate(inner))
        case "base64":
            return base64.b64encode(inner.replace("\\n", "\n").encode()).decode()
        case "hexed":
            return inner.replace("\\n", "\n").encode().hex()
    if part["uuid"]:
        return "-".join("".join(chance.choices(_ALPHABETS["hex"], k=length)) for length in (8, 4, 4, 4, 12))
    return "".join(chance.choices(_ALPHABETS[part["alphabet"]], k=int(part["length"])))
