"""Base64, as far as it is text."""

import base64
import binascii

_LONGEST = 4_096
"""Characters that are looked at."""


def decoded_base64(value: str) -> str:
    """Returns what base64 stands for, one character a byte; nothing where it is none."""
    whole = value[:_LONGEST].rstrip("=")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4), altchars=b"-_", validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return ""


def printable_base64(value: str) -> str:
    """Returns the text that base64 stands for; nothing where it is none, or no printable text."""
    decoded = decoded_base64(value) if len(value) % 4 == 0 else ""
    text = decoded.strip("\n")
    return text if text.isascii() and text.isprintable() else ""
