"""Jobs that show a plan first, or only answer: the mode, model and effort of everything that is sent, and refusals."""

from dataclasses import replace

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.commands import AgentOptions
from bot.domain.jobs.stopping import STOP_WORDS
from bot.domain.permissions import Refusal
from bot.domain.projects import ChannelSettings, Project, Projects
from bot.domain.requests.new_jobs import MAKE_IT_A_CHANGE, NewJob, Written
from bot.domain.requests.request import Person, Reply, RequestKind, WayIn
from bot.domain.threads.thread import Thread
from bot.errors import JobApiUncertain, JobApiUnreachable
from bot.jobapi.models import JobDetails, Mode
from bot.notices.job import JobFinished, PullRequestFound
from bot.notices.questions import RequestRefused
from bot.notices.requests import RequestRejected
from bot.slack.rendering.message_context import MessageContext

PLAN, ASK = AgentOptions(Mode.PLAN), AgentOptions(Mode.ASK, "opus-5", "high")


def a_job(agent: AgentOptions = PLAN, project: str = "", key: str = "k1") -> NewJob:
    return NewJob(ANA, "C1", "Do it", key, WayIn.COMMAND, project_said=project, agent=agent)


async def asked(world: CoreWorld, job: NewJob) -> str:
    """Has a job sent; returns its thread's ts."""
    await world.ask(job, wait=0)
    return next(message.ts for message in reversed(world.chat.messages) if message.kind == "card_changed")


def sent(world: CoreWorld) -> list[tuple[str, Mode, str, str]]:
    return [(call.prompt, call.mode, call.model, call.effort) for call in world.job_api.prompt_calls]


def refusals(world: CoreWorld) -> list[Refusal]:
    return [each.refusal for each in world.chat.private_as(RequestRefused)]


@pytest.mark.first(agent=2)
@pytest.mark.parametrize("agent", [AgentOptions(), PLAN, ASK, AgentOptions(Mode.EDIT, "opus-5")])
async def test_everything_that_is_sent_says_how_the_agent_is_to_work(world: CoreWorld, agent: AgentOptions) -> None:
    world.job_api.modes = True
    ts = await asked(world, a_job(agent))
    await world.show("completed", wait=60)
    await world.reply(ts, "More", "5.0", wait=10)
    await world.press_card(RequestKind.STOP, ts, key="stop", wait=10)
    expected = (agent.mode or Mode.EDIT, agent.model, agent.effort)
    assert sent(world) == [("Do it", *expected), ("More", *expected), (STOP_WORDS, *expected)]


@pytest.mark.first(said=2)
@pytest.mark.parametrize(
    ("said", "of_channel", "of_project", "mode"),
    [
        (None, None, Mode.PLAN, Mode.PLAN),
        (None, Mode.ASK, Mode.PLAN, Mode.ASK),
        (None, Mode.EDIT, Mode.PLAN, Mode.EDIT),
        (Mode.EDIT, Mode.ASK, Mode.PLAN, Mode.EDIT),
    ],
)
async def test_what_the_request_does_not_say_is_the_channels_or_the_projects(
    world: CoreWorld, said: Mode | None, of_channel: Mode | None, of_project: Mode, mode: Mode
) -> None:
    world.job_api.modes = True
    projects = (Project("guides", mode=of_project), Project("manual"))
    world.configure(projects=Projects(projects, {"C1": ChannelSettings(mode=of_channel)}))
    await asked(world, a_job(AgentOptions(said), "guides"))
    assert [call.mode for call in world.job_api.prompt_calls] == [mode]


@pytest.mark.first(agent=2)
@pytest.mark.parametrize("agent", [PLAN, ASK, AgentOptions(model="opus-5"), AgentOptions(effort="high")])
async def test_what_the_job_api_cannot_do_is_refused_before_anything_is_sent(
    world: CoreWorld, agent: AgentOptions
) -> None:
    await world.ask(a_job(agent), wait=60)
    assert (world.job_api.prompt_calls, refusals(world)) == ([], [Refusal.NO_MODES])
    await world.ask(a_job(AgentOptions(Mode.EDIT), key="k2"), wait=60)
    assert sent(world) == [("Do it", Mode.EDIT, "", "")]


async def test_a_mode_that_the_settings_lost_is_refused(world: CoreWorld) -> None:
    """In a reply, and in a job that was prepared before: a plan that is only asked for is no plan."""
    world.job_api.modes = True
    ts = await asked(world, a_job())
    world.job_api.modes = False
    await world.reply(ts, "More", "5.0", wait=60)
    assert refusals(world) == [Refusal.NO_MODES]
    world.job_api.modes = True
    world.job_api.faults_of["create"] = [JobApiUnreachable("down")]
    await world.ask(a_job(key="k2"), wait=0)
    world.job_api.modes = False
    await world.pass_time(60)
    assert len([post for post in world.chat.posted_as(RequestRejected) if "plan" in post.api_text]) == 1
    assert [call.prompt for call in world.job_api.prompt_calls] == ["Do it", "Do it"], "the second was not answered"


@pytest.mark.first(way=1)
@pytest.mark.parametrize("way", [RequestKind.RETRY, RequestKind.CHOOSE_PROJECT])
async def test_a_retry_and_a_switch_keep_how_the_agent_is_to_work(world: CoreWorld, way: RequestKind) -> None:
    """The default of the channel, too. A project that cannot is refused, and the first job stays."""
    world.job_api.modes = True
    projects = Projects((Project("guides"), Project("manual", mode=Mode.PLAN)))
    world.configure(projects=projects)
    ts = await asked(world, a_job(AgentOptions(model="opus-5"), "manual"))
    await world.show("failed", wait=60)
    world.job_api.modes = False
    argument = "" if way is RequestKind.RETRY else "guides"
    await world.press_card(way, ts, ANA, argument, key="p1", wait=60)
    assert (len(sent(world)), refusals(world)) == (1, [Refusal.NO_MODES])
    world.job_api.modes = True
    await world.press_card(way, ts, ANA, argument, key="p2", wait=60)
    assert sent(world) == [("Do it", Mode.PLAN, "opus-5", "")] * 2


async def test_a_project_that_is_chosen_decides_the_mode(world: CoreWorld) -> None:
    """Also one that is chosen while the job waits to be sent."""
    world.job_api.modes = True
    world.configure(projects=Projects((Project("guides"), Project("manual", mode=Mode.ASK))))
    await world.ask(a_job(AgentOptions()), wait=0)
    thread = (await world.store.transact(lambda tx: tx.threads.newest_of("C1", limit=1)))[0]
    world.job_api.faults_of["create"] = [JobApiUnreachable("down")]
    for number, name in enumerate(("guides", "manual")):
        await world.press(RequestKind.CHOOSE_PROJECT, ANA, name, key=f"p{number}", thread_id=thread.id, wait=0)
    await world.pass_time(60)
    assert [call.mode for call in world.job_api.prompt_calls] == [Mode.EDIT, Mode.ASK]


@pytest.mark.first(words=2)
@pytest.mark.parametrize("words", ["plan: More", "quiet Mode:edit More", "mode: paln More", "model:opus-5 More"])
async def test_a_reply_that_begins_with_an_option_is_not_sent_as_mere_words(world: CoreWorld, words: str) -> None:
    """It might do what its writer wanted to be shown first. Edited, it is sent."""
    world.job_api.modes = True
    ts = await asked(world, a_job())
    await world.show("completed", wait=60)
    await world.reply(ts, words, "5.0", wait=10)
    assert (len(sent(world)), world.chat.answers()) == (1, ["reply_not_sent_options"])
    await world.revise(Reply(ANA, "C1", ts, "5.0", "More", edited_at="9.0"), wait=10)
    assert [prompt for prompt, *_ in sent(world)] == ["Do it", "More"]


@pytest.mark.parametrize("late", [False, True])
async def test_a_job_api_that_ignores_the_mode_is_told_of_once(world: CoreWorld, *, late: bool) -> None:
    world.job_api.modes = True
    ts = await asked(world, a_job())
    if late:
        await world.show("completed", wait=60)
    await world.show("completed", "https://git.example/1", wait=60)
    await world.reply(ts, "More", "500.0", wait=10)
    await world.show("completed", "https://git.example/1", JobDetails(summary="Again."), wait=60)
    posts = [each for each in world.chat.messages if isinstance(each.message, JobFinished | PullRequestFound)]
    said = [each.message.tell(MessageContext(), world.chat.shown_by_key[each.key]).words for each in posts]
    assert [number for number, words in enumerate(said) if "Only a plan was asked for" in words] == [1 if late else 0]


async def test_an_edit_of_the_request_changes_its_mode_until_it_is_sent(world: CoreWorld) -> None:
    world.job_api.modes = True
    mention = Reply(ANA, "C1", "1.0", "1.0", "plan: Do it", mentions_us=True)
    world.job_api.faults_of["create"] = [JobApiUnreachable("down")]
    await world.receive(mention, wait=0)
    await world.revise(replace(mention, text="ask: Do it", edited_at="2.0"), wait=60)
    assert [call.mode for call in world.job_api.prompt_calls] == [Mode.PLAN, Mode.ASK]
    await world.revise(replace(mention, text="Do it", edited_at="3.0"), wait=60)
    assert world.chat.answers() == ["sent_as_asked"]


async def test_options_that_cannot_be_read_start_nothing_in_a_thread_of_people(world: CoreWorld) -> None:
    """Whoever received it tells its writer; an edit to such options takes the job back, and says so."""
    world.job_api.modes = True
    mention = Reply(ANA, "C1", "1.0", "2.0", "mode: paln Do it", mentions_us=True)
    assert not await world.receive(mention, wait=60)
    assert await world.receive(replace(mention, message_ts="3.0", text="Do it"))
    await world.revise(replace(mention, message_ts="3.0", edited_at="4.0"), wait=60)
    assert (sent(world), world.chat.answers()) == ([], ["taken_back_by_options"])


@pytest.mark.parametrize(
    ("text", "told", "created"), [("mode: paln Do it", [], []), ("plan: Do it", ["sent_as_asked"], ["Do it"])]
)
async def test_a_start_whose_options_are_edited_while_it_is_sent_and_that_comes_back(
    world: CoreWorld, text: str, told: list[str], created: list[str]
) -> None:
    """It is taken back if they cannot be read; otherwise its person knows that they don't count."""
    mention = Reply(ANA, "C1", "1.0", "3.0", "Do it", mentions_us=True)
    await world.receive(mention)
    await world.prepare()
    await world.step(world.outbox)
    being_sent = await world.claim(world.request_sender)
    await world.revise(replace(mention, edited_at="4.0", text=text))
    world.job_api.faults_of["create"] = [JobApiUnreachable("away")]
    await being_sent.process(wait=60)
    assert (world.chat.answers(), world.job_api.created) == (told, created)


async def test_a_reply_that_is_sent_again_keeps_its_mode(world: CoreWorld) -> None:
    """A job API that runs a repeated key once compares the whole call."""
    world.job_api.modes = world.idempotent = True
    ts = await asked(world, a_job(ASK))
    world.job_api.after = [JobApiUncertain("no answer")]
    await world.reply(ts, "And why?", "5.0", wait=1)
    thread = await world.thread(ts)
    await world.store.transact(
        lambda tx: tx.threads.save_state(thread.id, replace(thread.state, edits_now=True), poll_in=None)
    )
    await world.pass_time(30)
    assert [call.mode for call in world.job_api.prompt_calls] == [Mode.ASK] * 3
    await world.reply(ts, "Go on", "50.0", wait=30)
    assert world.job_api.prompt_calls[-1].mode is Mode.EDIT


# -- an answer, and a change made of it -------------------------------------------------------------------------------

ANSWER = JobDetails(mode=Mode.ASK, summary="Because of the index.", pages_read=("docs/a.md",))


async def answered(world: CoreWorld) -> Thread:
    """A job whose question is answered."""
    world.job_api.modes = world.job_api.cancels = True
    ts = await asked(world, a_job(ASK))
    await world.show("completed", details=ANSWER, wait=60)
    return await world.thread(ts)


async def make_it_a_change(world: CoreWorld, thread: Thread, person: Person = ANA, *, wait: float = 10) -> None:
    key = f"said/{person.id}"
    await world.service.follow_up(Written(person, thread.id, MAKE_IT_A_CHANGE, key, WayIn.BUTTON, Mode.EDIT))
    await world.wait(wait)


def modes_of_messages(world: CoreWorld) -> list[Mode]:
    return [call.mode for call in world.job_api.prompt_calls[1:]]


async def test_an_answer_is_one_post_and_replies_go_on_asking(world: CoreWorld) -> None:
    thread = await answered(world)
    (post,) = world.chat.posted_as(JobFinished)
    assert post.report is not None
    assert (post.report.mode, post.report.pages_read) == (Mode.ASK, ("docs/a.md",))
    await world.reply(thread.ts or "", "And why?", "5.0", wait=10)
    assert modes_of_messages(world) == [Mode.ASK]


async def test_an_answer_is_made_a_change_once_and_replies_change_pages_from_then_on(world: CoreWorld) -> None:
    """By whoever presses first; the others are told."""
    thread = await answered(world)
    await make_it_a_change(world, thread, wait=0)
    await make_it_a_change(world, thread, BEN)
    await make_it_a_change(world, thread, BEN)
    assert world.chat.answers() == ["already_accepted"]
    await world.reply(thread.ts or "", "Shorter", "50.0", wait=10)
    assert sent(world)[1:] == [
        (MAKE_IT_A_CHANGE, Mode.EDIT, "opus-5", "high"),
        ("Shorter", Mode.EDIT, "opus-5", "high"),
    ]
    assert (await world.thread(thread.ts or "")).mode is Mode.EDIT
    world.clock.advance(60)
    await make_it_a_change(world, thread, Person("UCAT", "T1"))
    assert world.chat.answers() == ["already_accepted"] * 2


async def test_a_change_is_not_merged_with_what_its_person_wrote_just_before(world: CoreWorld) -> None:
    world.configure(merge_seconds=3.0)
    thread = await answered(world)
    await world.reply(thread.ts or "", "And why?", f"{world.clock.time:.6f}")
    world.clock.advance(1)
    await make_it_a_change(world, thread, wait=30)
    assert modes_of_messages(world) == [Mode.ASK, Mode.EDIT]


async def test_a_press_while_the_change_may_have_arrived_is_told_so(world: CoreWorld) -> None:
    thread = await answered(world)
    world.job_api.after = [JobApiUncertain("no answer")]
    await make_it_a_change(world, thread)
    await make_it_a_change(world, thread, BEN)
    assert (modes_of_messages(world), world.chat.answers()) == ([Mode.EDIT], ["already_accepted"])


@pytest.mark.first(ended=1)
@pytest.mark.parametrize("ended", ["stopped", "stopping", "switched"])
async def test_no_change_is_made_of_what_was_stopped_or_replaced(world: CoreWorld, ended: str) -> None:
    thread = await answered(world)
    if ended == "switched":
        world.configure(projects=Projects((Project("docs"), Project("guides"))))
        await world.press(RequestKind.CHOOSE_PROJECT, ANA, "guides", key="p1", thread_id=thread.id, wait=30)
    else:
        await world.reply(thread.ts or "", "And why?", "5.0", wait=10)
        await world.press(
            RequestKind.STOP, BEN, "", key="p1", thread_id=thread.id, wait=10 if ended == "stopped" else None
        )
    await make_it_a_change(world, thread)
    assert Mode.EDIT not in modes_of_messages(world)
    assert world.chat.answers()[-1] == "change_too_late"


async def test_a_stop_takes_back_a_change_that_is_not_sent(world: CoreWorld) -> None:
    thread = await answered(world)
    await make_it_a_change(world, thread, wait=0)
    world.clock.advance(1)
    await world.press(RequestKind.STOP, BEN, "", key="p1", thread_id=thread.id, wait=30)
    assert modes_of_messages(world) == []


async def test_whoever_may_not_steer_makes_no_change(world: CoreWorld) -> None:
    thread = await answered(world)
    world.configure(rules=replace(world.rules, people=frozenset({"UANA"})))
    await make_it_a_change(world, thread, BEN)
    assert (modes_of_messages(world), refusals(world)) == ([], [Refusal.NOT_ON_THE_LIST])
