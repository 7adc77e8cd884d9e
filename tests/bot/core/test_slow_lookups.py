"""While Slack is slow to look people up, known people wait for nobody."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from support.fakes.slack_reading import FakeSlackReading
from support.worlds.core_world import BEN, CoreWorld

from bot.domain.context.slack_files import FileContent, SlackFile
from bot.domain.people.members import Member
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Attachments, Person, WayIn
from bot.scheduler.request_preparer import MOST_UNDER_WAY


class SlowReading(FakeSlackReading):
    """Slack that identifies `known` people, and others not before `answers` is set. Reading files takes until then,
    too; `most_reading` is the highest number of concurrent reads.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known = {BEN.id}
        self.answers = asyncio.Event()
        self.reading = self.most_reading = self.read_files = 0

    def known_member(self, person_id: str) -> Member | None:
        return None

    async def member(self, person_id: str) -> Member:
        found = await super().member(person_id)
        if person_id not in self.known:
            await self.answers.wait()
        return found

    async def read(self, file: SlackFile, *, max_bytes: int) -> FileContent:
        self.reading += 1
        self.most_reading = max(self.most_reading, self.reading)
        await self.answers.wait()
        self.reading -= 1
        self.read_files += 1
        return FileContent(b"words", "text/markdown")

    @property
    def people_asked_about(self) -> int:
        return len({each for each in self.asked if each.startswith("member")})


def slow(world: CoreWorld) -> SlowReading:
    reading = SlowReading()
    world.reading = reading
    world.assemble()
    return reading


async def ask(world: CoreWorld, person: Person, prompt: str, *files: SlackFile) -> None:
    await world.service.start(NewJob(person, "C1", prompt, prompt, WayIn.COMMAND, attachments=Attachments(files=files)))


@asynccontextmanager
async def at_work(world: CoreWorld) -> AsyncIterator[None]:
    """Runs the preparer in the background."""
    task = asyncio.create_task(world.request_preparer.run())
    yield
    await world.request_preparer.stop(5.0)
    await task


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20.0):
        while not condition():  # noqa: ASYNC110 - what happens in the store tells nobody
            await asyncio.sleep(0.005)


async def until_created(world: CoreWorld, count: int) -> None:
    """Sends prepared requests until there are this many jobs."""
    async with asyncio.timeout(20.0):
        while len(world.job_api.created) < count:
            await asyncio.sleep(0.005)
            while sum([await world.step(loop) for loop in (world.outbox, world.request_sender)]):
                pass


async def test_a_known_person_does_not_wait_behind_slow_lookups(world: CoreWorld) -> None:
    """Many more unknown people than one claim takes, all earlier; once Slack answers, each gets their job."""
    reading = slow(world)
    for number in range(40):
        await ask(world, Person(f"UNEW{number}", "T1"), f"new {number}")
    await ask(world, BEN, "known")
    async with at_work(world):
        await until(lambda: reading.people_asked_about == 41)
        await until_created(world, 1)
        assert world.job_api.created == ["known"]
        reading.answers.set()
        await until_created(world, 41)
    assert sorted(world.job_api.created) == sorted(["known", *(f"new {number}" for number in range(40))])


async def test_concurrent_slack_lookups_are_bounded(world: CoreWorld) -> None:
    """The others are claimed as these get their answers."""
    reading = slow(world)
    for number in range(MOST_UNDER_WAY + 20):
        await ask(world, Person(f"UNEW{number}", "T1"), f"new {number}")
    async with at_work(world):
        await until(lambda: world.request_preparer.free_slots() <= 0)
        assert reading.people_asked_about <= MOST_UNDER_WAY
        reading.answers.set()
        await until(lambda: reading.people_asked_about == MOST_UNDER_WAY + 20)


async def test_concurrent_file_reads_are_bounded_across_requests(world: CoreWorld) -> None:
    """Files take connections and memory; waiting for a look-up does not."""
    reading = slow(world)
    reading.known |= {f"UNEW{number}" for number in range(20)}
    for number in range(20):
        files = [SlackFile(f"F{number}-{each}", f"{each}.md", "text/markdown") for each in range(4)]
        await ask(world, Person(f"UNEW{number}", "T1"), f"new {number}", *files)
    async with at_work(world):
        await until(lambda: reading.reading == 32)
        reading.answers.set()
        await until(lambda: reading.read_files == 80)
    assert reading.most_reading == 32
