"""Reads signs of other keyboards as those of a Latin one, where something is written for Pagehand."""

_LINE_BREAKS = frozenset("\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_SIGNS = (
    {ord(sign): " " for sign in filter(str.isspace, map(chr, range(0x3001))) if sign not in _LINE_BREAKS}
    | {full: chr(full - 0xFEE0) for full in range(0xFF01, 0xFF5F)}
    | {0x3001: ",", 0x3002: ".", 0xFF61: ".", 0xFF64: ","}
)
"""Other spaces, full-width letters and signs, and the comma and full stop of Chinese and Japanese."""


def latin(text: str) -> str:
    """Returns the text with these signs replaced, one by one, so that each place in it is the same as in `text`."""
    return text.translate(_SIGNS)
