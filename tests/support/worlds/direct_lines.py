"""What Ana writes in her direct message with Pagehand, outside its threads, and how she answers questions about it."""

from dataclasses import replace
from typing import Any

from support.worlds.core_world import ANA, CoreWorld

from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Person, Reply, RequestKind, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.notices.questions import JobOrReplyAsked

NEW_JOB, ADD = RequestKind.DISCARD_HELD, RequestKind.SEND_HELD
"""What the two buttons record."""


def a_line(text: str, ts: str, **changed: Any) -> NewJob:
    """Returns a line as the listener builds it; `changed` are its fields."""
    job = NewJob(
        ANA,
        "D1",
        text,
        f"message/D1/{ts}",
        WayIn.DIRECT_MESSAGE,
        thread_ts=ts,
        message_ts=ts,
        origin=ThreadOrigin.REQUEST,
        may_be_reply=True,
    )
    return replace(job, **changed)


async def write_line(world: CoreWorld, text: str, ts: str, **changed: Any) -> None:
    """Writes it as Ana, and does the work that follows."""
    await world.service.start(a_line(text, ts, **changed))
    await world.settle()


def an_edit(text: str, ts: str, at: str, **changed: Any) -> Reply:
    """Returns an edit of a line, as the listener builds it."""
    return replace(Reply(ANA, "D1", "", ts, text, edited_at=at, in_direct_message=True), **changed)


def asked(world: CoreWorld) -> list[str]:
    """Returns what people were asked about."""
    return [question.text for question in world.chat.private_as(JobOrReplyAsked)]


async def answer(world: CoreWorld, kind: RequestKind, key: str = "p1", *, which: int = 0, person: Person = ANA) -> None:
    """Presses a button of one of the questions, and lets time pass."""
    await world.press(kind, person, world.chat.private_as(JobOrReplyAsked)[which].request_id, key=key)
    await world.pass_time(8)
