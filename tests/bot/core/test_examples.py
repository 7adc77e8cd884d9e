"""Buttons that send a follow-up: a press counts like the text, once for each person."""

import pytest
from support.worlds.core_world import ANA, BEN, EVA, CoreWorld

from bot.domain.permissions import PermissionRules, Refusal
from bot.domain.requests.new_jobs import Written
from bot.domain.requests.request import Person, RequestKind, WayIn
from bot.notices.questions import RequestRefused

pytestmark = pytest.mark.promise("prompt buttons")

EXAMPLE = 'Replace "colour" with "color"'


async def press(world: CoreWorld, ts: str, person: Person = ANA, *, button: int = 1) -> None:
    thread = await world.thread(ts)
    key = f"example/T1/C1/{ts}/{button}/{person.id}"
    assert await world.service.follow_up(Written(person, thread.id, EXAMPLE, key, WayIn.BUTTON))
    await world.pass_time(5)


async def test_a_pressed_example_is_sent_once_and_a_second_press_explained(world: CoreWorld) -> None:
    ts = await world.started()
    for _ in range(3):
        await press(world, ts)
    assert world.job_api.messages["job-1"] == [EXAMPLE]
    assert world.chat.answers() == ["already_accepted"]
    await press(world, ts, button=2)
    await press(world, ts, BEN)
    assert world.job_api.messages["job-1"] == [EXAMPLE] * 3, "another button, and another person's press"


async def test_pressing_an_example_is_subject_to_the_reply_rules(world: CoreWorld) -> None:
    ts = await world.started()
    world.configure(rules=PermissionRules("T1", people=frozenset({ANA.id})))
    await press(world, ts, EVA)
    (refused,) = world.chat.private_as(RequestRefused)
    assert refused.refusal is Refusal.OTHER_ORGANIZATION
    await press(world, ts, BEN)
    assert [each.refusal for each in world.chat.private_as(RequestRefused)][1:] == [Refusal.NOT_ON_THE_LIST]
    assert world.job_api.messages["job-1"] == []
    await press(world, ts, BEN)
    assert world.chat.answers() == ["see_thread"]


async def test_pressing_an_example_reaches_no_muted_or_closed_job(world: CoreWorld) -> None:
    ts = await world.started()
    await world.press_card(RequestKind.MUTE, ts, key="p1")
    await press(world, ts, BEN)
    assert world.chat.answers() == ["muted", "reply_not_sent_muted"]
    await world.press_card(RequestKind.UNMUTE, ts, key="p2")
    await press(world, ts, BEN)
    assert world.job_api.messages["job-1"] == [EXAMPLE], "it was not recorded before"
