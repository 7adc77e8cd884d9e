"""The Rendered view: each changed page before and after the change, within a budget of size and of time."""

import asyncio
import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

import bot
from bot.jobserver import subprocesses
from bot.jobserver.pages.changes import PageOfFiles
from bot.jobserver.pages.diff import visible
from bot.jobserver.pages.markdown import PICTURE_FORMATS, Page
from bot.jobserver.pull_requests.local.change import ChangedFile, FileMode, FileVersion
from bot.jobserver.pull_requests.local.contents import ContentsReader

FILES_ON_A_PAGE = 20
FILE_BYTES = 200_000
PAGE_BYTES = 1_000_000
_OUTPUT_BYTES = 8_000_000
_TIME_LIMIT_S = 10.0
_MARKDOWN = (".md", ".mdx", ".markdown")
_TOO_LARGE = f"Not shown: it is larger than {FILE_BYTES // 1000} kB, or the files of this page are larger than 1 MB."
_TOO_SLOW = "Not rendered: it took too long, or became too large. Its changes are under Changes."


@dataclass(frozen=True)
class Side:
    """A file before or after the change: HTML that is safe, or text, or a picture's address, or only a note."""

    html: Markup | None = None
    text: str | None = None
    picture: str = ""
    note: str = ""


@dataclass(frozen=True)
class RenderedFile:
    """A changed file; a side is None where there is no file."""

    file: ChangedFile
    before: Side | None
    after: Side | None


class PageRenderer:
    """Renders in a process of its own, one at a time. `time_limit` is in seconds, for all that one view shows."""

    def __init__(self, *, time_limit: float = _TIME_LIMIT_S) -> None:
        self._time_limit = time_limit
        self._one_at_a_time = asyncio.Semaphore(1)

    async def render(self, pages: Sequence[Page]) -> dict[Page, str]:
        """Returns the HTML of those that could be rendered; the shortest come first, so that none hides another."""
        ordered = sorted(set(pages), key=lambda page: len(page.text))
        if not ordered:
            return {}
        output = io.BytesIO()
        async with self._one_at_a_time:
            with contextlib.suppress(subprocesses.ProcessTimeoutError):  # what was done until then is there
                await subprocesses.run(
                    self._command(ordered),
                    stdout=subprocesses.BoundedWriter(output, _OUTPUT_BYTES),
                    stderr=subprocesses.BoundedWriter(io.BytesIO(), 0),
                )
        lines = output.getvalue().split(b"\n")[:-1]
        rendered = (_html(line) for line in lines)
        return {page: html for page, html in zip(ordered, rendered, strict=False) if html is not None}

    def _command(self, pages: Sequence[Page]) -> subprocesses.Command:
        return subprocesses.Command(
            (sys.executable, "-m", "bot.jobserver.pages.render_worker"),
            Path(bot.__file__).parents[1],
            {"PATH": os.defpath, "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"},
            self._time_limit,
            json.dumps([[page.text, page.path, page.pictures] for page in pages]).encode(),
        )


def _html(line: bytes) -> str | None:
    """A line of the worker's; a last one that was cut off, or the words of an error, is no HTML."""
    try:
        html = json.loads(line)
    except ValueError:
        return None
    return html if isinstance(html, str) else None


async def rendered_files(
    page: PageOfFiles, number: int, reader: ContentsReader, renderer: PageRenderer
) -> tuple[RenderedFile, ...]:
    """Returns the files of a page of the change as they are before and after."""
    versions = [version for file in page.files for version in (file.before, file.after)]
    texts = await reader.texts(versions, each=FILE_BYTES, total=PAGE_BYTES)
    before, after = (_Sides(number, side, texts) for side in ("before", "after"))
    pages = [before.page(file.before) for file in page.files] + [after.page(file.after) for file in page.files]
    html = await renderer.render([page for page in pages if page is not None])
    return tuple(
        RenderedFile(file, before.side(file.before, html), after.side(file.after, html)) for file in page.files
    )


class _Sides:
    """What is shown of the files on one side of the change. `texts` are contents by their id."""

    def __init__(self, number: int, name: str, texts: dict[str, bytes]) -> None:
        self._address = f"/pulls/{number}/{name}/"
        self._texts = texts

    def page(self, version: FileVersion) -> Page | None:
        """Returns a file that is to be rendered; None for whatever is shown otherwise, or not at all."""
        text = self._text(version)
        if text is None or not version.path.lower().endswith(_MARKDOWN):
            return None
        return Page(text, version.path, self._address)

    def side(self, version: FileVersion, html: dict[Page, str]) -> Side | None:
        if version.mode is FileMode.ABSENT:
            return None
        if not version.mode.is_file:
            return Side(note="Not a file: see Changes.")
        if version.path.lower().endswith(PICTURE_FORMATS):
            return Side(picture=self._address + quote(version.path, errors="surrogateescape"))
        if version.id not in self._texts:
            return Side(note=_TOO_LARGE)
        page = self.page(version)
        return self._text_side(version) if page is None else _page_side(html.get(page))

    def _text_side(self, version: FileVersion) -> Side:
        text = self._text(version)
        return Side(note="Not a text file.") if text is None else Side(text=text)

    def _text(self, version: FileVersion) -> str | None:
        contents = self._texts.get(version.id)
        if contents is None or b"\0" in contents or not version.mode.is_file:
            return None
        try:
            return visible(contents.decode().removeprefix("\ufeff").replace("\r\n", "\n"))
        except UnicodeDecodeError:
            return None


def _page_side(html: str | None) -> Side:
    # Markup: `markdown` made it, and lets nothing of the author's through unescaped.
    return Side(note=_TOO_SLOW) if html is None else Side(html=Markup(html))  # noqa: S704
