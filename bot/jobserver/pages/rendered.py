"""The Rendered view: each changed page before and after the change, rendered in a separate process within limits."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from bot.jobserver import subprocesses
from bot.jobserver.documents import MARKDOWN_SUFFIXES, PICTURE_FORMATS, PageSource
from bot.jobserver.pages.diff import PageOfFiles, visible
from bot.jobserver.pull_requests.local.contents import ContentsReader
from bot.jobserver.repository.listings import ChangedFile, FileVersion, GitFileMode

TIME_LIMIT_S = 10.0
_OUTPUT_BYTES = 8_000_000
_WORKER = "bot.jobserver.pages.markdown"
FILES_ON_A_PAGE = 20
FILE_BYTES = 200_000

_TOO_LARGE = f"Not shown: it is larger than {FILE_BYTES // 1000} kB, or the files of this page are larger than 1 MB."
_TOO_SLOW = "Not rendered: it took too long, or became too large. Its changes are under Changes."


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
                    subprocesses.own_module(_WORKER, task, self._time_limit), stdout=output.write, stderr=errors.write
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


@dataclass(frozen=True)
class Side:
    """A file before or after the change: safe HTML, text, a picture's address, or only a note."""

    html: Markup | None = None
    text: str | None = None
    picture: str = ""
    note: str = ""


@dataclass(frozen=True)
class RenderedFile:
    """A changed file; a side is None if the file does not exist there."""

    file: ChangedFile
    before: Side | None
    after: Side | None


async def rendered_files(
    page: PageOfFiles, address: str, reader: ContentsReader, renderer: MarkdownRenderer
) -> tuple[RenderedFile, ...]:
    """Returns the files of a page before and after the change. `address` is the pull request's."""
    versions = [version for file in page.files for version in (file.before, file.after)]
    texts = await reader.texts(versions, each=FILE_BYTES, total=1_000_000)
    before, after = (_Sides(f"{address}/{side}/", texts) for side in ("before", "after"))
    pages = [before.page(file.before) for file in page.files] + [after.page(file.after) for file in page.files]
    html = await renderer.render([page for page in pages if page is not None])
    return tuple(
        RenderedFile(file, before.side(file.before, html), after.side(file.after, html)) for file in page.files
    )


class _Sides:
    """The files on one side of the change, at `address`. `texts` are contents by blob id."""

    def __init__(self, address: str, texts: dict[str, bytes]) -> None:
        self._address = address
        self._texts = texts

    def page(self, version: FileVersion) -> PageSource | None:
        """Returns the source of a file to render; None for other files."""
        text = self._text(version)
        if text is None or not version.path.lower().endswith(MARKDOWN_SUFFIXES):
            return None
        return PageSource(text, version.path, self._address)

    def side(self, version: FileVersion, html: dict[PageSource, str]) -> Side | None:
        if version.mode is GitFileMode.ABSENT:
            return None
        if not version.mode.is_file:
            return Side(note="Not a file: see Changes.")
        if version.path.lower().endswith(PICTURE_FORMATS):
            return Side(picture=self._address + quote(version.path, errors="surrogateescape"))
        if version.id not in self._texts:
            return Side(note=_TOO_LARGE)
        if page := self.page(version):
            # Markup: `markdown` made it, and lets nothing of the author's through unescaped.
            return Side(html=Markup(html[page])) if page in html else Side(note=_TOO_SLOW)  # noqa: S704
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
