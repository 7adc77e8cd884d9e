"""Renders pages in processes of their own, so that no text can stop the server."""

import asyncio
import contextlib
import json
from collections.abc import Sequence

from bot.jobserver import subprocesses
from bot.jobserver.pages.markdown import PageSource
from bot.jobserver.warm_module import WarmModule

TIME_LIMIT_S = 10.0
_OUTPUT_BYTES = 8_000_000
_WORKER = "bot.jobserver.pages.markdown"
_KNOWN_CHARACTERS = 8_000_000


class MarkdownRenderer:
    """Renders one view at a time, and knows what it has rendered lately. `time_limit` is in seconds, for a view."""

    def __init__(self, *, time_limit: float = TIME_LIMIT_S) -> None:
        self._time_limit = time_limit
        self._worker = WarmModule(_WORKER)
        self._known = _KnownPages()
        self._one_at_a_time = asyncio.Semaphore(1)

    async def render(self, pages: Sequence[PageSource]) -> dict[PageSource, str]:
        """Returns the HTML of those that could be rendered; the shortest come first, so that none hides another."""
        known = {page: html for page in pages if (html := self._known.find(page)) is not None}
        ordered = sorted(set(pages) - known.keys(), key=lambda page: len(page.text))
        if not ordered:
            return known
        rendered = await self._render(ordered)
        for page, html in rendered.items():
            self._known.keep(page, html)
        return known | rendered

    async def _render(self, ordered: Sequence[PageSource]) -> dict[PageSource, str]:
        output = subprocesses.FirstBytes(_OUTPUT_BYTES)
        task = json.dumps([[page.text, page.path, page.pictures] for page in ordered]).encode()
        async with self._one_at_a_time:
            with contextlib.suppress(subprocesses.ProcessTimeoutError):  # what was done until then is there
                await self._worker.run(task, time_limit=self._time_limit, stdout=output)
        lines = output.getvalue().split(b"\n")[:-1]
        rendered = (_html(line) for line in lines)
        return {page: html for page, html in zip(ordered, rendered, strict=False) if html is not None}


class _KnownPages:
    """What was rendered last, up to a size."""

    def __init__(self) -> None:
        self._pages: dict[PageSource, str] = {}
        self._size = 0

    def find(self, page: PageSource) -> str | None:
        html = self._pages.pop(page, None)
        if html is not None:
            self._pages[page] = html  # now the last to go
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
    """Reads a line of the worker's; None for a last line that was cut off, or an error."""
    try:
        html = json.loads(line)
    except ValueError:
        return None
    return html if isinstance(html, str) else None
