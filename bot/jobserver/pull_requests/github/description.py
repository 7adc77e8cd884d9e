"""A pull request's words at GitHub: foreign text that does nothing, and no more of it than GitHub takes. Pure."""

import re

from bot.jobserver.repository.references import BREAK, without_issue_links, without_references

LIMIT = 60_000
"""Characters; GitHub takes 65,536, but does not say how it counts."""
_TITLE_LIMIT = 256
_CUT = "\n\n*The rest is left out: GitHub takes descriptions of at most 65,536 characters.*"
_FENCE = "```"
# HTML could hide text; an image would be fetched from wherever its address says; an entity could stand for an "@".
_MARKUP = re.compile(r"<(?=[A-Za-z/!?])(?!https?://)|!(?=\[)|&(?=\#|[A-Za-z][A-Za-z0-9]{1,31};)", re.VERBOSE)


def title(text: str) -> str:
    """Returns one line that GitHub takes as a title."""
    line = " ".join(without_references(text).split()) or "Change the documentation"
    return line if len(line) <= _TITLE_LIMIT else f"{line[: _TITLE_LIMIT - 1].rstrip()}…"


def description(text: str, *, has_redirecting_host: bool) -> str:
    """Returns foreign Markdown, at most half as long as GitHub takes.

    Nobody is notified by it, nothing is linked from elsewhere or closed, HTML is shown as it is written, and images
    are links. A code block may hold a character that nobody sees.
    """
    quiet = without_references(text)
    quiet = quiet if has_redirecting_host else without_issue_links(quiet)
    return _cut(_MARKUP.sub(lambda match: match[0] + BREAK, quiet).strip(), LIMIT // 2)


def with_addition(body: str, addition: str) -> str:
    """Returns a description with one more paragraph at its end; as it is where that is in it already."""
    body = body.replace("\r\n", "\n")  # as GitHub's own page writes it
    if addition in body:
        return body
    whole = f"{body}\n\n{addition}".strip()
    return whole if len(whole) <= LIMIT else f"{_cut(body, LIMIT - len(addition) - 2)}\n\n{addition}"


def _cut(text: str, limit: int) -> str:
    """Cuts between lines, and says so; a block of code that is cut ends there."""
    if len(text) <= limit:
        return text
    kept = text[: limit - len(_CUT) - len(_FENCE) - 2]
    kept = kept[: kept.rfind("\n") if "\n" in kept else len(kept)].rstrip()
    is_in_code = sum(line.lstrip("> ").startswith(_FENCE) for line in kept.splitlines()) % 2
    return f"{kept}\n{_FENCE}{_CUT}" if is_in_code else f"{kept}{_CUT}"
