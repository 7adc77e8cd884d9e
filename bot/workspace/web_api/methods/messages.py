"""``chat.*`` and ``reactions.*``: messages, and the reactions to them."""

from typing import Any

from bot.workspace.model.entities import PICTURES, Channel, Json, Message, SlackError, is_timestamp
from bot.workspace.model.text import emoji_name, stored_app_text
from bot.workspace.web_api.method import Method, MethodCall
from bot.workspace.wire.views import checked_blocks

UPDATE_LIMIT = 4_000


def post_message(call: MethodCall) -> Json:
    channel = _target(call)
    text, blocks = _content(call)
    message = call.app.message(channel.id, text, blocks, metadata=_metadata(call), thread_ts=_thread(call))
    if message.thread_ts and call.arguments.flag("reply_broadcast"):
        message.subtype = "thread_broadcast"
    call.state.post(message)
    return {"channel": channel.id, "ts": message.ts, "message": call.renderer.message(message)}


def post_ephemeral(call: MethodCall) -> Json:
    channel = _writable(call, call.channel())
    user = call.arguments.required("user")
    message = call.app.message(channel.id, *_content(call), ephemeral_to=user, thread_ts=_thread(call))
    if message.thread_ts and not call.state.conversation(channel).reply_count(message.thread_ts):
        return {"message_ts": call.state.timestamps.next()}  # Slack shows it only in active threads
    return {"message_ts": call.state.show_ephemeral(message).ts}


def update(call: MethodCall) -> Json:
    """Changes one of the app's own messages. Text alone removes the blocks; metadata stays."""
    channel = call.channel()
    message = call.state.message(channel, call.arguments.required("ts"))
    if message.user != call.bot_user_id or message.subtype in {"channel_join", "channel_leave", "tombstone"}:
        raise SlackError("cant_update_message")
    if len(call.arguments.text("text")) > UPDATE_LIMIT:
        raise SlackError("msg_too_long")
    text, blocks = _content(call)
    fields: dict[str, Any] = {"blocks": blocks}
    if call.arguments.given("text"):
        fields["text"] = text
    if fields.get("text", message.text) != message.text:
        fields |= {"edited_by": call.bot_user_id, "edited_ts": call.state.timestamps.next()}
    call.state.edit(message, call.bot_user_id, **fields)
    rendered = call.renderer.message(message)
    return {"channel": message.channel, "ts": message.ts, "text": message.text, "message": rendered}


def delete(call: MethodCall) -> Json:
    """Deletes one of the app's own messages."""
    channel = call.channel()
    message = call.state.message(channel, call.arguments.required("ts"))
    if message.user != call.bot_user_id:
        raise SlackError("cant_delete_message")
    call.state.delete(message, call.bot_user_id)
    return {"channel": channel.id, "ts": message.ts}


def get_permalink(call: MethodCall) -> Json:
    channel = call.channel()
    message = call.state.message(channel, call.arguments.required("message_ts"))
    return {"channel": channel.id, "permalink": call.renderer.permalink(message)}


def _target(call: MethodCall) -> Channel:
    """Returns the channel to post to, given its id or name, or a person's id for direct messages."""
    name = call.arguments.required("channel")
    if (user := call.state.users.get(name)) and not user.is_bot:
        return _open(call.state.direct_channel(call.bot_user_id, name))
    return _writable(call, call.require_visible(call.state.find_channel(name)))


def _writable(call: MethodCall, channel: Channel) -> Channel:
    return call.require_membership(_open(channel))


def _open(channel: Channel) -> Channel:
    if channel.is_archived:
        raise SlackError("is_archived")
    return channel


def _content(call: MethodCall) -> tuple[str, list[Json] | None]:
    blocks = call.arguments.json_value("blocks", "invalid_blocks_format")
    text = stored_app_text(call.arguments.text("text"))
    checked = checked_blocks(blocks) if blocks is not None else []
    _check_pictures(call, checked)
    if not text.strip() and not checked:
        raise SlackError("no_text")
    return text, checked or None


def _check_pictures(call: MethodCall, blocks: list[Json]) -> None:
    """Refuses a picture that the app cannot see, or whose type Slack does not know yet."""
    for number, block in enumerate(blocks):
        file = call.state.files.get(block["slack_file"]["id"]) if block["type"] == "image" else None
        known = file is not None and file.uploader == call.bot_user_id and call.state.files.kind(file) in PICTURES
        if block["type"] == "image" and not known:
            fault = f"invalid slack file [json-pointer:/blocks/{number}/slack_file]"
            raise SlackError("invalid_blocks", detail={"errors": [fault]}, messages=[fault])


def _metadata(call: MethodCall) -> Json | None:
    metadata = call.arguments.json_value("metadata", "invalid_metadata_format")
    if metadata and not isinstance(metadata, dict):
        raise SlackError("invalid_metadata_format")
    return metadata or None


def _thread(call: MethodCall) -> str | None:
    ts = call.arguments.text("thread_ts")
    if not ts:
        return None
    if not is_timestamp(ts):
        raise SlackError("invalid_thread_ts", messages=[f"{ts[:50]} is not a valid thread_ts"])
    return ts


def add_reaction(call: MethodCall) -> Json:
    message = _reaction_target(call)
    call.state.react(message, call.bot_user_id, emoji_name(call.arguments.text("name")))
    return {}


def remove_reaction(call: MethodCall) -> Json:
    message = _reaction_target(call)
    call.state.unreact(message, call.bot_user_id, emoji_name(call.arguments.text("name")))
    return {}


def _reaction_target(call: MethodCall) -> Message:
    channel = call.require_membership(call.channel())
    return call.state.message(channel, call.arguments.required("timestamp"))


METHODS = {
    "chat.postMessage": Method(post_message, "chat:write"),
    "chat.postEphemeral": Method(post_ephemeral, "chat:write"),
    "chat.update": Method(update, "chat:write"),
    "chat.delete": Method(delete, "chat:write"),
    "chat.getPermalink": Method(get_permalink),
    "reactions.add": Method(add_reaction, "reactions:write"),
    "reactions.remove": Method(remove_reaction, "reactions:write"),
}
