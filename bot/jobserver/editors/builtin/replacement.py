"""Replacing words in a document without breaking its links."""

import re

# Where a word is part of an address, another spelling of it would lead nowhere.
_ADDRESSES = re.compile(
    r"""\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*      # Markdown: ](address
      | ^[ ]{0,3}\[[^\]\n]+\]:[ \t]*\S+             # Markdown: [label]: address
      | \b(?:href|src|id)=(?:"[^"\n]*"|'[^'\n]*')   # HTML
      | `[^`<\n]*<[^>\n]*>`_                        # reStructuredText: `label <address>`_
      | \b(?:link|image|xref|include):[^\s\[]+      # AsciiDoc
      | \bhttps?://[^\s<>"')\]]+
    """,
    re.VERBOSE | re.MULTILINE,
)
_PLAIN_WORDS = re.compile(r"[\w\s'\u2019-]+")


def replace_words(text: str, old: str, new: str) -> tuple[str, int]:
    """Returns the text with every `old` replaced, and how many were.

    Plain words inside addresses of links stay; an `old` that holds other signs (a URL, say) is replaced there too.
    """
    if not _PLAIN_WORDS.fullmatch(old):
        return text.replace(old, new), text.count(old)
    parts: list[str] = []
    count = position = 0
    for address in _ADDRESSES.finditer(text):
        before = text[position : address.start()]
        count += before.count(old)
        parts += [before.replace(old, new), address[0]]
        position = address.end()
    rest = text[position:]
    return "".join([*parts, rest.replace(old, new)]), count + rest.count(old)
