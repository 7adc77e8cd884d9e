"""A plan that the agent proposed: only a press of Start accepts it, once; anything else takes the buttons away."""

from dataclasses import replace

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.commands import AgentOptions, ThreadWord
from bot.domain.jobs.proposals import START_WORDS
from bot.domain.projects import ChannelSettings, PostMode, Projects
from bot.domain.requests.audit import AuditAction
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Person, Reply, RequestKind, WayIn
from bot.domain.threads.thread import ProposalEnd, Thread
from bot.errors import ChatRejected, JobApiBusy, JobApiRejected, JobApiUncertain, JobApiUnreachable
from bot.jobapi.models import JobDetails, Mode, Proposal, ProposalState, ProposedPage
from bot.notices.answers import ActionAnswer
from bot.notices.job import JobFinished, PullRequestFound
from bot.notices.notice import Notice, in_database
from bot.notices.proposals import ProposalMade, ProposalOver, ProposalPressed, ProposalWaits
from bot.notices.requests import RequestRejected, RequestUncertain
from bot.scheduler.retention import RetentionSweeper
from bot.slack.rendering.message_context import MessageContext

pytestmark = pytest.mark.promise("plans")

JOB, DAY = "job-1", 86_400.0
LINK = "https://git.example/pull/1"
START, DROP = RequestKind.ACCEPT_PROPOSAL, RequestKind.DROP_PROPOSAL


def plan(number: int = 1, state: ProposalState = ProposalState.PROPOSED) -> JobDetails:
    pages = (ProposedPage(path="docs/guide.md", reason="It names the old command"),)
    said = {"summary": f"I made plan {number}.", "revision": "a1"}
    return JobDetails(**said, proposal=Proposal(id=f"plan-{number}", state=state, text=f"Plan {number}.", pages=pages))


@pytest.fixture
async def ts(world: CoreWorld) -> str:
    """A job that was asked for a plan first, which waits."""
    world.job_api.modes = True
    await world.ask(NewJob(ANA, "C1", "Do it", "k1", WayIn.COMMAND, agent=AgentOptions(Mode.PLAN)), wait=0)
    ts = world.chat.messages[0].ts
    await world.show("completed", details=plan(), wait=60)
    return ts


async def press(world: CoreWorld, ts: str, kind: RequestKind = START, *, number: int = 1, who: Person = ANA) -> None:
    await world.press_card(kind, ts, who, f"plan-{number}", key=f"press-{kind}-{number}-{who.id}", wait=3)


async def end_of(world: CoreWorld, ts: str) -> ProposalEnd | None:
    return (await world.thread(ts)).state.planning.proposal_end


async def shown(world: CoreWorld, ts: str, number: int = 1) -> ProposalEnd | None:
    """What the post of a plan shows of its end."""
    key = in_database((await world.thread(ts)).id, ProposalMade.key(f"plan-{number}"))
    return world.chat.shown_by_key[key].state.planning.proposal_end


def told(world: CoreWorld) -> list[tuple[str, ProposalEnd]]:
    return [(each.person_id, each.end) for each in world.chat.private_as(ProposalPressed)]


async def test_a_plan_is_posted_once_and_no_end_is(world: CoreWorld, ts: str) -> None:
    revision = (await world.thread(ts)).revision
    await world.pass_time(1_300)
    assert (await world.thread(ts)).revision == revision, "a poll that shows the same has no consequences"
    (made,) = world.chat.posted_as(ProposalMade)
    assert (made.text and made.text.text, made.page_count) == ("Plan 1.", 1)
    assert not world.chat.posted_as(JobFinished)
    assert world.job_api.messages[JOB] == []


async def test_a_plan_that_is_made_at_once_waits_for_no_line_about_the_start(world: CoreWorld) -> None:
    """Nor does the next one."""
    world.job_api.modes = True
    world.configure(hold_back=5.0)
    await world.ask(NewJob(ANA, "C1", "Do it", "k1", WayIn.COMMAND, agent=AgentOptions(Mode.PLAN)), wait=0)
    ts = world.chat.messages[0].ts
    await world.show("completed", details=plan(), wait=3)
    assert world.chat.said(ts) == ["proposal_made"]
    await world.reply(ts, "Shorter", "5.1", wait=2)
    await world.show("completed", details=plan(2), wait=3)
    await world.pass_time(30)
    assert world.chat.said(ts) == ["proposal_made", "proposal_made"]


async def test_start_sends_the_plans_id_and_what_follows_is_an_ordinary_job(world: CoreWorld, ts: str) -> None:
    await press(world, ts, who=BEN)
    _, call = world.job_api.prompt_calls
    assert (call.prompt, call.mode, call.proposal) == (START_WORDS, Mode.EDIT, "plan-1")
    thread = await world.thread(ts)
    assert (await shown(world, ts), thread.state.planning.proposal_end_by) == (ProposalEnd.STARTED, BEN.id)
    await world.show("completed", LINK, plan(state=ProposalState.ACCEPTED), wait=60)
    (finished,) = world.chat.posted_as(JobFinished)
    assert (finished.link, finished.person_id, finished.again) == (LINK, BEN.id, False)
    audit = await world.store.transact(lambda tx: tx.audit.read(since=0, until=9e9, after=0, limit=10))
    assert AuditAction.PLAN_ACCEPTED in {each.entry.action for each in audit}
    await world.reply(ts, "and the index", "9.1", wait=5)
    assert [each.mode for each in world.job_api.prompt_calls] == [Mode.PLAN, Mode.EDIT, Mode.EDIT]


async def test_a_second_press_is_told_who_started(world: CoreWorld, ts: str) -> None:
    await press(world, ts, who=ANA)
    await press(world, ts, who=BEN)
    assert world.job_api.messages[JOB] == [START_WORDS]
    assert told(world) == [(BEN.id, ProposalEnd.STARTED)]


@pytest.mark.promise("paused")
async def test_a_post_that_a_paused_process_edited_late_shows_the_newest_again(world: CoreWorld, ts: str) -> None:
    other, update = CoreWorld("two").on(world.store, world.clock, beside=world), world.chat.update

    async def paused(thread: Thread, notice: Notice, ts: str) -> None:
        world.chat.update = update  # type: ignore[method-assign]
        world.clock.advance(40)
        await other.pass_time(5)
        assert await shown(world, thread.card_ts or "") is ProposalEnd.STARTED
        before_the_press = replace(thread.state.planning, proposal_end=None)
        await update(replace(thread, state=replace(thread.state, planning=before_the_press)), notice, ts)

    world.chat.update = paused  # type: ignore[method-assign]
    await press(world, ts)
    await world.pass_time(60)
    assert await shown(world, ts) is ProposalEnd.STARTED


async def test_a_deleted_post_of_a_plan_says_nothing_of_its_channel(world: CoreWorld, ts: str) -> None:
    """Jobs there are created before their cards as long as posts arrive."""
    world.chat.fail(update=ChatRejected("message_not_found"))
    await press(world, ts, DROP)
    assert world.rows is not None
    assert world.rows.execute("SELECT SUM(failing) FROM slack_calls").fetchone() == (0,)
    assert world.chat.private == []


async def test_a_poll_tells_that_a_start_arrived_before_it_is_sent_again(world: CoreWorld, ts: str) -> None:
    world.configure(idempotent=True)
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.press_card(START, ts, ANA, "plan-1", key="press")
    world.clock.advance(1)
    await world.step(world.request_sender)
    await world.show("active", details=plan(state=ProposalState.ACCEPTED))
    world.clock.advance(6)
    await world.step(world.job_poller)
    planning = (await world.thread(ts)).state.planning
    assert (planning.proposal_end, planning.proposal_end_by) == (ProposalEnd.STARTED, ANA.id)
    assert not planning.proposal_asked


async def test_words_ask_for_another_plan_and_take_the_buttons(world: CoreWorld, ts: str) -> None:
    await world.reply(ts, "yes, go ahead", "9.1", BEN, wait=5)
    assert (await shown(world, ts), world.job_api.messages[JOB]) == (ProposalEnd.REVISED, ["yes, go ahead"])
    assert [each.mode for each in world.job_api.prompt_calls] == [Mode.PLAN, Mode.PLAN]
    await press(world, ts)
    await world.show("completed", details=plan(2), wait=60)
    await press(world, ts, who=BEN)
    assert [each[1] for each in told(world)] == [ProposalEnd.REVISED, ProposalEnd.OUTDATED]
    newer = world.chat.private_as(ProposalPressed)[-1].newer_ts
    assert newer == next(post.ts for post in world.chat.messages if post.key.endswith(ProposalMade.key("plan-2")))
    await press(world, ts, number=2)
    assert world.job_api.messages[JOB] == ["yes, go ahead", START_WORDS]


async def test_a_press_does_nothing_while_earlier_words_wait(world: CoreWorld, ts: str) -> None:
    world.job_api.faults_of["send_message"] = [JobApiUnreachable("down")] * 3
    await world.reply(ts, "first the index", f"{world.clock.time:.6f}", wait=4)
    assert await end_of(world, ts) is None
    await press(world, ts)
    assert told(world) == [(ANA.id, ProposalEnd.REVISED)]
    await world.pass_time(60)
    assert world.job_api.messages[JOB] == ["first the index"]


async def test_words_that_the_job_api_refuses_leave_the_plan_as_it_is(world: CoreWorld, ts: str) -> None:
    world.job_api.faults_of["send_message"] = [JobApiRejected("400", words="too vague", status=400)]
    await world.reply(ts, "hm", "9.1", wait=10)
    await world.pass_time(700)
    assert (await end_of(world, ts), await shown(world, ts)) == (None, None)
    assert not world.chat.posted_as(JobFinished)
    await press(world, ts)
    assert world.job_api.messages[JOB] == [START_WORDS]


async def test_words_that_were_sent_twice_do_not_end_the_plan_that_they_led_to(world: CoreWorld, ts: str) -> None:
    world.configure(idempotent=True)
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.reply(ts, "shorter", "9.1")
    world.clock.advance(1)
    await world.step(world.request_sender)
    await world.show("completed", details=plan(2))
    world.job_api.outdated_answers = [world.job_api.jobs[JOB]]
    world.clock.advance(6)
    await world.step(world.job_poller)
    await world.settle()
    assert [call.prompt for call in world.job_api.prompt_calls[1:]] == ["shorter"] * 2
    (newer,) = [each for each in world.chat.posted_as(ProposalMade) if each.proposal_id == "plan-2"]
    assert newer.tell(MessageContext(), await world.thread(ts)).buttons, "it waits to be started"


async def test_replies_that_waited_are_sent_as_one_for_a_plan_too(world: CoreWorld, ts: str) -> None:
    world.configure(merge_seconds=30.0)
    world.job_api.faults_of["send_message"] = [JobApiUnreachable("down")]
    for number in (1, 2):
        await world.reply(ts, f"Point {number}", f"9.{number}")
    await world.pass_time(60)
    assert world.job_api.messages[JOB] == ["Point 1\n\nPoint 2"]


@pytest.mark.first(starts=1)
@pytest.mark.promise("paused")
@pytest.mark.parametrize("starts", [True, False])
async def test_what_a_paused_process_did_not_send_has_ended_no_plan(world: CoreWorld, ts: str, *, starts: bool) -> None:
    """A start is sent after that; a reply was deleted meanwhile."""
    at = f"{world.clock.time:.6f}"
    if starts:
        await world.press_card(START, ts, ANA, "plan-1", key="press")
    else:
        await world.reply(ts, "hm", at)
    world.clock.advance(3)
    claim = await world.claim(world.request_sender)
    world.clock.advance(25)
    if not starts:
        await world.revise(Reply(ANA, "C1", ts, at, "", edited_at=f"{world.clock.time:.6f}", withdrawn=True))
    await claim.process(wait=60)
    assert await end_of(world, ts) is (ProposalEnd.STARTED if starts else None)
    assert world.job_api.messages[JOB] == ([START_WORDS] if starts else [])


async def test_a_dropped_plan_cannot_be_started(world: CoreWorld, ts: str) -> None:
    await press(world, ts, DROP, who=BEN)
    await press(world, ts)
    await press(world, ts, DROP)
    assert (await shown(world, ts), world.job_api.messages[JOB]) == (ProposalEnd.DROPPED, [])
    (card,) = world.chat.cards.values()
    assert card.state.planning.proposal_end is ProposalEnd.DROPPED
    assert told(world) == [(ANA.id, ProposalEnd.DROPPED)] * 2
    assert not world.chat.posted_as(JobFinished)
    await world.reply(ts, "another, please", "9.1", wait=5)
    await world.show("completed", details=plan(2), wait=60)
    assert len(world.chat.posted_as(ProposalMade)) == 2


@pytest.mark.first(in_words=1)
@pytest.mark.parametrize("in_words", [True, False])
async def test_a_stop_takes_the_plan_back(world: CoreWorld, ts: str, *, in_words: bool) -> None:
    if in_words:
        await world.receive(Reply(BEN, "C1", ts, "9.1", "", word=ThreadWord.STOP), wait=5)
    else:
        await world.press_card(RequestKind.STOP, ts, BEN, key="stop", wait=5)
    await press(world, ts)
    assert (await shown(world, ts), world.job_api.messages[JOB]) == (ProposalEnd.STOPPED, [])
    assert told(world) == [(ANA.id, ProposalEnd.STOPPED)]
    assert world.chat.answers() == [ActionAnswer.PLAN_STOPPED.stored]


async def test_a_stop_takes_a_later_plan_back_where_only_ends_are_posted(world: CoreWorld, ts: str) -> None:
    """Nothing was said of the work on it, and its end was: there is nothing to stop at the job API."""
    channel = ChannelSettings(posts=PostMode.ENDS)
    world.configure(projects=Projects(world.projects.all, any_channel=channel))
    await world.reply(ts, "shorter", "9.1", wait=3)
    await world.show("completed", details=plan(2), wait=30)
    await world.press_card(RequestKind.STOP, ts, BEN, key="stop", wait=5)
    assert (world.job_api.messages[JOB], world.chat.answers()) == (["shorter"], [ActionAnswer.PLAN_STOPPED.stored])


async def test_a_stop_after_a_press_that_was_not_sent_withdraws_it(world: CoreWorld, ts: str) -> None:
    world.job_api.faults_of["send_message"] = [JobApiUnreachable("down")] * 2
    await press(world, ts)
    await world.press_card(RequestKind.STOP, ts, BEN, key="stop", wait=60)
    assert START_WORDS not in world.job_api.messages[JOB]
    assert (await end_of(world, ts), [each[1] for each in told(world)]) == (ProposalEnd.STOPPED, [ProposalEnd.STOPPED])


async def test_a_start_that_the_job_api_refuses_is_told_in_its_words(world: CoreWorld, ts: str) -> None:
    world.job_api.faults_of["send_message"] = [JobApiBusy("409", status=409, words="An instruction is running.")]
    await press(world, ts)
    await world.pass_time(120)
    (refused,) = world.chat.posted_as(RequestRejected)
    assert (refused.api_text, refused.request.kind) == ("An instruction is running.", START)
    assert (await end_of(world, ts), world.job_api.messages[JOB]) == (None, [])
    await world.show("active", details=plan(state=ProposalState.ACCEPTED), wait=1_300)
    planning = (await world.thread(ts)).state.planning
    assert (planning.proposal_end, planning.proposal_end_by) == (ProposalEnd.STARTED, ""), "somebody else did"


async def test_nobody_can_drop_a_plan_while_its_start_may_have_arrived_and_is_repeated(
    world: CoreWorld, ts: str
) -> None:
    world.configure(idempotent=True)
    world.job_api.faults_of["send_message"] = [JobApiUncertain("timeout")] * 2
    await press(world, ts)
    await press(world, ts, DROP, who=BEN)
    await world.pass_time(60)
    assert (told(world), world.job_api.messages[JOB]) == ([(BEN.id, ProposalEnd.STARTED)], [START_WORDS])


async def test_a_start_in_doubt_that_is_refused_is_in_doubt_no_more(world: CoreWorld, ts: str) -> None:
    refusal = JobApiBusy("409", status=409, words="Ana started it.")
    world.job_api.faults_of["send_message"] = [JobApiUncertain("timeout"), refusal]
    await press(world, ts)
    (uncertain,) = world.chat.posted_as(RequestUncertain)
    await world.press_send_again(ANA, uncertain.request.request_id, key="again", wait=5)
    await world.pass_time(60)
    assert [each.api_text for each in world.chat.posted_as(RequestRejected)] == ["Ana started it."]
    assert world.chat.posted_as(RequestUncertain) == [uncertain]


async def test_words_after_a_press_follow_it(world: CoreWorld, ts: str) -> None:
    await world.press_card(START, ts, ANA, "plan-1", key="press")
    await world.reply(ts, "and the index", f"{world.clock.time + 0.5:.6f}", wait=10)
    assert world.job_api.messages[JOB] == [START_WORDS, "and the index"]


async def test_a_job_that_edits_goes_on_with_that_whatever_it_proposes(world: CoreWorld, ts: str) -> None:
    await press(world, ts)
    await world.show("completed", details=plan(2), wait=60)
    await press(world, ts, DROP, number=2)
    assert (await end_of(world, ts), (await world.thread(ts)).mode) == (ProposalEnd.DROPPED, Mode.EDIT)


@pytest.mark.first(idempotent=1)
@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_start_that_may_have_arrived_is_no_other_than_a_message(
    world: CoreWorld, ts: str, *, idempotent: bool
) -> None:
    world.configure(idempotent=idempotent)
    world.job_api.after = [JobApiUncertain("timeout")]
    await press(world, ts)
    await world.show("active", details=plan(state=ProposalState.ACCEPTED))
    await world.pass_time(60)
    thread = await world.thread(ts)
    assert (await shown(world, ts), thread.state.planning.proposal_end_by) == (ProposalEnd.STARTED, ANA.id)
    assert thread.mode is Mode.EDIT
    assert len(world.chat.posted_as(RequestUncertain)) == (0 if idempotent else 1)
    await press(world, ts, who=BEN)
    assert told(world) == [(BEN.id, ProposalEnd.STARTED)]


async def test_a_start_in_doubt_is_not_sent_again_once_somebody_dropped_the_plan(world: CoreWorld, ts: str) -> None:
    world.job_api.faults_of["send_message"] = [JobApiUncertain("timeout")]
    await press(world, ts)
    await press(world, ts, DROP, who=BEN)
    (uncertain,) = world.chat.posted_as(RequestUncertain)
    await world.press_send_again(ANA, uncertain.request.request_id, key="again", wait=5)
    assert (told(world), world.job_api.messages[JOB]) == ([(ANA.id, ProposalEnd.DROPPED)], [])


async def test_a_plan_that_was_dropped_after_it_was_started_is_shown_as_started(world: CoreWorld, ts: str) -> None:
    """Nobody knew that the start had arrived."""
    world.job_api.after = [JobApiUncertain("timeout")]
    await press(world, ts)
    await press(world, ts, DROP, who=BEN)
    await world.show("active", details=plan(state=ProposalState.ACCEPTED), wait=60)
    thread = await world.thread(ts)
    assert (await shown(world, ts), thread.state.planning.proposal_end_by) == (ProposalEnd.STARTED, "")
    assert thread.mode is Mode.EDIT


async def test_a_replaced_job_takes_its_plan_along(world: CoreWorld, ts: str) -> None:
    before = await world.thread(ts)
    await world.press_card(RequestKind.RETRY, ts, BEN, key="retry", wait=10)
    await world.press(START, ANA, "plan-1", key="late", thread_id=before.id, wait=5)
    assert (await shown(world, ts), world.job_api.messages[JOB]) == (ProposalEnd.OVER, [])
    assert [each[1] for each in told(world)] == [ProposalEnd.OVER]


async def test_a_job_that_was_replaced_posts_no_plan(world: CoreWorld, ts: str) -> None:
    await world.press_card(RequestKind.RETRY, ts, BEN, key="retry")
    await world.show("completed", details=plan(2), wait=60)
    assert [each.proposal_id for each in world.chat.posted_as(ProposalMade)] == ["plan-1"]


@pytest.mark.first(dropped=1)
@pytest.mark.parametrize("dropped", [False, True])
async def test_words_that_lead_to_no_other_plan_are_not_left_unanswered(
    world: CoreWorld, ts: str, *, dropped: bool
) -> None:
    """The job ends with the same plan."""
    if dropped:
        await press(world, ts, DROP)
    await world.reply(ts, "Why?", "9.1", wait=5)
    await world.show("active", details=plan(), wait=5)
    await world.show("completed", details=plan(), wait=60)
    assert len(world.chat.posted_as(JobFinished)) == len(world.chat.posted_as(ProposalMade)) == 1
    assert "job_active_again" in world.chat.said(ts)


async def test_a_plan_that_was_over_before_it_was_seen_is_not_posted(world: CoreWorld) -> None:
    await world.started()
    await world.show("completed", details=plan(state=ProposalState.SUPERSEDED), wait=60)
    assert (len(world.chat.posted_as(JobFinished)), world.chat.posted_as(ProposalMade)) == (1, [])


@pytest.mark.first(state=1)
@pytest.mark.parametrize("state", [ProposalState.SUPERSEDED, ProposalState.ACCEPTED])
async def test_a_newer_plan_that_was_not_seen_while_it_waited_ends_the_one_before(
    world: CoreWorld, ts: str, state: ProposalState
) -> None:
    await world.show("completed", details=plan(2, state), wait=1_300)
    key = in_database((await world.thread(ts)).id, ProposalMade.key("plan-1"))
    (made,) = world.chat.posted_as(ProposalMade)
    assert not made.tell(MessageContext(), world.chat.shown_by_key[key]).buttons


async def test_a_plan_is_posted_once_its_job_has_ended(world: CoreWorld) -> None:
    await world.started()
    await world.show("active", details=plan(), wait=60)
    assert not world.chat.posted_as(ProposalMade)
    await world.show("completed", details=plan(), wait=60)
    assert len(world.chat.posted_as(ProposalMade)) == 1


async def test_a_job_that_is_about_to_be_replaced_starts_no_plan(world: CoreWorld, ts: str) -> None:
    await world.press_card(RequestKind.RETRY, ts, BEN, key="retry")
    await press(world, ts)
    assert (START_WORDS in world.job_api.messages[JOB], told(world)) == (False, [(ANA.id, ProposalEnd.OVER)])


async def test_a_plan_of_a_muted_job_is_posted_after_unmute(world: CoreWorld) -> None:
    ts = await world.started()
    await world.press_card(RequestKind.MUTE, ts, key="mute", wait=5)
    await world.show("completed", details=plan(), wait=700)
    assert not world.chat.posted_as(ProposalMade)
    await world.press_card(RequestKind.UNMUTE, ts, key="unmute", wait=20)
    assert len(world.chat.posted_as(ProposalMade)) == 1
    await press(world, ts)
    assert world.job_api.messages[JOB] == [START_WORDS]


async def test_a_plan_that_ended_while_its_job_was_muted_is_not_posted(world: CoreWorld) -> None:
    ts = await world.started()
    await world.press_card(RequestKind.MUTE, ts, key="mute", wait=5)
    await world.show("completed", details=plan(), wait=700)
    await world.show("completed", details=plan(state=ProposalState.SUPERSEDED))
    await world.press_card(RequestKind.UNMUTE, ts, key="unmute", wait=20)
    assert (await end_of(world, ts), world.chat.posted_as(ProposalMade)) == (ProposalEnd.OVER, [])


async def test_a_waiting_plan_is_told_of_after_a_day_and_a_week_and_kept_until_its_time_is_over(
    world: CoreWorld, ts: str
) -> None:
    other = CoreWorld("two").on(world.store, world.clock, world)
    reminders = []
    for days in (0.9, 0.2, 5.8, 0.2, 80.0, 3.0):
        world.clock.advance(days * DAY)
        await other.settle()
        await world.settle()
        await RetentionSweeper(world.store).sweep()
        reminders.append((len(world.chat.posted_as(ProposalWaits)), len(world.chat.posted_as(ProposalOver))))
    assert (await world.thread(ts)).revision < 20, "a line that was told is not told anew by each poll"
    assert reminders == [(0, 0), (1, 0), (1, 0), (2, 0), (2, 0), (2, 1)]
    assert await shown(world, ts) is ProposalEnd.OVER
    await press(world, ts)
    assert [each[1] for each in told(world)] == [ProposalEnd.OVER]


@pytest.mark.first(status=1)
@pytest.mark.parametrize("status", ["archived", "failed", "gone"])
async def test_a_plan_ends_with_its_job(world: CoreWorld, ts: str, status: str) -> None:
    if status == "gone":
        world.job_api.jobs.clear()
        await world.pass_time(1_300)
    else:
        await world.show(status, wait=1_300)
    assert (await shown(world, ts), await end_of(world, ts)) == (ProposalEnd.OVER, ProposalEnd.OVER)


async def test_two_presses_on_two_instances_start_it_once(world: CoreWorld, ts: str) -> None:
    other = CoreWorld("two").on(world.store, world.clock, world)
    thread = await world.thread(ts)
    for each, person in ((world, ANA), (other, BEN)):
        await each.press(START, person, "plan-1", key=f"press-{person.id}", thread_id=thread.id)
    world.clock.advance(2)
    claim = await world.claim(world.request_sender)
    await other.settle()
    await claim.process()
    await other.settle()
    assert world.job_api.messages[JOB] == [START_WORDS]
    assert [each[1] for each in told(other)] == [ProposalEnd.STARTED]


async def test_a_plan_that_was_started_while_nobody_looked_is_not_posted(world: CoreWorld) -> None:
    """As after a backup was restored."""
    ts = await world.started()
    await world.show("active", details=plan(state=ProposalState.ACCEPTED), wait=60)
    thread = await world.thread(ts)
    assert (world.chat.posted_as(ProposalMade), thread.state.edits_now) == ([], True)
    assert thread.state.planning.proposal_end is ProposalEnd.STARTED


async def test_pages_that_change_though_their_plan_was_dropped_are_told_of_without_blame(
    world: CoreWorld, ts: str
) -> None:
    """This agent can show a plan."""
    await press(world, ts, DROP)
    await world.show("completed", LINK, plan(state=ProposalState.SUPERSEDED), wait=60)
    (found,) = world.chat.posted_as(PullRequestFound)
    assert "Only a plan" not in found.tell(MessageContext(), await world.thread(ts)).words


async def test_a_press_that_did_not_arrive_starts_nothing_after_a_stop(world: CoreWorld, ts: str) -> None:
    world.job_api.cancels = True
    await world.press_card(START, ts, BEN, "plan-1", key="press")
    world.clock.advance(2)
    being_sent = await world.claim(world.request_sender)
    await world.press_card(RequestKind.STOP, ts, key="stop")
    world.job_api.faults_of["send_message"] = [JobApiUnreachable("away")]
    await being_sent.process(wait=60)
    assert world.job_api.messages[JOB] == []
    assert (await end_of(world, ts), told(world)) == (ProposalEnd.STOPPED, [(BEN.id, ProposalEnd.STOPPED)])
