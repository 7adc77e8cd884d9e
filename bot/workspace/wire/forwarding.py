"""Attachments for messages that people share."""

from bot.workspace.model.entities import Json, Message
from bot.workspace.model.state import State
from bot.workspace.wire.rendering import Renderer


def forwarded(message: Message, state: State, renderer: Renderer) -> Json:
    """Returns the attachment with a shared message: its text, blocks, files and origin."""
    shown = renderer.message(message)
    author = state.users.get(message.user)
    name = author.real_name if author else message.user
    link = renderer.permalink(message)
    attachment: Json = {
        "ts": message.ts,
        "is_msg_unfurl": True,
        "is_share": True,
        "channel_id": message.channel,
        "author_id": message.user,
        "author_name": name,
        "from_url": link,
        "text": message.text,
        "fallback": f"[{message.ts}] {author.name if author else message.user}: {message.text}",
    }
    if blocks := shown.get("blocks"):
        place = {"team": state.team.id, "channel": message.channel, "ts": message.ts}
        attachment["message_blocks"] = [{**place, "message": {"blocks": blocks}}]
    return attachment | ({"files": shown["files"]} if "files" in shown else {})
