"""Retries, switches and other jobs in the same thread take effect as a whole, once they have passed their checks. One
that is refused or given up changes nothing, and can be asked for again.
"""

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.commands import ThreadWord
from bot.domain.messages import ThreadMessage
from bot.domain.permissions import PermissionRules, Refusal
from bot.domain.projects import ChannelSettings, Project, Projects, ReplyMode
from bot.domain.requests.new_jobs import Written
from bot.domain.requests.request import Action, Person, Reply, RequestKind, RequestState, WayIn
from bot.domain.requests.settle import GIVE_UP_AFTER
from bot.domain.threads.thread import Thread
from bot.errors import (
    ChatRejected,
    ChatUnreachable,
    JobApiError,
    JobApiRejected,
    JobApiUncertain,
    JobApiUnreachable,
)
from bot.jobapi.models import Job
from bot.notices.answers import PostNotDelivered
from bot.notices.notice import Reaction
from bot.notices.questions import HeldAsked, ProjectAsked, ReplyEdited, ReplyHeld, RequestRefused
from bot.notices.requests import RequestRejected, RequestUncertain

ROOT = "1699999000.000100"
ARCHIVED = ChatRejected("is_archived")


def at(seconds: float) -> str:
    """A `ts` of the tests' time."""
    return f"{1_700_000_000 + seconds:.6f}"


def a_word(word: ThreadWord, seconds: float, ts: str = ROOT, text: str = "") -> Reply:
    """A control word of Ana's in a thread."""
    return Reply(ANA, "C1", ts, at(seconds), text, word=word)


def a_mention(text: str, seconds: float, person: Person = ANA, ts: str = ROOT) -> Reply:
    return Reply(person, "C1", ts, at(seconds), text, mentions_us=True)


def in_two_projects(world: CoreWorld, *, hourly_limit: int = 0, merge_seconds: float = 0.0) -> None:
    world.projects = Projects((Project("guides", words=("guide",)), Project("manual", words=("manual",))))
    world.rules = PermissionRules("T1", hourly_limit=hourly_limit)
    world.merge_seconds = merge_seconds
    world.job_api.cancels = True
    world.assemble()


def limited(world: CoreWorld, hourly_limit: int = 1) -> None:
    world.configure(rules=PermissionRules("T1", hourly_limit=hourly_limit))


async def switch(
    world: CoreWorld, thread: Thread, key: str = "p1", *, person: Person = ANA, wait: float | None = None
) -> None:
    await world.press(RequestKind.CHOOSE_PROJECT, person, "guides", key=key, thread_id=thread.id, wait=wait)


async def retry(world: CoreWorld, thread: Thread, key: str = "p1", *, wait: float | None = None) -> None:
    await world.press(RequestKind.RETRY, ANA, "", key=key, thread_id=thread.id, wait=wait)


def refusals(world: CoreWorld) -> list[Refusal]:
    return [message.refusal for message in world.chat.private_as(RequestRefused)]


async def failed(world: CoreWorld) -> Thread:
    """A job that failed."""
    ts = await world.started()
    await world.show("failed", wait=30)
    return await world.thread(ts)


# -- a switch ---------------------------------------------------------------------------------------------------------


async def test_a_refused_switch_changes_nothing_and_can_be_repeated(world: CoreWorld) -> None:
    """At the hourly limit: the job continues, and an hour later it is switched."""
    in_two_projects(world, hourly_limit=1)
    ts = await world.started("Mend the manual")
    first = await world.thread(ts)
    await switch(world, first, wait=30)
    assert refusals(world) == [Refusal.TOO_MANY]
    assert (world.job_api.created, world.job_api.cancelled) == (["Mend the manual"], [])
    assert (await world.newest(ts)).id == first.id
    await world.reply(ts, "and the index", at(60), BEN, wait=5)
    assert world.job_api.messages["job-1"] == ["and the index"]
    world.clock.advance(3_700)
    await switch(world, first, "p2", wait=10)
    assert (world.job_api.projects, world.job_api.cancelled) == (["manual", "guides"], ["job-1"])
    assert world.chat.answers() == ["project_switched"]


@pytest.mark.first(merge_seconds=1)
@pytest.mark.parametrize("merge_seconds", [0.0, 3.0])
async def test_waiting_replies_move_to_the_job_of_the_other_project(world: CoreWorld, merge_seconds: float) -> None:
    """It does not start the stopped one again, in the wrong project."""
    in_two_projects(world, merge_seconds=merge_seconds)
    ts = await world.started("Mend the manual")
    first = await world.thread(ts)
    await world.reply(ts, "and the index", at(0))
    await switch(world, first, wait=30)
    assert world.job_api.messages["job-1"] == []
    assert world.job_api.messages["job-2"] == ["and the index"]
    assert world.job_api.cancelled == ["job-1"]
    assert world.chat.reactions[at(0)] == "white_check_mark"


async def test_a_reply_during_a_switch_waits_for_it(world: CoreWorld) -> None:
    """Even if it was prepared before: it is for the job that continues."""
    in_two_projects(world)
    ts = await world.started("Mend the manual")
    first = await world.thread(ts)
    await world.service.act(Action(ANA, RequestKind.CHOOSE_PROJECT, "p1", argument="guides", thread_id=first.id))
    await world.step(world.request_preparer)
    world.reading.faults = [ChatUnreachable("down")]
    await world.receive(Reply(BEN, "C1", ts, at(1), "and the index"), wait=30)
    assert world.job_api.messages["job-1"] == []
    assert world.job_api.messages["job-2"] == ["and the index"]


async def test_a_job_that_ends_during_a_switch_reports_no_stop(world: CoreWorld) -> None:
    """Nobody asked for a stop."""
    in_two_projects(world)
    ts = await world.started("Mend the manual")
    await switch(world, await world.thread(ts))
    world.job_api.show("job-1", "completed")
    await world.step(world.job_poller)
    world.clock.advance(5)
    await world.step(world.job_poller)
    await world.pass_time(10)
    assert world.chat.answers() == ["project_switched"]


async def test_choosing_another_project_before_sending_repeats_no_slack_lookup(world: CoreWorld) -> None:
    """So an allowed request can be neither refused nor given up."""
    in_two_projects(world, hourly_limit=1)
    world.job_api.faults = [JobApiUnreachable("down")] * 100_000
    ts = await world.started("Mend the manual")
    first = await world.thread(ts)
    world.clock.advance(600)
    await switch(world, first)
    world.reading.faults = [ChatUnreachable("down")] * 1_000
    world.job_api.faults = []
    await world.pass_time(120)
    assert (world.job_api.projects, refusals(world)) == (["guides"], [])
    assert world.chat.answers() == ["project_chosen"]
    assert world.chat.cards[first.id].project == "guides"


# -- a retry ----------------------------------------------------------------------------------------------------------


async def test_an_abandoned_retry_can_be_repeated(world: CoreWorld) -> None:
    thread = await failed(world)
    await world.service.act(Action(ANA, RequestKind.RETRY, "p1", thread_id=thread.id))
    await world.step(world.request_preparer)
    world.reading.faults = [ChatUnreachable("down")] * 200
    await world.pass_time(1_500)
    assert world.chat.answers() == ["slack_away"]
    world.reading.faults = []
    await retry(world, thread, "p2", wait=5)
    assert world.chat.answers() == ["slack_away", "started_again"]
    assert world.job_api.created == ["Do it", "Do it"]


async def test_retrying_a_job_that_is_running_again_starts_nothing(world: CoreWorld) -> None:
    """A late reply resumed the failed job while the retry was being prepared."""
    thread = await failed(world)
    await world.service.act(Action(ANA, RequestKind.RETRY, "p1", thread_id=thread.id))
    await world.step(world.request_preparer)
    world.job_api.show("job-1", "active")
    world.clock.advance(5)
    await world.store.transact(lambda tx: tx.threads.save_state(thread.id, thread.state, poll_in=0.0))
    await world.step(world.job_poller)
    await world.pass_time(5)
    assert world.job_api.created == ["Do it"]
    assert world.chat.answers() == ["not_to_be_retried"]


async def test_retrying_a_refused_mention_answers_in_its_thread(world: CoreWorld) -> None:
    """It includes the thread's messages, as the mention would have; later replies there are for the new job."""
    limited(world)
    await world.started("first")
    world.reading.threads[ROOT] = [ThreadMessage("Cleo", "The guide is wrong", ROOT)]
    await world.receive(a_mention("Fix it", 1), wait=0)
    mine = await world.store.transact(lambda tx: tx.threads.of_person("UANA", offset=0, limit=5))
    refused = next(thread for thread in mine if thread.prompt == "Fix it")
    world.clock.advance(3_700)
    await retry(world, refused, "home", wait=5)
    assert "The guide is wrong" in world.job_api.created[-1]
    thread = await world.newest(ROOT)
    assert thread.card_ts is not None
    (card,) = [message for message in world.chat.messages if message.ts == thread.card_ts]
    assert card.thread_ts == ROOT


@pytest.mark.first(settles=1)
@pytest.mark.parametrize("settles", [False, True])
async def test_a_thread_whose_root_arrives_late_is_open_to_everyone(world: CoreWorld, *, settles: bool) -> None:
    """Slack delivered a reply with a mention first. From then on everyone's replies count, for any job."""
    await world.receive(a_mention("Change it", 1))
    await world.receive(Reply(BEN, "C1", "", ROOT, "Fix it", mentions_us=True))
    if settles:
        await world.settle()
    await world.receive(Reply(BEN, "C1", ROOT, at(2), "And that"), wait=10)
    assert sorted(prompt.partition("\n")[0] for prompt in world.job_api.created) == ["Change it", "Fix it"]
    assert [words for each in world.job_api.messages.values() for words in each] == ["And that"]


# -- another job in the thread ----------------------------------------------------------------------------------------


@pytest.mark.first(order=1)
@pytest.mark.parametrize("order", ["new first", "reply first"])
async def test_a_refused_job_does_not_lose_replies_to_another(world: CoreWorld, order: str) -> None:
    """Replies written after the word go to the job that is alive."""
    limited(world)
    ts = await world.started()
    new = a_word(ThreadWord.NEW, 10, ts, "another job")
    reply = Reply(BEN, "C1", ts, at(11), "and the index")
    for message in (new, reply) if order == "new first" else (reply, new):
        await world.receive(message)
    await world.pass_time(15)
    assert refusals(world) == [Refusal.TOO_MANY]
    assert world.job_api.messages["job-1"] == ["and the index"]
    assert world.chat.reactions[at(11)] == "white_check_mark"


async def test_a_job_that_passes_its_checks_late_does_not_get_a_newer_ones_replies(world: CoreWorld) -> None:
    await world.receive(a_mention("Fix it", 1))
    await world.receive(a_word(ThreadWord.NEW, 2, text="Fix that"))
    claimed_at = world.clock.monotonic()
    items = await world.request_preparer.claim(10)
    for item in sorted(items, key=lambda item: item.request.text, reverse=True):
        await world.request_preparer.process(item, claimed_at)
    await world.pass_time(10)
    assert len(world.job_api.created) == 2
    assert (await world.newest(ROOT)).prompt == "Fix that"


# -- a held reply -----------------------------------------------------------------------------------------------------


async def switchable_with_held_reply(world: CoreWorld) -> tuple[Thread, ReplyHeld]:
    """A job that can be switched, and the question about a reply in its thread."""
    in_two_projects(world)
    world.configure(projects=Projects(world.projects.all, any_channel=ChannelSettings(replies=ReplyMode.PARTICIPANTS)))
    ts = await world.started("Mend the manual")
    await world.reply(ts, "mine too", at(1), BEN, wait=0)
    (held,) = world.chat.private_as(ReplyHeld)
    return await world.thread(ts), held


@pytest.mark.parametrize(
    ("kind", "sent", "state"),
    [
        (RequestKind.SEND_HELD, ["mine too"], RequestState.ACCEPTED),
        (RequestKind.SEND_ALL_HELD, ["mine too"], RequestState.ACCEPTED),
        (RequestKind.DISCARD_HELD, [], RequestState.WITHDRAWN),
    ],
)
async def test_a_press_about_a_held_reply_moves_along_with_it(
    world: CoreWorld, kind: RequestKind, sent: list[str], state: RequestState
) -> None:
    """The press is recorded before the switch takes effect, and prepared after it."""
    thread, held = await switchable_with_held_reply(world)
    world.reading.faults = [ChatUnreachable("hiccup")]
    await world.press(kind, BEN, held.request_id, key="h1")
    await switch(world, thread, wait=60)
    assert (world.job_api.messages["job-1"], world.job_api.messages["job-2"]) == ([], sent)
    request = await world.store.transact(lambda tx: tx.requests.get(held.request_id))
    assert request is not None
    assert request.state is state


# -- stops ------------------------------------------------------------------------------------------------------------


async def unseen_follow_up(world: CoreWorld, ts: str) -> None:
    """The job API accepted a follow-up, and still shows the job's old state."""
    await world.show("completed", wait=10)
    taken = world.job_api.send_message

    async def queued(*place: str, **given: object) -> object:
        await taken(*place, **given)  # type: ignore[arg-type]  # passed on as it came
        world.job_api.show("job-1", "completed")
        return world.job_api.jobs["job-1"]

    world.job_api.send_message = queued  # type: ignore[method-assign, assignment]  # the fake's own
    await world.reply(ts, "and delete chapter 3", at(20))
    world.clock.advance(2)
    await world.settle()


async def test_a_stop_right_after_an_accepted_follow_up_stops_its_work(world: CoreWorld) -> None:
    world.job_api.cancels = True
    ts = await world.started()
    await unseen_follow_up(world, ts)
    await world.press_card(RequestKind.STOP, ts, key="s1", wait=0)
    assert world.job_api.cancelled == ["job-1"]
    assert world.chat.answers() == []


async def test_a_stop_while_the_start_is_in_doubt_says_so(world: CoreWorld) -> None:
    await world.start()
    for worker in (world.request_preparer, world.outbox):
        await world.step(worker)
    being_sent = await world.claim(world.request_sender)
    thread = being_sent.item.thread
    await world.press(RequestKind.STOP, ANA, "", key="stop", thread_id=thread.id)
    world.job_api.after = [JobApiUncertain("timeout")]
    await being_sent.process(wait=30)
    assert world.chat.answers() == ["stop_uncertain"]


async def test_a_stop_waits_for_a_start_that_is_retried_automatically(world: CoreWorld) -> None:
    """A server that honours keys gets it again; then there is a job to cancel (on this one, a second job)."""
    world.idempotent, world.job_api.cancels = True, True
    world.assemble()
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.start()
    for worker in (world.request_preparer, world.outbox, world.request_sender):
        await world.step(worker)
    (thread,) = await world.store.transact(lambda tx: tx.threads.of_person("UANA", offset=0, limit=5))
    await world.press(RequestKind.STOP, ANA, "", key="stop", thread_id=thread.id, wait=60)
    assert world.job_api.cancelled == ["job-2"]


@pytest.mark.parametrize("person", [ANA, BEN])
async def test_the_requester_is_told_of_a_stop_by_another_before_the_card(world: CoreWorld, person: Person) -> None:
    """By name; the person who pressed gets a separate answer."""
    await world.receive(a_mention("Fix it", 1))
    await world.receive(Reply(person, "C1", ROOT, at(2), "", word=ThreadWord.STOP))
    claimed_at = world.clock.monotonic()
    items = await world.request_preparer.claim(10)
    for item in sorted(items, key=lambda item: item.request.kind is RequestKind.START):
        await world.request_preparer.process(item, claimed_at)
    await world.pass_time(30)
    assert world.job_api.created == []
    told = [(message.person_id, message.post) for message in world.chat.private_as(PostNotDelivered)]
    reasons = [(asker, post.reason, post.stopped_by) for asker, post in told if isinstance(post, RequestRejected)]
    assert reasons == ([("UANA", "stopped", "UBEN")] if person is BEN else [])


async def test_a_switch_whose_card_cannot_be_posted_changes_nothing(world: CoreWorld) -> None:
    """Moved requests come back; once the card can be posted, the switch can be asked for again."""
    in_two_projects(world)
    ts = await world.started("Mend the manual")
    first = await world.thread(ts)
    world.chat.fail(post_card=ARCHIVED)
    await world.reply(ts, "and the index", at(0))
    await switch(world, first, wait=30)
    assert [message.kind for message in world.chat.private if message.kind == "card_not_posted"] == ["card_not_posted"]
    assert (world.job_api.cancelled, world.job_api.messages["job-1"]) == ([], ["and the index"])
    await switch(world, first, "again", wait=30)
    world.chat.recover()
    await world.show("completed", wait=60)
    assert "job_finished" in world.chat.said(ts)
    await switch(world, first, "p2", wait=30)
    assert world.job_api.projects == ["manual", "guides"]
    assert world.chat.answers() == ["project_switched"]


@pytest.mark.parametrize("kind", [pytest.param(RequestKind.CHOOSE_PROJECT, marks=pytest.mark.full), RequestKind.RETRY])
async def test_a_job_stopped_between_checks_and_card_replaces_nothing(world: CoreWorld, kind: RequestKind) -> None:
    """What was withdrawn comes back, later replies are for the job that lives, and it can be asked for again."""
    in_two_projects(world)
    ts = await world.started("Mend the manual")
    await world.show("failed", wait=30)
    first = await world.thread(ts)
    argument = "guides" if kind is RequestKind.CHOOSE_PROJECT else ""
    await world.reply(ts, "and the index", at(31))
    await world.service.act(Action(ANA, kind, "p1", argument=argument, thread_id=first.id))
    await world.prepare()
    assert (await world.newest(ts)).follows == first.id
    await world.receive(a_word(ThreadWord.STOP, 32, ts))
    await world.prepare()
    await world.pass_time(10)
    assert (world.job_api.created, world.job_api.cancelled) == (["Mend the manual"], [])
    assert world.chat.answers() == ["stopped_unsent"]
    await world.reply(ts, "and the cover", at(45), BEN, wait=10)
    assert world.job_api.messages["job-1"] == ["and the cover"]
    (withdrawn,) = world.chat.private_as(HeldAsked)
    await world.press(RequestKind.SEND_HELD, ANA, withdrawn.request_id, key="h1", wait=10)
    assert world.job_api.messages["job-1"] == ["and the cover", "and the index"]
    await world.show("failed", wait=30)
    await world.press(kind, ANA, argument, key="p2", thread_id=first.id, wait=30)
    assert len(world.job_api.created) == 2
    assert (await world.newest(ts)).state.job is not None
    await world.reply(ts, "and the end", at(120), BEN, wait=10)
    assert world.job_api.messages["job-2"] == ["and the end"]


@pytest.mark.first(taken_back=1)
@pytest.mark.parametrize("taken_back", ["stopped", "deleted"])
@pytest.mark.parametrize("has_card", [False, True])
async def test_replies_to_a_job_withdrawn_before_its_start_go_to_the_one_before(
    world: CoreWorld, taken_back: str, *, has_card: bool
) -> None:
    """So are later replies: only that job lives in the thread."""
    in_two_projects(world)
    ts = await world.started("Mend the manual")
    new = "Mend the guide and the manual" if has_card else "Mend the guide"  # it waits for the choice of a project
    await world.receive(Reply(ANA, "C1", ts, at(1), f"project:what {new}" if has_card else new, word=ThreadWord.NEW))
    await world.receive(Reply(BEN, "C1", ts, at(2), "and the index"))
    await (world.pass_time(5) if has_card else world.prepare())
    assert (await world.newest(ts)).options.way_in is WayIn.REPLY
    if taken_back == "stopped":
        await world.receive(a_word(ThreadWord.STOP, 10, ts))
    else:
        await world.revise(Reply(ANA, "C1", ts, at(1), "", edited_at=at(10), withdrawn=True))
    await world.prepare()
    await world.pass_time(10)
    await world.reply(ts, "and the cover", at(25), BEN)
    await world.receive(Reply(BEN, "C1", ts, at(40), "and the end", mentions_us=True), wait=10)
    assert (world.job_api.created, world.job_api.cancelled) == (["Mend the manual"], [])
    before = ["and the index"] if taken_back == "deleted" else []  # a stop withdraws what was written before it
    assert world.job_api.messages["job-1"] == [*before, "and the cover", "and the end"]


async def test_replies_to_a_job_withdrawn_while_it_is_sent_go_to_the_one_before(world: CoreWorld) -> None:
    """It did not arrive."""
    in_two_projects(world)
    ts = await world.started("Mend the manual")
    await world.receive(a_word(ThreadWord.NEW, 1, ts, "Mend the guide"))
    for worker in (world.request_preparer, world.outbox):
        await world.step(worker)
    await world.reply(ts, "and the index", at(2), BEN)
    being_sent = await world.claim(world.request_sender)
    await world.revise(Reply(ANA, "C1", ts, at(1), "", edited_at=at(10), withdrawn=True))
    world.job_api.faults = [JobApiUnreachable("down")]
    await being_sent.process(wait=20)
    assert (world.job_api.created, world.job_api.messages["job-1"]) == (["Mend the manual"], ["and the index"])


async def test_a_chosen_project_whose_card_cannot_be_posted_starts_nothing(
    world: CoreWorld,
) -> None:
    """It has ended, and its person was told: it does not begin in another thread later."""
    in_two_projects(world)
    world.chat.fail(post_card=ARCHIVED)
    await world.start("Mend the guide and the manual", wait=30)
    (asked,) = world.chat.private_as(ProjectAsked)
    world.chat.recover()
    await world.press(RequestKind.CHOOSE_PROJECT, ANA, "guides", key="p1", thread_id=asked.thread_id, wait=30)
    assert world.chat.answers() == ["start_ended"]
    assert (world.job_api.created, world.chat.cards) == ([], {})


async def test_a_follow_up_from_a_replaced_jobs_card_goes_to_its_replacement(world: CoreWorld) -> None:
    in_two_projects(world)
    ts = await world.started("Mend the manual")
    first = await world.thread(ts)
    await switch(world, first, wait=10)
    await world.service.follow_up(Written(BEN, first.id, "and the index", "view/1"))
    await world.pass_time(10)
    assert (world.job_api.messages["job-1"], world.job_api.messages["job-2"]) == ([], ["and the index"])


@pytest.mark.first(away=1)
@pytest.mark.parametrize("away", ["the job API", "Pagehand"])
async def test_a_follow_up_that_was_never_polled_is_stopped(world: CoreWorld, away: str) -> None:
    """However long that lasted: the earlier end of the job proves nothing."""
    world.job_api.cancels = True
    ts = await world.started()
    await unseen_follow_up(world, ts)
    if away == "Pagehand":
        world.clock.advance(3_600)
    else:
        await unreachable_for(world, 240)
    world.job_api.show("job-1", "active")
    await world.receive(a_word(ThreadWord.STOP, 300, ts))
    await world.prepare()
    await world.step(world.request_sender)
    await world.pass_time(60)
    assert world.job_api.cancelled[:1] == ["job-1"]
    assert world.chat.answers() == []


async def test_a_follow_ups_outcome_is_reported_after_minutes_of_outage(world: CoreWorld) -> None:
    """For longer than a finished job is polled, but not so long that the thread was told."""
    ts = await world.started()
    await unseen_follow_up(world, ts)
    await unreachable_for(world, 240)
    await world.show("completed", "https://git.example/pull/7", wait=120)
    assert (await world.thread(ts)).state.announcements.links == ("https://git.example/pull/7",)


async def unreachable_for(world: CoreWorld, seconds: float) -> None:
    """No job can be polled for this long."""
    world.job_api.faults_of["get"] = [JobApiUnreachable("down")] * 10_000
    await world.pass_time(seconds)
    world.job_api.faults_of.clear()


# -- sent again, after the job was replaced ---------------------------------------------------------------------------


async def replaced(world: CoreWorld, ts: str, way: str) -> None:
    """Replaces the job by a switch or a retry."""
    if way == "switch":
        await switch(world, await world.thread(ts))
    else:
        await world.show("failed", wait=60)
        await retry(world, await world.thread(ts))
    await world.pass_time(30)
    assert len(world.job_api.created) == 2


async def in_doubt(world: CoreWorld, *texts: str) -> tuple[str, list[str]]:
    """A job's thread, and the requests of replies that may have arrived."""
    ts = await world.started("Mend the manual")
    world.job_api.faults_of["send_message"] = [JobApiUncertain("no answer")]
    for number, text in enumerate(texts):
        await world.reply(ts, text, at(number), BEN)
    await world.pass_time(10)
    return ts, [post.request.request_id for post in world.chat.posted_as(RequestUncertain)]


@pytest.mark.parametrize("way", ["switch", pytest.param("retry", marks=pytest.mark.full)])
@pytest.mark.parametrize("idempotent", [False, pytest.param(True, marks=pytest.mark.full)])
async def test_what_is_sent_again_goes_to_the_live_job(world: CoreWorld, way: str, *, idempotent: bool) -> None:
    """Once, however many people press, and the job that was replaced stays as it is."""
    in_two_projects(world)
    ts, [request] = await in_doubt(world, "and the index")
    world.idempotent = idempotent
    await replaced(world, ts, way)
    before = list(world.job_api.messages["job-1"])
    for number, person in enumerate((ANA, BEN)):
        await world.press_send_again(person, request, key=f"a{number}", wait=10)
    assert world.job_api.messages["job-1"] == before
    assert world.job_api.messages["job-2"] == ["and the index"]
    assert world.chat.answers()[-2:] == ["sent_again", "already_accepted"]
    assert world.chat.all_reactions[at(0)] == [Reaction.ACCEPTED]


async def test_merged_replies_are_each_sent_again_to_the_live_job(world: CoreWorld) -> None:
    """Except one that was deleted since, and in their newest words."""
    in_two_projects(world, merge_seconds=3.0)
    ts, [request] = await in_doubt(world, "and the index", "the glossary", "the cover")
    await replaced(world, ts, "switch")
    await world.revise(Reply(BEN, "C1", ts, at(1), "", edited_at=at(50), withdrawn=True))
    await world.revise(Reply(BEN, "C1", ts, at(2), "the front cover", edited_at=at(50)))
    await world.press_send_again(BEN, request, key="a1", wait=30)
    assert world.job_api.messages["job-1"] == []
    assert world.job_api.messages["job-2"] == ["and the index\n\nthe front cover"]


async def test_what_is_sent_again_to_another_job_follows_its_edits(world: CoreWorld) -> None:
    in_two_projects(world)
    ts, [request] = await in_doubt(world, "and the index")
    await replaced(world, ts, "switch")
    await world.service.act(Action(BEN, RequestKind.SEND_AGAIN, "a1", argument=request))
    await world.step(world.request_preparer)
    await world.revise(Reply(BEN, "C1", ts, at(0), "and the glossary", edited_at=at(90)), wait=60)
    assert (world.job_api.messages["job-1"], world.job_api.messages["job-2"]) == ([], ["and the glossary"])


@pytest.mark.first(fault=2)
@pytest.mark.parametrize("fault", [None, JobApiUncertain("no answer"), JobApiRejected("400")], ids=str)
async def test_new_words_go_to_the_live_job_once(world: CoreWorld, fault: JobApiError | None) -> None:
    """Though the message is sent again as well, if it can be; its mark is that of the new words."""
    in_two_projects(world)
    world.job_api.faults_of["send_message"] = [fault] if fault else []
    ts = await world.started("Mend the manual")
    await world.reply(ts, "and the index", at(0), BEN, wait=10)
    await world.revise(Reply(BEN, "C1", ts, at(0), "and the glossary", edited_at=at(50)), wait=5)
    (offer,) = world.chat.private_as(ReplyEdited)
    await replaced(world, ts, "switch")
    await world.press_send_again(BEN, offer.request_id, key="a1", wait=10)
    await world.press_send_new_words(BEN, offer.request_id, key="n1", wait=10)
    assert world.job_api.messages["job-2"] == ["and the glossary"]
    assert world.chat.all_reactions[at(0)] == [Reaction.ACCEPTED]


@pytest.mark.first(fault=1)
@pytest.mark.parametrize("fault", [JobApiUnreachable("down"), JobApiUncertain("no answer")])
async def test_a_reply_that_comes_back_after_its_job_was_replaced_does_not_wake_it(
    world: CoreWorld, fault: JobApiUnreachable | JobApiUncertain
) -> None:
    """What certainly did not arrive goes to the other job; about what may have arrived, people decide."""
    in_two_projects(world)
    world.idempotent = True
    ts = await world.started("Mend the manual")
    thread, send = await world.thread(ts), world.job_api.send_message

    async def meanwhile_replaced(*_: str, **__: object) -> Job:
        world.job_api.send_message = send  # type: ignore[method-assign]
        await switch(world, thread)
        await world.step(world.outbox)
        raise fault

    world.job_api.send_message = meanwhile_replaced  # type: ignore[method-assign,assignment]
    await world.reply(ts, "and the index", at(0), BEN, wait=90)
    certain = isinstance(fault, JobApiUnreachable)
    assert world.job_api.messages["job-1"] == []
    assert world.job_api.messages["job-2"] == (["and the index"] if certain else [])
    assert len(world.chat.posted_as(RequestUncertain)) == (not certain)


async def test_a_start_that_came_back_is_not_sent_after_it_was_replaced(world: CoreWorld) -> None:
    in_two_projects(world)
    world.job_api.faults = [JobApiUnreachable("down")] * 10_000
    ts = await world.started("Mend the manual")
    await world.pass_time(1.5 * GIVE_UP_AFTER)
    world.job_api.faults.clear()
    (told,) = world.chat.posted_as(RequestRejected)
    await switch(world, await world.thread(ts), wait=30)
    for number, kind in enumerate((RequestKind.SEND_AGAIN, RequestKind.RETRY)):
        about = {"thread_id": (await world.thread(ts)).id} if kind is RequestKind.RETRY else {}
        await world.press(kind, ANA, told.request.request_id if not about else "", key=f"a{number}", **about, wait=30)
    assert world.job_api.projects == ["guides"]
    assert world.chat.answers()[-2:] == ["already_accepted", "already_accepted"]
