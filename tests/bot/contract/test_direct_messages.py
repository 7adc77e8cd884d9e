"""Lines in direct messages on real databases, with several processes, and the payloads of Slack's buttons."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.fakes.ports import FakeClock
from support.fakes.slack_payloads import click
from support.worlds.core_world import ANA, CoreWorld
from support.worlds.direct_lines import ADD, NEW_JOB, a_line, an_edit, answer, asked, write_line
from support.worlds.listening_world import listening
from support.worlds.slack_world import slack_world
from support.worlds.store_world import Opener, Sql

from bot.cli.personal_data import forget_all
from bot.domain.requests.request import Action, Person, Reply, RequestKind, Surface
from bot.notices.notice import Notice
from bot.notices.questions import JobOrReplyAsked
from bot.workspace.model.entities import Message

FIRST, LINE, SOON = "1700000001.000200", "1700000110.000200", "1700000113.000200"


@pytest.fixture
async def processes(another_store: Opener, clock: FakeClock) -> Sequence[CoreWorld]:
    """Two processes on one database, with one Slack and one job API; Ana has a running job in her direct message."""
    one = CoreWorld("one").on(await another_store(), clock)
    one.chat.public.add("D1")
    await write_line(one, "Fix the guides", FIRST)
    assert one.job_api.created == ["Fix the guides"]
    return one, CoreWorld("two").on(await another_store(), clock, beside=one)


def taken(world: CoreWorld) -> list[str]:
    """Returns what the job API got besides the first job."""
    return [*world.job_api.created[1:], *(words for said in world.job_api.messages.values() for words in said)]


# -- several processes ------------------------------------------------------------------------------------------------


async def test_concurrent_deliveries_of_a_line_record_it_once(processes: Sequence[CoreWorld], sql: Sql) -> None:
    await asyncio.gather(*(world.service.start(a_line("Fix the manual", LINE)) for world in processes))
    await processes[0].settle()
    assert asked(processes[0]) == ["Fix the manual"]
    assert await sql("SELECT count(*) FROM threads") == [(1,)]


@pytest.mark.full
async def test_concurrent_deliveries_of_two_lines_ask_one_question(processes: Sequence[CoreWorld]) -> None:
    one, two = processes
    await asyncio.gather(
        one.service.start(a_line("Fix the manual", LINE)), two.service.start(a_line("And its index", SOON))
    )
    await one.settle()
    assert len(asked(one)) == 1
    await answer(one, NEW_JOB)
    assert taken(one) == ["Fix the manual", "And its index"]


@pytest.mark.parametrize("kinds", [(NEW_JOB, NEW_JOB), (ADD, ADD), (NEW_JOB, ADD)], ids=str)
async def test_concurrent_deliveries_of_an_answer_act_once(
    processes: Sequence[CoreWorld], kinds: tuple[RequestKind, RequestKind]
) -> None:
    """The first one is the answer; the other one has nothing left to do, and says so."""
    for text, at in (("Fix the manual", LINE), ("And its index", SOON)):
        await write_line(processes[0], text, at)
    (question,) = processes[0].chat.private_as(JobOrReplyAsked)
    await asyncio.gather(*(press(world, kind, question) for world, kind in zip(processes, kinds, strict=True)))
    await processes[1].pass_time(8)
    assert sorted(taken(processes[0])) == ["And its index", "Fix the manual"]
    assert processes[0].chat.answers().count("nothing_new") == 1
    assert len(processes[0].job_api.created) == 1 + ("Fix the manual" in processes[0].job_api.created)


async def press(world: CoreWorld, kind: RequestKind, question: JobOrReplyAsked) -> None:
    """Presses a button in this process, while the other one does the same."""
    await world.service.act(Action(ANA, kind, f"press-{world.owner}", argument=question.request_id))
    await world.prepare()


async def test_a_concurrent_edit_and_answer_leave_one_request(processes: Sequence[CoreWorld]) -> None:
    """The line is sent once, with its old or its new text; after the old text, the new one is offered."""
    one, two = processes
    await write_line(one, "Fix the manual", LINE)
    (question,) = one.chat.private_as(JobOrReplyAsked)
    edit = an_edit("Fix the manuals", LINE, "1700000120.000200")
    await asyncio.gather(press(one, NEW_JOB, question), two.service.revise(edit))
    await two.pass_time(8)
    assert taken(one) in (["Fix the manuals"], ["Fix the manual"])


# -- forgetting -------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("of", [{"person_id": "UANA"}, {"channel_id": "D1"}], ids=str)
async def test_forgetting_a_person_deletes_their_lines(
    processes: Sequence[CoreWorld], database: str, sql: Sql, of: dict[str, str]
) -> None:
    """Thanks and the question are deleted, too; a press of its button finds nothing."""
    world = processes[0]
    await write_line(world, "Fix the planted words", LINE)
    await world.service.thank(Reply(ANA, "D1", "", SOON, "Thanks!", in_direct_message=True))
    world.job_api.show("job-1", "completed", "https://git.example/1")
    await world.pass_time(900)
    await asyncio.to_thread(forget_all, database, **{"person_id": "", "channel_id": "", **of})
    rows = [str(await sql(f"SELECT * FROM {table}")) for table in ("threads", "requests", "notices")]  # noqa: S608 - the tests' own words
    assert not [row for row in rows if "planted" in row or "UANA" in row or "D1" in row]
    held = world.chat.private_as(JobOrReplyAsked)[0].request_id
    assert not await world.service.act(Action(ANA, NEW_JOB, "p1", argument=held))


# -- on Slack's wire --------------------------------------------------------------------------------------------------


async def asked_in_slack() -> Message:
    """The question as Slack shows it: only to its person, outside the threads of the direct message,
    while the job is running.
    """
    async with slack_world() as world:
        ana = world.workspace.people["ana"]
        said = await ana.say("pagehand", "Fix the guides")
        thread = replace(world.thread, channel_id=said.channel, ts=said.ts, card_ts="1.1", has_replies=True)
        question = JobOrReplyAsked(ana.id, "r1", "Fix <!channel> & the `manual`", asked_on=Surface.TOP_LEVEL)
        await world.chat.tell(thread, Notice(1, "th1/r1/held/", "th1", question, created_at=0.0))
        (shown,) = ana.ephemerals("pagehand")
        return shown


def buttons(message: Message) -> list[dict[str, Any]]:
    return [each for block in message.blocks or [] for each in block.get("elements", []) if each["type"] == "button"]


@pytest.mark.parametrize(("which", "kind"), [(0, NEW_JOB), (1, ADD)])
async def test_a_press_is_recorded_as_its_persons_answer(which: int, kind: RequestKind) -> None:
    """The payload over HTTP and over Socket Mode (docs.slack.dev/reference/interaction-payloads): for an ephemeral
    message, Slack sends its place and time but not its text.
    """
    pressed = buttons(await asked_in_slack())[which]
    at, text = "1700000120.000300", {**pressed["text"], "emoji": True}
    action = {key: pressed[key] for key in ("type", "action_id", "value")}
    action |= {"block_id": "b1", "text": text, "action_ts": at}
    container = {"type": "message", "message_ts": "1700000111.000100", "channel_id": "D1", "is_ephemeral": True}
    payload = click(
        pressed["action_id"],
        user={"id": "U0ANA", "username": "ana", "name": "ana", "team_id": "T1"},
        team={"id": "T1", "domain": "team"},
        api_app_id="A1",
        container=container,
        enterprise=None,
        is_enterprise_install=False,
        channel={"id": "D1", "name": "directmessage"},
        state={"values": {}},
        actions=[action],
    )
    async with listening() as world:
        assert (await world.both_ways(payload)).status == 200
        expected = Action(Person("U0ANA", "T1"), kind, "click/T1/1.2.abc", argument="r1", at=at)
        assert world.service.actions == [expected]
