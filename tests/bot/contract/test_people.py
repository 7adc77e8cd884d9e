"""People's names from users.info: looked up once, without long waits, and shown without mentioning anybody."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from support.worlds.slack_world import SlackWorld, slack_world

from bot.domain.jobs.job import Problem
from bot.domain.messages import DIRECT_MESSAGE, PRIVATE_CHANNEL, USER_GROUP, mention
from bot.domain.people import Account
from bot.domain.requests.request import RejectionReason, RequestKind, RequestState
from bot.domain.threads.thread import Thread
from bot.notices.answers import PostNotDelivered, PromptRequested
from bot.notices.notice import Delivery, Notice, NoticeContent, UnknownNotice
from bot.notices.questions import ReplyEdited
from bot.notices.requests import (
    AccessDenied,
    OutageStarted,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
)
from bot.slack.sending.people import SlackPeople
from bot.slack.sending.user_directory import DescribedUser, SlackMembers, UserDirectory
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import User
from bot.workspace.model.sample_data import HOME


@pytest.fixture
async def world() -> AsyncIterator[SlackWorld]:
    async with slack_world(names_within=2.0) as made:
        yield made


async def test_an_account_is_known_once_it_was_looked_up(world: SlackWorld) -> None:
    """Also one that does not exist, for a while; a person's or a bot's stays one."""
    flow = User("U0FLOW001", "flow", "Flow", HOME.id, is_bot=True, is_workflow_bot=True)
    world.workspace.state.add_user(flow)
    directory = UserDirectory(world.client, monotonic=lambda: world.now[0])
    members = SlackMembers(directory, world.identity)
    ids = [world.id("ana"), world.identity.bot_user_id, flow.id, "U0NOBODY"]
    assert [members.known_account(user_id) for user_id in ids] == [None] * 4
    await asyncio.gather(*map(directory.look_up, ids))
    accounts = [Account.PERSON, Account.BOT, Account.WORKFLOW]
    assert [members.known_account(user_id) for user_id in ids] == [*accounts, Account.BOT]
    world.now[0] = 86_400.0
    assert [members.known_account(user_id) for user_id in ids] == [*accounts, None]


async def test_an_unknown_person_has_no_name_and_is_cached(world: SlackWorld) -> None:
    for _ in range(2):
        assert await world.people.names(["U0NOBODY", world.id("ana")]) == {world.id("ana"): "ana"}
    assert world.lookups == 2


async def test_without_the_scope_no_name_is_looked_up_and_one_warning_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with slack_world(AppConfig(scopes=AppConfig().scopes - {"users:read"}), names_within=2.0) as world:
        for name in ("ana", "ben", "ana"):
            assert await world.people.names([world.id(name)]) == {}
        assert world.lookups == 1
        world.now[0] = 301.0
        assert await world.people.names([world.id("ana")]) == {}
        assert world.lookups == 2
    assert caplog.text.count("missing_scope") == 1


async def test_texts_are_shown_without_names_while_slack_is_away_or_busy(world: SlackWorld) -> None:
    world.workspace.faults.server_error(method="users.info")
    assert await world.people.names([world.id("ana")]) == {}
    assert await world.people.names([world.id("ben")]) == {}
    assert world.lookups == 1
    world.now[0] = 31.0
    world.workspace.faults.rate_limit(100, method="users.info")
    assert await world.people.names([world.id("ana")]) == {}
    world.now[0] = 130.0
    assert await world.people.names([world.id("ana")]) == {}
    assert world.lookups == 2
    world.now[0] = 132.0
    assert await world.people.names([world.id("ana")]) == {world.id("ana"): "ana"}


async def test_a_slow_lookup_is_not_awaited(world: SlackWorld) -> None:
    ana, ben = world.id("ana"), world.id("ben")
    directory = UserDirectory(world.client)
    assert await SlackPeople(world.client, directory=directory).names([ana]) == {ana: "ana"}
    impatient = SlackPeople(world.client, directory=directory, patience=0.05)
    world.workspace.faults.delay(60.0, method="users.info", count=None)
    for _ in range(2):
        assert await impatient.names([ana, ben]) == {ana: "ana"}
    assert world.lookups == 2
    world.workspace.faults.clear()


async def test_lookups_for_one_text_are_bounded(world: SlackWorld) -> None:
    await world.people.names([f"U{number}" for number in range(1_000)])
    assert world.lookups == 20


async def test_channels_and_groups_are_named_but_private_channels_are_not(world: SlackWorld) -> None:
    """Whether or not Pagehand is a member; unknown channels get the same words. Nothing is looked up twice."""
    known, client = world.workspace.channels, world.client
    await world.workspace.people["ana"].invite("leads", "pagehand")
    general, leads = known["general"].id, known["leads"].id
    direct, ana = known["ana"].id, world.id("ana")
    ids = [general, leads, "C0NOWHERE", direct, "S0WRITERS", "S0NONE", ana]
    told = {
        general: "general",
        leads: PRIVATE_CHANNEL,
        "C0NOWHERE": PRIVATE_CHANNEL,
        direct: DIRECT_MESSAGE,
        "S0WRITERS": "writers",
        "S0NONE": USER_GROUP,
        ana: "ana",
    }
    for _ in range(3):
        assert await world.people.names(ids) == told
    asked = [call.method for call in world.workspace.web_api.calls]
    assert (asked.count("conversations.info"), asked.count("usergroups.list")) == (3, 1)
    assert (await client.conversations_info(channel=leads))["channel"]["name"] == "leads"


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ({"name": "old", "real_name": "B", "profile": {"display_name": "A", "real_name": "B"}}, "A"),
        ({"name": "old", "real_name": "C", "profile": {"display_name": " ", "real_name": "B"}}, "B"),
        ({"name": "old", "real_name": "C", "profile": {}}, "C"),
        ({"name": "old", "profile": None}, ""),
        ({"profile": {"display_name": "A\nB\x02\x03  C" + "x" * 200}}, "A B C" + "x" * 75),
        (None, ""),
    ],
)
def test_the_display_name_is_preferred(user: Any, name: str) -> None:
    assert DescribedUser.read(user).shown_name == name


@pytest.mark.parametrize(
    "says",
    [
        lambda ana, text: RequestRejected(_follow_up(ana, text), RejectionReason.API),
        lambda ana, text: RequestUncertain(_follow_up(ana, text)),
        lambda ana, text: OutageStarted(Problem.BUSY, waiting=_follow_up(ana, text)),
        lambda ana, text: AccessDenied(401, waiting=_follow_up(ana, text)),
        lambda ana, text: UnknownNotice("shrug", {"text": text}),
        lambda ana, text: ReplyEdited(ana, "r1", text, RequestState.ACCEPTED),
        PromptRequested,
        lambda ana, text: PostNotDelivered(ana, RequestUncertain(_follow_up(ana, text)), may_be_posted=True),
    ],
    ids=lambda says: says("U1", "").kind,
)
async def test_each_message_shows_names_in_quotations(
    world: SlackWorld, says: Callable[[str, str], NoticeContent]
) -> None:
    ana, ben = world.id("ana"), world.id("ben")
    notice = Notice(1, "th1/n", "th1", says(ana, f"Ask {mention(ben)}"), 0.0)
    channel = world.workspace.channels["docs"].id
    thread = Thread("th1", "T1", channel, ana, "Do it", "p", 0.0)
    if notice.delivery is Delivery.POST:
        ts = await world.chat.post_card(thread, "th1/card")
        posted = await world.chat.post(replace(thread, ts=ts, card_ts=ts), notice)
        (shown,) = [message for message in world.workspace.channels.messages("docs") if message.ts == posted]
    else:
        await world.chat.tell(thread, notice)
        (shown,) = world.workspace.people["ana"].ephemerals("docs")
    assert "Ask @ben" in shown.text
    assert ben not in shown.text + str(shown.blocks)


def _follow_up(person_id: str, text: str) -> RequestSummary:
    return RequestSummary("r1", person_id, RequestKind.FOLLOW_UP, text)
