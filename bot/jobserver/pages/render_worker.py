"""Renders pages, as a process that the server ends when its time is up.

Standard input is a JSON list of pages, each a list of the three fields of a `PageSource`. Standard output gets a line
of JSON for each as soon as it is done: its HTML, or null where that is too long or the page cannot be rendered.
"""

import json
import resource
import sys

from bot.jobserver.pages.markdown import PageSource, render

_MEMORY = 1_000_000_000
LONGEST_HTML = 1_000_000


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for fields in json.load(sys.stdin):
        sys.stdout.write(f"{json.dumps(_rendered(PageSource(*fields)))}\n")
        sys.stdout.flush()


def _rendered(page: PageSource) -> str | None:
    try:
        html = render(page)
    except (RecursionError, MemoryError, ValueError, IndexError):
        return None
    return html if len(html) <= LONGEST_HTML else None
