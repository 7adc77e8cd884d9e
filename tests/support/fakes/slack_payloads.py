"""Slack's payloads, reduced to what the listeners need: a command, a reply and its edits, a press of a button."""

import time
from typing import Any

from support.worlds.listening_world import BOT, FORM

from bot.domain.requests.request import Reply
from bot.slack.receiving.http_receiver import signature_of

CHANGED_AT = "1700000009.000300"


def signed(secret: str, body: bytes, *, age: float = 0.0, content_type: str = FORM) -> dict[str, str]:
    """Returns the headers with which Slack sends a body, by default now; `age` is in seconds."""
    stamp = str(int(time.time() - age))
    signature = signature_of(secret, stamp, body).decode()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature, "Content-Type": content_type}


def command(text: Any = "Fix the guides", **changes: Any) -> dict[str, Any]:
    return {
        "command": "/docs",
        "text": text,
        "team_id": "T1",
        "user_id": "U0ANA",
        "channel_id": "C1",
        "trigger_id": "1.2.abc",
        "response_url": "http://127.0.0.1:9/secret",
        "api_app_id": "A1",
    } | changes


def event(**changes: Any) -> dict[str, Any]:
    message = {
        "type": "message",
        "user": "U0ANA",
        "text": "Also fix &lt;this&gt;",
        "ts": "1700000002.000100",
        "thread_ts": "1700000001.000100",
        "channel": "C1",
        "channel_type": "channel",
        "team": "T1",
    } | changes
    return {
        "type": "event_callback",
        "team_id": "T1",
        "api_app_id": "A1",
        "event_id": "Ev1",
        "event": {name: value for name, value in message.items() if value is not None},
        "authorizations": [{"team_id": "T1", "user_id": BOT, "is_bot": True}],
    }


def click(action_id: str, value: str = "r1", **changes: Any) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "user": {"id": "U0ANA", "team_id": "T1"},
        "team": {"id": "T1"},
        "channel": {"id": "C1"},
        "trigger_id": "1.2.abc",
        "response_url": "http://127.0.0.1:9/secret",
        "actions": [{"type": "button", "action_id": action_id, "block_id": "b", "value": value, "action_ts": "1.1"}],
    } | changes


def changed(subtype: str, at: str = CHANGED_AT, **what: Any) -> dict[str, Any]:
    """A message that is no longer as it was, as Slack delivers that."""
    nothing = dict.fromkeys(("user", "text", "thread_ts", "team"))
    return event(**(nothing | {"subtype": subtype, "hidden": True, "ts": at} | what))


def edit(text: Any = "New words", *, before: Any = "Old words", at: Any = CHANGED_AT, **changes: Any) -> dict[str, Any]:
    """An edit as Slack delivers it. `changes` are those of the message."""
    message = {
        "type": "message",
        "user": "U0ANA",
        "text": text,
        "ts": "1700000002.000100",
        "thread_ts": "1700000001.000100",
        "team": "T1",
        "edited": {"user": "U0ANA", "ts": "1700000009.000000"},
    } | changes
    previous = {**message, "text": before}
    previous.pop("edited")
    return changed(
        "message_changed",
        at,
        message={name: value for name, value in message.items() if value is not None},
        previous_message=previous if before is not None else None,
    )


def deletion(**changes: Any) -> dict[str, Any]:
    previous = {"user": "U0ANA", "text": "x", "ts": "1700000002.000100", "thread_ts": "1700000001.000100", "team": "T1"}
    return changed("message_deleted", **({"deleted_ts": "1700000002.000100", "previous_message": previous} | changes))


def in_a_table(words: str) -> str:
    """Returns a message with these words in a pasted table, as the agent gets it."""
    return f"See this\n\n| {words} |\n| --- |"


def event_of(reply: Reply, bot_user_id: str, *, by_tool: bool) -> dict[str, Any]:
    """Returns the event of a reply, which may end in a table."""
    text, _, table = reply.text.partition("\n\n| ")
    rows = [[{"type": "raw_text", "text": table.partition(" |")[0]}]]
    pasted = {"id": 1, "blocks": [{"type": "table", "rows": rows}], "fallback": "[no preview available]"}
    mention = f"<@{bot_user_id}> " if reply.mentions_us else ""
    return event(
        user=reply.person.id,
        team=reply.person.team_id,
        text=mention + text,
        attachments=[pasted] if table else None,
        ts=reply.message_ts,
        thread_ts=reply.thread_ts,
        channel=reply.channel_id,
        channel_type=None,
        **{"bot_id": "BTOOL", "app_id": "ATOOL"} if by_tool else {},
    )
