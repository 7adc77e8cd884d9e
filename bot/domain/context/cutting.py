"""Cuts texts that are not masked yet, so that no part of a secret is left at the end."""

_LONGEST_SECRET = 4_000
"""Characters."""


def whole_words(text: str, length: int) -> str:
    """Returns the text, or its beginning of at most so many characters, without the word that is cut in two."""
    return text if len(text) <= length else without_last_word(text[: length + 1])


def without_last_word(text: str) -> str:
    """Returns the text up to its last space, or, where that is far, without as much as a long secret can take."""
    far = max(len(text) - _LONGEST_SECRET, 0)
    at = max(text.rfind(space, far) for space in " \t\n\r")
    return text[: max(at, far)]
