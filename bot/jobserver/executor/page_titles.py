"""The titles of changed pages, as their front matter or first heading has them."""

from itertools import islice
from pathlib import PurePosixPath

from bot.jobserver.executor.foreign_text import one_line
from bot.jobserver.models import ChangeKind, Changes
from bot.jobserver.repository.snapshot import Snapshot

_PAGES = {".md", ".mdx", ".markdown"}
_READ_AT_MOST = 100
"""Pages; what comes after is named by its path."""
_LINES = 60
_MAX_TITLE = 200


def with_titles(changes: Changes, snapshot: Snapshot) -> Changes:
    """Returns the changes with the titles of the pages in a snapshot. Blocks while it reads."""
    wanted = [file.path for file in changes.files if _is_page(file.path) and file.kind is not ChangeKind.DELETED]
    titles = {path: page_title(snapshot.read(PurePosixPath(path)) or b"") for path in wanted[:_READ_AT_MOST]}
    files = tuple(file.model_copy(update={"title": titles.get(file.path)}) for file in changes.files)
    return changes.model_copy(update={"files": files})


def page_title(content: bytes) -> str | None:
    """Returns the front matter's `title`, else the first heading; None where there is neither near the beginning."""
    lines = [line.rstrip() for line in islice(content[:20_000].decode(errors="replace").splitlines(), _LINES)]
    in_front_matter = bool(lines) and lines[0].lstrip("\ufeff") == "---"
    for line in lines[1:] if in_front_matter else lines:
        if in_front_matter and line == "---":
            in_front_matter = False
        elif in_front_matter and line.startswith("title:"):
            return _plain(line.removeprefix("title:").strip().strip("\"'"))
        elif not in_front_matter and line.startswith("# "):
            return _plain(line[2:].strip(" #"))
    return None


def _is_page(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _PAGES


def _plain(title: str) -> str | None:
    return one_line(title, _MAX_TITLE) or None
