"""If the job API can cancel, a job is created without waiting for its card, and is stopped if that cannot be posted."""

import pytest
from support.fakes.ports import FakeRequesters
from support.worlds.core_world import ANA, BEN, CoreWorld

from bot.domain.requests.request import Action, Reply, RequestKind, RequestState, Surface, home_key
from bot.domain.threads.thread import Thread, can_only_be_stopped_here
from bot.errors import ChatRejected, ChatUnreachable, JobApiError, JobApiUncertain, JobApiUnreachable
from bot.jobapi.models import Job, PromptCall
from bot.notices.answers import ActionAnswer, ActionAnswered, CardNotPosted, PostNotDelivered

pytestmark = pytest.mark.promise("ahead of cards")

JOB, LINK = "job-1", "https://example.org/pull/1"
PRESS = home_key("press")
ARCHIVED = ChatRejected("is_archived")


@pytest.fixture(autouse=True)
def cancellable(world: CoreWorld) -> None:
    """A job API that can cancel."""
    world.job_api.cancels = True


async def only_thread(world: CoreWorld, person_id: str = ANA.id) -> Thread:
    (thread,) = await world.store.transact(lambda tx: tx.threads.of_person(person_id, offset=0, limit=9))
    return thread


async def start_of(world: CoreWorld) -> tuple[RequestState, str]:
    thread = await only_thread(world)
    start = await world.store.transact(lambda tx: tx.requests.find_start(thread.id))
    assert start is not None
    return start.state, start.problem


async def stop_on_home(world: CoreWorld) -> None:
    thread = await only_thread(world)
    await world.service.act(Action(ANA, RequestKind.STOP, PRESS, thread_id=thread.id))
    await world.step(world.request_preparer)


async def test_a_job_is_created_before_its_card(world: CoreWorld) -> None:
    """The card then shows the job at once."""
    await world.start()
    await world.step(world.request_sender)
    assert world.job_api.created == ["Do it"]
    assert not world.chat.messages
    await world.pass_time(10)
    (card, started) = world.chat.messages
    assert (card.kind, started.kind) == ("card_changed", "job_started")
    assert len(world.job_api.created) == 1


async def test_without_a_way_to_stop_it_the_card_comes_first(world: CoreWorld) -> None:
    world.job_api.cancels = False
    await world.start()
    assert not await world.step(world.request_sender)
    await world.settle()
    assert world.job_api.created == ["Do it"]


async def test_with_a_link_to_the_thread_the_thread_comes_first(world: CoreWorld) -> None:
    """The message that asks for a job is a thread already."""
    world.configure(requesters=FakeRequesters())
    await world.start()
    assert not await world.step(world.request_sender)
    await world.receive(Reply(BEN, "C1", "5.1", "5.1", "Do that", mentions_us=True))
    await world.prepare()
    assert await world.step(world.request_sender)
    assert world.job_api.created == ["Do that"]


async def test_where_posts_fail_the_card_comes_first(world: CoreWorld) -> None:
    """Until one succeeds there. Other channels are not affected."""
    world.chat.fail(post_card=ChatUnreachable("down"))
    await world.start(key="first")
    await world.step(world.outbox)
    await world.start("Wait", key="second")
    await world.start("Do that", channel="C2", key="elsewhere")
    await world.step(world.request_sender)
    assert world.job_api.created == ["Do that"]
    world.chat.recover()
    await world.pass_time(5)
    assert sorted(world.job_api.created) == ["Do it", "Do that", "Wait"]
    await world.start("Do more", key="third")
    await world.step(world.request_sender)
    assert world.job_api.created[-1] == "Do more"


async def test_a_job_that_follows_another_one_waits_for_its_card(world: CoreWorld) -> None:
    """Its card ends the other one."""
    ts = await world.started()
    await world.show("failed", wait=60)
    await world.press_card(RequestKind.RETRY, ts, key="again")
    assert not await world.step(world.request_sender)
    await world.settle()
    assert len(world.job_api.created) == 2


async def test_it_can_be_stopped_on_home_until_its_card_is_there(world: CoreWorld) -> None:
    """The card, when it comes, and one post say who stopped it."""
    world.chat.fail(post_card=ChatUnreachable("down"))
    await world.start()
    await world.step(world.request_sender)
    assert can_only_be_stopped_here(await only_thread(world))
    await stop_on_home(world)
    await world.step(world.request_sender)
    assert world.job_api.cancelled == [JOB]
    assert not can_only_be_stopped_here(await only_thread(world))
    world.chat.recover()
    await world.pass_time(30)
    assert [message.kind for message in world.chat.messages] == ["card_changed", "job_started", "job_stopped"]


async def test_a_start_that_waits_for_its_card_is_stopped_on_home(world: CoreWorld) -> None:
    """The answer is told where the button was pressed."""
    world.job_api.cancels = False
    world.chat.fail(post_card=ChatUnreachable("down"))
    await world.start()
    assert can_only_be_stopped_here(await only_thread(world))
    await stop_on_home(world)
    world.chat.recover()
    await world.pass_time(30)
    assert not world.job_api.created
    answer = ActionAnswered(ANA.id, ActionAnswer.STOPPED_UNSENT, asked_on=Surface.HOME)
    assert answer in world.chat.private


async def test_a_card_that_cannot_be_posted_stops_the_job(world: CoreWorld) -> None:
    """Whoever asked is told once, and nothing else; Home offers it again."""
    world.chat.fail(post_card=ARCHIVED)
    await world.start()
    await world.step(world.request_sender)
    await world.pass_time(60)
    assert world.job_api.cancelled == [JOB]
    assert world.chat.private == [CardNotPosted(ANA.id, "is_archived", may_have_job=True)]
    assert await start_of(world) == (RequestState.ACCEPTED, "")


async def test_replies_to_a_job_whose_card_cannot_be_posted_are_refused(world: CoreWorld) -> None:
    world.chat.fail(post_card=ARCHIVED)
    await world.receive(Reply(ANA, "C1", "1.1", "1.2", "Do it", mentions_us=True))
    await world.prepare()
    await world.step(world.request_sender)
    await world.receive(Reply(BEN, "C1", "1.1", "1.3", "shorter", mentions_us=True), wait=60)
    assert (world.job_api.cancelled, world.job_api.messages) == ([JOB], {})
    (told,) = world.chat.private_as(PostNotDelivered)
    assert (told.post.kind, told.post.texts) == ("request_rejected", ["shorter"])


async def test_the_work_of_a_job_that_ended_without_a_card_is_told_privately(world: CoreWorld) -> None:
    world.chat.fail(post_card=ARCHIVED)
    await world.start()
    await world.step(world.request_sender)
    world.job_api.show(JOB, "completed", LINK)
    world.clock.advance(10)
    await world.step(world.job_poller)
    await world.pass_time(60)
    assert not world.job_api.cancelled
    lost, end = world.chat.private
    assert lost == CardNotPosted(ANA.id, "is_archived", may_have_job=True)
    assert LINK in repr(end)


async def test_news_before_the_card_is_posted_after_it(world: CoreWorld) -> None:
    """A poll saw the job's end before there was a thread."""
    world.chat.fail(post_card=ChatUnreachable("down"))
    await world.start()
    await world.step(world.request_sender)
    world.job_api.show(JOB, "completed", LINK)
    world.clock.advance(10)
    await world.step(world.job_poller)
    await world.step(world.outbox)
    assert not world.chat.messages
    world.chat.recover()
    await world.pass_time(60)
    assert world.chat.messages[0].kind == "card_changed"
    assert world.chat.messages[-1].kind == "job_finished"


class GivenUpMeanwhile:
    """The card is given up while the job API is called."""

    def __init__(self, world: CoreWorld, error: JobApiError | None) -> None:
        self._world, self._create, self._error = world, world.job_api.create, error
        world.job_api.create = self.create  # type: ignore[method-assign]  # the fake's own

    async def create(self, project: str, call: PromptCall) -> Job:
        while await self._world.step(self._world.outbox):
            pass
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return await self._create(project, call)


@pytest.mark.first(error=1)
@pytest.mark.parametrize(
    ("error", "created", "cancelled", "state"),
    [
        (None, 1, 1, RequestState.ACCEPTED),
        (JobApiUnreachable("down"), 0, 0, RequestState.REJECTED),
        (JobApiUncertain("timeout"), 0, 0, RequestState.UNCERTAIN),
    ],
)
async def test_a_card_given_up_while_the_job_is_created(
    world: CoreWorld, error: JobApiError | None, created: int, cancelled: int, state: RequestState
) -> None:
    """A job that was created is stopped; one that was not never is."""
    world.chat.fail(post_card=ARCHIVED)
    await world.start()
    GivenUpMeanwhile(world, error)
    await world.step(world.request_sender)
    await world.pass_time(200)
    assert (len(world.job_api.created), len(world.job_api.cancelled)) == (created, cancelled)
    assert (await start_of(world))[0] is state
    assert [told for told in world.chat.private if isinstance(told, CardNotPosted)]
