import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select
from support.fakes.held_store import HeldStore
from support.worlds.core_world import ANA, BEN, EVA, CoreWorld

from bot.domain.jobs.poll_pace import Polling
from bot.domain.permissions import Refusal
from bot.domain.projects import Project, Projects
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Person, Reply, WayIn
from bot.domain.slack_limits import SLACK_LIMITS, Limit, SlackMethod
from bot.domain.threads.thread import Thread
from bot.errors import (
    ChatNotAllowed,
    ChatRateLimited,
    ChatRejected,
    ChatTooRich,
    JobApiError,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUncertain,
    JobApiUnreachable,
    NoSuchProject,
)
from bot.jobapi.models import SeenJob
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import Reaction
from bot.notices.requests import RequestUncertain
from bot.runtime.health import RECOVERY_SECONDS
from bot.scheduler.scheduler import Scheduler, SchedulerEdges, SchedulerSettings
from bot.scheduler.settings import SchedulerVariables
from bot.scheduler.worker import ANYTHING, DueWork
from bot.service import Service
from bot.store.schema.tables import polls
from bot.store.store import Transaction

LINK = "https://example.org/pull/1"


async def test_a_waiting_reply_is_marked_as_recorded(world: CoreWorld) -> None:
    """The first reaction is removed again by a separate call."""
    ts = await world.started()
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(3)]
    await world.reply(ts, "Shorter", "5.1", wait=0)
    assert world.chat.reactions == {}
    await world.pass_time(6)
    assert world.chat.reactions == {"5.1": Reaction.RECORDED}
    await world.pass_time(30)
    assert world.chat.all_reactions == {"5.1": [Reaction.ACCEPTED]}
    assert [call for call in world.chat.calls if call in {"mark", "unmark"}] == ["mark", "mark", "unmark"]


async def test_marks_wait_for_the_merging_window(world: CoreWorld) -> None:
    """And two seconds more: a reply sent within that time costs one call, and any other is marked as recorded."""
    world.configure(merge_seconds=3.0)
    ts = await world.started()
    await world.reply(ts, "Shorter", "5.1", wait=30)
    assert [call for call in world.chat.calls if call in {"mark", "unmark"}] == ["mark"]
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(9)]
    await world.reply(ts, "Longer", "5.2", wait=4)
    assert "5.2" not in world.chat.reactions
    await world.pass_time(2)
    assert world.chat.reactions["5.2"] is Reaction.RECORDED


async def test_a_mark_slack_refused_to_remove_is_not_added_again(world: CoreWorld) -> None:
    """Nothing that succeeded is repeated."""
    world.chat.fail(unmark=[ChatRateLimited("ratelimited", retry_after=20.0)] * 3)
    ts = await world.started()
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(3)]
    await world.reply(ts, "Shorter", "5.1", wait=120)
    assert world.chat.all_reactions == {"5.1": [Reaction.ACCEPTED]}
    assert [call for call in world.chat.calls if call in {"mark", "unmark"}] == ["mark", "mark", *["unmark"] * 4]


async def test_follow_ups_keep_their_order(world: CoreWorld) -> None:
    ts = await world.started()
    for at in ("5.3", "5.1", "5.2", "5.1"):
        await world.reply(ts, at, at)
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == ["5.1", "5.2", "5.3"]


async def test_sending_again_is_limited_to_the_workspace_and_the_author(world: CoreWorld) -> None:
    """On Enterprise Grid, a click names a colleague's home workspace, not our common organization."""
    ts = await world.started()
    await world.reply(ts, "more", "5.1", BEN)
    world.job_api.after = [JobApiUncertain("cut off")]
    await world.pass_time(3)
    (uncertain,) = world.chat.posted_as(RequestUncertain)
    request_id = uncertain.request.request_id
    for person in (EVA, Person("UEVA", ""), Person(BEN.id, "T3")):
        await world.press_send_again(person, request_id, key=f"click/{person.id}")
    await world.pass_time(3)
    assert world.job_api.messages["job-1"] == ["more", "more"]
    answers = [(answer.person_id, answer.answer) for answer in world.chat.private_as(ActionAnswered)]
    assert answers == [(BEN.id, ActionAnswer.SENT_AGAIN)]
    assert world.chat.refusals() == [("UEVA", Refusal.OTHER_ORGANIZATION)]


async def test_a_vanished_job_is_reported_once_and_replies_are_answered(world: CoreWorld) -> None:
    ts = await world.started()
    jobs = dict(world.job_api.jobs)
    world.job_api.jobs.clear()
    await world.pass_time(100)
    world.restart("two")
    assert world.chat.said(ts) == ["job_started"]
    await world.pass_time(100)
    await world.reply(ts, "more", "5.1", wait=60)
    assert world.chat.said(ts) == ["job_started", "job_disappeared", "request_rejected"]
    world.job_api.jobs.update(jobs)
    await world.reply(ts, "and this", "5.2", wait=10)
    assert world.chat.said(ts) == ["job_started", "job_disappeared", "request_rejected", "outage_ended"]
    assert world.job_api.messages["job-1"] == ["and this"]


@pytest.mark.first(fault=1)
@pytest.mark.parametrize(
    "fault", [JobApiRejected("400", words="too vague"), NoSuchProject("404", words="no project")], ids=["400", "404"]
)
async def test_a_refused_start_mentions_everyone_who_replied(world: CoreWorld, fault: JobApiError) -> None:
    world.job_api.faults = [JobApiUnreachable("down"), fault]
    ts = await world.started()
    await world.reply(ts, "and this", "5.1", wait=10)
    await world.reply(ts, "too late", "5.2", wait=5)
    assert world.job_api.created == []
    assert world.chat.said(ts) == ["request_rejected", "request_rejected", "request_rejected"]
    assert world.chat.reactions == {"5.1": Reaction.PROBLEM, "5.2": Reaction.PROBLEM}


async def test_a_rejected_api_key_is_reported_once_and_requests_wait(world: CoreWorld) -> None:
    world.job_api.faults = [JobApiNotAllowed("401", status=401) for _ in range(3)]
    ts = await world.started()
    await world.pass_time(400)
    assert world.chat.said(ts) == ["access_denied", "outage_ended", "job_started"]
    assert world.job_api.created == ["Do it"]


async def test_a_busy_channel_holds_up_no_other(world: CoreWorld) -> None:
    def busy(call: str, thread: Thread | None) -> None:
        if thread is not None and thread.channel_id == "C1":
            raise ChatRateLimited("ratelimited", retry_after=100.0)

    world.chat.fault = busy
    await world.ask(NewJob(ANA, "C1", "one", "k1", WayIn.COMMAND))
    await world.ask(NewJob(ANA, "C1", "two", "k2", WayIn.COMMAND))
    await world.ask(NewJob(ANA, "C2", "three", "k3", WayIn.COMMAND), wait=20)
    assert world.job_api.created == ["three"]
    world.chat.recover()
    await world.pass_time(120)
    assert sorted(world.job_api.created) == ["one", "three", "two"]


@pytest.mark.first(call=1)
@pytest.mark.parametrize(
    ("refusals", "as_text"),
    [
        ([ChatTooRich("invalid_blocks")] * 3, False),
        ([ChatTooRich("invalid_blocks"), ChatRejected("invalid_blocks")], True),
    ],
)
@pytest.mark.parametrize("call", ["post_card", "update_card"])
async def test_a_card_with_refused_blocks_gets_plainer_ones_and_only_then_text(
    world: CoreWorld, call: str, refusals: list[ChatRejected], *, as_text: bool
) -> None:
    """At once, and each with an attempt of its own, which Slack's limits count."""
    world.chat.fail(**{call: refusals})
    await world.started()
    assert world.chat.calls.count(call) >= len(refusals) + 1
    (thread_id,) = world.chat.cards or world.chat.follow_ups
    assert (thread_id in world.chat.as_text) is as_text
    assert [message.kind for message in world.chat.messages].count("card_changed") == 1


async def test_a_revoked_token_pauses_everything(world: CoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    ts = await world.started()
    world.chat.fail(ChatNotAllowed("token_revoked", words="The bot token was revoked."))
    await world.show("completed", LINK, wait=300)
    assert world.outbox.status().failing_seconds > 0.0
    assert world.outbox.status().reason == "The bot token was revoked."
    assert caplog.messages.count("Slack: not working, will keep trying: The bot token was revoked.") == 1
    world.chat.recover()
    await world.pass_time(90)
    assert world.chat.said(ts) == ["job_started", "job_finished"]
    await world.pass_time(RECOVERY_SECONDS)
    assert world.outbox.status().failing_seconds == 0.0


async def test_a_failed_request_once_settled_is_no_lasting_outage(world: CoreWorld) -> None:
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.started()
    assert world.request_sender.job_api_status("docs").failing_seconds == 0.0
    world.clock.advance(100)
    assert world.request_sender.job_api_status("docs").failing_seconds == 100.0
    world.clock.advance(100)
    assert world.request_sender.job_api_status("docs").failing_seconds == 0.0


async def test_a_reply_racing_its_own_card_waits_for_no_other_card(world: CoreWorld) -> None:
    ts = await world.started()
    await world.ask(NewJob(ANA, "C1", "Another card, still on its way", "k2", WayIn.COMMAND))
    transact = world.store.transact

    async def first_looked_too_early(work: Callable[[Transaction], Awaitable[Any]], **options: bool) -> Any:
        async def racing(tx: Transaction) -> Any:
            looks = iter([None])
            real = tx.threads.find_newest
            tx.threads.find_newest = lambda channel_id, ts: (  # type: ignore[method-assign]
                _nothing() if next(looks, tx) is None else real(channel_id, ts)
            )
            return await work(tx)

        return await transact(racing, **options)

    world.store.transact = first_looked_too_early  # type: ignore[method-assign]
    await world.reply(ts, "Shorter", "5.1")
    world.store.transact = transact  # type: ignore[method-assign]
    await world.pass_time(3)
    assert world.job_api.messages["job-1"] == ["Shorter"]


async def _nothing() -> None:
    return None


async def test_stopping_the_poller_leaves_no_unsaved_poll(world: CoreWorld) -> None:
    """Polls are saved by a separate task, which would otherwise use a closed store after the stop."""
    await world.started()
    world.clock.advance(10.0)
    store = HeldStore(world.store, free=1)
    world.configure(store=store)
    running = asyncio.create_task(world.job_poller.run())
    async with asyncio.timeout(10):
        await store.reached.wait()
    assert world.job_api.polls == 1, "the save is blocked"
    await world.job_poller.stop(0.0)
    await running
    assert store.cancelled == 1


async def test_stopping_the_poller_waits_for_a_claim_in_flight(world: CoreWorld) -> None:
    """Otherwise it would use a closed store, and others might claim the same work meanwhile."""
    await world.start()
    store = HeldStore(world.store)
    world.configure(store=store)
    running = asyncio.create_task(world.outbox.run())
    async with asyncio.timeout(10):
        await store.reached.wait()
        stopping = asyncio.create_task(world.outbox.stop(5.0))
        await asyncio.sleep(0)
        store.release()
        await stopping
    assert running.done()
    assert [message.kind for message in world.chat.messages] == ["card_changed"]
    assert list(world.outbox._tasks) == []


@pytest.mark.full
async def test_other_tasks_run_between_the_starts_of_two_polls(world: CoreWorld) -> None:
    """An acknowledgement waits for one poll, not for all due ones."""
    await _at_rest(world, 30)
    world.assemble()
    running, seen = asyncio.create_task(world.job_poller.run()), [0]
    async with asyncio.timeout(10):
        while world.job_api.polls < 30:
            await asyncio.sleep(0)
            seen.append(world.job_api.polls)
    await world.job_poller.stop(5.0)
    await running
    assert max(later - earlier for earlier, later in itertools.pairwise(seen)) <= 2


async def test_polling_is_bounded_by_what_may_wait_to_be_saved(world: CoreWorld) -> None:
    await _at_rest(world, 5)
    world.assemble(concurrency=2, batch_window=3_600.0, max_unsaved=3)
    running = asyncio.create_task(world.job_poller.run())
    async with asyncio.timeout(10):
        while world.job_api.polls < 3:  # noqa: ASYNC110 - the fake tells nobody
            await asyncio.sleep(0)
    assert world.job_poller.free_slots() <= 0
    await world.job_poller.stop(5.0)
    await running
    assert world.job_api.polls == 3
    assert world.job_poller.free_slots() == 3, "a whole batch is saved, and as many may be claimed ahead"
    world.restart("two")
    assert len(await world.job_poller.claim(10)) == 2


async def test_as_many_jobs_are_claimed_ahead_as_were_just_polled(world: CoreWorld) -> None:
    """So that no poll waits for a claim. Those of a process that stops are polled by another."""
    await _at_rest(world, 8)
    world.assemble(concurrency=2, batch_window=3_600.0)
    look, answers = world.job_api.look, asyncio.Event()

    async def slow_after_two(project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        seen = await look(project, job_id, unless=unless)
        if world.job_api.polls > 2:
            await answers.wait()
        return seen

    world.job_api.look = slow_after_two  # type: ignore[method-assign]  # the fake's own
    running = asyncio.create_task(world.job_poller.run())
    async with asyncio.timeout(10):
        while (world.job_api.polls, await _claimed(world)) != (4, 6):  # noqa: ASYNC110 - a row tells nobody
            await asyncio.sleep(0)
    await world.job_poller.stop(0.0)
    await running
    answers.set()
    world.restart("two")
    await world.pass_time(40)
    assert await _claimed(world) == 0
    assert world.job_api.polls >= 4 + 6


async def _claimed(world: CoreWorld) -> int:
    claimed = select(polls).where(polls.c.claimed_by.is_not(None))
    return len(await world.store.transact(lambda tx: tx.session.rows(claimed)))


async def _at_rest(world: CoreWorld, count: int) -> None:
    """This many jobs, all due for their first poll."""
    for number in range(count):
        await world.started(f"Do {number}", key=f"k{number}")
    world.clock.advance(10.0)
    world.job_api.polls = 0


@pytest.fixture
async def scheduler(world: CoreWorld) -> Scheduler:
    settings = SchedulerSettings(
        "one", 20.0, Projects((Project("docs"),)), world.rules, Polling(), variables=SchedulerVariables()
    )
    nobody: Any = None  # Homes are not shown here, and no history is read
    reading, always = world.reading.ports, lambda: math.inf
    edges = SchedulerEdges(
        world.store, world.job_api, world.code_hosts, world.chat, world.people, reading, nobody, always, nobody, nobody
    )
    return Scheduler(settings, edges)


def woken(scheduler: Scheduler) -> set[str]:
    return {worker.name for worker in scheduler.workers if worker._woken.is_set()}


@pytest.mark.parametrize(
    ("left", "name"),
    [
        (DueWork.PREPARE, "request preparer"),
        (DueWork.UPLOAD, "file uploader"),
        (DueWork.SEND, "request sender"),
        (DueWork.DELIVER, "outbox"),
    ],
)
async def test_a_commit_wakes_the_workers_it_left_work_for(scheduler: Scheduler, left: DueWork, name: str) -> None:
    for worker in scheduler.workers:
        worker._settings.on_commit(frozenset({left}))
        assert woken(scheduler) == {name}


async def test_a_persons_request_wakes_the_first_workers(scheduler: Scheduler) -> None:
    """Their Home is updated, too; nothing is sent before it is prepared."""
    scheduler.wake_senders()
    assert woken(scheduler) == {"request preparer", "outbox", "home publisher"}


async def test_what_was_recorded_wakes_the_workers(world: CoreWorld) -> None:
    ts, woken = await world.started(), []
    service = Service(world.store, on_commit=lambda: woken.append("workers"))
    assert await service.receive(Reply(ANA, "C1", ts, "5.1", "Shorter"))
    assert woken == ["workers"]
    assert not await service.receive(Reply(ANA, "C1", "9.9", "10.1", "among us"))
    assert woken == ["workers"]


@pytest.mark.parametrize("goes_ahead", [False, True])
async def test_each_step_of_a_start_wakes_the_next_worker(world: CoreWorld, *, goes_ahead: bool) -> None:
    """And no other: from the request to the card, the job, and the card with the job."""
    world.job_api.cancels = goes_ahead
    left = list[frozenset[DueWork]]()
    settings = replace(world.request_preparer._settings, on_commit=left.append)
    for worker in world.loops:
        worker._settings = settings
    await world.ask(NewJob(ANA, "C1", "Do it", "k", WayIn.COMMAND), wait=0)
    deliver, send = DueWork.DELIVER, DueWork.SEND
    assert left[0] == (ANYTHING if goes_ahead else {deliver})
    assert left[1:] == [ANYTHING, {send, deliver}, {deliver}, {deliver}]


METHODS = {
    "mark": SlackMethod.ADD_REACTION,
    "unmark": SlackMethod.REMOVE_REACTION,
    "update_card": SlackMethod.UPDATE,
    "post": SlackMethod.POST_MESSAGE,
    "post_card": SlackMethod.POST_MESSAGE,
    "tell": SlackMethod.POST_EPHEMERAL,
}


class StrictSlack:
    """Refuses calls beyond its limits, as Slack does; `strictness`: how much lower they are than documented."""

    def __init__(self, world: CoreWorld, strictness: float = 1.0) -> None:
        self._world = world
        self._strictness = strictness
        self._made: dict[tuple[str, str], list[float]] = {}
        self.refused: list[str] = []
        self.early: list[str] = []
        self._asked: dict[tuple[str, str], tuple[float, float]] = {}

    def check(self, call: str, thread: Thread | None) -> None:
        if call not in METHODS or thread is None:
            return
        method, now = METHODS[call], self._world.clock.now()
        for channel_id, limits in (("", SLACK_LIMITS.methods), (thread.channel_id, SLACK_LIMITS.channel)):
            if method not in limits:
                continue
            limit = Limit(max(int(limits[method].calls / self._strictness), 1), min(limits[method].seconds, 60.0))
            at = (method, channel_id)
            since, until = self._asked.get(at, (0.0, 0.0))
            if since < now < until:
                self.early.append(call)
            made = self._made.setdefault(at, [])
            if limit.left(made, now) == 0:
                wait = limit.wait(made, now)
                self._asked[at] = now, now + wait
                self.refused.append(call)
                raise ChatRateLimited("ratelimited", retry_after=wait, method=method)
            made.append(now + limit.seconds)


@pytest.fixture
def strict(world: CoreWorld) -> StrictSlack:
    """A Slack with the limits that it documents."""
    world.configure(slack_limits=SLACK_LIMITS)
    slack = StrictSlack(world)
    world.chat.fault = slack.check
    return slack


async def started_in(world: CoreWorld, *channels: str) -> list[str]:
    world.chat.joined |= set(channels)
    world.chat.public |= set(channels)
    roots = []
    for channel in channels:
        roots.append(await world.started(channel=channel, key=channel))
        await world.pass_time(5)
    return roots


async def replies(world: CoreWorld, channels: list[str], roots: list[str], *, count: int, every: float) -> None:
    for number in range(count):
        at = number % len(channels)
        await world.reply(roots[at], f"Change {number}", f"5.{number:06}", channel=channels[at], wait=every)


@pytest.mark.full
@pytest.mark.promise("slack limits")
async def test_ninety_replies_in_a_minute_are_marked_within_the_limits(world: CoreWorld, strict: StrictSlack) -> None:
    channels = ["C1", "C2", "C3"]
    await replies(world, channels, await started_in(world, *channels), count=90, every=2 / 3)
    await world.pass_time(32)
    assert strict.refused == []
    assert set(world.chat.reactions.values()) == {Reaction.ACCEPTED}
    assert len(world.chat.reactions) == 90
    assert world.chat.calls.count("mark") <= 90 + 30, "few waited so long that they were marked as noted down"


@pytest.mark.promise("slack limits")
async def test_a_lower_limit_than_documented_is_obeyed(world: CoreWorld, strict: StrictSlack) -> None:
    """No call is retried early, and no successful call is repeated."""
    half = StrictSlack(world, strictness=2.0)
    world.chat.fault = half.check
    channels = ["C1", "C2", "C3"]
    await replies(world, channels, await started_in(world, *channels), count=60, every=1.0)
    await world.pass_time(400)
    assert half.early == []
    assert len(world.chat.reactions) == 60
    assert set(world.chat.reactions.values()) == {Reaction.ACCEPTED}
    assert all(len(there) == 1 for there in world.chat.all_reactions.values())
    assert len(half.refused) <= 40


@pytest.mark.promise("slack limits")
@pytest.mark.parametrize("starts", [10, pytest.param(60, marks=pytest.mark.full)])
async def test_starts_in_one_channel_are_posted_at_its_rate(world: CoreWorld, strict: StrictSlack, starts: int) -> None:
    for number in range(starts):
        await world.start(f"Do {number}", key=f"k{number}", wait=60 / starts)
    for _ in range(12):
        await world.pass_time(15)  # in steps of a second, in which the outbox checks again
    assert strict.refused == []
    assert len(world.job_api.created) == starts
    kinds = [message.kind for message in world.chat.messages]
    assert (kinds.count("card_changed"), kinds.count("job_started")) == (starts, starts)
