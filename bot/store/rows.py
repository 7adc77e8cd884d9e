"""Rows to values and back."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json
from sqlalchemy import RowMapping

from bot.domain.models import Known, Notice, NoticeKind, Request, Saying, Thread
from bot.errors import UnreadableRow
from bot.store.tables import NoticeState, notices, requests, threads
from bot.store.text import cleaned

_KNOWN = TypeAdapter(Known)
_THREAD = TypeAdapter(Thread)
_REQUEST = TypeAdapter(Request)
_NOTICE = TypeAdapter(Notice)

_THREAD_FIELDS = [
    threads.c[name]
    for name in ("id", "team_id", "channel_id", "ts", "asker_id", "prompt", "project_id", "created_at", "revision")
]
_REQUEST_FIELDS = [requests.c[name] for name in Request.__dataclass_fields__]
_NOTICE_FIELDS = [notices.c[name] for name in Notice.__dataclass_fields__ if name != "facts"]
LASTING = frozenset({NoticeKind.CARD, NoticeKind.MARK})
"""The kinds that are one row for good, which opens again."""


def _json(value: Any) -> str:
    return json.dumps(cleaned(value), ensure_ascii=False, separators=(",", ":"))


def _read(adapter: TypeAdapter[Any], name: str, values: dict[str, Any], **texts: str) -> Any:
    try:
        return adapter.validate_python(values | {field: from_json(text) for field, text in texts.items()})
    except ValueError as error:
        # Pydantic's own words would quote what people wrote.
        raise UnreadableRow(f"{name} can't be read") from error


def known_text(known: Known) -> str:
    """What is known, as JSON."""
    return _json(_KNOWN.dump_python(known, mode="json"))


def facts_text(facts: Mapping[str, str]) -> str:
    """A notice's facts, as JSON."""
    return _json(dict(facts))


def thread_values(thread: Thread) -> dict[str, Any]:
    """The row of a thread."""
    return {column.name: getattr(thread, column.name) for column in _THREAD_FIELDS} | known_values(thread.known)


def known_values(known: Known) -> dict[str, Any]:
    """The columns that hold what is known."""
    return {"known": known_text(known), "job_id": known.job.id if known.job else None}


def request_values(request: Request) -> dict[str, Any]:
    """The row of a request, but for its time and claim."""
    return {column.name: getattr(request, column.name) for column in _REQUEST_FIELDS}


def notice_values(thread_id: str, saying: Saying, now: float) -> dict[str, Any]:
    """The row of a new notice, due at once."""
    return {
        "key": f"{thread_id}/{saying.key}",
        "thread_id": thread_id,
        "kind": saying.kind,
        "what": saying.what,
        "facts": facts_text(saying.facts),
        "created_at": now,
        "state": NoticeState.WAITING,
        "revision": 0,
        "attempts": 0,
        "uncertain": False,
        "plain": False,
        "problem": "",
        "due_at": now,
    }


def thread_from(row: RowMapping) -> Thread:
    """The thread of a row that has the columns of `threads`; raises UnreadableRow."""
    return _thread_from(row, row[threads.c.known])


def thread_to_speak_in(row: RowMapping) -> Thread:
    """The thread of such a row for whoever only posts there: what is known of its job is left out if it can't be read.
    Raises UnreadableRow.
    """
    try:
        return thread_from(row)
    except UnreadableRow:
        return _thread_from(row, known_text(Known()))


def _thread_from(row: RowMapping, known: str) -> Thread:
    values = {column.name: row[column] for column in _THREAD_FIELDS}
    thread: Thread = _read(_THREAD, f"thread {values['id']}", values, known=known)
    return thread


def request_from(row: RowMapping) -> Request:
    """The request of a row that has the columns of `requests`; raises UnreadableRow."""
    values = {column.name: row[column] for column in _REQUEST_FIELDS}
    request: Request = _read(_REQUEST, f"request {values['id']}", values)
    return request


def notice_from(row: RowMapping) -> Notice:
    """The notice of a row that has the columns of `notices`; raises UnreadableRow."""
    values = {column.name: row[column] for column in _NOTICE_FIELDS}
    notice: Notice = _read(_NOTICE, f"notice {values['id']}", values, facts=row[notices.c.facts])
    return notice
