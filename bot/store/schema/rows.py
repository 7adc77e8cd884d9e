"""Converts rows to values and back; messages of notices are JSON with a `kind`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json
from sqlalchemy import RowMapping

from bot.domain.commands import ThreadWord
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.requests.request import NO_ATTACHMENTS, Attachments, Person, Reply, Request
from bot.domain.threads.thread import Thread, ThreadState
from bot.errors import UnreadableRow
from bot.jobapi.models import Requester
from bot.notices import answers, job, pictures, proposals, questions
from bot.notices import pull_requests as pull_request_notices
from bot.notices import requests as request_notices
from bot.notices.notice import (
    KINDS,
    Delivery,
    NewNotice,
    Notice,
    NoticeContent,
    ReactionChanged,
    UnknownNotice,
    in_database,
    read,
    written,
)
from bot.queue.columns import storable, storable_json
from bot.store.schema.tables import early_replies, notices, pull_requests, requests, threads

T = TypeVar("T")

FAMILIES = (answers, job, pictures, proposals, pull_request_notices, questions, request_notices)
"""Imported so that each of their notices is known by its kind."""


_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def adapter(kind: type[T]) -> TypeAdapter[T]:
    """Returns what reads and writes values of a class."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


_dumps = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))


def json_text(value: Any) -> str:
    """Returns a JSON value as text that any database can store."""
    text = _dumps(value)
    return _dumps(storable_json(value)) if "\\u0000" in text or storable(text) != text else text


def json_of(value: object) -> str:
    """Returns a value as JSON."""
    return json_text(adapter(type(value)).dump_python(value, mode="json"))


def json_if_known(value: object | None) -> str | None:
    """Returns a value as JSON; None while it is unknown."""
    return None if value is None else json_of(value)


def attachments_json(attachments: Attachments) -> str:
    """Returns a message's attachments as JSON; empty if there are none."""
    return json_of(attachments) if attachments else ""


def read_or(otherwise: T, kind: type[T], text: str | None) -> T:
    """Returns the value of JSON; `otherwise` if there is none, or it is unreadable, which must not lose the row."""
    try:
        return adapter(kind).validate_json(text) if text else otherwise
    except ValueError:
        return otherwise


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


_THREAD_FIELDS = [
    threads.c[name]
    for name in Thread.__dataclass_fields__
    if name not in {"options", "state", "has_replies", "pull_request"}
]
_REQUEST_FIELDS = [
    requests.c[name] for name in Request.__dataclass_fields__ if name not in {"attachments", "context", "requester"}
]
_PARTS_OF_STATE = {
    name: frozenset(field.type.__dataclass_fields__)
    for name, field in ThreadState.__dataclass_fields__.items()
    if is_dataclass(field.type)
}
_REPLY_FIELDS = [
    column for column in early_replies.c if column.key in Reply.__dataclass_fields__.keys() - {"attachments", "word"}
]
_NOTICE_FIELDS = [notices.c[name] for name in Notice.__dataclass_fields__ if name != "message"]
PULL_REQUEST = pull_requests.c.followed.label("pull_request")
"""What a card shows of a pull request, for queries of threads."""
LASTING = frozenset({Delivery.CARD, Delivery.REACTION})
"""The deliveries whose notice is one lasting row, which is reopened."""


@contextmanager
def _reading(what: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        # Pydantic's own message would quote what people wrote.
        raise UnreadableRow(f"{what} cannot be read") from error


def state_json(state: ThreadState) -> str:
    """Returns the state as JSON, with the fields of all its parts on one level."""
    values: dict[str, Any] = adapter(ThreadState).dump_python(state, mode="json")
    for part in _PARTS_OF_STATE:
        values |= values.pop(part)
    return json_text(values)


def state_from(text: str) -> ThreadState:
    """Returns the state from such JSON, without fields that only a newer version knows. Raises ValueError."""
    values = from_json(text)
    if isinstance(values, dict):
        for part, names in _PARTS_OF_STATE.items():
            values[part] = {name: values[name] for name in names & values.keys()}
    return adapter(ThreadState).validate_python(values)


def thread_values(thread: Thread) -> dict[str, Any]:
    """Returns the row of a thread."""
    values = {column.key: getattr(thread, column.key) for column in _THREAD_FIELDS}
    return values | {"options": json_of(thread.options)} | state_values(thread.state)


def state_values(state: ThreadState) -> dict[str, Any]:
    """Returns the columns that hold the state."""
    return {"state": state_json(state), "job_id": state.job.id if state.job else None}


def request_values(request: Request) -> dict[str, Any]:
    """Returns the row of a request, without its time and claim."""
    values = {column.key: getattr(request, column.key) for column in _REQUEST_FIELDS}
    return values | {
        "requester": json_if_known(request.requester),
        "attachments": attachments_json(request.attachments),
        "context": json_if_known(request.context),
    }


def notice_values(thread_id: str, notice: NewNotice, now: float) -> dict[str, Any]:
    """Returns the row of a new notice."""
    return {
        "key": in_database(thread_id, notice.key),
        "thread_id": thread_id,
        "delivery": notice.message.delivery,
        "message": message_text(notice.message),
        "person_id": notice.message.about or None,
        "created_at": now,
        "reaction_added": isinstance(notice.message, ReactionChanged) and notice.message.reaction is None,
        "only_progress": notice.only_progress,
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


def followed_from(text: str) -> FollowedPullRequest:
    """Returns what was last read of a pull request; if that is unreadable, it counts as never read."""
    return read_or(FollowedPullRequest(), FollowedPullRequest, text)


def _thread_from(row: RowMapping, state: str) -> Thread:
    values = {column.key: row[column] for column in _THREAD_FIELDS}
    followed = row.get(PULL_REQUEST.key)
    values["pull_request"] = followed_from(followed) if followed else None
    with _reading(f"thread {values['id']}"):
        values |= {"options": from_json(row[threads.c.options]), "state": state_from(state)}
        return adapter(Thread).validate_python(values)


def request_from(row: RowMapping) -> Request:
    """Returns the request of a row with the columns of `requests`. Raises UnreadableRow."""
    values = {column.key: row[column] for column in _REQUEST_FIELDS}
    # An unreadable requester is looked up again.
    values["requester"] = read_or(None, Requester, row[requests.c.requester])
    values["attachments"] = read_or(NO_ATTACHMENTS, Attachments, row[requests.c.attachments])
    with _reading(f"request {values['id']}"):
        if (context := row[requests.c.context]) is not None:
            values["context"] = from_json(context)
        return adapter(Request).validate_python(values)


def notice_from(row: RowMapping) -> Notice:
    """Returns the notice of a row with the columns of `notices`. Raises UnreadableRow."""
    values = {column.key: row[column] for column in _NOTICE_FIELDS}
    shown = values["reactions_shown"]
    values["reactions_shown"] = None if shown is None else tuple(shown.split())
    with _reading(f"notice {values['id']}"):
        values["message"] = message_from(row[notices.c.message], row[notices.c.delivery])
        return adapter(Notice).validate_python(values)


def early_reply_values(reply: Reply) -> dict[str, Any]:
    """Returns the row of a reply whose thread is still unknown."""
    return {column.key: getattr(reply, column.key) for column in _REPLY_FIELDS} | {
        "person_id": reply.person.id,
        "team_id": reply.person.team_id,
        "attachments": attachments_json(reply.attachments),
        "word": reply.word or "",
    }


def early_reply_from(row: RowMapping) -> Reply:
    """Returns the reply of a row with the columns of `early_replies`."""
    columns = early_replies.c
    return Reply(
        person=Person(row[columns.person_id], row[columns.team_id]),
        attachments=read_or(NO_ATTACHMENTS, Attachments, row[columns.attachments]),
        word=ThreadWord(row[columns.word]) if row[columns.word] in set(ThreadWord) else None,
        **{column.key: row[column] for column in _REPLY_FIELDS},
    )
