"""``reactions.*``."""

import re

from bot.workspace.call import Call, Method
from bot.workspace.errors import SlackError
from bot.workspace.models import Channel, Json, Message

MOST_ON_A_MESSAGE = 50
EMOJI_NAME = re.compile(r"[a-z0-9_+'\-]{1,100}(?:::skin-tone-[2-6])?")


def emoji_name(text: str) -> str:
    """A reaction's name without colons. Whether Slack has an emoji of that name is not looked up."""
    name = text.strip(":")
    if not EMOJI_NAME.fullmatch(name):
        raise SlackError("invalid_name")
    return name


def add(call: Call) -> Json:
    message = _message(call)
    name = emoji_name(call.arguments.text("name"))
    if len(message.reactions) >= MOST_ON_A_MESSAGE and name not in message.reactions:
        raise SlackError("too_many_emoji")
    call.state.react(message, call.bot, name)
    return {}


def remove(call: Call) -> Json:
    message = _message(call)
    call.state.unreact(message, call.bot, emoji_name(call.arguments.text("name")))
    return {}


def get(call: Call) -> Json:
    message = _message(call)
    return {"type": "message", "channel": message.channel, "message": call.rendering.message(message)}


def _message(call: Call) -> Message:
    channel: Channel = call.joined(call.channel())
    ts = call.arguments.timestamp("timestamp")
    if ts is None:
        raise SlackError("no_item_specified")
    return call.state.message(channel, ts)


METHODS = {
    "reactions.add": Method(add, "reactions:write"),
    "reactions.remove": Method(remove, "reactions:write", per_minute=20),
    "reactions.get": Method(get, "reactions:read"),
}
