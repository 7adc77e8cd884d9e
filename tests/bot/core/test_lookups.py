"""What people read in Slack for a request: once for several messages, without long waits, and within its limits."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from support.fakes.ports import FakePeople
from support.fakes.slack_reading import FakeSlackReading
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.context import FetchedFile, FetchedParts, FetchedThread, ThreadPart
from bot.domain.messages import FileContent, ForwardedMessage, QuotedFile, SlackFile, ThreadMessage
from bot.domain.people import Member
from bot.domain.projects import Projects
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Attachments, Person, Reply, Request, RequestKind, WayIn
from bot.runtime.secrets.masking import Masked, SecretMasker
from bot.runtime.text import LONG
from bot.scheduler.gathering import ContextGatherer
from bot.scheduler.request_preparer import MOST_UNDER_WAY

ROOT, JOB = "1700000000.000100", "job-1"
AT = [f"170000000{n}.000200" for n in range(1, 10)]


@pytest.fixture
async def mentions(world: CoreWorld) -> CoreWorld:
    """A job in an existing thread; replies in quick succession are merged."""
    world.configure(merge_seconds=3.0)
    world.reading.threads[ROOT] = [ThreadMessage("Cleo", "The guide is wrong", ROOT)]
    await world.receive(Reply(ANA, "C1", ROOT, AT[0], "Fix it", mentions_us=True), wait=0)
    world.reading.asked.clear()
    return world


async def mention(world: CoreWorld, text: str, at: str, person: Person = ANA) -> None:
    await world.receive(Reply(person, "C1", ROOT, at, text, mentions_us=True))


async def prepared_together(world: CoreWorld, *, order: Sequence[int] = ()) -> None:
    """Prepares everything received concurrently, started in written order or another, until nothing is left."""
    while claimed := await world.request_preparer.claim(8):
        in_order = sorted(claimed, key=lambda item: item.request.written_at)
        begun = [in_order[number] for number in order if number < len(in_order)] or in_order
        await asyncio.gather(*(world.request_preparer.process(item, world.clock.monotonic()) for item in begun))


def said(world: CoreWorld, *numbers: int) -> None:
    world.reading.threads[ROOT] += [ThreadMessage("Cleo", f"Chapter {number}", AT[number]) for number in numbers]


def reads(world: CoreWorld) -> int:
    return world.reading.asked.count(f"thread {ROOT}")


async def sent(world: CoreWorld) -> Sequence[str]:
    await world.pass_time(30)
    return world.job_api.messages[JOB]


@pytest.mark.first(order=1)
@pytest.mark.parametrize("order", [(), (2, 1, 0), (1, 2, 0)])
async def test_each_part_is_included_once_in_any_order_of_claims(mentions: CoreWorld, order: Sequence[int]) -> None:
    """In written order, that is one message."""
    said(mentions, 1, 3, 5)
    for words, number in (("First", 2), ("Second", 4), ("Third", 6)):
        await mention(mentions, words, AT[number])
    await prepared_together(mentions, order=order)
    messages = await sent(mentions)
    message = "\n\n".join(messages)
    assert message.index("First") < message.index("Second") < message.index("Third")
    assert [message.count(f"> Chapter {number}") for number in (1, 3, 5)] == [1, 1, 1]
    assert order or (len(messages), message.index("Third")) == (1, len("First\n\nSecond\n\n"))
    assert (await mentions.newest(ROOT)).state.read_until == AT[6]


async def test_requests_of_several_people_have_a_part_each(mentions: CoreWorld) -> None:
    """They are sent separately."""
    said(mentions, 1, 3)
    await mention(mentions, "First", AT[2])
    await mention(mentions, "Second", AT[4], BEN)
    await prepared_together(mentions)
    first, second = await sent(mentions)
    assert ("Chapter 1" in first, "Chapter 3" in first) == (True, False)
    assert ("Chapter 1" in second, "Chapter 3" in second) == (False, True)


async def test_context_of_a_withdrawn_request_goes_with_the_next(mentions: CoreWorld) -> None:
    """As if it had never been written."""
    said(mentions, 1, 3)
    await mention(mentions, "Oops", AT[2])
    await mention(mentions, "Second", AT[4])
    claimed = await mentions.request_preparer.claim(8)
    at_work = asyncio.gather(*(mentions.request_preparer.process(item, 0.0) for item in claimed))
    gone = Reply(ANA, "C1", ROOT, AT[2], "", edited_at=AT[5], withdrawn=True, mentions_us=True)
    await mentions.revise(gone)
    await at_work
    await prepared_together(mentions)
    (message,) = await sent(mentions)
    assert message.startswith("Second\n\n")
    assert [message.count(f"> Chapter {number}") for number in (1, 3)] == [1, 1]


async def test_a_request_behind_one_in_flight_reads_its_part(mentions: CoreWorld) -> None:
    """So that it is still sent with it."""
    said(mentions, 1)
    await mention(mentions, "First", AT[2])
    await prepared_together(mentions)
    said(mentions, 3)
    await mention(mentions, "Second", AT[4])
    await mentions.step(mentions.request_preparer)
    (message,) = await sent(mentions)
    assert [message.count(f"> Chapter {number}") for number in (1, 3)] == [1, 1]
    assert reads(mentions) == 2


async def test_a_thread_beyond_the_limit_is_cut_for_each_request(mentions: CoreWorld) -> None:
    """A part left out for one may be included for another."""
    mentions.reading.threads[ROOT] += [
        ThreadMessage("Cleo", f"Word {n}", f"1700000001.{n:06}") for n in range(300, 500)
    ]
    said(mentions, 3)
    await mention(mentions, "First", AT[2])
    await mention(mentions, "Second", AT[4])
    await prepared_together(mentions)
    (message,) = await sent(mentions)
    assert message.count("> Word ") == 50
    assert "> Word 499" in message
    assert message.count("> Chapter 3") == 1


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
    world.configure(reading=reading)
    return reading


async def ask(world: CoreWorld, person: Person, prompt: str, *files: SlackFile) -> None:
    await world.ask(NewJob(person, "C1", prompt, prompt, WayIn.COMMAND, attachments=Attachments(files=files)))


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


@pytest.mark.full
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


@pytest.mark.full
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


PART = ThreadPart("1.1")
FILE = SlackFile("F1", "plan.md")


@dataclass(frozen=True)
class WatchedMasker(SecretMasker):
    """Records where it was called."""

    in_loop: list[bool] = field(default_factory=list)

    def mask_together(self, texts: Sequence[str]) -> Masked:
        if any(texts):
            self.in_loop.append(threading.current_thread() is threading.main_thread())
        return super().mask_together(texts)


def of(text: str, where: str) -> tuple[Request, FetchedParts]:
    """Returns a request with a text as context."""
    request = Request("r1", "t1", RequestKind.START, "k1", "UANA", "Do it", "", 0.0)
    message = ThreadMessage("Ben", text if where == "thread" else "", "1.1")
    files = (FetchedFile(FILE, QuotedFile(FILE, text)),) if where == "file" else ()
    shares = (ForwardedMessage("Ben", text),) if where == "forwarded" else ()
    attachments = Attachments((FILE,) if files else (), shares)
    return replace(request, attachments=attachments), FetchedParts(FetchedThread(PART, (message,)), files)


@pytest.mark.parametrize(("length", "in_loop"), [(10, True), (LONG + 1, False)])
@pytest.mark.parametrize("where", ["thread", "file", "forwarded"])
async def test_a_long_request_context_is_masked_outside_the_loop(where: str, length: int, *, in_loop: bool) -> None:
    masker = WatchedMasker()
    request, parts = of("x" * length, where)
    gatherer = ContextGatherer(FakeSlackReading().ports, Projects(()).abilities, FakePeople(), masker)
    gathered = await gatherer.compose(request, "docs", PART, parts)
    assert gathered.context is not None
    assert "x" * 10 in gathered.context.text
    assert masker.in_loop == [in_loop]
