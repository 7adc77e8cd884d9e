"""``files.*``: what the app reads, and what it uploads, which nobody sees until a message shows it."""

from bot.workspace.model.entities import Json, SlackError
from bot.workspace.web_api.file_downloads import UPLOAD_PATH, readable_file
from bot.workspace.web_api.method import Method, MethodCall


def info(call: MethodCall) -> Json:
    """Returns a file with the conversations where it was shared."""
    file, channels = readable_file(call.state, call.app, call.arguments.required("file"))
    places = {
        name: [channel.id for channel in channels if channel.scope_family == family]
        for name, family in (("channels", "channels"), ("groups", "groups"), ("ims", "im"))
    }
    return {"file": call.renderer.file(file) | places}


def get_upload_url(call: MethodCall) -> Json:
    name, length = call.arguments.required("filename"), call.arguments.integer("length", 0, high=1 << 40)
    file_id = call.state.files.expect(name, length)
    return {"file_id": file_id, "upload_url": f"{call.origin}{UPLOAD_PATH}/{file_id}"}


def complete_upload(call: MethodCall) -> Json:
    """Ends uploads. Sharing the files in a channel by this is not played."""
    listed = call.arguments.json_value("files", "invalid_arguments")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise SlackError("invalid_arguments")
    completed = [call.state.files.complete(str(each.get("id")), call.bot_user_id) for each in listed]
    return {"files": [{"id": file.id, "title": file.name} for file in completed]}


METHODS = {
    "files.completeUploadExternal": Method(complete_upload, "files:write"),
    "files.getUploadURLExternal": Method(get_upload_url, "files:write"),
    "files.info": Method(info, "files:read"),
}
