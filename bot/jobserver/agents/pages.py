"""Which pages of the copy a plan lists, and which an answer rests on. Both look at files: they block."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from bot.jobapi.models import MAX_CHANGED_FILES, MAX_PAGES_READ, ProposedPage
from bot.jobserver.agents.permissions import CopyPaths
from bot.jobserver.documents import is_page

_LISTED = re.compile(
    r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\**(?:`(?P<quoted>[^`\n]{1,300})`|(?P<plain>[^\s`*:]{1,300}))\**"
    r"(?::\**|[ \t]+[-\u2013\u2014])[ \t]+(?P<reason>[^\n]+)$",
    re.MULTILINE,
)
"""A line of a list: `- path: reason`, the path perhaps in bold or as code."""


def pages_read(paths: CopyPaths, read: Iterable[str]) -> tuple[str, ...]:
    """Returns the first pages among the paths that an agent says it read."""
    found = (path for path in map(paths.file, read) if path and is_page(path))
    return tuple(islice(dict.fromkeys(map(str, found)), MAX_PAGES_READ))


def proposed_pages(paths: CopyPaths, plan: str) -> tuple[ProposedPage, ...]:
    """Returns the files that a plan lists with a reason each, whole: it is not masked yet. What is not plainly said is
    not guessed.
    """
    return tuple(islice({page.path: page for page in _listed(paths, plan)}.values(), MAX_CHANGED_FILES))


def _listed(paths: CopyPaths, plan: str) -> Iterator[ProposedPage]:
    for line in _LISTED.finditer(plan):
        if path := paths.file(line["quoted"] or line["plain"]):
            yield ProposedPage(path=str(path), reason=line["reason"].strip())
