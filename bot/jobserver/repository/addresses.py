"""How a repository is shown."""

from urllib.parse import urlsplit

from bot.jobserver.settings import repository_protocol


def displayed_repository(repository: str) -> str:
    """Returns what a job shows as its repository: an address as it is; where a directory lies is nobody's business."""
    return short_name(repository) if repository_protocol(repository) == "file" else repository


def short_name(repository: str) -> str:
    """Returns the last part of an address or a directory, without `.git`."""
    name = urlsplit(repository).path.rstrip("/").rsplit("/", 1)[-1]
    return name.removesuffix(".git") or repository
