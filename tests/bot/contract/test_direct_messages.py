"""Lines in direct messages on real databases, with several processes."""

import asyncio
from collections.abc import Sequence

import pytest
from support.fakes.ports import FakeClock
from support.worlds.core_world import ANA, CoreWorld
from support.worlds.direct_lines import ADD, NEW_JOB, a_line, an_edit, asked, write_line
from support.worlds.store_world import Opener, Sql

from bot.domain.requests.request import Action, RequestKind
from bot.notices.questions import JobOrReplyAsked

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


@pytest.mark.either_database
async def test_concurrent_deliveries_of_a_line_record_it_once(processes: Sequence[CoreWorld], sql: Sql) -> None:
    await asyncio.gather(*(world.service.start(a_line("Fix the manual", LINE)) for world in processes))
    await processes[0].settle()
    assert asked(processes[0]) == ["Fix the manual"]
    assert await sql("SELECT count(*) FROM threads") == [(1,)]


@pytest.mark.first(kinds=1)
@pytest.mark.parametrize("kinds", [(NEW_JOB, ADD), (NEW_JOB, NEW_JOB), (ADD, ADD)], ids=str)
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
