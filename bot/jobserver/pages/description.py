"""A pull request's description as its page shows it."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Paragraph:
    """A quoted instruction, or what the editor said."""

    text: str
    is_quote: bool


def paragraphs(description: str) -> list[Paragraph]:
    """Splits a description at its empty lines; lines that begin with ">" are a quotation."""
    return [_paragraph(text) for text in re.split(r"\n(?:[ \t]*\n)+(?!>\s*$)", description.strip())]


def _paragraph(text: str) -> Paragraph:
    lines = text.split("\n")
    if all(line.startswith(">") for line in lines):
        return Paragraph("\n".join(line[1:].removeprefix(" ") for line in lines), is_quote=True)
    return Paragraph(text, is_quote=False)
