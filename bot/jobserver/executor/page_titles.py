"""The titles of changed pages, as their front matter or first heading has them."""

from pathlib import PurePosixPath

from bot.jobserver.documents.parsing import decoded, is_page
from bot.jobserver.documents.titles import quick_title
from bot.jobserver.executor.foreign_text import one_line
from bot.jobserver.models import ChangeKind, Changes
from bot.jobserver.repository.snapshot import Snapshot

_READ_AT_MOST = 100
"""Pages; what comes after is named by its path."""
_MAX_TITLE = 200


def with_titles(changes: Changes, snapshot: Snapshot) -> Changes:
    """Returns the changes with the titles of the pages in a snapshot. Blocks while it reads."""
    paths = [PurePosixPath(file.path) for file in changes.files if file.kind is not ChangeKind.DELETED]
    titles = {str(path): _title(snapshot, path) for path in list(filter(is_page, paths))[:_READ_AT_MOST]}
    files = tuple(file.model_copy(update={"title": titles.get(file.path)}) for file in changes.files)
    return changes.model_copy(update={"files": files})


def _title(snapshot: Snapshot, path: PurePosixPath) -> str | None:
    text = decoded(snapshot.read(path) or b"")
    title = quick_title(text) if text else None
    return one_line(title, _MAX_TITLE) or None if title else None
