from collections.abc import Iterator

import pytest
from support.worlds.core_world import ANA, EVA, CoreWorld

from bot.domain.new_jobs import NewJob
from bot.domain.notices.messages import PostNotDelivered
from bot.domain.threads import Thread, WayIn
from bot.errors import ChatError, ChatNotAllowed, ChatUncertain, ChatUnreachable


def failing(world: CoreWorld, *faults: ChatError) -> None:
    """The next words for one person meet these, one after the other."""
    left: Iterator[ChatError] = iter(faults)

    def fault(call: str, thread: Thread | None) -> None:
        error = next(left, None) if call == "tell" else None
        if error is not None:
            raise error

    world.chat.fault = fault


async def test_one_doubt_after_an_outage_does_not_lose_words_for_one_person(world: CoreWorld) -> None:
    ts = await world.started()
    failing(world, *(ChatUnreachable("down") for _ in range(4)), ChatUncertain("timeout"))
    await world.reply(ts, "hack", "5.1", EVA)
    await world.pass_time(120)
    assert world.chat.told_to() == [("UEVA", "action_answered")]


async def test_doubts_that_pass_do_not_lose_words_for_one_person(world: CoreWorld) -> None:
    failing(world, *(ChatUncertain("timeout") for _ in range(5)))
    await world.service.start(NewJob(ANA, "CPRIVATE", "Do it", "k", WayIn.COMMAND))
    await world.pass_time(60)
    assert world.chat.told_to() == [("UANA", "card_not_posted")]


async def test_words_for_one_person_are_repeated_for_a_minute_when_in_doubt(world: CoreWorld) -> None:
    failing(world, *(ChatUncertain("timeout") for _ in range(99)))
    await world.service.start(NewJob(ANA, "CPRIVATE", "Do it", "k", WayIn.COMMAND))
    await world.pass_time(150)
    tries = world.chat.calls.count("tell")
    assert 5 <= tries <= 10
    await world.pass_time(600)
    assert world.chat.calls.count("tell") == tries


async def test_a_doubt_about_old_words_is_followed_up_once(world: CoreWorld) -> None:
    ts = await world.started()
    failing(world, *(ChatUnreachable("down") for _ in range(8)), *(ChatUncertain("timeout") for _ in range(9)))
    await world.reply(ts, "hack", "5.1", EVA)
    await world.pass_time(900)
    assert world.chat.calls.count("tell") == 10


@pytest.mark.parametrize("kind", [ChatUnreachable, ChatUncertain, ChatNotAllowed])
async def test_what_can_not_be_said_is_given_up_after_so_many_tries_and_told_to_the_asker(
    world: CoreWorld, caplog: pytest.LogCaptureFixture, kind: type[ChatError]
) -> None:
    world.assemble(max_attempts=3)
    ts = await world.started()
    away = True

    def fault(call: str, thread: Thread | None) -> None:
        if call == "post" and away:
            raise kind("not now")

    world.chat.fault = fault
    before = world.chat.calls.count("post")
    world.job_api.show("job-1", "completed", "https://git.example/1")
    await world.pass_time(120)
    assert world.chat.calls.count("post") - before == 3
    (told,) = world.chat.told_as(PostNotDelivered)
    assert (told.person_id, told.post.kind) == ("UANA", "job_finished")
    assert "(job_finished) is given up: not now" in caplog.text

    away = False
    await world.reply(ts, "more", "1700000900.000100")
    await world.pass_time(120)
    assert world.chat.said(ts) == ["job_started", "job_active_again"]
