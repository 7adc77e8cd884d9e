"""``conversations.*``."""

import base64
import binascii
from itertools import islice

from bot.workspace.model.entities import Channel, Json, Message, SlackError, microseconds
from bot.workspace.web_api.method import Method, MethodCall
from bot.workspace.wire.arguments import Arguments

MAX_MESSAGES = 999
_END_OF_TIME = 10**18
_FAMILIES = {"public_channel": "channels", "private_channel": "groups", "im": "im"}
"""The scopes' names for the types of ``users.conversations``."""
_CURSOR = "next_ts"
"""What Slack's cursors of messages begin with, before they are encoded."""


def info(call: MethodCall) -> Json:
    channel = call.channel()
    call.require_channel_scope(channel, "read")
    return {"channel": call.renderer.channel(channel)}


def of_bot(call: MethodCall) -> Json:
    """Returns the channels that the bot is in, a page at a time, in the order of their ids."""
    kinds = (call.arguments.text("types") or "public_channel").split(",")
    families = {_FAMILIES.get(kind.strip(), kind) for kind in kinds}
    for family in sorted(families):
        call.require_scope(f"{family}:read")
    mine = [channel for channel in call.state.channels.values() if call.bot_user_id in channel.members]
    mine = [channel for channel in mine if channel.scope_family in families]
    if call.arguments.flag("exclude_archived"):
        mine = [channel for channel in mine if not channel.is_archived]
    after = call.arguments.text("cursor")
    limit = call.arguments.integer("limit", 100, high=MAX_MESSAGES) or 100
    found = sorted((channel for channel in mine if channel.id > after), key=lambda channel: channel.id)
    cursor = found[limit - 1].id if len(found) > limit else ""
    channels = [call.renderer.channel(channel) for channel in found[:limit]]
    return {"channels": channels, "response_metadata": {"next_cursor": cursor}}


def join(call: MethodCall) -> Json:
    channel = call.channel()
    if channel.is_private or channel.is_im:
        raise SlackError("method_not_supported_for_channel_type")
    if channel.is_archived:
        raise SlackError("is_archived")
    call.state.join(channel, call.bot_user_id)
    return {"channel": call.renderer.channel(channel)}


def history(call: MethodCall) -> Json:
    """Returns the channel's messages, newest first. Of replies, only those that were also sent to the channel."""
    channel = _readable(call)
    oldest, latest = _window(call)
    if before := _position(call.arguments):
        latest = before
    limit = call.arguments.integer("limit", 100, high=MAX_MESSAGES) or 100
    shown = (m for m in call.state.conversation(channel).newest_first(oldest, latest) if _in_history(m))
    found = list(islice(shown, limit + 1))
    page = found[:limit]
    cursor = _cursor(microseconds(found[limit].ts)) if len(found) > limit else ""
    answer = {"messages": _rendered(call, page), "has_more": bool(cursor)}
    return answer | ({"response_metadata": {"next_cursor": cursor}} if cursor else {})


def replies(call: MethodCall) -> Json:
    """Returns a thread, oldest first. As in Slack, every page begins with the thread's first message."""
    channel = _readable(call)
    ts = call.arguments.timestamp("ts")
    conversation = call.state.conversation(channel)
    first = conversation.get(ts) if ts else None
    if first is None:
        raise SlackError("thread_not_found")
    oldest, latest = _window(call)
    oldest = max(oldest, _position(call.arguments))
    limit = call.arguments.integer("limit", MAX_MESSAGES, high=MAX_MESSAGES) or MAX_MESSAGES
    inside = [m for m in conversation.replies(first.ts) if oldest <= microseconds(m.ts) <= latest]
    page, rest = inside[: max(limit - 1, 1)], inside[max(limit - 1, 1) :]
    cursor = _cursor(microseconds(rest[0].ts)) if rest else ""
    answer = {"messages": _rendered(call, [first, *page]), "has_more": bool(rest)}
    return answer | ({"response_metadata": {"next_cursor": cursor}} if cursor else {})


def _readable(call: MethodCall) -> Channel:
    channel = call.channel()
    call.require_channel_scope(channel, "history")
    return call.require_membership(channel)


def _window(call: MethodCall) -> tuple[int, int]:
    """Returns the requested time span in microseconds, both ends inclusive."""
    edge = 0 if call.arguments.flag("inclusive") else 1
    oldest, latest = call.arguments.timestamp("oldest"), call.arguments.timestamp("latest")
    start = microseconds(oldest) + edge if oldest else 0
    end = microseconds(latest) - edge if latest else _END_OF_TIME
    return start, end


def _in_history(message: Message) -> bool:
    return not message.is_reply or message.subtype == "thread_broadcast"


def _rendered(call: MethodCall, messages: list[Message]) -> list[Json]:
    metadata = call.arguments.flag("include_all_metadata")
    return [call.renderer.message(message, metadata=metadata) for message in messages]


def _cursor(position: int) -> str:
    return base64.b64encode(f"{_CURSOR}:{position}".encode()).decode()


def _position(arguments: Arguments) -> int:
    """Returns the position in the cursor given; 0 without one.

    Raises:
        SlackError: ``invalid_cursor``.
    """
    cursor = arguments.text("cursor")
    if not cursor:
        return 0
    try:
        text = base64.b64decode(cursor, validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        raise SlackError("invalid_cursor") from None
    kind, _, position = text.partition(":")
    if kind != _CURSOR or not position.isdigit() or len(position) > 20:  # noqa: PLR2004 - microseconds have 16 digits
        raise SlackError("invalid_cursor")
    return int(position)


METHODS = {
    "conversations.info": Method(info),
    "conversations.join": Method(join, "channels:join"),
    "conversations.history": Method(history),
    "conversations.replies": Method(replies),
    "users.conversations": Method(of_bot),
}
