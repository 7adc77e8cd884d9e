"""Forgetting a person or a channel deletes everything that Pagehand has about them, down to the bytes of its files."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from support.worlds.store_world import (
    CARD,
    JOB,
    Sql,
    StoreWorld,
    a_follow_up,
    a_start,
    a_thread,
)

from bot.cli.personal_data import forget_all
from bot.domain.messages import ForwardedMessage
from bot.domain.requests.request import Attachments, RejectionReason, RequestContext, RequestKind, RequestState
from bot.domain.threads.thread import Announcements, Participation, ThreadState, UnexplainedRejection
from bot.notices.answers import PostNotDelivered
from bot.notices.notice import NewNotice, NoticeKey
from bot.notices.requests import RequestRejected, RequestSummary
from bot.store.store import Transaction

pytestmark = [pytest.mark.either_database, pytest.mark.promise("forget")]

PLANTED = "planted words of Ana"
OF_HERS = RequestSummary("r1", "UANA", RequestKind.FOLLOW_UP, PLANTED)
REJECTED = RequestRejected(OF_HERS, RejectionReason.API)
SHARE = ForwardedMessage("Ana", PLANTED)


async def forget(url: str, *, person_id: str = "", channel_id: str = "") -> str:
    return await asyncio.to_thread(forget_all, url, person_id=person_id, channel_id=channel_id)


async def fill(store: StoreWorld) -> None:
    """A job of Ben's, with Ana's text and id wherever other people's rows can contain them."""
    waiting = (UnexplainedRejection(NoticeKey("w"), REJECTED),)
    state = ThreadState(
        JOB,
        people=Participation(participants=("UANA", "UCLEO")),
        announcements=Announcements(unexplained=waiting),
    )
    await store.add(
        a_thread("his", requester_id="UBEN", ts="5.1", state=ThreadState()),
        a_start("his", person_id="UBEN", state=RequestState.ACCEPTED, context=RequestContext(f"Ana:\n> {PLANTED}")),
        a_follow_up("5.2", "his", state=RequestState.ACCEPTED, attachments=Attachments(forwarded=(SHARE,))),
        say=[CARD],
    )

    async def more(tx: Transaction) -> None:
        await tx.threads.save_state("his", state, poll_in=5.0)
        rejected = replace(REJECTED, request=replace(OF_HERS, person_id="UBEN"))
        told = PostNotDelivered("UBEN", rejected, may_be_posted=False)
        await tx.notices.add("his", NewNotice(NoticeKey("told"), told))

    await store.transact(more)
    assert "his/told" in await store.deliver_all()


def holds(directory: Path, words: str) -> bool:
    """Returns whether a database's files contain this text."""
    return any(words.encode() in file.read_bytes() for file in directory.glob("pagehand.db*"))


async def test_traces_of_a_person_in_other_rows_are_deleted(store: StoreWorld, database: str, sql: Sql) -> None:
    await fill(store)
    said = await forget(database, person_id="UANA")
    assert "quotations: 2" in said
    assert "Out of reach: backups, " in said
    tables = ("threads", "requests", "notices")
    rows = [str(await sql(f"SELECT * FROM {table}")) for table in tables]  # noqa: S608 - the tests' own words
    assert not [table for table, held in zip(tables, rows, strict=True) if PLANTED in held or "UANA" in held]
    assert (await store.get_thread("his")).state.people.participants == ("UCLEO",)
    assert (await store.get_request("his-start")).text == "Do it"
    assert (await forget(database, person_id="UANA")).startswith("There is nothing to delete.")


async def test_no_trace_is_left_in_the_database_files(scratch: Path, store: StoreWorld, database: str) -> None:
    """On SQLite, where the files are ours, with an instance running."""
    await fill(store)
    await store.transact(lambda tx: tx.drafts.save("UANA", "job/C1", PLANTED))
    await store.add(a_thread("hers", prompt=PLANTED), a_start("hers", text=PLANTED))
    on_sqlite = database.startswith("sqlite")
    assert holds(scratch, PLANTED) == on_sqlite
    said = await forget(database, person_id="UANA")
    assert "still contain traces" not in said
    assert ("PostgreSQL's files" in said) != on_sqlite
    assert not holds(scratch, PLANTED)
    await store.add(a_thread("later"))  # a running instance continues


async def test_unfinished_jobs_are_kept_and_reported(store: StoreWorld, database: str) -> None:
    """Quotations in other people's unfinished work are kept until it is finished."""
    context = RequestContext("somebody's words")
    await store.add(a_thread("his", requester_id="UBEN", ts="5.1"), a_follow_up("5.2", "his", context=context))
    said = await forget(database, person_id="UANA")
    assert "Left: 1 unfinished entry of other people" in said
    assert (await store.get_request("his-5.2")).context == context
    await store.transact(lambda tx: tx.requests.settle("his-5.2", RequestState.ACCEPTED))
    assert "Left" not in await forget(database, person_id="UANA")
    assert (await store.get_request("his-5.2")).context is None


async def test_forgetting_a_channel_deletes_its_drafts(store: StoreWorld, database: str, sql: Sql) -> None:
    await store.add(a_thread("here", channel_id="C1"))
    places = ("job/C1", "message/C1/1.1", "thread/here", "job/C2", "message/C2/1.1", "job/C11")
    for place in places:
        await store.transact(lambda tx, place=place: tx.drafts.save("UBEN", place, "words"))  # type: ignore[misc]
    await forget(database, channel_id="C1")
    assert {row[0] for row in await sql("SELECT place FROM drafts")} == set(places[3:])
