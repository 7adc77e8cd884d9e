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


class MarkdownRenderer:
    """Renders one view at a time. `time_limit` is in seconds, for one view."""

    def __init__(self, *, time_limit: float = TIME_LIMIT_S) -> None:
        self._time_limit = time_limit
        self._one_at_a_time = asyncio.Semaphore(1)

    async def render(self, pages: Sequence[PageSource]) -> dict[PageSource, str]:
        """Returns the HTML of the pages that could be rendered in time, starting with the shortest."""
        ordered = sorted(set(pages), key=lambda page: len(page.text))
        if not ordered:
            return {}
        output, errors = subprocesses.FirstBytes(_OUTPUT_BYTES), subprocesses.FirstBytes(0)
        task = json.dumps([[page.text, page.path, page.pictures] for page in ordered]).encode()
        async with self._one_at_a_time:
            with contextlib.suppress(subprocesses.ProcessTimeoutError):  # the output has the pages rendered so far
                await subprocesses.run(
                    subprocesses.own_module(_WORKER, task, self._time_limit), stdout=output, stderr=errors
                )
        rendered = map(_html, output.getvalue().split(b"\n")[:-1])
        return {page: html for page, html in zip(ordered, rendered, strict=False) if html is not None}


def _html(line: bytes) -> str | None:
    """Parses a line of the worker's output; None for an incomplete last line or an error."""
    try:
        html = json.loads(line)
    except ValueError:
        return None
    return html if isinstance(html, str) else None
