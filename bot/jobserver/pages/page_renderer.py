"""Renders pages in a separate process, so that no text can block the server."""

import asyncio
import contextlib
import json
from collections.abc import Sequence

from bot.jobserver import subprocesses
from bot.jobserver.pages.markdown import PageSource

TIME_LIMIT_S = 10.0
_OUTPUT_BYTES = 8_000_000
_WORKER = "bot.jobserver.pages.markdown"
_KNOWN_CHARACTERS = 8_000_000


class MarkdownRenderer:
    """Renders one view at a time and caches the results. `time_limit` is in seconds, for one view."""

    def __init__(self, *, time_limit: float = TIME_LIMIT_S) -> None:
        self._time_limit = time_limit
        self._known = _KnownPages()
        self._one_at_a_time = asyncio.Semaphore(1)

    async def render(self, pages: Sequence[PageSource]) -> dict[PageSource, str]:
        """Returns the HTML of the pages that could be rendered in time, starting with the shortest."""
        known = {page: html for page in pages if (html := self._known.find(page)) is not None}
        ordered = sorted(set(pages) - known.keys(), key=lambda page: len(page.text))
        if not ordered:
            return known
        rendered = await self._render(ordered)
        for page, html in rendered.items():
            self._known.keep(page, html)
        return known | rendered

    async def _render(self, ordered: Sequence[PageSource]) -> dict[PageSource, str]:
        output, errors = subprocesses.FirstBytes(_OUTPUT_BYTES), subprocesses.FirstBytes(0)
        task = json.dumps([[page.text, page.path, page.pictures] for page in ordered]).encode()
        async with self._one_at_a_time:
            with contextlib.suppress(subprocesses.ProcessTimeoutError):  # the output has the pages rendered so far
                await subprocesses.run(
                    subprocesses.own_module(_WORKER, task, self._time_limit), stdout=output, stderr=errors
                )
        lines = output.getvalue().split(b"\n")[:-1]
        rendered = (_html(line) for line in lines)
        return {page: html for page, html in zip(ordered, rendered, strict=False) if html is not None}


class _KnownPages:
    """A cache of the latest rendered pages, limited in size."""

    def __init__(self) -> None:
        self._pages: dict[PageSource, str] = {}
        self._size = 0

    def find(self, page: PageSource) -> str | None:
        html = self._pages.pop(page, None)
        if html is not None:
            self._pages[page] = html  # moves it to the end, as the most recently used
        return html

    def keep(self, page: PageSource, html: str) -> None:
        if self.find(page) is not None:
            return
        self._pages[page] = html
        self._size += len(page.text) + len(html)
        while self._size > _KNOWN_CHARACTERS:
            oldest = next(iter(self._pages))
            self._size -= len(oldest.text) + len(self._pages.pop(oldest))


def _html(line: bytes) -> str | None:
    """Parses a line of the worker's output; None for an incomplete last line or an error."""
    try:
        html = json.loads(line)
    except ValueError:
        return None
    return html if isinstance(html, str) else None
