"""Mentions, direct messages and control words behind a real Bolt app: how each message calls the service."""

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from support.fakes.slack_payloads import edit, event
from support.worlds.listening_world import BOT, IDENTITY, ListeningWorld, listening

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import MessageVersion, Person, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.errors import StoreUnavailable
from bot.slack.receiving.slack_app import SlackApp

ANA = Person("U0ANA", "T1")
TS = "1700000002.000100"
SOURCE_KEY = f"message/C1/{TS}"


@pytest.fixture
async def world() -> AsyncIterator[ListeningWorld]:
    async with listening() as made:
        yield made


def rich(*elements: dict[str, Any]) -> list[dict[str, Any]]:
    section = {"type": "rich_text_section", "elements": list(elements)}
    return [{"type": "rich_text", "block_id": "b1", "elements": [section]}]


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
    job = NewJob(
        ANA,
        "C1",
        "Fix the guides",
        SOURCE_KEY,
        WayIn.MENTION,
        thread_ts=TS,
        message_ts=TS,
        origin=ThreadOrigin.REQUEST,
    )
    return replace(job, **changes)


def private_attempts(caplog: pytest.LogCaptureFixture) -> int:
    """Returns how many private messages were attempted: there is no Slack here."""
    return len([record for record in caplog.records if "could not be told something" in record.getMessage()])


# -- root mentions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", [mention(), message()], ids=["app_mention", "message"])
async def test_a_mention_requests_a_job_in_its_own_thread(world: ListeningWorld, payload: dict[str, Any]) -> None:
    assert (await world.take(payload)).status == 200
    assert world.service.calls == [("start", asked())]


async def test_both_events_of_one_mention_have_one_source_key(world: ListeningWorld) -> None:
    await world.take(mention(event_id="Ev1"))
    await world.take(message(event_id="Ev2"))
    assert world.service.starts == {SOURCE_KEY}


async def test_the_text_is_that_of_the_blocks(world: ListeningWorld) -> None:
    blocks = rich(
        {"type": "user", "user_id": BOT},
        {"type": "text", "text": " Fix "},
        {"type": "text", "text": "this", "style": {"code": True}},
    )
    await world.take(mention(f"<@{BOT}> Fix `this` flat", blocks=blocks))
    assert world.service.started == [asked(prompt="Fix `this`")]


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
        message(f"<@{BOT}2> somebody else"),
        message(f"<@{BOT}> // not for you"),
        message(f":tada: <@{BOT}>"),
        message(user=BOT),
        message(bot_id="B0OTHER"),
        message(edited={"user": "U0ANA", "ts": "1.000001"}),
        message(ts=None),
        message(channel=None),
        direct("// a note"),
        direct(":wave:"),
        direct(user=BOT),
        direct(subtype="bot_message"),
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


async def test_a_mention_that_could_not_be_recorded_is_redelivered(world: ListeningWorld) -> None:
    """A copy that was not recorded must not mark the message as seen."""
    world.service.fault = StoreUnavailable("locked")
    assert (await world.take(mention())).status != 200
    world.service.fault = None
    assert (await world.take(message())).status == 200
    assert world.service.starts == {SOURCE_KEY}


# -- people -----------------------------------------------------------------------------------------------------------


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


# -- direct messages --------------------------------------------------------------------------------------------------


async def test_replies_in_a_direct_message_steer_whomever_they_mention(world: ListeningWorld) -> None:
    await world.take(direct("<@U0BEN> wants it shorter", thread_ts="1700000001.000100"))
    (reply,) = world.service.received
    assert reply.in_direct_message
    assert (reply.text, reply.mentions_us) == ("\x02@U0BEN\x03 wants it shorter", False)


@pytest.mark.parametrize(
    ("text", "place", "answers"),
    [
        (f"<@{BOT}> stop", {}, 1),
        ("!status", {"channel": "D0ANA", "channel_type": "im"}, 1),
        ("!retry", {"parent_user_id": BOT}, 1),
        ("!mute", {}, 0),
    ],
    ids=["to us", "in a direct message", "below a card of ours", "among people"],
)
async def test_a_control_word_to_the_bot_without_a_job_is_answered(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, text: str, place: dict[str, str], answers: int
) -> None:
    """Once, although a mention comes as two events."""
    world.service.knows = False
    for kind in ("message", "app_mention")[: 1 + text.startswith("<@")]:
        await world.take(event(text=text, type=kind, **place))
    await world.app.drain(5)
    assert private_attempts(caplog) == answers


# -- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [word for word in ThreadWord if word not in {ThreadWord.NEW, ThreadWord.HELP}])
@pytest.mark.parametrize("form", ["!{}", f"<@{BOT}> {{}}"])
async def test_control_words_alone_are_recorded_as_such(world: ListeningWorld, word: ThreadWord, form: str) -> None:
    await world.take(event(text=form.format(word)))
    (reply,) = world.service.received
    assert (reply.word, reply.text) == (word, "")


@pytest.mark.parametrize(
    ("text", "knows", "words"),
    [
        ("!help", True, 0),
        ("!help", False, 0),
        (f"<@{BOT}> help", True, 0),
        (f"<@{BOT}> help", False, 1),
        (f"<@{BOT}> !help", False, 1),
    ],
)
async def test_help_is_given_by_the_threads_job_or_on_a_mention(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture, *, text: str, knows: bool, words: int
) -> None:
    world.service.knows = knows
    for kind in ("message", "app_mention")[: 1 + text.startswith("<@")]:
        await world.take(event(text=text, type=kind))
    await world.app.drain(5)
    assert {reply.word for reply in world.service.received} == {ThreadWord.HELP}
    assert private_attempts(caplog) == words


async def test_a_reply_below_an_unknown_card_is_answered_once(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.service.knows = False
    for kind in ("message", "app_mention"):
        await world.take(event(text=f"<@{BOT}> shorter", type=kind, parent_user_id=BOT))
    await world.app.drain(5)
    assert private_attempts(caplog) == 1


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
