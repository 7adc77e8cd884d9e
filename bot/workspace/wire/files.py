"""Files in Slack's payloads, and their URLs."""

from urllib.parse import quote

from bot.workspace.model.entities import File, Json

FILES_PATH = "/files-pri"


def rendered_file(file: File, user_team: str, team: str, origin: str) -> Json:
    """Returns a file as Slack documents it.

    Args:
        file: The file.
        user_team: The team id of the person who uploaded it.
        team: The workspace's team id.
        origin: The workspace's address.
    """
    name = quote(file.name)
    base = f"{origin}{FILES_PATH}/{team}-{file.id}"
    return {
        "id": file.id,
        "created": file.created,
        "name": file.name,
        "title": file.name,
        "mimetype": file.mimetype,
        "user": file.user,
        "user_team": user_team,
        "size": file.size,
        "mode": "hosted",
        "is_external": False,
        "is_public": True,
        "url_private": f"{base}/download/{name}",
        "url_private_download": f"{base}/download/{name}",
        "permalink": f"{origin}/files/{file.user}/{file.id}/{name}",
        "file_access": "visible",
    }


def file_for_shared_channel(file: File) -> Json:
    """Returns a file as shown in a channel shared with another organization; ``files.info`` has the rest."""
    hidden: Json = {"created": 0, "timestamp": 0, "user": ""}
    return {"id": file.id, "mode": "file_access", "file_access": "check_file_info"} | hidden
