"""Messages in a direct message while the last job there is active: a new job, or for the one above."""

from dataclasses import replace

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld
from support.worlds.direct_lines import ADD, NEW_JOB, an_edit, answer, asked, write_line

from bot.domain.commands import Options, ThreadWord
from bot.domain.delivery import InConversation
from bot.domain.permissions import Refusal
from bot.domain.projects import Project, Projects
from bot.domain.requests.request import Reply, RequestKind
from bot.jobapi.models import JobDetails
from bot.notices.notice import Reaction
from bot.notices.questions import RequestRefused

pytestmark = pytest.mark.promise("direct messages")

AT = [f"170000000{n}.000200" for n in range(1, 10)]
LATER = [f"17000001{n}0.000200" for n in range(1, 9)]
SOON = "1700000113.000200"
"""A few seconds after the first of these."""


@pytest.fixture
async def working(world: CoreWorld) -> CoreWorld:
    """Ana's first direct message became a job, which is running."""
    world.chat.public.add("D1")
    await write_line(world, "Fix the guides", AT[0])
    assert world.job_api.created == ["Fix the guides"]
    return world


async def above(world: CoreWorld, kind: RequestKind, key: str) -> None:
    """Presses a button on the card of the job above, as Ana."""
    await world.press(kind, ANA, "", key=key, thread_id=(await world.newest(AT[0], "D1")).id)


async def in_thread(world: CoreWorld, word: ThreadWord, ts: str) -> None:
    """Writes a control word below the job above, as Ana."""
    await world.receive(Reply(ANA, "D1", AT[0], ts, "", word=word, in_direct_message=True), wait=0)


async def ended(world: CoreWorld, status: str = "completed", link: str | None = "https://git.example/1") -> None:
    await world.show(status, link, wait=30)


# -- the question -----------------------------------------------------------------------------------------------------


async def test_a_line_waits_for_an_answer_while_a_job_is_running(working: CoreWorld) -> None:
    """The question is asked once, at the line, however often Slack delivers it; nothing is sent."""
    for _ in range(2):
        await write_line(working, "Fix the manual", LATER[0])
    assert asked(working) == ["Fix the manual"]
    assert working.chat.private_places == [InConversation()]
    assert working.job_api.created == ["Fix the guides"]
    assert working.job_api.messages == {}


async def test_separate_lines_get_separate_questions(working: CoreWorld) -> None:
    await write_line(working, "Fix the manual", LATER[0])
    await write_line(working, "And the guides", LATER[1])
    assert asked(working) == ["Fix the manual", "And the guides"]
    await answer(working, ADD, which=1)
    assert working.job_api.messages == {"job-1": ["And the guides"]}
    await answer(working, NEW_JOB, "p2")
    assert working.job_api.created == ["Fix the guides", "Fix the manual"]


@pytest.mark.first(why=1)
@pytest.mark.parametrize("why", ["the job above has ended", "it is gone", "asked for explicitly"])
async def test_a_line_that_can_only_be_a_job_starts_one(working: CoreWorld, why: str) -> None:
    if why == "the job above has ended":
        await ended(working)
    elif why == "it is gone":
        working.job_api.jobs.clear()
        await working.pass_time(200)
    await write_line(working, "Fix the manual", LATER[0], may_be_reply=why != "asked for explicitly")
    assert working.job_api.created == ["Fix the guides", "Fix the manual"]
    assert asked(working) == []


async def test_a_line_is_asked_about_while_the_agent_waits_for_an_answer(working: CoreWorld) -> None:
    await working.show("completed", None, JobDetails(question="Which spelling?"), wait=30)
    await write_line(working, "The British one", LATER[0])
    assert asked(working) == ["The British one"]


async def test_another_persons_job_is_not_the_one_above(working: CoreWorld) -> None:
    """Nor is a job in another conversation."""
    await write_line(working, "Fix the manual", LATER[0], person=BEN)
    await write_line(working, "Fix the index", LATER[1], channel_id="C1", source_key=f"message/C1/{LATER[1]}")
    assert working.job_api.created == ["Fix the guides", "Fix the manual", "Fix the index"]


async def test_a_status_request_repeats_open_questions(working: CoreWorld) -> None:
    """There is one question for lines written together."""
    await write_line(working, "Fix the manual", LATER[0])
    await write_line(working, "And its index", SOON)
    await in_thread(working, ThreadWord.STATUS, LATER[1])
    assert asked(working) == ["Fix the manual"] * 2


# -- its answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pressed", "created", "messages", "answers"),
    [
        ((NEW_JOB, NEW_JOB, ADD), ["Fix the manual"], {}, ["nothing_new", "nothing_new"]),
        ((ADD, ADD, NEW_JOB), [], {"job-1": ["Fix the manual"]}, ["held_sent", "nothing_new", "nothing_new"]),
    ],
)
async def test_a_line_becomes_a_job_or_a_follow_up_once(
    working: CoreWorld,
    pressed: tuple[RequestKind, ...],
    created: list[str],
    messages: dict[str, list[str]],
    answers: list[str],
) -> None:
    """However often and whatever is pressed."""
    await write_line(working, "Fix the manual", LATER[0])
    for number, kind in enumerate(pressed):
        await answer(working, kind, f"p{number}")
    assert working.job_api.created == ["Fix the guides", *created]
    assert working.job_api.messages == messages
    assert working.chat.answers() == answers


async def test_a_redelivery_after_the_answer_is_recognized(working: CoreWorld) -> None:
    """Whatever the answer was, and even if the job above has ended."""
    for at, kind in ((LATER[0], NEW_JOB), (LATER[1], ADD)):
        await write_line(working, f"line {at}", at)
        await answer(working, kind, at, which=-1)
    await ended(working)
    for at in LATER[:2]:
        await write_line(working, f"line {at}", at)
    assert working.job_api.created == ["Fix the guides", f"line {LATER[0]}"]
    assert sum(map(len, working.job_api.messages.values())) == 1


async def test_a_redelivery_after_the_job_above_ended_is_recognized(working: CoreWorld) -> None:
    await write_line(working, "Fix the manual", LATER[0])
    await ended(working)
    await write_line(working, "Fix the manual", LATER[0])
    await answer(working, NEW_JOB)
    assert working.job_api.created == ["Fix the guides", "Fix the manual"]


async def test_only_the_author_answers_the_question(working: CoreWorld) -> None:
    await write_line(working, "Fix the manual", LATER[0])
    await answer(working, NEW_JOB, person=BEN)
    assert working.job_api.created == ["Fix the guides"]
    assert [told.refusal for told in working.chat.private_as(RequestRefused)] == [Refusal.NOT_THE_WRITER]


@pytest.mark.first(kind=1)
@pytest.mark.parametrize("kind", [NEW_JOB, ADD])
async def test_the_hourly_limit_is_checked_at_the_answer(working: CoreWorld, kind: RequestKind) -> None:
    working.configure(rules=replace(working.rules, hourly_limit=1))
    await write_line(working, "Fix the manual", LATER[0])
    await answer(working, kind)
    assert working.job_api.created == ["Fix the guides"]
    assert working.job_api.messages == {}
    assert [told.refusal for told in working.chat.private_as(RequestRefused)] == [Refusal.TOO_MANY]


# -- lines written together --------------------------------------------------------------------------------------------


async def test_lines_written_in_one_go_share_one_question(working: CoreWorld) -> None:
    """In any order of delivery; the first becomes the job, the others its follow-ups."""
    await write_line(working, "And its index", SOON)
    await write_line(working, "Fix the manual", LATER[0])
    assert len(asked(working)) == 1
    await answer(working, NEW_JOB)
    assert working.job_api.created == ["Fix the guides", "Fix the manual"]
    assert working.job_api.messages == {"job-2": ["And its index"]}


async def test_lines_written_in_one_go_are_added_together(working: CoreWorld) -> None:
    await write_line(working, "And the manual", LATER[0])
    await write_line(working, "And its index", SOON)
    await answer(working, ADD)
    assert working.job_api.messages == {"job-1": ["And the manual", "And its index"]}


async def test_a_line_from_before_a_stop_is_asked_about_by_itself(working: CoreWorld) -> None:
    """It arrives after the stop, and after the line that the question is about."""
    await in_thread(working, ThreadWord.STOP, "1700000111.000200")
    await write_line(working, "And the guides", SOON)
    await write_line(working, "Fix the manual", LATER[0])
    assert asked(working) == ["And the guides"]
    await answer(working, ADD)
    assert "Fix the manual" not in str(working.job_api.messages)
    assert asked(working) == ["And the guides", "Fix the manual"]


async def test_deleting_a_line_in_between_leaves_no_line_without_a_question(working: CoreWorld) -> None:
    between, last = "1700000114.000200", "1700000118.000200"
    for text, at in (("one", LATER[0]), ("two", between), ("three", last)):
        await write_line(working, text, at)
    assert asked(working) == ["one"]
    await working.revise(an_edit("", between, LATER[1], withdrawn=True), wait=0)
    assert asked(working) == ["one", "three"]
    await answer(working, ADD)
    await answer(working, ADD, "p2", which=1)
    assert working.job_api.messages == {"job-1": ["one", "three"]}


# -- edits ------------------------------------------------------------------------------------------------------------


async def test_an_edit_before_the_answer_counts(working: CoreWorld) -> None:
    await write_line(working, "Fix the manual", LATER[0])
    await working.revise(an_edit("Fix the index", LATER[0], LATER[1]), wait=0)
    assert asked(working) == ["Fix the manual", "Fix the index"]
    await answer(working, NEW_JOB)
    assert working.job_api.created == ["Fix the guides", "Fix the index"]


async def test_an_edit_that_names_a_project_starts_a_job(working: CoreWorld) -> None:
    """At once, like a line with an option in front; lines written right after it become follow-ups."""
    working.configure(projects=Projects((Project("docs"), Project("api"))))
    await write_line(working, "Fix the manual", LATER[0])
    await write_line(working, "And its index", SOON)
    edit = an_edit("Fix the manual", LATER[0], LATER[1], options=Options("api"))
    for _ in range(2):
        await working.revise(edit)
    await working.pass_time(8)
    assert working.job_api.created == ["Fix the guides", "Fix the manual"]
    assert working.job_api.projects == ["docs", "api"]
    assert working.job_api.messages == {"job-2": ["And its index"]}
    await answer(working, ADD)
    assert working.chat.answers() == ["nothing_new"]


async def test_an_edit_that_names_a_project_is_asked_about_after_one_into_thanks(working: CoreWorld) -> None:
    await write_line(working, "Fix the manual", LATER[0])
    await working.revise(an_edit("thanks", LATER[0], LATER[1]))
    await working.revise(an_edit("Fix the index", LATER[0], LATER[2], options=Options("docs")), wait=8)
    assert asked(working) == ["Fix the manual", "Fix the index"]
    await answer(working, NEW_JOB, which=-1)
    assert working.job_api.created == ["Fix the guides", "Fix the index"]


@pytest.mark.parametrize("kind", [ADD, NEW_JOB])
async def test_a_deleted_line_is_not_sent(working: CoreWorld, kind: RequestKind) -> None:
    await write_line(working, "Fix the manual", LATER[0])
    await working.revise(an_edit("", LATER[0], LATER[1], withdrawn=True))
    await answer(working, kind)
    assert working.job_api.created == ["Fix the guides"]
    assert working.job_api.messages == {}
    assert working.chat.answers() == ["nothing_new"]


async def test_an_edit_into_a_task_is_asked_about(working: CoreWorld) -> None:
    await working.revise(an_edit("Fix the manual", LATER[0], LATER[1]), wait=0)
    assert asked(working) == ["Fix the manual"]


# -- changes of the job above -----------------------------------------------------------------------------------------


@pytest.mark.first(meanwhile=1)
@pytest.mark.parametrize(("meanwhile", "job"), [("completed", "job-1"), ("stopped", "job-1"), ("retried", "job-2")])
async def test_a_job_that_ended_meanwhile_receives_the_line(working: CoreWorld, meanwhile: str, job: str) -> None:
    """A stop does not end the line, which had not been sent."""
    working.job_api.cancels = True
    await write_line(working, "And the manual", LATER[0])
    match meanwhile:
        case "completed":
            await ended(working)
        case "stopped":
            await above(working, RequestKind.STOP, "s1")
        case _:
            await ended(working, "failed", None)
            await above(working, RequestKind.RETRY, "r1")
    await working.pass_time(10)
    assert working.job_api.cancelled == ["job-1"] * (meanwhile == "stopped")
    await answer(working, ADD)
    assert working.job_api.messages == {job: ["And the manual"]}


async def test_a_line_that_cannot_be_added_can_still_become_a_job(working: CoreWorld) -> None:
    await write_line(working, "And the manual", LATER[0])
    await ended(working, "archived", None)
    await answer(working, ADD)
    assert working.chat.answers() == ["not_added"]
    await answer(working, NEW_JOB, "p2")
    assert working.job_api.created == ["Fix the guides", "And the manual"]


async def test_a_muted_job_receives_no_line(working: CoreWorld) -> None:
    """There are no more questions about lines, and one with a question is not added."""
    await write_line(working, "And the manual", LATER[0])
    await above(working, RequestKind.MUTE, "m1")
    await answer(working, ADD)
    assert working.chat.answers() == ["muted", "not_added_muted"]
    await write_line(working, "Fix the index", LATER[2])
    assert working.job_api.created == ["Fix the guides", "Fix the index"]


# -- other places -----------------------------------------------------------------------------------------------------


async def test_a_channel_with_a_changed_id_is_the_same_conversation(working: CoreWorld) -> None:
    """A line, its redelivery and its edit are recognized under either id."""
    await write_line(working, "Fix the manual", LATER[0])
    await working.service.follow_channel("D1", "D2", 1.0)
    await write_line(working, "Fix the manual", LATER[0], channel_id="D2")
    await write_line(working, "And the index", LATER[1], channel_id="D2")
    await working.revise(an_edit("Fix all manuals", LATER[0], LATER[2], channel_id="D2"), wait=0)
    assert asked(working) == ["Fix the manual", "And the index", "Fix all manuals"]
    await answer(working, NEW_JOB)
    await answer(working, ADD, "p2", which=1)
    assert working.job_api.created == ["Fix the guides", "Fix all manuals"]
    assert working.job_api.messages == {"job-1": ["And the index"]}


async def test_home_lists_a_line_once_it_is_a_job(working: CoreWorld) -> None:
    await write_line(working, "Fix the manual", LATER[0])
    assert await prompts_at_home(working) == ["Fix the guides"]
    await answer(working, NEW_JOB)
    assert await prompts_at_home(working) == ["Fix the manual", "Fix the guides"]


async def prompts_at_home(world: CoreWorld) -> list[str]:
    threads = await world.store.transact(lambda tx: tx.threads.of_person("UANA", offset=0, limit=10))
    return [thread.prompt for thread in threads]


# -- thanks -----------------------------------------------------------------------------------------------------------


def thanks(ts: str) -> Reply:
    return Reply(ANA, "D1", "", ts, "Thanks!", in_direct_message=True)


@pytest.mark.parametrize("over", [False, True])
async def test_thanks_outside_a_thread_get_a_reaction_only(working: CoreWorld, *, over: bool) -> None:
    """Once, however often Slack delivers them."""
    if over:
        await ended(working)
    for _ in range(2):
        await working.service.thank(thanks(LATER[0]))
        await working.pass_time(8)
    assert working.chat.all_reactions == {LATER[0]: [Reaction.WELCOME]}
    assert working.chat.calls.count("mark") == 1
    assert (working.job_api.messages, asked(working), working.job_api.created) == ({}, [], ["Fix the guides"])


async def test_thanks_without_a_job_are_ignored(world: CoreWorld) -> None:
    await world.service.thank(thanks(LATER[0]))
    await world.settle()
    assert world.chat.calls == []


async def test_thanks_edited_into_a_task_are_asked_about(working: CoreWorld) -> None:
    await working.service.thank(thanks(LATER[0]))
    await working.revise(an_edit("Thanks! Now the index", LATER[0], LATER[1]), wait=0)
    assert asked(working) == ["Thanks! Now the index"]
    await answer(working, ADD)
    assert working.job_api.messages == {"job-1": ["Thanks! Now the index"]}
    assert working.chat.all_reactions[LATER[0]] == [Reaction.ACCEPTED]
