"""``reactions.*``."""

from bot.workspace.model.entities import Channel, Json, Message
from bot.workspace.model.errors import SlackError
from bot.workspace.model.text import emoji_name
from bot.workspace.web_api.method import Method, MethodCall

MAX_REACTIONS = 50


def add(call: MethodCall) -> Json:
    message = _message(call)
    name = emoji_name(call.arguments.text("name"))
    if len(message.reactions) >= MAX_REACTIONS and name not in message.reactions:
        raise SlackError("too_many_emoji")
    call.state.react(message, call.bot_user_id, name)
    return {}


def remove(call: MethodCall) -> Json:
    message = _message(call)
    call.state.unreact(message, call.bot_user_id, emoji_name(call.arguments.text("name")))
    return {}


def get(call: MethodCall) -> Json:
    message = _message(call)
    return {"type": "message", "channel": message.channel, "message": call.renderer.message(message)}


def _message(call: MethodCall) -> Message:
    channel: Channel = call.require_membership(call.channel())
    ts = call.arguments.timestamp("timestamp")
    if ts is None:
        raise SlackError("no_item_specified")
    return call.state.message(channel, ts)


METHODS = {
    "reactions.add": Method(add, "reactions:write"),
    "reactions.remove": Method(remove, "reactions:write", per_minute=20),
    "reactions.get": Method(get, "reactions:read"),
}
