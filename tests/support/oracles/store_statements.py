"""Every statement that the store runs: a session that uses all of it, and what it sent to the database."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from sqlalchemy import Engine, event, text
from sqlalchemy.engine import ExecutionContext
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    JOB,
    LEASE,
    StoreWorld,
    a_follow_up,
    a_post,
    a_reaction,
    a_start,
    a_thread,
    an_answer,
    changed,
    unchanged,
)

from bot.domain.context import FetchedParts, FileOutcome
from bot.domain.delivery import ReactionProgress
from bot.domain.findings import LastTime
from bot.domain.gaps import Gap, Listening
from bot.domain.messages import FileProblem, SlackFile
from bot.domain.people import Preference
from bot.domain.requests.audit import AuditAction, AuditEntry
from bot.domain.requests.request import Person, RejectionReason, Reply, RequestContext, RequestKind, RequestState
from bot.domain.threads.thread import Participation, ThreadOptions, ThreadOrigin, ThreadState
from bot.jobapi.models import Job, Requester
from bot.notices.answers import PostNotDelivered
from bot.notices.job import RecordDamaged
from bot.notices.notice import NewNotice, NoticeKey, PostOutdated, Reaction
from bot.store.notice_queue import ClaimedNotice
from bot.store.retention import OldRows
from bot.store.store import Transaction, open_store
from bot.store.threads import UnchangedPoll


@dataclass
class Statements:
    """What was sent, each text once with its first parameters; `ran` holds the statements before compilation."""

    sent: dict[str, Any] = field(default_factory=dict)
    ran: list[object] = field(default_factory=list)

    def see(
        self,
        _connection: object,
        _cursor: object,
        statement: str,
        parameters: Any,
        context: ExecutionContext | None,
        many: bool,  # noqa: FBT001 - SQLAlchemy's signature
    ) -> None:
        self.sent.setdefault(statement, parameters[0] if many else parameters)
        self.ran.append(getattr(context, "invoked_statement", None))


@contextmanager
def seen_statements() -> Iterator[Statements]:
    """Records the statements of every engine in this process."""
    statements = Statements()
    event.listen(Engine, "before_cursor_execute", statements.see)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", statements.see)


async def use_all(url: str, clock: FakeClock) -> None:
    """Opens a store, uses all its methods, and closes it."""
    store = StoreWorld(await open_store(url, clock=clock))
    parts = (
        _record,
        _reply_early,
        _request,
        _prepare,
        _follow,
        _parts,
        _deliver,
        _call_slack,
        _poll,
        _follow_pull_requests,
        _meet_damage,
        _look_after,
        _people,
        _listen,
        _restore,
        _remove,
    )
    for part in parts:
        await part(store, clock)
    await cast("Any", store.store)._repair_times()
    await store.close()


async def _listen(store: StoreWorld, clock: FakeClock) -> None:
    async def listens(owner: str) -> bool:
        return await store.transact(lambda tx: tx.gaps.listens(owner, Listening(-1.0, 0.0)))

    await listens("one")
    clock.time += 600
    await store.transact(lambda tx: tx.gaps.listens_no_more("one"))
    await listens("two")
    for again in (True, False):
        claimed = await store.transact(lambda tx: tx.gaps.claim("one", lease=LEASE, limit=9))
        for each in claimed:
            assert await store.transact(lambda tx, gap=each.gap: tx.gaps.keep(gap, "one", lease=LEASE))  # type: ignore[misc]
            await store.transact(lambda tx, gap=each.gap: tx.gaps.spread(gap))  # type: ignore[misc]
            if again:
                await store.transact(lambda tx, gap=each.gap: tx.gaps.postpone(gap, "one", due_in=0.0))  # type: ignore[misc]
            else:
                await store.transact(lambda tx, gap=each.gap: tx.gaps.close(gap, "one"))  # type: ignore[misc]
    await store.transact(lambda tx: tx.gaps.add([Gap("C1", "1.1", 1.0, 2.0)], newest=1.0))
    await store.transact(lambda tx: tx.gaps.restored())
    assert await store.transact(lambda tx: tx.gaps.is_new_stop("t1", "UANA"))


async def _record(store: StoreWorld, clock: FakeClock) -> None:
    notices = (CARD, a_post("a"), a_reaction("1.1", "eyes"))
    await store.add(a_thread("t1"), a_start("t1"), a_follow_up("1.1", "t1"), say=notices)

    async def again(tx: Transaction) -> bool:
        return await tx.threads.add(a_thread("t1", created_at=tx.now))

    assert not await store.transact(again)
    assert await store.transact(lambda tx: tx.threads.get("t1"))
    await store.transact(lambda tx: tx.notices.add("t1", CARD))
    assert await store.transact(lambda tx: tx.notices.is_open("t1", NoticeKey("a")))
    assert not await store.transact(lambda tx: tx.notices.posted_ts("t1", NoticeKey("a")))
    await store.say(NewNotice(NoticeKey("a"), PostOutdated()))
    await store.transact(lambda tx: tx.notices.drop_held("t1"))
    await store.transact(lambda tx: tx.notices.try_again("t1", NoticeKey("a")))
    await store.transact(lambda tx: tx.notices.move(NoticeKey("a"), "t1", "t1"))


async def _reply_early(store: StoreWorld, clock: FakeClock) -> None:
    reply = Reply(Person("UANA", "T1"), "C1", "1700000001.1", "1700000002.1", "words")
    assert await store.transact(lambda tx: tx.early_replies.keep(reply))
    deleted = replace(reply, thread_ts="", edited_at="1700000003.1", withdrawn=True)
    assert await store.transact(lambda tx: tx.early_replies.keep(deleted))
    assert await store.transact(lambda tx: tx.message_versions.note(deleted.version))
    assert not await store.transact(lambda tx: tx.message_versions.note(reply.version))
    assert await store.transact(lambda tx: tx.message_versions.answer(reply.version))
    assert await store.transact(lambda tx: tx.early_replies.are_expected("C1", "1700000001.1"))
    assert await store.transact(lambda tx: tx.early_replies.take("C1", "1700000001.1"))
    await store.transact(lambda tx: tx.threads.set_card("t1", "1700000001.1"))
    assert not await store.transact(lambda tx: tx.early_replies.take("C1", "1700000001.1"))
    assert await store.transact(lambda tx: tx.threads.find_by_card("C1", "1700000001.1"))


async def _request(store: StoreWorld, clock: FakeClock) -> None:
    (start,) = await store.claim_requests()
    assert await store.transact(lambda tx: tx.requests.claimed(start.request, "one", RequestState.SENDING))
    await store.transact(lambda tx: tx.requests.settle(start.request.id, RequestState.ACCEPTED))
    await store.transact(lambda tx: tx.threads.save_state("t1", ThreadState(job=JOB), poll_in=0.0))
    assert await store.transact(lambda tx: tx.requests.find_start("t1"))
    assert await store.transact(lambda tx: tx.requests.waiting_follow_ups("t1"))
    (reply,) = await store.claim_requests()
    again = RequestState.WAITING
    await store.transact(lambda tx: tx.requests.settle(reply.request.id, again, due_in=0.0, afresh=True))
    assert await store.transact(lambda tx: tx.requests.get(reply.request.id))
    await store.transact(lambda tx: tx.requests.set_text(reply.request.id, "words with a name"))
    asked = Requester("Ana", "UANA", "https://slack.example/archives/C1/p1")
    await store.transact(lambda tx: tx.requests.set_requester(reply.request.id, asked))
    (of_reply,) = await store.transact(lambda tx: tx.requests.find_by_reply("t1", "1.1"))
    await store.transact(lambda tx: tx.requests.save(replace(of_reply, text="edited", edited_at="2.1")))


async def _prepare(store: StoreWorld, clock: FakeClock) -> None:
    received = RequestState.RECEIVED
    replies = [a_follow_up(f"5.{number}", "t1", state=received) for number in range(3)]
    await store.add(*replies)
    claimed = await store.transact(lambda tx: tx.requests.claim_received("one", lease=LEASE, limit=9))
    for item in claimed:
        await store.transact(partial(_not_tried, item.request.id))
    claimed = await store.transact(lambda tx: tx.requests.claim_received("one", lease=LEASE, limit=9))
    assert [(item.request.id, item.request.attempts) for item in claimed] == [(reply.id, 1) for reply in replies]

    async def prepared(tx: Transaction) -> None:
        first, second, held = (item.request for item in claimed)
        for request in (first, second):
            await tx.requests.prepared(replace(request, state=RequestState.WAITING))
        await tx.requests.prepared(replace(held, state=RequestState.AWAITING_PERSON))
        assert await tx.requests.held("t1", held.person_id)
        assert second.id in {request.id for request in await tx.requests.follow_ups_after(first, limit=9)}
        assert await tx.requests.several_wait("t1")
        await tx.requests.merge(first, [second], "one", lease=LEASE)
        assert await tx.requests.merged_into(first)
        assert await tx.requests.on_their_way("t1")
        await tx.requests.unmerge(first)
        assert not await tx.requests.stops("t1")
        await tx.threads.set_project("t1", "docs", ThreadOptions())
        await tx.threads.set_origin("t1", ThreadOrigin.REQUEST)
        start = await tx.requests.find_start("t1")
        assert start is not None
        await tx.requests.save(replace(start, text="Do it well"))
        assert await tx.threads.find_newest("C1", "1700000001.1")
        assert await tx.threads.newest_of("C1", limit=10)
        await tx.requests.remove(replace(start, id="nobody's"))
        await tx.requests.waiting_for("UANA", limit=10)
        assert await tx.threads.of_person("UANA", offset=0, limit=10)
        await tx.threads.detach("nobody's")

    await store.transact(prepared)


async def _not_tried(request_id: str, tx: Transaction) -> None:
    await tx.requests.settle(request_id, RequestState.RECEIVED, problem="waits", tried=False)


async def _follow(store: StoreWorld, clock: FakeClock) -> None:
    follower = a_thread("f1", root_ts="1700000001.1", follows="t1")
    await store.add(follower, replace(a_start("f1"), state=RequestState.RECEIVED))

    async def work(tx: Transaction) -> None:
        assert await tx.requests.has_pending_start("t1")
        attached = await tx.threads.attach(follower)
        assert (attached.ts, attached.number) == ("1700000001.1", 1)
        unsent = await tx.requests.unsent("t1")
        await tx.requests.move(unsent[:1], "f1")
        moved = await tx.requests.get(unsent[0].id)
        assert moved is not None
        assert (moved.thread_id, moved.state) == ("f1", RequestState.RECEIVED)

    await store.transact(work)


async def _parts(store: StoreWorld, clock: FakeClock) -> None:
    replies = [a_follow_up(f"6.{number}", "t1", state=RequestState.WAITING) for number in range(2)]
    await store.add(*replies)
    first, second = (reply.id for reply in replies)
    file = SlackFile("F1", "a.png")

    async def work(tx: Transaction) -> None:
        parts = tx.request_parts
        await parts.keep_fetched(first, FetchedParts(failing_since=1.0))
        assert (await parts.fetched(first)).failing_since == 1.0
        for request in (first, second):
            await parts.to_upload(request, [file])
        one, other = await parts.claim("one", lease=LEASE, limit=9)
        assert await parts.is_claimed_by(one, "one")
        await parts.postpone(one, due_in=0.0)
        await parts.tried(first)
        await parts.settle(other, FileOutcome(problem=FileProblem.REFUSED))
        assert await parts.settled(other.request_id)
        await parts.complete(other.request_id, RequestContext("a.png"))
        await tx.requests.settle(one.request_id, RequestState.REJECTED, problem=RejectionReason.HANDED_BACK)
        assert not await parts.claim("one", lease=LEASE, limit=9)
        await tx.requests.settle(one.request_id, RequestState.WAITING, afresh=True)
        assert await parts.claim("one", lease=LEASE, limit=9)
        for request in (first, second):
            await tx.requests.settle(request, RequestState.WITHDRAWN)

    await store.transact(work)


async def _people(store: StoreWorld, clock: FakeClock) -> None:
    async def work(tx: Transaction) -> None:
        await tx.audit.add(AuditEntry(AuditAction.ASKED, Person("UANA", "T1"), "C1"))
        assert await tx.audit.read(since=tx.now, until=tx.now + 1, after=0, limit=10)
        await tx.limits.count("UANA", "counted")
        assert await tx.limits.free_at("UANA", "another", limit=1, within=60.0) == tx.now + 60.0
        await tx.drafts.save("UANA", "C1", "Fix")
        assert await tx.drafts.get("UANA", "C1") == "Fix"
        await tx.drafts.delete("UANA", "C1")
        await tx.preferences.save("UANA", Preference("docs"))
        assert (await tx.preferences.get("UANA")).project == "docs"
        await tx.homes.opened("UANA")
        await tx.homes.changed("UANA", due_in=0.0)
        (home,) = await tx.homes.claim("one", lease=LEASE, limit=1)
        await tx.homes.published(home.person_id, "one")

    await store.transact(work)


async def _deliver(store: StoreWorld, clock: FakeClock) -> None:
    async def one(then: Callable[[Transaction, ClaimedNotice], Awaitable[bool]]) -> None:
        (item,) = await store.claim_notices(limit=1)
        assert await store.transact(lambda tx: then(tx, item))

    await one(lambda tx, item: tx.notices.postpone(item.notice, "one", due_in=0.0, uncertain=True, without_blocks=True))
    await one(lambda tx, item: tx.notices.delivered(item.notice, "one", ts="1700000001.1"))
    await one(lambda tx, item: tx.notices.give_up(item.notice, "one", problem="not_in_channel"))
    await store.deliver_all()


async def _call_slack(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread("m1", ts="m1.1"), say=[a_reaction("5.5", "eyes")])
    for done in (False, True):
        (item,) = await store.claim_notices()
        shown = ReactionProgress((Reaction.RECORDED,), done=done)
        assert await store.transact(partial(_reacted, item, shown))
    assert (await store.use_budget("users.info", lambda budget: budget.take("users.info", 2))).calls == 2
    await store.refuse("chat.postMessage", "C9", 1.0)
    await store.transact(lambda tx: tx.slack_calls.posted("C9", failed=True))


async def _reacted(item: ClaimedNotice, shown: ReactionProgress, tx: Transaction) -> bool:
    return await tx.notices.reacted(item.notice, "one", shown)


async def _poll(store: StoreWorld, clock: FakeClock) -> None:
    for name in ("t2", "t3"):
        await store.add(a_thread(name, ts=f"{name}.1"))
        await store.transact(lambda tx, name=name: tx.threads.save_state(name, ThreadState(job=JOB), poll_in=0.0))  # type: ignore[misc]
    polls = {poll.id: poll for poll in await store.claim_polls()}  # all due at once, so in any order
    second, third = polls.pop("t2"), polls.pop("t3")
    (first,) = polls.values()
    stale = replace(third, revision=7)
    results = (changed(first, a_post("b"), next_poll_in=0.0), unchanged(second, next_poll_in=0.0), unchanged(stale))
    assert await store.save_polls(*results) == 2
    await store.transact(lambda tx: tx.threads.save_state("t3", ThreadState(job=JOB), poll_in=None))
    claimed = await store.transact(lambda tx: tx.polls.claim("one", lease=LEASE, limit=9, known=lambda _: True))
    (known,) = (poll for poll in claimed if poll.thread_id == "t2")
    assert await store.transact(lambda tx: tx.polls.thread(known))
    assert await store.save_polls(UnchangedPoll(known.thread_id, known.revision, 0.0)) == 1


async def _follow_pull_requests(store: StoreWorld, clock: FakeClock) -> None:
    job = Job("j5", "completed", "https://git.example/5")
    for number, name in enumerate(("p1", "p2")):
        await store.add(a_thread(name, ts="5.1", card_ts=f"5.1{number}", number=number))
        await store.transact(lambda tx, name=name: tx.threads.save_state(name, ThreadState(job=job), poll_in=None))  # type: ignore[misc]
    claimed = await store.transact(lambda tx: tx.pull_requests.claim("one", lease=LEASE, limit=9))
    (older,) = (each for each in claimed if each.thread.id == "p1")
    held = await store.transact(lambda tx: tx.pull_requests.held(older, "one"))
    assert held is not None
    assert held.is_told_elsewhere
    assert await store.transact(lambda tx: tx.pull_requests.of("p1")) == held.followed
    await store.transact(lambda tx: tx.pull_requests.make_due([older.link]))
    await store.transact(lambda tx: tx.pull_requests.save("p1", held.followed, next_read_in=None))
    assert not await store.transact(lambda tx: tx.pull_requests.follow_unknown(since=clock.now() - 1, limit=9))
    await store.transact(lambda tx: tx.pull_requests.withdraw("p1", [NoticeKey("stale")]))
    clock.advance(10)
    assert await store.transact(lambda tx: tx.retention.delete_texts(before=clock.now() - 1, limit=2))


async def _meet_damage(store: StoreWorld, clock: FakeClock) -> None:
    for name in ("d1", "d2"):
        await store.add(a_thread(name, ts=f"{name}.1"), a_follow_up("1.1", name), say=[a_post("a")])
        await store.transact(lambda tx, name=name: tx.threads.save_state(name, ThreadState(job=JOB), poll_in=0.0))  # type: ignore[misc]
    await _run(store, "UPDATE threads SET state = '{' WHERE id = 'd1'")
    await _run(store, "UPDATE notices SET message = '{' WHERE thread_id = 'd2'")
    await store.claim_polls()
    await store.claim_requests()
    await store.claim_notices()


async def _look_after(store: StoreWorld, clock: FakeClock) -> None:
    await store.transact(lambda tx: tx.condition.try_write())
    await store.transact(lambda tx: tx.condition.backlog(["chat.update"]))
    await store.transact(lambda tx: tx.claims.release("one"))
    await store.transact(lambda tx: tx.condition.note_last_times([LastTime.EVENT]))


async def _restore(store: StoreWorld, clock: FakeClock) -> None:
    await store.add(a_thread("r1", ts="7.1"), a_start("r1"), a_follow_up("7.2", "r1"), say=[a_post("r")])
    await store.transact(lambda tx: tx.restoration.mark_requests_in_doubt())
    assert await store.transact(lambda tx: tx.restoration.open_of_kinds([RequestKind.FOLLOW_UP]))
    assert await store.transact(lambda tx: tx.restoration.open_threads())
    assert await store.transact(lambda tx: tx.restoration.mark_notices_in_doubt())
    assert await store.transact(lambda tx: tx.restoration.mark_reactions_in_doubt(after=0, limit=5))
    await store.transact(lambda tx: tx.restoration.mark_pull_requests_in_doubt())


async def _delete_old(kind: OldRows, before: float, tx: Transaction) -> int:
    return await tx.retention.delete_old(kind, before=before, limit=2)


async def _remove(store: StoreWorld, clock: FakeClock) -> None:
    told = an_answer("told", "UANA")
    await store.add(a_thread("old", ts="8.1"))
    clock.advance(10)
    await store.add(a_thread("other", requester_id="UCLEO", ts="9.1"), a_follow_up("9.2", "other", person_id="UANA"))
    await store.transact(lambda tx: tx.notices.add("other", told))
    assert await store.transact(lambda tx: tx.retention.delete_finished(before=clock.now() - 1, limit=2))
    await store.transact(lambda tx: tx.drafts.save("UCLEO", "C1", "Fix"))
    await store.transact(lambda tx: tx.channel_ids.changed("X7", "X8", 2.0))
    await store.transact(lambda tx: tx.channel_ids.changed("X6", "X7", 1.0))
    assert await store.transact(lambda tx: tx.channel_ids.all_of("X8")) == ("X6", "X7", "X8")
    before = clock.now() + 1
    assert await store.transact(lambda tx: tx.retention.delete_channel_ids(before=before, limit=2))
    assert await store.transact(lambda tx: tx.retention.delete_held(before=before, limit=2))
    for kind in OldRows:
        assert await store.transact(partial(_delete_old, kind, before))
    await store.transact(lambda tx: tx.drafts.save("UCLEO", "job/C1", "Fix"))
    await store.add(
        a_thread(
            "named", requester_id="UCLEO", ts="9.5", state=ThreadState(people=Participation(participants=("UANA",)))
        ),
        a_follow_up("9.6", "named", person_id="UCLEO", state=RequestState.ACCEPTED, context=RequestContext("words")),
        say=[NewNotice(NoticeKey("told"), PostNotDelivered("UCLEO", RecordDamaged(), may_be_posted=False))],
    )
    await store.deliver_all()
    assert await store.transact(lambda tx: tx.retention.forget_quoted(after="", limit=500))
    assert await store.transact(lambda tx: tx.retention.forget_repeated(after="n", limit=500))
    assert await store.transact(lambda tx: tx.retention.forget_taking_part("UANA", after="m", limit=500))
    await store.transact(lambda tx: tx.retention.forget_person("UANA", limit=5))
    await store.transact(lambda tx: tx.retention.forget_channel("C1", limit=5))


async def _run(store: StoreWorld, statement: str) -> None:
    async def run(tx: Transaction) -> None:
        await cast("Any", tx).session.connection.execute(text(statement))

    await store.transact(run)


def of_the_store(sent: Mapping[str, Any], tables: Sequence[str]) -> dict[str, Any]:
    """Returns the statements about the given tables, without those of this module."""
    kinds = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
    return {
        statement: values
        for statement, values in sent.items()
        if statement.lstrip().startswith(kinds) and any(table in statement for table in tables)
    }
