"""Files in Slack's payloads, and their URLs."""

from pathlib import PurePosixPath
from urllib.parse import quote

from bot.workspace.model.entities import File, Json

FILES_PATH = "/files-pri"
_TYPES = {
    ".css": "css",
    ".html": "html",
    ".jpeg": "jpg",
    ".js": "javascript",
    ".json": "json",
    ".md": "markdown",
    ".py": "python",
    ".sh": "shell",
    ".txt": "text",
    ".yml": "yaml",
}
"""Slack's names for file types that differ from the file's suffix."""


def rendered_file(file: File, user_team: str, team: str, origin: str) -> Json:
    """Returns a file as Slack documents it.

    Args:
        file: The file.
        user_team: The team id of the person who uploaded it.
        team: The workspace's team id.
        origin: The workspace's address.
    """
    if file.is_deleted:
        return {"id": file.id, "mode": "tombstone"}
    name = quote(file.name)
    base = f"{origin}{FILES_PATH}/{team}-{file.id}"
    body: Json = {
        "id": file.id,
        "created": file.created,
        "timestamp": file.created,
        "name": file.name,
        "title": file.name,
        "mimetype": file.mimetype,
        "filetype": _filetype(file),
        "pretty_type": _filetype(file).capitalize(),
        "user": file.user,
        "user_team": user_team,
        "editable": file.preview is not None,
        "size": file.size,
        "mode": "hosted" if file.preview is None else "snippet",
        "is_external": False,
        "external_type": "",
        "is_public": True,
        "public_url_shared": False,
        "display_as_bot": False,
        "username": "",
        "url_private": f"{base}/{name}",
        "url_private_download": f"{base}/download/{name}",
        "permalink": f"{origin}/files/{file.user}/{file.id}/{name}",
        "has_rich_preview": False,
        "file_access": "visible",
    }
    return body | _preview(file)


def file_for_shared_channel(file: File) -> Json:
    """Returns a file as shown in a channel shared with another organization; ``files.info`` has the rest."""
    hidden: Json = {"created": 0, "timestamp": 0, "user": ""}
    return {"id": file.id, "mode": "file_access", "file_access": "check_file_info"} | hidden


def _filetype(file: File) -> str:
    ending = PurePosixPath(file.name).suffix.lower()
    return _TYPES.get(ending) or ending[1:] or ("text" if file.preview is not None else "binary")


def _preview(file: File) -> Json:
    if file.preview is None:
        return {}
    shown = file.preview.count("\n") + 1
    return {
        "preview": file.preview,
        "lines": file.lines,
        "lines_more": max(file.lines - shown, 0),
        "preview_is_truncated": file.lines > shown or len(file.preview.encode()) < file.size,
    }
