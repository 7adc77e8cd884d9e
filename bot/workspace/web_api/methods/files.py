"""``files.*``."""

from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.web_api.file_downloads import readable_file
from bot.workspace.web_api.method import Method, MethodCall


def info(call: MethodCall) -> Json:
    """Returns a file that stands in a conversation the bot is in, with the conversations where it was shared."""
    file_id = call.arguments.required("file")
    found = readable_file(call.state, call.app, file_id)
    if found.file.is_deleted:
        raise SlackError("file_deleted")
    return {
        "file": call.renderer.file(found.file) | found.places(),
        "comments": [],
        "response_metadata": {"next_cursor": ""},
    }


METHODS = {"files.info": Method(info, "files:read", per_minute=100)}
