"""Converts rows to values and back; messages of notices are JSON with a `kind`."""

import json
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json
from sqlalchemy import RowMapping

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.requests.request import Attachments, Person, Reply, Request, RequestContext
from bot.domain.threads.thread import Thread, ThreadOptions, ThreadState
from bot.errors import UnreadableRow
from bot.jobapi.models import Requester
from bot.notices import answers, job, questions
from bot.notices import requests as request_notices
from bot.notices.notice import (
    KINDS,
    Delivery,
    NewNotice,
    Notice,
    NoticeContent,
    Reaction,
    ReactionChanged,
    UnknownNotice,
    in_database,
    read,
    written,
)
from bot.store.schema.column_types import storable_json
from bot.store.schema.tables import NoticeState, early_replies, notices, requests, threads

FAMILIES = (answers, job, questions, request_notices)
"""Imported so that each of their notices is known by its kind."""


def json_text(value: Any) -> str:
    """Returns a JSON value as text that any database can store."""
    return json.dumps(storable_json(value), ensure_ascii=False, separators=(",", ":"))


def message_text(message: NoticeContent) -> str:
    """Returns a message as JSON."""
    return json_text(written(message))


def message_from(text: str, delivery: str) -> NoticeContent:
    """Returns the message of a row. A kind that only a newer version knows is kept as it is if it is a post or goes to
    one person. Raises ValueError.
    """
    found = from_json(text)
    kind = _unknown_kind_in(found)
    if kind is None:
        return read(found)
    if delivery not in {Delivery.POST, Delivery.EPHEMERAL}:
        raise ValueError(f"nothing is known of this {delivery}")
    return UnknownNotice(
        kind, {name: value for name, value in found.items() if name != "kind"}, delivery=Delivery(delivery)
    )


def unknown_kind(text: str) -> str | None:
    """Returns the kind of a message in JSON if only a newer version knows it."""
    try:
        return _unknown_kind_in(from_json(text))
    except ValueError:
        return None


def _unknown_kind_in(found: object) -> str | None:
    kind = found.get("kind") if isinstance(found, dict) else None
    return kind if isinstance(kind, str) and kind not in KINDS else None


_STATE = TypeAdapter(ThreadState)
_THREAD = TypeAdapter(Thread)
_REQUEST = TypeAdapter(Request)
_NOTICE = TypeAdapter(Notice)
_ATTACHMENTS = TypeAdapter(Attachments)
_REQUESTER = TypeAdapter(Requester)
_CONTEXT = TypeAdapter(RequestContext)
_OPTIONS = TypeAdapter(ThreadOptions)

_THREAD_FIELDS = [
    threads.c[name] for name in Thread.__dataclass_fields__ if name not in {"options", "state", "has_replies"}
]
_REQUEST_FIELDS = [
    requests.c[name] for name in Request.__dataclass_fields__ if name not in {"attachments", "context", "requester"}
]
_PARTS_OF_STATE = {
    name: frozenset(field.type.__dataclass_fields__)
    for name, field in ThreadState.__dataclass_fields__.items()
    if is_dataclass(field.type)
}
_NOTICE_FIELDS = [notices.c[name] for name in Notice.__dataclass_fields__ if name != "message"]
LASTING = frozenset({Delivery.CARD, Delivery.REACTION})
"""The deliveries whose notice is one lasting row, which is reopened."""


def _read(
    adapter: TypeAdapter[Any],
    name: str,
    values: dict[str, Any],
    read: Callable[[str], Any] = from_json,
    **texts: str,
) -> Any:
    try:
        return adapter.validate_python(values | {field: read(text) for field, text in texts.items()})
    except ValueError as error:
        # Pydantic's own message would quote what people wrote.
        raise UnreadableRow(f"{name} cannot be read") from error


def state_json(state: ThreadState) -> str:
    """Returns the state as JSON, with the fields of all its parts on one level."""
    values: dict[str, Any] = _STATE.dump_python(state, mode="json")
    for part in _PARTS_OF_STATE:
        values |= values.pop(part)
    return json_text(values)


def state_from(text: str) -> ThreadState:
    """Returns the state from such JSON, without fields that only a newer version knows. Raises ValueError."""
    values = from_json(text)
    if isinstance(values, dict):
        for part, names in _PARTS_OF_STATE.items():
            values[part] = {name: values[name] for name in names & values.keys()}
    return _STATE.validate_python(values)


def thread_values(thread: Thread) -> dict[str, Any]:
    """Returns the row of a thread."""
    values = {column.key: getattr(thread, column.key) for column in _THREAD_FIELDS}
    return values | {"options": options_json(thread.options)} | state_values(thread.state)


def options_json(options: ThreadOptions) -> str:
    """Returns the options of a job as JSON."""
    return json_text(_OPTIONS.dump_python(options, mode="json"))


def state_values(state: ThreadState) -> dict[str, Any]:
    """Returns the columns that hold the state."""
    return {"state": state_json(state), "job_id": state.job.id if state.job else None}


def request_values(request: Request) -> dict[str, Any]:
    """Returns the row of a request, without its time and claim."""
    values = {column.key: getattr(request, column.key) for column in _REQUEST_FIELDS}
    return values | {
        "requester": requester_json(request.requester),
        "attachments": attachments_json(request.attachments),
        "context": context_json(request.context),
    }


def context_json(context: RequestContext | None) -> str | None:
    """Returns a request's context as JSON; None while it is unknown."""
    return None if context is None else json_text(_CONTEXT.dump_python(context, mode="json"))


def attachments_json(attachments: Attachments) -> str:
    """Returns a message's attachments as JSON; empty if there are none."""
    return json_text(_ATTACHMENTS.dump_python(attachments, mode="json")) if attachments else ""


def requester_json(requester: Requester | None) -> str | None:
    """Returns the requester as JSON; None while unknown."""
    return None if requester is None else json_text(_REQUESTER.dump_python(requester, mode="json"))


def notice_values(thread_id: str, notice: NewNotice, now: float) -> dict[str, Any]:
    """Returns the row of a new notice."""
    return {
        "key": in_database(thread_id, notice.key),
        "thread_id": thread_id,
        "delivery": notice.message.delivery,
        "message": message_text(notice.message),
        "person_id": notice.message.about or None,
        "created_at": now,
        "state": NoticeState.WAITING,
        "revision": 0,
        "attempts": 0,
        "uncertain": False,
        "without_blocks": False,
        "reactions_shown": "",
        "reaction_added": isinstance(notice.message, ReactionChanged) and notice.message.reaction is None,
        "only_progress": notice.only_progress,
        "problem": "",
        "due_at": now + notice.due_in,
    }


def thread_from(row: RowMapping) -> Thread:
    """Returns the thread of a row with the columns of `threads`. Raises UnreadableRow."""
    return _thread_from(row, row[threads.c.state])


def thread_to_speak_in(row: RowMapping) -> Thread:
    """Returns the thread of such a row for posting only, without an unreadable state. Raises UnreadableRow."""
    try:
        return thread_from(row)
    except UnreadableRow:
        return _thread_from(row, state_json(ThreadState()))


def _thread_from(row: RowMapping, state: str) -> Thread:
    values = {column.key: row[column] for column in _THREAD_FIELDS}
    options = row[threads.c.options]
    try:
        values["state"] = state_from(state)
    except ValueError as error:
        raise UnreadableRow(f"thread {values['id']} cannot be read") from error
    thread: Thread = _read(_THREAD, f"thread {values['id']}", values, options=options)
    return thread


def request_from(row: RowMapping) -> Request:
    """Returns the request of a row with the columns of `requests`. Raises UnreadableRow."""
    values = {column.key: row[column] for column in _REQUEST_FIELDS}
    values["requester"] = _requester(row[requests.c.requester])
    values["attachments"] = _attachments(row[requests.c.attachments])
    context = row[requests.c.context]
    texts = {} if context is None else {"context": context}
    request: Request = _read(_REQUEST, f"request {values['id']}", values, **texts)
    return request


def notice_from(row: RowMapping) -> Notice:
    """Returns the notice of a row with the columns of `notices`. Raises UnreadableRow."""
    values = {column.key: row[column] for column in _NOTICE_FIELDS}
    shown = values["reactions_shown"]
    values["reactions_shown"] = None if shown is None else tuple(shown.split())
    read = partial(message_from, delivery=row[notices.c.delivery])
    notice: Notice = _read(_NOTICE, f"notice {values['id']}", values, read, message=row[notices.c.message])
    return notice


def reactions_text(shown: Sequence[Reaction]) -> str:
    """Returns reactions as a row stores them."""
    return " ".join(shown)


def _requester(text: str | None) -> Requester | None:
    """Returns the requester, or None to look it up again if it is unreadable, which must not lose the request."""
    try:
        return None if text is None else _REQUESTER.validate_json(text)
    except ValueError:
        return None


def early_reply_values(reply: Reply) -> dict[str, Any]:
    """Returns the row of a reply whose thread is still unknown."""
    return {
        "channel_id": reply.channel_id,
        "message_ts": reply.message_ts,
        "thread_ts": reply.thread_ts,
        "person_id": reply.person.id,
        "team_id": reply.person.team_id,
        "text": reply.text,
        "attachments": attachments_json(reply.attachments),
        "edited_at": reply.edited_at,
        "withdrawn": reply.withdrawn,
        "mentions_us": reply.mentions_us,
        "word": reply.word or "",
    }


def early_reply_from(row: RowMapping) -> Reply:
    """Returns the reply of a row with the columns of `early_replies`."""
    columns = early_replies.c
    return Reply(
        Person(row[columns.person_id], row[columns.team_id]),
        row[columns.channel_id],
        row[columns.thread_ts],
        row[columns.message_ts],
        row[columns.text],
        _attachments(row[columns.attachments]),
        row[columns.edited_at],
        row[columns.withdrawn],
        row[columns.mentions_us],
        ThreadWord(row[columns.word]) if row[columns.word] in set(ThreadWord) else None,
    )


def _attachments(text: str) -> Attachments:
    """Returns a stored reply's attachments; none if they are unreadable, which must not lose its text."""
    try:
        return _ATTACHMENTS.validate_json(text) if text else Attachments()
    except ValueError:
        return Attachments()
