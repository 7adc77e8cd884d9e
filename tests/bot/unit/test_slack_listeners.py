"""The listeners behind a real Bolt app: what each payload records, and that each is answered."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from support.fakes.attachments import holding
from support.fakes.slack_payloads import CHANGED_AT, command, deletion, edit, event
from support.worlds.listening_world import BOT, ListeningWorld, listening

from bot.domain.commands.options import NO_OPTIONS, OptionFault, OptionName, Options, WrongOption
from bot.domain.commands.thread_words import ThreadWord
from bot.domain.context.message_text import mention
from bot.domain.context.slack_files import ForwardedMessage, SlackFile
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Attachments, Person, Reply, WayIn
from bot.errors import NotRecorded, StoreUnavailable
from bot.slack.rendering.ephemeral_texts import wrong_option
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.words.at_once import COMMAND_UNREADABLE, NOT_RECORDED, RECORDED, STILL_RECORDING
from bot.slack.sending.ephemeral import KnownResponseUrls

ANA = Person("U0ANA", "T1")
THEIRS = {"text": "theirs", "author_id": "U0BEN"}
FORWARDED = ForwardedMessage(mention("U0BEN"), "theirs")


@pytest.fixture
async def world() -> AsyncIterator[ListeningWorld]:
    async with listening(recording_timeout=0.05) as made:
        yield made


async def test_a_command_is_recorded_in_readable_text(world: ListeningWorld) -> None:
    answer = await world.take(command('Replace &lt;b&gt; with <https://x.example|x.example> "now"'))
    assert (answer.status, answer.body) == (200, RECORDED)
    asked = NewJob(ANA, "C1", 'Replace <b> with x.example "now"', "command/T1/1.2.abc", WayIn.COMMAND)
    assert world.service.calls == [("start", asked)]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("quiet quiet Fix it", WrongOption(OptionName.QUIET, OptionFault.TWICE)),
        ("project: Fix it", WrongOption(OptionName.PROJECT, OptionFault.EMPTY)),
        ('project:"a Fix it', WrongOption(OptionName.PROJECT, OptionFault.UNCLOSED)),
    ],
)
async def test_an_invalid_option_is_answered_with_an_explanation(
    world: ListeningWorld, text: str, wrong: WrongOption
) -> None:
    answer = (await world.take(command(text))).body
    assert answer == wrong_option(wrong)
    assert answer.startswith("Nothing was started: ")
    assert f"`{wrong.name}" in answer
    assert world.service.calls == []


@pytest.mark.parametrize("text", ["", "  ", "help", "HELP", "?", "-h", "--help"])
async def test_the_bare_command_shows_help_and_records_nothing(world: ListeningWorld, text: str) -> None:
    answer = await world.take(command(text))
    assert answer.status == 200
    assert "`//`" in answer.body
    assert world.service.calls == []


async def test_the_command_has_the_configured_name() -> None:
    async with listening(context=MessageContext(command="/pages")) as world:
        assert (await world.take(command(command="/pages"))).body == RECORDED
        assert "/pages help" in (await world.take(command(command="/docs"))).body
        assert len(world.service.calls) == 1


async def test_a_command_that_could_not_be_recorded_is_explained(world: ListeningWorld) -> None:
    world.service.fault = StoreUnavailable("locked")
    answer = await world.take(command())
    assert (answer.status, answer.body) == (200, NOT_RECORDED)


async def test_an_unexpected_error_is_answered_without_its_text(
    world: ListeningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.service.fault = RuntimeError("the secret prompt")
    answer = await world.take(command())
    assert (answer.status, answer.body) == (200, NOT_RECORDED)
    assert "secret" not in caplog.text  # the service logs the error's class


async def test_slow_recording_is_answered_in_time_and_finishes_later(world: ListeningWorld) -> None:
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
    "changes",
    [
        {"thread_ts": None},
        {"thread_ts": "1700000002.000100"},
        {"user": BOT},
        {"user": "USLACKBOT"},
        {"user": None},
        {"bot_id": "B0OTHER"},
        {"hidden": True},
        {"edited": {"user": "U0ANA", "ts": "1.000001"}},
        {"text": "// what do you think?"},
        {"text": "// see this", "files": [{"name": "a.png"}]},
        {"text": "<@U0BEN> what do you think?"},
        {"text": ""},
        {"ts": "yesterday"},
        {"ts": None},
        {"channel": None},
        *({"subtype": name} for name in ("message_changed", "message_deleted", "channel_join", "channel_leave")),
        *({"subtype": name} for name in ("bot_message", "message_replied", "tombstone", "reminder_add")),
        {"subtype": ["file_share"]},
    ],
    ids=str,
)
async def test_messages_not_by_a_person_are_acknowledged_and_ignored(
    world: ListeningWorld, changes: dict[str, Any]
) -> None:
    assert (await world.take(event(**changes))).status == 200
    assert world.service.calls == []


@pytest.mark.parametrize(
    ("changes", "attachments"),
    [
        ({"subtype": "file_share", "files": [{"name": "a.png"}, {"title": "B"}]}, holding("a.png", "B")),
        ({"subtype": "file_share"}, holding("")),
        ({"files": [{"name": "\x02@U1\x03\u202egnp"}]}, holding("@U1gnp")),
        ({"files": [{"mode": "tombstone"}, None, {"id": "F1", "name": "b"}]}, Attachments((SlackFile("F1", "b"),))),
        ({"attachments": [THEIRS | {"is_share": True}]}, Attachments(forwarded=(FORWARDED,))),
        ({"text": "", "attachments": [THEIRS | {"is_msg_unfurl": True}]}, Attachments(forwarded=(FORWARDED,))),
        ({"text": "", "files": [{"name": "a.png"}]}, holding("a.png")),
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


# -- edits and deletions ----------------------------------------------------------------------------------------------


def reply_of(text: str = "New words", **changes: Any) -> Reply:
    reply = Reply(ANA, "C1", "1700000001.000100", "1700000002.000100", text, edited_at=CHANGED_AT)
    return replace(reply, **changes)


@pytest.mark.parametrize(
    ("payload", "reply"),
    [
        (edit(), reply_of()),
        (edit(f"<@{BOT}> Other &lt;words&gt;"), reply_of("Other <words>", mentions_us=True)),
        (edit(before=None), reply_of()),
        (edit(edited=None), reply_of()),
        (edit(subtype="thread_broadcast"), reply_of()),
        (edit(subtype="me_message"), reply_of()),
        (edit("// for us"), reply_of("", withdrawn=True)),
        (edit(before="// for us"), reply_of()),
        (edit(f"<@{BOT}>"), reply_of("", mentions_us=True)),
        (edit("!stop"), reply_of("", withdrawn=True, word=ThreadWord.STOP)),
        (edit("!stpo"), reply_of("", withdrawn=True, word=ThreadWord.STOP)),
        (edit("!new New words"), reply_of("", withdrawn=True, word=ThreadWord.NEW)),
        (edit("!new New words", before="!new Old words"), reply_of(word=ThreadWord.NEW)),
        (edit("!new New words", before="!new"), reply_of(word=ThreadWord.NEW)),
        (edit("!new New words", before=None), reply_of(word=ThreadWord.NEW)),
        (edit("!new project: words", before="!new words"), reply_of("", withdrawn=True, word=ThreadWord.NEW)),
        (edit(f"<@{BOT}> Old words"), reply_of("Old words", mentions_us=True)),
        (edit("<@U0BEN> please"), reply_of("", withdrawn=True)),
        (edit(":tada:"), reply_of(":tada:", withdrawn=True)),
        (edit(files=[{"name": "a.png"}]), reply_of(attachments=holding("a.png"))),
        (deletion(), reply_of("", withdrawn=True)),
        (deletion(previous_message=None), reply_of("", withdrawn=True, person=Person("", "T1"), thread_ts="")),
    ],
    ids=str,
)
async def test_edits_and_deletions_are_recorded(world: ListeningWorld, payload: dict[str, Any], reply: Reply) -> None:
    assert (await world.take(payload)).status == 200
    assert world.service.calls == [("revise", reply)]


ASKED = {"thread_ts": None, "ts": "1700000001.000100"}
"""A root message."""
LEFT_OVER = {"subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.", "ts": ASKED["ts"]}


@pytest.mark.parametrize(
    ("payload", "reply"),
    [
        (edit(f"<@{BOT}> quiet New words", **ASKED), reply_of(mentions_us=True, options=Options(quiet=True))),
        (
            edit(f"<@{BOT}> New words", **ASKED | {"thread_ts": ASKED["ts"]}),
            reply_of(mentions_us=True, options=NO_OPTIONS),
        ),
        (
            edit("New words", before=f"<@{BOT}> Old words", **ASKED),
            reply_of(options=NO_OPTIONS, mentioned_us_before=True),
        ),
        (
            edit(f"<@{BOT}> project:b New words", before=f"<@{BOT}> project:a New words", **ASKED),
            reply_of(mentions_us=True, options=Options("b"), mentioned_us_before=True),
        ),
        (edit(f"<@{BOT}>", **ASKED), reply_of("", mentions_us=True, options=NO_OPTIONS)),
        (edit(f"<@{BOT}> // for us", **ASKED), reply_of("", mentions_us=True, withdrawn=True)),
        (
            edit(f"<@{BOT}> help", **ASKED),
            reply_of("", mentions_us=True, withdrawn=True, word=ThreadWord.HELP),
        ),
        (
            edit(f"<@{BOT}> cancel", **ASKED),
            reply_of("", mentions_us=True, withdrawn=True, word=ThreadWord.STOP),
        ),
    ],
    ids=str,
)
async def test_edits_of_a_requesting_message_are_recorded(
    world: ListeningWorld, payload: dict[str, Any], reply: Reply
) -> None:
    """Outside threads, the requests of the message itself count, however many jobs its thread has."""
    assert (await world.take(payload)).status == 200
    assert world.service.edits == [replace(reply, thread_ts="", message_ts=ASKED["ts"] or "")]


@pytest.mark.parametrize("way", ["message_deleted", "message_changed"])
async def test_the_deletion_of_a_requesting_message_is_recorded(world: ListeningWorld, way: str) -> None:
    previous = {"user": "U0ANA", "text": f"<@{BOT}> Fix it", "ts": ASKED["ts"], "team": "T1"}
    gone = deletion(previous_message=previous, deleted_ts=ASKED["ts"])
    if way == "message_changed":
        gone["event"] |= {"subtype": way, "message": LEFT_OVER}
        del gone["event"]["deleted_ts"]
    await world.take(gone)
    expected = reply_of("", thread_ts="", message_ts=ASKED["ts"] or "", withdrawn=True)
    assert world.service.edits == [replace(expected, mentioned_us_before=True)]


UNFURLED = {"attachments": [{"from_url": "https://x.example", "title": "A page"}]}


@pytest.mark.parametrize(
    "payload",
    [
        edit("Old words", edited=None, **UNFURLED),
        edit("Old words", **UNFURLED),
        edit("Old <https://x.example|https://x.example>", before="Old <https://x.example>"),
        edit("// b", before="// a"),
        edit(before=None, edited=None),
        edit(None),
        edit(user=BOT, bot_id="B0BOT"),
        edit(bot_id="B0OTHER"),
        edit(edited={"user": "U0BEN", "ts": "1700000009.000000"}),
        edit(thread_ts=None),
        edit(ts="1700000001.000100"),
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


@pytest.mark.parametrize("payload", [edit(), deletion()], ids=["edit", "deletion"])
async def test_an_edit_that_could_not_be_recorded_is_not_acknowledged(
    world: ListeningWorld, payload: dict[str, Any]
) -> None:
    world.service.fault = StoreUnavailable("locked")
    assert (await world.take(payload)).status != 200


@pytest.mark.parametrize("fault", [StoreUnavailable("locked"), NotRecorded()])
async def test_a_reply_that_could_not_be_recorded_is_not_acknowledged(world: ListeningWorld, fault: Exception) -> None:
    world.service.fault = fault
    assert (await world.take(event())).status != 200
    world.service.fault = None
    assert (await world.take(event())).status == 200
    assert len(world.service.calls) == 1


async def test_acknowledging_calls_no_web_api(world: ListeningWorld) -> None:
    """Sockets to other machines are forbidden, and Bolt's client has no token: auth.test would fail the answer."""
    assert world.app.bolt.client.token is None
    assert (await world.take(event())).status == 200


async def test_environment_variables_do_not_switch_bolt_to_oauth(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"):
        monkeypatch.setenv(name, "x")
    async with listening() as world:
        assert world.app.bolt.oauth_flow is None
        assert (await world.take(command())).body == RECORDED


def test_response_urls_are_in_no_repr() -> None:
    urls = KnownResponseUrls.__new__(KnownResponseUrls)
    KnownResponseUrls.__init__(urls, None)  # type: ignore[arg-type]  # nothing is sent here
    urls.remember("U", "C", "https://hooks.slack.com/secret")
    assert urls._addresses
    assert "secret" not in repr(urls) + repr(urls._addresses)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://hooks.slack.com/commands/T1/1/x", True),
        ("https://hooks.slack-gov.com/commands/T1/1/x", True),
        ("https://slack.example:8443/commands/T1/1/x", True),
        ("http://hooks.slack.com/commands/T1/1/x", False),
        ("https://slack.example/commands/T1/1/x", False),
        ("https://hooks.slack.com.evil.example/x", False),
        ("https://hooks.slack.com@evil.example/x", False),
        ("https://evil.example/?https://hooks.slack.com/", False),
        ("https://hooks.slack.com:8443/x", False),
        ("http://169.254.169.254/latest", False),
        ("https://[hooks.slack.com/x", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_response_urls_must_belong_to_slack(url: str, *, kept: bool) -> None:
    urls = KnownResponseUrls.__new__(KnownResponseUrls)
    KnownResponseUrls.__init__(urls, None, api_url="https://slack.example:8443/api")  # type: ignore[arg-type]  # the same
    urls.remember("U", "C", url)
    assert bool(urls._addresses) is kept
