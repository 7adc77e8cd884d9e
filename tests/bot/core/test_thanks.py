"""Thanks after an end are not sent; emoji alone lead to a question if the agent has asked something."""

import pytest
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.context.slack_files import SlackFile
from bot.domain.projects import ChannelSettings, Project, Projects, ReplyMode
from bot.domain.requests.request import NO_ATTACHMENTS, Attachments, Reply, RequestKind
from bot.jobapi.models import JobDetails
from bot.notices.notice import Reaction
from bot.notices.questions import ReplyHeld

AT = [f"170000000{n}.000200" for n in range(1, 10)]
QUESTION = JobDetails(question="Which spelling?")


async def ended(world: CoreWorld, details: JobDetails | None = None) -> str:
    """A job that has ended; returns its thread's ts."""
    ts = await world.started()
    world.job_api.show("job-1", "completed", None if details else "https://git.example/1", details)
    await world.pass_time(30)
    return ts


async def test_thanks_after_an_end_get_a_reaction_and_are_not_sent(world: CoreWorld) -> None:
    """Once, however often Slack delivers them; the job stays unchanged."""
    ts = await ended(world)
    for _ in range(2):
        await world.reply(ts, "Thanks a lot!", AT[0], BEN)
        await world.pass_time(5)
    assert world.job_api.messages == {}
    assert world.chat.all_reactions[AT[0]] == [Reaction.WELCOME]
    assert world.chat.calls.count("mark") == 1
    assert world.chat.private == []


async def test_redelivered_thanks_stay_thanks_while_the_agent_is_running(world: CoreWorld) -> None:
    ts = await ended(world)
    await world.reply(ts, "Thanks a lot!", AT[0], BEN)
    await world.reply(ts, "Also fix the index", AT[1])
    world.job_api.show("job-1", "active")
    await world.pass_time(5)
    await world.reply(ts, "Thanks a lot!", AT[0], BEN)
    await world.pass_time(5)
    assert world.job_api.messages == {"job-1": ["Also fix the index"]}


async def test_thanks_before_an_end_are_sent_to_the_agent(world: CoreWorld) -> None:
    """They may be for what it says next."""
    ts = await world.started()
    await world.reply(ts, "Thanks!", AT[0])
    await world.pass_time(5)
    assert world.job_api.messages == {"job-1": ["Thanks!"]}


async def test_an_agent_waiting_for_an_answer_gets_thanks_as_the_answer(world: CoreWorld) -> None:
    ts = await ended(world, QUESTION)
    await world.reply(ts, "Thanks!", AT[0])
    await world.pass_time(5)
    assert world.job_api.messages == {"job-1": ["Thanks!"]}


@pytest.mark.parametrize(
    ("text", "attachments"),
    [
        ("ok", NO_ATTACHMENTS),
        ("go ahead", NO_ATTACHMENTS),
        ("Thanks, now the index", NO_ATTACHMENTS),
        ("Thanks!", Attachments((SlackFile(id="F1", name="a.png"),))),
    ],
)
async def test_thanks_with_more_words_or_files_are_sent_to_the_agent(
    world: CoreWorld, text: str, attachments: Attachments
) -> None:
    ts = await ended(world)
    await world.service.receive(Reply(BEN, "C1", ts, AT[0], text, attachments))
    await world.pass_time(5)
    assert len(world.job_api.messages["job-1"]) == 1


async def test_thanks_edited_into_a_request_are_sent(world: CoreWorld) -> None:
    """With the same reaction as every other reply."""
    ts = await ended(world)
    await world.reply(ts, "Thanks!", AT[0])
    await world.settle()
    await world.service.revise(Reply(BEN, "C1", ts, AT[0], "Not mine", edited_at=AT[1]))
    await world.service.revise(Reply(ANA, "C1", ts, AT[0], "Thanks! Now the index", edited_at=AT[2]))
    await world.pass_time(5)
    assert world.job_api.messages == {"job-1": ["Thanks! Now the index"]}
    assert world.chat.all_reactions[AT[0]] == [Reaction.ACCEPTED]


async def test_a_reply_edited_into_thanks_before_sending_is_not_sent(world: CoreWorld) -> None:
    ts = await ended(world)
    await world.service.receive(Reply(BEN, "C1", ts, AT[0], "Now the index"))
    await world.service.revise(Reply(BEN, "C1", ts, AT[0], "Thanks!", edited_at=AT[1]))
    await world.pass_time(5)
    assert world.job_api.messages == {}


async def test_thanks_are_neither_asked_about_nor_refused_aloud(world: CoreWorld) -> None:
    """If only participants count, or the job is muted."""
    world.projects = Projects((Project("docs"),), any_channel=ChannelSettings(replies=ReplyMode.PARTICIPANTS))
    world.assemble()
    ts = await ended(world)
    await world.reply(ts, "Thanks!", AT[0], BEN)
    await world.service.receive(Reply(BEN, "C1", ts, AT[1], "", word=ThreadWord.MUTE))
    await world.settle()
    await world.reply(ts, "Thank you", AT[2], BEN)
    await world.settle()
    assert world.chat.answers() == ["muted"]
    assert world.chat.private_as(ReplyHeld) == []
    assert [world.chat.all_reactions[at] for at in (AT[0], AT[2])] == [[Reaction.WELCOME]] * 2


async def test_thanks_where_there_is_no_job_start_none(world: CoreWorld) -> None:
    """Nor do emoji."""
    for at, text in zip(AT, ("Thanks!", ":tada:"), strict=False):
        assert not await world.service.receive(Reply(BEN, "C1", "1.1", at, text, mentions_us=True))
    await world.settle()
    assert world.job_api.created == []


async def test_emoji_that_may_answer_the_agents_question_are_asked_about(world: CoreWorld) -> None:
    """`Send` sends them."""
    ts = await ended(world, QUESTION)
    await world.reply(ts, ":+1:", AT[0])
    await world.pass_time(5)
    (asked,) = world.chat.private_as(ReplyHeld)
    assert (asked.text, world.job_api.messages) == (":+1:", {})
    await world.press(RequestKind.SEND_HELD, ANA, asked.request_id, key="p1")
    await world.pass_time(5)
    assert world.job_api.messages == {"job-1": [":+1:"]}


@pytest.mark.parametrize("now", [":-1:", "British"])
async def test_held_emoji_can_be_edited(world: CoreWorld, now: str) -> None:
    """Into others, about which the person is asked; or into words, which are sent."""
    ts = await ended(world, QUESTION)
    await world.reply(ts, ":+1:", AT[0])
    edit = Reply(ANA, "C1", ts, AT[0], now, edited_at=AT[1], withdrawn=now == ":-1:")
    await world.service.revise(edit)
    await world.pass_time(5)
    if now == ":-1:":
        assert [held.text for held in world.chat.private_as(ReplyHeld)] == [":+1:", ":-1:"]
        held = world.chat.private_as(ReplyHeld)[0].request_id
        await world.press(RequestKind.SEND_HELD, ANA, held, key="p1")
        await world.pass_time(5)
    assert world.job_api.messages == {"job-1": [now]}


async def test_emoji_without_a_question_are_between_people(world: CoreWorld) -> None:
    """While the agent works, after its end, and if the job is muted."""
    ts = await world.started()
    await world.reply(ts, ":tada:", AT[0])
    world.job_api.show("job-1", "completed", "https://git.example/1")
    await world.pass_time(30)
    await world.reply(ts, ":tada:", AT[1])
    await world.pass_time(5)
    assert (world.chat.private, world.chat.all_reactions, world.job_api.messages) == ([], {}, {})
