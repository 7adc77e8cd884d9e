"""Slack's events, as documented and sent, through real Bolt to the agent and to people."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from support.fakes import slack_payloads
from support.fakes.slack_payloads import event
from support.worlds.core_world import CoreWorld
from support.worlds.listening_world import BOT, IDENTITY, listening_app

from bot.domain.permissions import Refusal
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import WayIn
from bot.notices.answers import ActionAnswered
from bot.notices.notice import NoticeContent
from bot.notices.questions import ReplyEdited, RequestRefused
from bot.slack.receiving.payloads.interactions import ViewPayload, user_of
from bot.slack.receiving.slack_app import SlackApp
from bot.workspace.wire.rendering import rich_text_of

TS = "1700000005.000100"
CHANGED = [f"170000000{n}.000200" for n in range(6, 10)]
Json = dict[str, Any]
GRID = replace(IDENTITY, enterprise_id="E1")


@pytest.fixture
async def app(world: CoreWorld) -> AsyncIterator[SlackApp]:
    async with listening_app(world.service, GRID) as made:
        yield made


def posted(ts: str, text: str, **changes: Any) -> Json:
    """A person's message in a channel of our own."""
    message = {"user": "UANA", "text": text, "ts": TS, "thread_ts": ts, "parent_user_id": BOT}
    return event(**message | {"blocks": rich_text_of(text)} | changes) | {"is_ext_shared_channel": False}


def written(ts: str, text: str, **changes: Any) -> Json:
    """The same as it is in the event of an edit."""
    message = posted(ts, text, **changes)["event"]
    return {name: value for name, value in message.items() if name not in {"channel", "channel_type"}}


def changed(before: Json | None, after: Json, at: str, *, by: str = "UANA", **outside: Any) -> Json:
    edited = {"edited": {"user": by, "ts": at}, "source_team": "T1", "user_team": "T1"} if by else {}
    edit = slack_payloads.changed("message_changed", at, message=after | edited, previous_message=before)
    return edit | {"is_ext_shared_channel": False} | outside


async def take(app: SlackApp, world: CoreWorld, *payloads: Json, wait: float = 5) -> None:
    for payload in payloads:
        assert (await app.handle_payload(payload)).status == 200
    await world.pass_time(wait)


def told(world: CoreWorld) -> list[tuple[str, str]]:
    def words(message: NoticeContent) -> str:
        match message:
            case ReplyEdited():
                return message.text
            case ActionAnswered():
                return message.answer.stored
            case _:
                return ""

    return [(message.kind, words(message)) for message in world.chat.private]


async def test_an_edit_is_offered_once_in_any_order_of_events(world: CoreWorld, app: SlackApp) -> None:
    ts = await world.started()
    first, second = written(ts, "Ask <@U7> <http://README.md|README.md>"), written(ts, "Ask <@U7> about the FAQ")
    unfurled = first | {"attachments": [{"id": 1, "from_url": "http://README.md", "title": "A page"}]}
    world.people.state = {"U7": "Ada"}
    edit = changed(unfurled, second, CHANGED[1])
    await take(app, world, posted(ts, first["text"]), posted(ts, first["text"], type="app_mention"))
    await take(app, world, changed(first, unfurled, CHANGED[0], by=""), edit, edit)
    localized = second | {"edited": {"user": "UANA", "ts": CHANGED[1]}, "locale": "en-US"}
    await take(app, world, changed(localized, localized, CHANGED[2]), edit)
    assert world.job_api.messages["job-1"] == ["Ask @Ada README.md"]
    assert told(world) == [("reply_edited", "Ask \x02@U7\x03 about the FAQ")]


async def test_a_documented_edit_without_previous_message_only_offers(world: CoreWorld, app: SlackApp) -> None:
    ts = await world.started()
    world.people.state = {"U7": "Ada"}
    await take(app, world, posted(ts, "Ask <@U7>"))
    for at, text in zip(CHANGED, ["Ask <@U7>", "Ask <@U8>", "Ask <@U7>"], strict=False):
        await take(app, world, changed(None, written(ts, text), at))
    assert told(world) == [("reply_edited", "Ask \x02@U8\x03")]


async def test_a_removed_file_does_not_change_the_words(world: CoreWorld, app: SlackApp) -> None:
    ts = await world.started()
    world.people.state = {"U7": "Ada"}
    file = {"id": "F1", "name": "a\u202egnp.exe", "mode": "hosted", "user_team": "T1"}
    shared: Json = {"subtype": "file_share", "files": [file], "upload": False, "team": None}
    before = written(ts, "Ask <@U7>", **shared)
    await take(app, world, posted(ts, "Ask <@U7>", **shared))
    await take(app, world, changed(before, before | {"files": [{"id": "F1", "mode": "tombstone"}]}, CHANGED[0]))
    (sent,) = world.job_api.messages["job-1"]
    assert sent.startswith("Ask @Ada\n\n")
    assert [message.kind for message in world.chat.messages].count("context_cut") == 1
    assert told(world) == []


@pytest.mark.first(inner=4)
@pytest.mark.parametrize(
    ("inner", "outer", "sent"),
    [
        ({"team": "T3", "user_team": "T3"}, {}, True),
        ({"team": "T3", "user_team": "E1"}, {}, True),
        ({"team": None}, {}, True),
        ({"team": None}, {"is_ext_shared_channel": True}, False),
        ({"team": "T2", "user_team": "T2", "source_team": "T2"}, {"is_ext_shared_channel": True}, False),
        ({"team": "T1", "user_team": "E1"}, {"is_ext_shared_channel": True, "team_id": "T2"}, True),
    ],
)
async def test_an_aside_edited_into_words_is_sent_only_for_our_people(
    world: CoreWorld, app: SlackApp, inner: Json, outer: Json, *, sent: bool
) -> None:
    ts = await world.started()
    first, second = written(ts, "// one", **inner), written(ts, "two", **inner)
    edit = changed(first, second, CHANGED[0], **outer)
    edit["event"]["message"] = second | {"edited": {"user": "UANA", "ts": CHANGED[0]}}
    await take(app, world, edit, edit)
    assert world.job_api.messages["job-1"] == (["two"] if sent else [])
    expected = [] if sent else [Refusal.OTHER_ORGANIZATION if inner["team"] else Refusal.PERSON_UNKNOWN]
    assert [refused.refusal for refused in world.chat.private_as(RequestRefused)] == expected


@pytest.mark.first(place=1)
@pytest.mark.parametrize(
    "place",
    [
        {"channel": {"id": "C1", "name": "docs"}, "team": {"id": "T1", "domain": "x"}},
        {"channel": {"id": "D9", "name": "directmessage"}, "team": {"id": "T1", "enterprise_id": "E1"}},
        {"channel": None, "container": {"type": "message", "channel_id": "C1", "is_ephemeral": True}, "team": None},
    ],
    ids=["ephemeral", "direct message", "organization-wide"],
)
async def test_a_press_of_an_offer_counts_once_from_any_client(world: CoreWorld, app: SlackApp, place: Json) -> None:
    ts = await world.started()
    await take(app, world, posted(ts, "one"))
    await take(app, world, changed(written(ts, "one"), written(ts, "two"), CHANGED[0]))
    (offer,) = world.chat.private_as(ReplyEdited)
    button = {"type": "button", "action_id": "send_new_words", "block_id": "b", "value": offer.request_id}
    press = {
        "type": "block_actions",
        "user": {"id": "UANA", "username": "ana", "name": "ana", "team_id": "T3"},
        "api_app_id": "A1",
        "token": "XXYYZZ",
        "container": {"type": "message", "message_ts": CHANGED[1], "channel_id": "C1", "is_ephemeral": True},
        "trigger_id": "12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3",
        "enterprise": {"id": "E1", "name": "Org"},
        "is_enterprise_install": False,
        "response_url": "https://hooks.slack.com/actions/T1/1/x",
        "actions": [{**button, "text": {"type": "plain_text", "text": "Send"}, "action_ts": "1.1"}],
    } | place
    await take(app, world, press, press)
    assert world.job_api.messages["job-1"] == ["one", "two"]
    assert world.chat.answers() == ["new_words_sent"]


async def test_a_mention_without_a_workspace_waits_for_its_message(world: CoreWorld, app: SlackApp) -> None:
    """In a shared channel, where the mention, one of a reply's two events, can have less information."""
    ts = await world.started()
    mention = posted(ts, f"<@{BOT}> go on", type="app_mention", team=None) | {"is_ext_shared_channel": True}
    message = posted(ts, f"<@{BOT}> go on", user_team="E1") | {"is_ext_shared_channel": True}
    await take(app, world, mention, message, mention)
    assert world.job_api.messages["job-1"] == ["go on"]
    assert told(world) == []


async def test_a_colleague_of_the_organization_may_start_and_our_people_steer(world: CoreWorld, app: SlackApp) -> None:
    """From another workspace of the same organization, like a command."""
    org = {"enterprise_id": "E1", "enterprise_name": "Organization"}
    submission = {
        "type": "view_submission",
        "team": {"id": "T1", "domain": "team"} | org,
        "enterprise": {"id": "E1", "name": "Organization"},
        "user": {"id": "UANA", "username": "ana", "team_id": "T3"},
        "api_app_id": "A1",
    }
    asked = NewJob(user_of(ViewPayload.read(submission), GRID), "C1", "Do it", "view/T1/V1", WayIn.MODAL)
    await world.ask(asked, wait=5)
    await take(app, world, posted(world.chat.messages[0].ts, "and the manual"))
    assert world.job_api.messages["job-1"] == ["and the manual"]
