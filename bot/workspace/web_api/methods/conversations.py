"""``conversations.*``."""

from itertools import islice

from bot.workspace.model.entities import Channel, Json, Message, microseconds
from bot.workspace.model.errors import SlackError
from bot.workspace.web_api.method import Method, MethodCall
from bot.workspace.web_api.methods.pagination import page_of, read_cursor, write_cursor

MAX_MESSAGES = 999
_END_OF_TIME = 10**18
_FAMILY_OF_TYPE = {"public_channel": "channels", "private_channel": "groups", "im": "im", "mpim": "mpim"}


def info(call: MethodCall) -> Json:
    channel = call.channel()
    call.require_channel_scope(channel, "read")
    return {"channel": call.renderer.channel(channel, with_members=call.arguments.flag("include_num_members"))}


def join(call: MethodCall) -> Json:
    channel = call.channel()
    if channel.is_private or channel.is_im:
        raise SlackError("method_not_supported_for_channel_type")
    if channel.is_archived:
        raise SlackError("is_archived")
    already = call.bot_user_id in channel.members
    call.state.join(channel, call.bot_user_id)
    answer: Json = {"channel": call.renderer.channel(channel)}
    if already:
        answer |= {"warning": "already_in_channel", "response_metadata": {"warnings": ["already_in_channel"]}}
    return answer


def list_channels(call: MethodCall) -> Json:
    types = {name.strip() for name in call.arguments.text("types", "public_channel").split(",")}
    if unknown := types - _FAMILY_OF_TYPE.keys():
        raise SlackError("invalid_types", messages=[f"unknown type: {min(unknown)}"])
    families = {_FAMILY_OF_TYPE[name] for name in types}
    for name in sorted(families):
        call.require_scope(f"{name}:read")
    channels = [c for c in call.state.channels.values() if c.scope_family in families and _is_listed(c, call)]
    page, metadata = page_of(channels, call.arguments, default=100)
    return {"channels": [call.renderer.channel(c, with_members=True) for c in page], "response_metadata": metadata}


def _is_listed(channel: Channel, call: MethodCall) -> bool:
    hidden = channel.is_archived and call.arguments.flag("exclude_archived")
    return not hidden and (channel.scope_family == "channels" or call.bot_user_id in channel.members)


def members(call: MethodCall) -> Json:
    channel = call.channel()
    call.require_channel_scope(channel, "read")
    page, metadata = page_of(channel.members, call.arguments, default=100)
    return {"members": list(page), "response_metadata": metadata}


def open_direct(call: MethodCall) -> Json:
    users = [user for user in call.arguments.required("users").split(",") if user]
    if len(users) != 1:
        raise SlackError("method_not_supported_for_channel_type" if users else "users_list_not_supplied")
    user = call.state.users.get(users[0])
    if user is None:
        raise SlackError("user_not_found")
    if user.is_bot:
        raise SlackError("cannot_dm_bot")
    before = len(call.state.channels)
    channel = call.state.direct_channel(call.bot_user_id, user.id)
    body = call.renderer.channel(channel) if call.arguments.flag("return_im") else {"id": channel.id}
    opened_before = {} if len(call.state.channels) > before else {"no_op": True, "already_open": True}
    return {**opened_before, "channel": body}


def history(call: MethodCall) -> Json:
    """Returns the channel's messages, newest first; replies only where they were also sent to the channel."""
    channel = _readable(call)
    oldest, latest = _window(call)
    if before := read_cursor(call.arguments, "next_ts"):
        latest = before
    limit = call.arguments.integer("limit", 100, low=0, high=MAX_MESSAGES) or 100
    shown = (m for m in call.state.conversation(channel).newest_first(oldest, latest) if _in_history(m))
    found = list(islice(shown, limit + 1))
    page = found[:limit]
    cursor = write_cursor("next_ts", microseconds(found[limit].ts)) if len(found) > limit else ""
    answer = {"messages": _rendered(call, page), "has_more": bool(cursor), "pin_count": 0}
    return answer | ({"response_metadata": {"next_cursor": cursor}} if cursor else {})


def replies(call: MethodCall) -> Json:
    """Returns a thread, oldest first. Every page begins with the thread's first message, as Slack's do."""
    channel = _readable(call)
    ts = call.arguments.timestamp("ts")
    conversation = call.state.conversation(channel)
    first = conversation.get(ts) if ts else None
    if first is None:
        raise SlackError("thread_not_found")
    oldest, latest = _window(call)
    oldest = max(oldest, read_cursor(call.arguments, "next_ts"))
    limit = call.arguments.integer("limit", MAX_MESSAGES, low=0, high=MAX_MESSAGES) or MAX_MESSAGES
    inside = [m for m in conversation.replies(first.ts) if oldest <= microseconds(m.ts) <= latest]
    page, rest = inside[: max(limit - 1, 1)], inside[max(limit - 1, 1) :]
    cursor = write_cursor("next_ts", microseconds(rest[0].ts)) if rest else ""
    answer = {"messages": _rendered(call, [first, *page]), "has_more": bool(rest)}
    return answer | ({"response_metadata": {"next_cursor": cursor}} if cursor else {})


def _readable(call: MethodCall) -> Channel:
    channel = call.channel()
    call.require_channel_scope(channel, "history")
    return call.require_membership(channel)


def _window(call: MethodCall) -> tuple[int, int]:
    """Returns the span asked for, in microseconds, both ends included."""
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


METHODS = {
    "conversations.info": Method(info),
    "conversations.join": Method(join, "channels:join"),
    "conversations.list": Method(list_channels, per_minute=20),
    "conversations.members": Method(members, per_minute=100),
    "conversations.open": Method(open_direct, "im:write"),
    "conversations.history": Method(history),
    "conversations.replies": Method(replies),
}
