"""Attachments for messages that people share or link to."""

import re

from bot.workspace.model.entities import Json, Message
from bot.workspace.model.state import State
from bot.workspace.wire.rendering import Renderer

_PERMALINK = re.compile(
    r"<(?P<origin>https?://[^<>|/\s]{1,100})/archives/(?P<channel>\w{1,30})/p(?P<moment>\d{7,20})[^<>\s]{0,200}>"
)


def linked(text: str, state: State, origin: str) -> Message | None:
    """Returns the message behind the first permalink of this workspace in a text."""
    for match in _PERMALINK.finditer(text):
        channel = state.channels.get(match["channel"])
        if channel is not None and match["origin"] == origin:
            moment = match["moment"]
            return state.conversation(channel).get(f"{moment[:-6]}.{moment[-6:]}")
    return None


def linked_attachment(message: Message, state: State, renderer: Renderer) -> Json:
    """Returns the attachment that Slack adds below a link to a message."""
    attachment = forwarded(message, state, renderer)
    del attachment["is_share"]
    return attachment


def forwarded(message: Message, state: State, renderer: Renderer) -> Json:
    """Returns the attachment with a shared message: its text, blocks, files and origin."""
    shown = renderer.message(message)
    author = state.users.get(message.user)
    name = author.real_name if author else message.user
    link = renderer.permalink(message)
    attachment: Json = {
        "id": 1,
        "ts": message.ts,
        "is_msg_unfurl": True,
        "is_share": True,
        "channel_id": message.channel,
        "channel_team": state.team.id,
        "author_id": message.user,
        "author_name": name,
        "author_subname": name,
        "author_link": f"{renderer.origin}/team/{message.user}",
        "from_url": link,
        "original_url": link,
        "text": message.text,
        "fallback": f"[{message.ts}] {author.name if author else message.user}: {message.text}",
        "mrkdwn_in": ["text"],
        "color": "D0D0D0",
        "footer": "Slack Conversation",
    }
    if blocks := shown.get("blocks"):
        place = {"team": state.team.id, "channel": message.channel, "ts": message.ts}
        attachment["message_blocks"] = [{**place, "message": {"blocks": blocks}}]
    return attachment | ({"files": shown["files"]} if "files" in shown else {})
