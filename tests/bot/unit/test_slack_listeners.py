"""The listeners behind a real Bolt app: what each payload records, and that each is answered."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.attachments import holding
from support.fakes.slack_payloads import CHANGED_AT, click, command, deletion, edit, event
from support.fakes.slack_reading import FakeSlackReading
from support.worlds.listening_world import BOT, IDENTITY, ListeningWorld, listening

from bot.domain.commands import NO_OPTIONS, Options, ThreadWord
from bot.domain.delivery import ReactionProgress, after_call, next_call
from bot.domain.messages import ForwardedMessage, SlackFile
from bot.domain.people import Account, ChannelInfo, Member
from bot.domain.permissions import is_outsider
from bot.domain.requests.new_jobs import MAKE_IT_A_CHANGE, NewJob, Written
from bot.domain.requests.request import Action, Arrival, Attachments, MessageVersion, Person, Reply, RequestKind, WayIn
from bot.domain.threads.thread import Thread, ThreadOrigin
from bot.errors import ChatError, ChatMissingScope, ChatUnreachable, NotRecorded, StoreUnavailable
from bot.jobapi.models import Mode
from bot.notices.notice import Notice, Reaction, ReactionChanged
from bot.notices.said import ButtonId
from bot.runtime.health import RecordingHealth
from bot.slack.receiving import history
from bot.slack.receiving.payloads.interactions import InteractionPayload, user_of
from bot.slack.receiving.payloads.payload import CommandPayload, EventPayload, author_of, sender_of
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.rendering import blocks
from bot.slack.rendering.blocks import MenuItem, menu_value
from bot.slack.rendering.ephemeral_texts import (
    COMMAND_UNREADABLE,
    NOT_RECORDED,
    RECORDED,
    STILL_RECORDING,
)
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.identity import Identity

ANA = Person("U0ANA", "T1")
THEIRS = {"text": "theirs", "author_id": "U0BEN"}
FORWARDED = ForwardedMessage("\x02@U0BEN\x03", "theirs")


@pytest.fixture
async def world() -> AsyncIterator[ListeningWorld]:
    async with listening() as made:
        yield made


async def test_a_command_is_recorded_in_readable_text(world: ListeningWorld) -> None:
    answer = await world.take(command('Replace &lt;b&gt; with <https://x.example|x.example> "now"'))
    assert (answer.status, answer.body) == (200, RECORDED)
    asked = NewJob(ANA, "C1", 'Replace <b> with x.example "now"', "command/T1/1.2.abc", WayIn.COMMAND)
    assert world.service.calls == [("start", asked)]


@pytest.mark.parametrize("text", ["help", "HELP", "?", "-h", "--help"])
async def test_the_command_shows_help_and_records_nothing(world: ListeningWorld, text: str) -> None:
    answer = await world.take(command(text))
    assert answer.status == 200
    assert "`//`" in answer.body
    assert world.service.calls == []


async def test_the_command_has_the_configured_name() -> None:
    async with listening(message_context=MessageContext(command="/pages")) as world:
        assert (await world.take(command(command="/pages"))).body == RECORDED
        assert "/pages help" in (await world.take(command(command="/docs"))).body
        assert len(world.service.calls) == 1


@pytest.mark.parametrize("fault", [StoreUnavailable("locked"), RuntimeError("the secret prompt")])
async def test_a_command_that_could_not_be_recorded_is_explained(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    world.service.fault = fault
    answer = await world.take(command())
    assert (answer.status, answer.body) == (200, NOT_RECORDED)
    assert "secret" not in caplog.text  # the service logs the error's class


async def test_slow_recording_is_answered_in_time_and_finishes_later() -> None:
    async with listening(recording_timeout=0.05) as world:
        world.service.gate = asyncio.Event()
        answer = await world.take(command())
        assert (answer.status, answer.body) == (200, STILL_RECORDING)
        world.service.gate.set()
        await world.app.drain(1)
        assert len(world.service.calls) == 1


async def test_an_incomplete_command_is_answered(world: ListeningWorld) -> None:
    assert (await world.take(command(trigger_id=None))).body == COMMAND_UNREADABLE
    assert (await world.take(command(user_id=7))).body == COMMAND_UNREADABLE
    assert world.service.calls == []


async def test_a_reply_is_recorded_in_readable_text(world: ListeningWorld) -> None:
    assert (await world.take(event())).status == 200
    assert world.service.received == [Reply(ANA, "C1", "1700000001.000100", "1700000002.000100", "Also fix <this>")]


async def test_emoji_alone_may_answer_a_question(world: ListeningWorld) -> None:
    """Without a job, nobody gets an answer."""
    world.service.knows = False
    assert (await world.take(event(text=":tada: :+1:", parent_user_id=BOT))).status == 200
    await world.app.drain(5)
    assert [reply.text for reply in world.service.received] == [":tada: :+1:"]
    assert [name for name, _ in world.service.calls] == ["receive"]


@pytest.mark.parametrize(
    ("changes", "attachments"),
    [
        ({"subtype": "file_share", "files": [{"name": "a.png"}, {"title": "B"}]}, holding("a.png", "B")),
        ({"subtype": "file_share"}, holding("")),
        ({"files": [{"name": "\x02@U1\x03\u202egnp"}]}, holding("@U1gnp")),
        ({"files": [{"mode": "tombstone"}, None, {"id": "F1", "name": "b"}]}, Attachments((SlackFile("F1", "b"),))),
        ({"attachments": [THEIRS | {"is_share": True}]}, Attachments(forwarded=(FORWARDED,))),
        ({"text": "", "attachments": [THEIRS | {"is_msg_unfurl": True}]}, Attachments(forwarded=(FORWARDED,))),
        ({"text": ":tada:", "files": [{"name": "a.png"}]}, holding("a.png")),
    ],
)
async def test_a_replys_files_and_attachments_are_recorded(
    world: ListeningWorld, changes: dict[str, Any], attachments: Attachments
) -> None:
    await world.take(event(**changes))
    words = changes.get("text", "Also fix <this>")
    (reply,) = world.service.received
    assert (reply.text, reply.attachments) == (words, attachments)


def reply_of(text: str = "New words", **changes: Any) -> Reply:
    reply = Reply(ANA, "C1", "1700000001.000100", "1700000002.000100", text, edited_at=CHANGED_AT)
    return replace(reply, **changes)


ROOT = {"thread_ts": None, "ts": "1700000001.000100"}
LEFT_OVER = {"subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.", "ts": ROOT["ts"]}


def root_of(text: str = "New words", **changes: Any) -> Reply:
    return reply_of(text, thread_ts="", message_ts="1700000001.000100", **changes)


def asked_before(text: str, before: str = "Old words", **changes: Any) -> dict[str, Any]:
    """An edit of a message that may have asked for a job."""
    return edit(text, before=before, **ROOT | changes)


@pytest.mark.parametrize(
    ("payload", "reply"),
    [
        (edit(), reply_of()),
        (edit(f"<@{BOT}> Other &lt;words&gt;"), reply_of("Other <words>", mentions_us=True)),
        (edit(before=None), reply_of()),
        (edit(edited=None), reply_of()),
        (edit(subtype="thread_broadcast"), reply_of()),
        (edit("// for us"), reply_of("", withdrawn=True)),
        (edit(before="// for us"), reply_of()),
        (edit(f"<@{BOT}>"), reply_of("", mentions_us=True)),
        (edit("!stop"), reply_of("", withdrawn=True, word=ThreadWord.STOP)),
        (edit("!new New words"), reply_of("", withdrawn=True, word=ThreadWord.NEW)),
        (edit("!new New words", before="!new Old words"), reply_of(word=ThreadWord.NEW)),
        (edit("!new New words", before="!new"), reply_of(word=ThreadWord.NEW)),
        (edit("!new project: words", before="!new words"), reply_of("", withdrawn=True, word=ThreadWord.NEW)),
        (edit(f"<@{BOT}> Old words"), reply_of("Old words", mentions_us=True)),
        (edit(":tada:"), reply_of(":tada:", withdrawn=True)),
        (edit(files=[{"name": "a.png"}]), reply_of(attachments=holding("a.png"))),
        (deletion(), reply_of("", withdrawn=True)),
        (deletion(previous_message=None), reply_of("", withdrawn=True, person=Person("", "T1"), thread_ts="")),
        (asked_before(f"<@{BOT}> quiet New words"), root_of(mentions_us=True, options=Options(quiet=True))),
        (
            asked_before("New words", f"<@{BOT}> Old words"),
            root_of(options=NO_OPTIONS, mentioned_us_before=True),
        ),
        (
            asked_before(f"<@{BOT}> project:b New words", f"<@{BOT}> project:a New words"),
            root_of(mentions_us=True, options=Options("b"), mentioned_us_before=True),
        ),
        (asked_before(f"<@{BOT}>"), root_of("", mentions_us=True, options=NO_OPTIONS)),
        (asked_before(f"<@{BOT}> // for us"), root_of("", mentions_us=True, withdrawn=True)),
        (asked_before(f"<@{BOT}> help"), root_of("", mentions_us=True, withdrawn=True, word=ThreadWord.HELP)),
    ],
    ids=str,
)
async def test_edits_and_deletions_are_recorded(world: ListeningWorld, payload: dict[str, Any], reply: Reply) -> None:
    """Outside threads, the requests of the message itself count, however many jobs its thread has."""
    assert (await world.take(payload)).status == 200
    assert world.service.calls == [("revise", reply)]


@pytest.mark.parametrize("way", ["message_deleted", "message_changed"])
async def test_the_deletion_of_a_requesting_message_is_recorded(world: ListeningWorld, way: str) -> None:
    previous = {"user": "U0ANA", "text": f"<@{BOT}> Fix it", "ts": ROOT["ts"], "team": "T1"}
    gone = deletion(previous_message=previous, deleted_ts=ROOT["ts"])
    if way == "message_changed":
        gone["event"] |= {"subtype": way, "message": LEFT_OVER}
        del gone["event"]["deleted_ts"]
    await world.take(gone)
    assert world.service.edits == [root_of("", withdrawn=True, mentioned_us_before=True)]


UNFURLED = {"attachments": [{"from_url": "https://x.example", "title": "A page"}]}


@pytest.mark.parametrize(
    "payload",
    [
        edit("Old words", edited=None, **UNFURLED),
        edit("Old <https://x.example|https://x.example>", before="Old <https://x.example>"),
        edit("// b", before="// a"),
        edit(before=None, edited=None),
        edit(user=BOT, bot_id="B0BOT"),
        edit(bot_id="B0OTHER"),
        edit(edited={"user": "U0BEN", "ts": "1700000009.000000"}),
        edit(thread_ts=None),
        edit("This message was deleted.", user="USLACKBOT", subtype="tombstone"),
        deletion(previous_message={"user": BOT, "bot_id": "B0BOT", "ts": "1700000002.000100", "thread_ts": "1.000001"}),
        deletion(previous_message={"user": "U0ANA", "ts": "1700000002.000100"}),
        deletion(deleted_ts=None, previous_message=None),
    ],
    ids=str,
)
async def test_edits_that_change_no_words_of_a_person_are_ignored(
    world: ListeningWorld, payload: dict[str, Any]
) -> None:
    assert (await world.take(payload)).status == 200
    assert world.service.calls == []


async def test_environment_variables_do_not_switch_bolt_to_oauth(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"):
        monkeypatch.setenv(name, "x")
    async with listening() as world:
        assert world.app.bolt.oauth_flow is None
        assert (await world.take(command())).body == RECORDED


KEY = "click/T1/1.2.abc"
CARD = "1700000001.000100"


def chosen(action_id: str, value: str, **changes: Any) -> dict[str, Any]:
    """A choice from a menu or a list, as Slack reports it (docs.slack.dev, "Overflow menu element")."""
    option = {"text": {"type": "plain_text", "text": "A label"}, "value": value}
    action = {"type": "overflow", "action_id": action_id, "block_id": "b", "selected_option": option}
    return click(action_id) | {"actions": [action | {"action_ts": "1.1"}]} | changes


@pytest.mark.parametrize(
    ("payload", "kind", "argument"),
    [
        (click(ButtonId.STOP_JOB, "th1"), RequestKind.STOP, ""),
        (click(blocks.RETRY_JOB, "th1"), RequestKind.RETRY, ""),
        (chosen(blocks.CARD_MENU, menu_value(MenuItem.MUTE, "th1")), RequestKind.MUTE, ""),
        (chosen(blocks.CARD_MENU, menu_value(MenuItem.UNMUTE, "th1")), RequestKind.UNMUTE, ""),
        (chosen(blocks.CHOOSE_PROJECT, "th1/the/guides"), RequestKind.CHOOSE_PROJECT, "the/guides"),
        (click(blocks.CHOOSE_PROJECT_BUTTONS[-1], "th1/guides"), RequestKind.CHOOSE_PROJECT, "guides"),
        (click(blocks.SHOW_PROMPT, "th1"), RequestKind.SHOW_PROMPT, ""),
        (click(blocks.SHOW_ANSWER, "th1/0a1b"), RequestKind.SHOW_ANSWER, "0a1b"),
        (click(ButtonId.ACCEPT_PROPOSAL, "th1/plan/1"), RequestKind.ACCEPT_PROPOSAL, "plan/1"),
        (click(ButtonId.DROP_PROPOSAL, "th1/plan/1"), RequestKind.DROP_PROPOSAL, "plan/1"),
        (chosen(blocks.CARD_MENU, menu_value(MenuItem.WHOLE_REQUEST, "th1")), RequestKind.SHOW_PROMPT, ""),
        (chosen(blocks.CARD_MENU, menu_value(MenuItem.JOB_ID, "th1")), RequestKind.SHOW_JOB_ID, ""),
    ],
    ids=str,
)
async def test_buttons_about_a_job_are_recorded(
    world: ListeningWorld, payload: dict[str, Any], kind: RequestKind, argument: str
) -> None:
    assert (await world.take(payload)).status == 200
    expected = Action(ANA, kind, KEY, channel_id="C1", thread_id="th1", argument=argument)
    assert world.service.calls == [("act", expected)]


async def test_a_click_about_something_unknown_is_explained(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.service.knows = False
    await world.take(click(ButtonId.SEND_HELD, "r1", channel=None, view={"id": "V1", "type": "home"}))
    await world.app.drain(5)
    assert "could not be told something" not in caplog.text, "a Home has no channel in which to tell it"
    await world.take(click(ButtonId.SEND_HELD, "r1"))
    await world.app.drain(5)
    assert "U0ANA could not be told something" in caplog.text, "there is no Slack here, but it was tried"


async def test_a_click_that_could_not_be_recorded_is_explained(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.service.fault = StoreUnavailable("locked")
    assert (await world.take(click(ButtonId.STOP_JOB, "th1"))).status == 200
    await world.app.drain(5)
    assert "U0ANA could not be told something" in caplog.text, "there is no Slack here, but it was tried"


def reaction(**changes: Any) -> dict[str, Any]:
    """As documented (docs.slack.dev/reference/events/reaction_added)."""
    of_messages = dict.fromkeys(("text", "ts", "thread_ts", "channel", "channel_type", "team"))
    item = {"type": "message", "channel": "C1", "ts": CARD, "channel_type": "channel"}
    named = {"type": "reaction_added", "reaction": "x", "item_user": BOT, "item": item}
    return event(**of_messages | named | {"event_ts": "1700000004.000200"} | changes)


@pytest.mark.parametrize("item_user", [BOT, None])
async def test_a_cross_on_the_bots_message_asks_to_stop(world: ListeningWorld, item_user: str | None) -> None:
    assert (await world.take(reaction(item_user=item_user))).status == 200
    key = f"reaction/C1/{CARD}/U0ANA/1700000004.000200"
    stop = Action(ANA, RequestKind.STOP, key, channel_id="C1", card_ts=CARD, way_in=WayIn.REACTION)
    stop = replace(stop, at="1700000004.000200")
    assert world.service.calls == [("act", stop)]


async def test_in_shared_channels_nobody_is_assumed_to_be_ours(world: ListeningWorld) -> None:
    await world.take(reaction() | {"is_ext_shared_channel": True})
    assert [action.person for action in world.service.actions] == [Person("U0ANA", "")]


def pressed(action_id: str, value: str) -> dict[str, Any]:
    """As Slack reports a press of a message's button."""
    return click(action_id, value) | {"container": {"type": "message", "message_ts": CARD, "channel_id": "C1"}}


async def test_a_prompt_button_is_recorded_once_per_person(world: ListeningWorld) -> None:
    """The key consists of the message, the button and the person; any prompt is allowed."""
    prompt = 'Replace "a/b" with "c"'
    assert (await world.take(pressed(blocks.SEND_EXAMPLES[1], f"th1/{prompt}"))).status == 200
    ((name, written),) = world.service.calls
    key = f"/{CARD}/send_example_2/U0ANA"
    assert isinstance(written, Written)
    assert (name, written.thread_id, written.text, written.way_in) == ("follow_up", "th1", prompt, WayIn.BUTTON)
    assert written.person == ANA
    assert written.source_key.startswith("said/T1/")
    assert written.source_key.endswith(key)


async def test_an_answer_is_made_a_change_once_per_person(world: ListeningWorld) -> None:
    assert (await world.take(pressed(ButtonId.MAKE_CHANGE, "th1"))).status == 200
    ((_, written),) = world.service.calls
    key = f"said/T1/C1/{CARD}/make_change/U0ANA"
    assert written == Written(ANA, "th1", MAKE_IT_A_CHANGE, key, WayIn.BUTTON, Mode.EDIT)


async def test_a_chosen_answer_is_recorded_once_per_choice(world: ListeningWorld) -> None:
    """The list remains, so that somebody can choose again; the same choice counts once."""
    for label in ("Install", "Set up", "Install"):
        chosen = pressed(blocks.CHOOSE_ANSWER, "")
        chosen["actions"][0] |= {"type": "static_select", "selected_option": {"value": f"th1/{label}"}}
        assert (await world.take(chosen)).status == 200
    written = [call[1] for call in world.service.calls]
    assert [each.text for each in written if isinstance(each, Written)] == ["Install", "Set up", "Install"]
    keys = [each.source_key for each in written if isinstance(each, Written)]
    assert (keys[0], keys[0] == keys[1]) == (keys[2], False)


@pytest.mark.parametrize("value", ["th1", "th1/", "/x", ""])
async def test_a_prompt_button_without_its_prompt_is_ignored(world: ListeningWorld, value: str) -> None:
    assert (await world.take(pressed(blocks.SEND_EXAMPLES[0], value))).status == 200
    assert world.service.calls == []


TS = "1700000002.000100"


def mention(text: str = f"<@{BOT}> Fix the guides", **changes: Any) -> dict[str, Any]:
    """An `app_mention` at the top level of a channel (docs.slack.dev/reference/events/app_mention)."""
    return event(
        **{"type": "app_mention", "text": text, "thread_ts": None, "channel_type": None, "event_ts": TS} | changes
    )


def message(text: str = f"<@{BOT}> Fix the guides", **changes: Any) -> dict[str, Any]:
    """The same as a message event."""
    return event(**{"text": text, "thread_ts": None, "event_ts": TS} | changes)


def direct(text: str = "Fix the guides", **changes: Any) -> dict[str, Any]:
    return event(**{"text": text, "thread_ts": None, "channel": "D0ANA", "channel_type": "im"} | changes)


def asked(**changes: Any) -> NewJob:
    job = NewJob(ANA, "C1", "Fix the guides", f"message/C1/{TS}", WayIn.MENTION, thread_ts=TS, message_ts=TS)
    return replace(job, **{"origin": ThreadOrigin.REQUEST} | changes)


def private_attempts(caplog: pytest.LogCaptureFixture) -> int:
    """Returns how many private messages were attempted: there is no Slack here."""
    return len([record for record in caplog.records if "could not be told something" in record.getMessage()])


async def test_a_table_that_an_edit_adds_or_takes_away_is_noticed(world: ListeningWorld) -> None:
    cell = {"type": "raw_text", "text": "8080"}
    table = [{"id": 1, "blocks": [{"type": "table", "rows": [[cell]]}], "fallback": "[no preview available]"}]
    added, removed = edit("Ports", before="Ports", attachments=table), edit("Ports", before="Ports")
    del added["event"]["previous_message"]["attachments"]
    removed["event"]["previous_message"]["attachments"] = table
    for change in (added, removed):
        await world.take(change)
    assert [reply.text for _, reply in world.service.calls] == ["Ports\n\n| 8080 |\n| --- |", "Ports"]


@pytest.mark.parametrize(
    "text",
    ["", " ", "help", "?", "list", "status", "stop", "!mute", "project:", "quiet", "quiet quiet Fix it"],
)
async def test_a_message_without_a_task_is_answered_privately_once(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    await world.take(mention(f"<@{BOT}> {text}"))
    await world.take(message(f"<@{BOT}> {text}"))
    await world.app.drain(5)
    assert world.service.calls == []
    assert private_attempts(caplog) == 1


@pytest.mark.parametrize(
    "payload",
    [
        message("Just between us"),
        message(f"&lt;@{BOT}&gt; in words"),
        message(f"<@{BOT}> // not for you"),
        message(f":tada: <@{BOT}>"),
        message(user=BOT),
        direct("// a note"),
        direct(":wave:"),
        event(thread_ts=None),
        event(user=BOT),
        event(user=None),
        event(bot_id="B0OTHER"),
        event(hidden=True),
        event(edited={"user": "U0ANA", "ts": "1.000001"}),
        event(text="// what do you think?"),
        event(text="<@U0BEN> what do you think?"),
        event(text=""),
        event(ts=None),
        *(event(subtype=name) for name in ("message_changed", "message_deleted", "channel_join", "channel_leave")),
        *(event(subtype=name) for name in ("bot_message", "message_replied", "tombstone", "reminder_add")),
        event(subtype=["file_share"]),
        reaction(reaction="thumbsup"),
        reaction(reaction="negative_squared_cross_mark"),
        reaction(user=BOT),
        reaction(item_user="U0BEN"),
        reaction(item={"type": "file", "file": "F1"}),
        reaction(item={"type": "message", "channel": "C1", "ts": "now"}),
        reaction(event_ts=None),
        reaction(type="reaction_removed"),
    ],
    ids=lambda payload: str(payload["event"])[:120],
)
async def test_messages_not_for_pagehand_are_acknowledged_and_ignored(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, payload: dict[str, Any]
) -> None:
    assert (await world.take(payload)).status == 200
    await world.app.drain(5)
    assert world.service.calls == []
    assert private_attempts(caplog) == 0


@pytest.mark.parametrize("fault", [StoreUnavailable("locked"), NotRecorded()])
@pytest.mark.parametrize(
    ("payload", "again"),
    [
        (event(), event()),
        (edit(), edit()),
        (deletion(), deletion()),
        (reaction(), reaction()),
        (mention(), message()),
    ],
    ids=["reply", "edit", "deletion", "reaction", "mention"],
)
async def test_an_event_that_could_not_be_recorded_is_not_acknowledged(
    world: ListeningWorld, fault: Exception, payload: dict[str, Any], again: dict[str, Any]
) -> None:
    """Nor does it mark its message as seen."""
    world.service.fault = fault
    assert (await world.take(payload)).status != 200
    world.service.fault = None
    assert (await world.take(again)).status == 200
    assert len(world.service.calls) == 1


async def test_a_person_slack_does_not_identify_is_passed_on_as_unknown(world: ListeningWorld) -> None:
    shared = {"is_ext_shared_channel": True}
    assert (await world.take(mention(team=None) | shared)).status == 200
    assert world.service.calls == [], "it comes as a message, too, which may tell more"
    assert (await world.take(message(team=None) | shared)).status == 200
    assert world.service.started == [asked(person=Person("U0ANA", ""))]


async def test_without_direct_message_events_only_mentions_count() -> None:
    identity = replace(IDENTITY, granted_scopes=frozenset({"app_mentions:read", "chat:write"}))
    async with listening(identity) as world:
        await world.take(mention(team=None) | {"is_ext_shared_channel": True})
        assert world.service.started == [asked(person=Person("U0ANA", ""))]


async def test_replies_in_a_direct_message_steer_whomever_they_mention(world: ListeningWorld) -> None:
    await world.take(direct("<@U0BEN> wants it shorter", thread_ts="1700000001.000100"))
    (reply,) = world.service.received
    assert reply.in_direct_message
    assert (reply.text, reply.mentions_us) == ("\x02@U0BEN\x03 wants it shorter", False)


@pytest.mark.parametrize(
    ("text", "place", "knows", "word", "answers"),
    [
        (f"<@{BOT}> stop", {}, False, ThreadWord.STOP, 1),
        ("!status", {"channel": "D0ANA", "channel_type": "im"}, False, ThreadWord.STATUS, 1),
        ("!retry", {"parent_user_id": BOT}, False, ThreadWord.RETRY, 1),
        ("!mute", {}, False, ThreadWord.MUTE, 0),
        (f"<@{BOT}> shorter", {"parent_user_id": BOT}, False, None, 1),
        ("!help", {}, True, ThreadWord.HELP, 0),
        ("!help", {}, False, ThreadWord.HELP, 0),
        (f"<@{BOT}> help", {}, True, ThreadWord.HELP, 0),
        (f"<@{BOT}> help", {}, False, ThreadWord.HELP, 1),
        (f"<@{BOT}> !help", {}, False, ThreadWord.HELP, 1),
    ],
)
async def test_words_for_a_job_that_is_not_there_are_answered_once(
    world: ListeningWorld,
    caplog: pytest.LogCaptureFixture,
    *,
    text: str,
    place: dict[str, str],
    knows: bool,
    word: ThreadWord | None,
    answers: int,
) -> None:
    """In a direct message, below a card of ours, or on a mention, although that comes as two events. A job's thread
    answers for itself.
    """
    world.service.knows = knows
    for kind in ("message", "app_mention")[: 1 + text.startswith("<@")]:
        await world.take(event(text=text, type=kind, **place))
    await world.app.drain(5)
    assert {reply.word for reply in world.service.received} == {word}
    assert private_attempts(caplog) == answers


async def test_texts_of_people_are_not_logged_by_the_listeners(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for payload in (message(f"<@{BOT}> the secret"), direct("the secret"), message("<@x> the secret", ts=None)):
        await world.take(payload)
    assert "secret" not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("bot"))


async def test_an_app_without_modals_still_answers(world: ListeningWorld) -> None:
    assert isinstance(world.app, SlackApp)
    shortcut = {"type": "message_action", "callback_id": "hand_to_pagehand", "team": {"id": "T1"}, "user": {"id": "U1"}}
    assert (await world.take(shortcut)).status == 200


@pytest.mark.parametrize("payload", [event(), command(), click(ButtonId.STOP_JOB, "th1")])
async def test_the_health_shows_that_nothing_can_be_recorded(payload: dict[str, Any]) -> None:
    recording_health = RecordingHealth(time.monotonic)
    async with listening(recording_health=recording_health) as world:
        world.service.fault = StoreUnavailable("locked")
        await world.take(payload)
    assert recording_health.failing()


async def test_a_message_answered_by_another_process_is_not_answered_again(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """While the database is away, twice is better than never."""
    event = message(f"<@{BOT}> help")["event"]
    world.service.answered.add(MessageVersion("C1", event["ts"], event["user"], ""))
    await world.take(message(f"<@{BOT}> help"))
    await world.app.drain(5)
    assert private_attempts(caplog) == 0
    world.service.fault = StoreUnavailable("locked")
    await world.take(message(f"<@{BOT}> help", ts="1700000077.000100"))
    await world.app.drain(5)
    assert private_attempts(caplog) == 1


ALONE = Identity(team_id="T1", team="Team", bot_user_id="U0BOT", bot_id="B0BOT")
GRID = Identity(team_id="T1", team="Team", bot_user_id="U0BOT", bot_id="B0BOT", enterprise_id="E1")
THREAD = Thread("th1", "T1", "C1", "U1", "Do it", "docs", 0.0)


def event_from(*, shared: object = False, kind: str = "message", top: str = "T1", **fields: str) -> dict[str, Any]:
    installation = {"enterprise_id": None, "team_id": "T1", "is_enterprise_install": False}
    body = {
        "type": "event_callback",
        "team_id": top,
        "authorizations": [installation],
        "event": {"type": kind, "user": "U1"} | fields,
    }
    return body if shared is None else body | {"is_ext_shared_channel": shared}


def person_in(body: Any, identity: Identity) -> Person:
    """Returns whoever caused a payload, as the listener of its kind reads it."""
    if "command" in body:
        return sender_of(CommandPayload.read(body), identity)
    if body["type"] == "event_callback":
        return author_of(EventPayload.read(body), identity)
    return user_of(InteractionPayload.read(body), identity)


def allowed(body: Any) -> tuple[bool, ...]:
    """Returns whether its person is none of an outside organization, for a workspace alone and for one of a grid."""
    return tuple(not is_outsider(person_in(body, identity), THREAD) for identity in (ALONE, GRID))


def sent_by(**fields: str) -> dict[str, Any]:
    return {"command": "/docs", "user_id": "U1"} | fields


def pressed_by(team_id: str | None) -> dict[str, Any]:
    return {"type": "block_actions", "team": {"id": "T1"}, "user": {"id": "U1", "team_id": team_id}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # an internal channel
        (event_from(team="T1"), (True, True)),
        (event_from(), (True, True)),
        (event_from(shared=None), (True, True)),
        (event_from(team="T3"), (False, True)),
        (event_from(user_team="T3", team="T3"), (False, True)),
        (event_from(user_team="E1", team="T3"), (False, True)),
        # one shared with other organizations
        (event_from(shared=True), (False, False)),
        (event_from(shared="true"), (False, False)),
        (event_from(shared=True, team="T1"), (True, True)),
        (event_from(shared=True, team="T1", top="T2"), (True, True)),
        (event_from(shared=True, user_team="T1", team="T2"), (True, True)),
        (event_from(shared=True, user_team="E1", team="T3"), (False, True)),
        (event_from(shared=True, user_team="T2", team="T1"), (False, False)),
        (event_from(shared=True, user_team="E2", team="T1"), (False, False)),
        (event_from(shared=True, source_team="T2"), (False, False)),
        (event_from(shared=True, team="T3"), (False, False)),
        # one of unknown kind
        (event_from(shared=None, user_team="T2"), (False, False)),
        (event_from(shared=None, team="T3"), (False, False)),
        ({"type": "event_callback", "event": {"type": "message", "user": "U1"}}, (False, False)),
        ({"type": "event_callback", "event": None}, (False, False)),
        # who pressed a button
        (pressed_by("T1"), (True, True)),
        (pressed_by("E1"), (False, True)),
        (pressed_by("T2"), (False, False)),
        (pressed_by(None), (False, False)),
        # who ran a command
        (sent_by(team_id="T1"), (True, True)),
        (sent_by(team_id="T1", enterprise_id="E1"), (True, True)),
        (sent_by(team_id="T3", enterprise_id="E1"), (False, True)),
        (sent_by(team_id="T2", enterprise_id="E2"), (False, False)),
        (sent_by(), (False, False)),
    ],
)
def test_the_person_behind_a_payload_is_read(body: dict[str, Any], expected: tuple[bool, bool]) -> None:
    assert allowed(body) == expected


OF_T1 = {"id": "T1", "domain": "team"}
OF_E1 = {"enterprise_id": "E1", "enterprise_name": "Organization"}
E1 = {"enterprise": {"id": "E1", "name": "Organization"}}


@pytest.mark.parametrize("kind", ["view_submission", "view_closed", "message_action", "shortcut"])
@pytest.mark.parametrize(
    ("where", "team_id", "expected"),
    [
        # in our workspace, and in another one of our organization
        ({"team": OF_T1}, "T1", (True, True)),
        ({"team": OF_T1 | OF_E1} | E1, "T1", (True, True)),
        ({"team": OF_T1 | OF_E1} | E1, "T2", (False, True)),
        ({"team": {"id": "T2"} | OF_E1} | E1, "T2", (False, True)),
        ({"team": None, "is_enterprise_install": True} | E1, "T2", (False, True)),
        ({"team": OF_T1 | OF_E1} | E1, "E1", (False, True)),
        # in another organization, whose people can see a modal in a channel shared with it
        ({"team": {"id": "T9"}}, "T9", (False, False)),
        ({"team": {"id": "T9"}} | E1, "T9", (False, False)),
        ({"team": {"id": "T9", "enterprise_id": "E9"}, "enterprise": {"id": "E9"}}, "T9", (False, False)),
        ({"team": OF_T1 | OF_E1} | E1, "E9", (False, False)),
        ({"team": OF_T1}, None, (False, False)),
        ({"team": "T1", "user": None}, "T1", (False, False)),
    ],
)
def test_the_person_who_used_a_modal_or_shortcut_is_read(
    where: dict[str, Any], kind: str, team_id: str | None, expected: tuple[bool, bool]
) -> None:
    """Slack names the place, so a colleague of the organization can be distinguished from a guest of the channel."""
    person = {"id": "U1", "team_id": team_id}
    assert allowed({"type": kind, "user": person, "view": {"app_installed_team_id": "T1"}} | where) == expected


@pytest.mark.parametrize(
    "body", [None, [], {}, {"event": []}, {"user": []}, {"type": "shortcut", "team": ["T1"], "enterprise": 7}]
)
def test_a_payload_without_a_person_belongs_to_nobody(body: Any) -> None:
    for identity in (ALONE, GRID):
        people = (
            author_of(EventPayload.read(body), identity),
            user_of(InteractionPayload.read(body), identity),
            sender_of(CommandPayload.read(body), identity),
        )
        assert [person.id for person in people] == ["", "", ""]
        assert all(is_outsider(person, THREAD) for person in people)


ECHO, GONE = "U0ECHO", "U0GONE"
CHANNEL = ChannelInfo("C1", "docs", is_shared_outside=False, is_private=False)
TOOL = {
    "bot_id": "B0TOOL",
    "app_id": "A0TOOL",
    "bot_profile": {"id": "B0TOOL", "app_id": "A0TOOL", "name": "Tool", "deleted": False, "team_id": "T1"},
}
"""What Slack adds to a post that an app makes, also with a person's token (chat.postMessage)."""


@pytest.fixture
def reading() -> FakeSlackReading:
    echo = Member(ECHO, "echo", "T1", is_guest=False, account=Account.BOT)
    return FakeSlackReading(members={ECHO: echo, GONE: None})


@pytest.fixture
async def app_world(reading: FakeSlackReading) -> AsyncIterator[ListeningWorld]:
    async with listening(members=reading) as made:
        yield made


def app_mention(**changes: Any) -> dict[str, Any]:
    return event(**{"text": f"<@{BOT}> Fix the guides", "thread_ts": None} | TOOL | changes)


def tool_deletion(**changes: Any) -> dict[str, Any]:
    return deletion(previous_message=edit(**TOOL | changes)["event"]["previous_message"])


@pytest.mark.promise("posts by tools")
@pytest.mark.parametrize(
    ("payload", "call"),
    [
        (app_mention(), "start"),
        (app_mention(type="app_mention"), "start"),
        (event(**TOOL), "receive"),
        (event(**TOOL, subtype="thread_broadcast"), "receive"),
        (event(**TOOL | {"bot_profile": None}), "receive"),
        (event(**TOOL, thread_ts=None, channel="D0ANA", channel_type="im"), "start"),
        (edit(**TOOL), "revise"),
        (tool_deletion(), "revise"),
    ],
    ids=str,
)
async def test_a_persons_post_by_a_tool_counts_as_theirs(
    app_world: ListeningWorld, reading: FakeSlackReading, payload: dict[str, Any], call: str
) -> None:
    """The first is handled once its author was looked up, and sent again; the next ones are acknowledged at once."""
    assert (await app_world.take(payload)).status == HTTPStatus.SERVICE_UNAVAILABLE
    assert reading.asked == []
    await app_world.app.drain(5)
    assert (await app_world.take(payload)).status == HTTPStatus.OK
    assert [name for name, *_ in app_world.service.calls] == [call, call]
    assert app_world.service.calls[0] == app_world.service.calls[1]
    assert reading.asked == ["member U0ANA"]


@pytest.mark.promise("posts by tools")
@pytest.mark.parametrize("author", [ECHO, GONE])
@pytest.mark.parametrize("made", [event, app_mention, edit, tool_deletion])
async def test_nothing_is_recorded_for_a_bot(app_world: ListeningWorld, author: str, made: Any) -> None:
    """Each account is looked up once, also an unknown one."""
    payload = made(**TOOL, user=author)
    for _ in range(3):
        await app_world.take(payload)
        await app_world.app.drain(5)
    assert app_world.service.calls == []
    assert (await app_world.take(payload)).status == HTTPStatus.OK


@pytest.mark.promise("posts by tools")
@pytest.mark.parametrize(
    "payload",
    [
        event(**TOOL, thread_ts=None),
        app_mention(user=BOT),
        app_mention(bot_id=IDENTITY.bot_id),
        app_mention(subtype="bot_message", user=None),
    ],
    ids=["to others", "ours", "by our app", "no author"],
)
async def test_nobody_is_looked_up_for_what_cannot_concern_us(
    app_world: ListeningWorld, reading: FakeSlackReading, payload: dict[str, Any]
) -> None:
    assert (await app_world.take(payload)).status == HTTPStatus.OK
    await app_world.app.drain(5)
    assert (reading.asked, app_world.service.calls) == ([], [])


@pytest.mark.promise("posts by tools")
async def test_catching_up_counts_a_persons_posts_by_a_tool(app_world: ListeningWorld) -> None:
    missed = history.written(event(**TOOL)["event"], CHANNEL, IDENTITY)
    with pytest.raises(NotRecorded):
        await app_world.app.handle_past(missed, Arrival.LATE)
    await app_world.app.drain(5)
    await app_world.app.handle_past(missed, Arrival.LATE)
    assert [reply.arrival for reply in app_world.service.received] == [Arrival.LATE] * 2


@pytest.mark.promise("posts by tools")
@pytest.mark.parametrize("fault", [ChatUnreachable("no connection"), ChatMissingScope(("users:read",))])
async def test_a_post_whose_author_cannot_be_looked_up_is_sent_again(
    app_world: ListeningWorld, reading: FakeSlackReading, fault: ChatError
) -> None:
    reading.faults.append(fault)
    statuses = []
    for _ in range(3):
        statuses.append((await app_world.take(event(**TOOL))).status)
        await app_world.app.drain(5)
    assert statuses == [HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.OK]
    assert reading.asked == ["member U0ANA"] * 2


REACTIONS = st.sampled_from(Reaction)


def a_notice(wanted: Reaction | None, shown: tuple[Reaction, ...] | None, *, added: bool = False) -> Notice:
    message = ReactionChanged("5.1", wanted)
    return Notice(1, "t1/m", "t1", message, 0.0, reactions_shown=shown, reaction_added=added)


@given(wanted=st.none() | REACTIONS, there=st.lists(REACTIONS, unique=True), is_known=st.sampled_from([False, True]))
def test_each_call_is_made_once_until_only_the_right_mark_is_left(
    wanted: Reaction | None, there: list[Reaction], *, is_known: bool
) -> None:
    shown, notice = set(there), a_notice(wanted, tuple(there) if is_known else None, added=wanted is None)
    message, calls, progress = ReactionChanged("5.1", wanted), [], ReactionProgress((), done=False)
    while not progress.done:
        call = next_call(notice, message)
        if call is not None and call.removes:
            shown.discard(call.reaction)
        elif call is not None:
            shown.add(call.reaction)
        calls.append(call)
        progress = after_call(notice, message, call)
        notice = a_notice(wanted, progress.shown, added=True)
    assert shown == ({wanted} if wanted else set())
    assert set(progress.shown) == shown
    assert len(calls) == len(set(calls))
    removed = [call for call in calls if call is not None and call.removes]
    assert not is_known or len(removed) == len(set(there) - {wanted})
