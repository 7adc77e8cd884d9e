"""Texts and bodies as nobody would wish for: all are answered, and what is recorded is what people read."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from whispering import whispers_to_nobody

from bot.domain.models import Person
from bot.slack.app import SlackApp
from bot.slack.web_api import Identity, new_session
from bot.slack.wording import Wording

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
BOT = "U0BOT"
AS_USUAL = settings(deadline=None, suppress_health_check=list(HealthCheck))


class Recorded:
    """The service's interface; keeps the words it was given."""

    def __init__(self) -> None:
        self.words: list[str] = []

    async def start(self, person: Person, channel_id: str, prompt: str, *, source_key: str) -> None:
        self.words.append(prompt)

    async def steer(self, person: Person, channel_id: str, thread_ts: str, message_ts: str, text: str) -> bool:
        self.words.append(text)
        return True

    async def send_again(self, person: Person, channel_id: str, request_id: str) -> None:
        self.words.append(request_id)

    async def show_prompt(self, person: Person, channel_id: str, thread_id: str, *, source_key: str) -> None:
        self.words.append(thread_id)


@asynccontextmanager
async def running() -> AsyncIterator[tuple[SlackApp, Recorded]]:
    session, service = new_session(), Recorded()
    identity = Identity(team_id="T1", team="Team", bot_user_id=BOT, bot_id="B0BOT")
    app = SlackApp(service, identity=identity, wording=Wording(), whispers=whispers_to_nobody(session), patience=5.0)
    try:
        yield app, service
    finally:
        await app.drain(1)
        await session.close()


def command(text: object) -> dict[str, Any]:
    return {
        "command": "/docs", "text": text, "team_id": "T1", "user_id": "U0ANA", "channel_id": "C1", "trigger_id": "1.2.a"
    }  # fmt: skip


def reply(text: object) -> dict[str, Any]:
    event = {
        "type": "message", "user": "U0ANA", "text": text, "ts": "1700000002.000100",
        "thread_ts": "1700000001.000100", "channel": "C1", "team": "T1",
    }  # fmt: skip
    return {"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": event}


# -- what is recorded is what a person reads --------------------------------------------------------------------------


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _pairs(
    written: st.SearchStrategy[str], make: Callable[[str], tuple[str, str]]
) -> st.SearchStrategy[tuple[str, str]]:
    return st.builds(make, written)


printable = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)
names = st.text("abcdefghij klmnopæøå-&", min_size=1, max_size=12).map(str.strip).filter(bool)
MARKUP = [
    "*bold _and `nested`_* ~x~",
    "```\na & <b>\n```",
    "&amp;",
    "&lt;!channel&gt;",
    ":tada:",
    "> quoted",
    "1 < 2 > 0",
]
BIDI = ["\u202eevil\u202c", "\u200b\u200d\u2060", "שלום", "\u2066a\u2069", "e\u0301", "👩‍👩‍👧", "\ufeff", "\u2028"]
SEGMENTS: list[st.SearchStrategy[tuple[str, str]]] = [
    _pairs(printable, lambda text: (escaped(text), text)),
    _pairs(st.sampled_from([*MARKUP, *BIDI, "\n", "\t"]), lambda text: (escaped(text), text)),
    _pairs(st.sampled_from("\x00\x07\x0b\x1b\x7f\x80\x9f"), lambda text: (text, "")),
    _pairs(names, lambda name: (f"<@U1|{escaped(name)}>", f"@{name}")),
    _pairs(names, lambda name: (f"<#C1|{escaped(name)}>", f"#{name}")),
    _pairs(
        names, lambda name: (f"<https://x.example/?a&amp;b|é {escaped(name)}>", f"é {name} (https://x.example/?a&b)")
    ),
    st.sampled_from(
        [
            ("<@U1>", "@U1"),
            ("<!here>", "@here"),
            ("<!channel>", "@channel"),
            ("<!everyone>", "@everyone"),
            ("<#C1>", "#C1"),
            ("<!subteam^S1|@writers>", "@writers"),
            ("<!date^1392734382^{date}^https://x.example|18 Feb>", "18 Feb"),
            ("<mailto:a@x.example|a@x.example>", "a@x.example"),
            ("<https://x.example/a>", "https://x.example/a"),
        ]
    ),
]
messages = st.lists(st.one_of(SEGMENTS), min_size=1, max_size=12).map(
    lambda parts: ("".join(part[0] for part in parts), "".join(part[1] for part in parts).strip())
)


@AS_USUAL
@given(messages)
@example((escaped("a<&>" * 10_000), "a<&>" * 10_000))
@example(("<@U1>" * 8_000, "@U1" * 8_000))
async def test_what_is_recorded_is_what_a_person_reads(message: tuple[str, str]) -> None:
    sent, read = message
    async with running() as (app, service):
        for payload in (command(sent), reply(sent)):
            assert (await app.take_payload(payload)).status == 200
        expected = [] if read.lower() in {"", "help"} else [read]
        expected += [] if not read or read.startswith("//") else [read]
        assert service.words == expected


@AS_USUAL
@given(messages)
async def test_over_http_the_same_is_recorded(message: tuple[str, str]) -> None:
    sent, read = message
    async with running() as (app, service):
        assert (await app.take_request(urlencode(command(sent)), FORM)).status == 200
        assert service.words == ([] if read.lower() in {"", "help"} else [read])


UNCLOSED = [
    "<" * 40_000,
    "<@U1|" * 8_000,
    "&" * 40_000,
    "&amp;" * 8_000,
    "<!date^" * 5_700,
    "|" * 40_000,
    "<>" * 20_000,
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", UNCLOSED, ids=lambda text: text[:6])
async def test_a_text_of_40_000_characters_that_means_nothing_is_read_in_time(text: str) -> None:
    async with running() as (app, service):
        async with asyncio.timeout(5):
            for payload in (command(text), reply(text)):
                assert (await app.take_payload(payload)).status == 200
        assert len(service.words) == 2


# -- whatever comes is answered ---------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["type", "event", "command", "payload", "actions", "user", "channel", "view", "token", "team", "authorizations"]
payloads = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), json_values, max_size=6)
forms = st.dictionaries(st.sampled_from(KEYS), st.text(max_size=30) | json_values.map(json.dumps), max_size=4)
bodies = st.one_of(
    st.text(max_size=200), json_values.map(json.dumps), forms.map(urlencode), st.just("payload=" + "%7B" * 5_000)
)
kinds = st.sampled_from([FORM, JSON, "", "text/plain", "multipart/form-data", "application/json; charset=utf-8"])


async def answered(take: Callable[[SlackApp], Awaitable[Any]], caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    async with running() as (app, _):
        answer = await take(app)
    assert answer.status in {200, 400, 404}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]


@AS_USUAL
@given(payload=payloads)
async def test_any_payload_is_answered(caplog: pytest.LogCaptureFixture, payload: dict[str, Any]) -> None:
    await answered(lambda app: app.take_payload(payload), caplog)


@AS_USUAL
@given(body=bodies, kind=kinds)
@example(body="[" * 100_000, kind=JSON)
@example(body="payload=" + "[" * 100_000, kind=FORM)
async def test_any_request_is_answered(caplog: pytest.LogCaptureFixture, body: str, kind: str) -> None:
    await answered(lambda app: app.take_request(body, kind), caplog)


@AS_USUAL
@given(text=json_values.filter(lambda value: not isinstance(value, str)))
async def test_a_text_that_is_none_is_no_request(text: object) -> None:
    async with running() as (app, service):
        for payload in (command(text), reply(text)):
            assert (await app.take_payload(payload)).status == 200
        assert service.words == []
