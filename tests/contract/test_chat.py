"""SlackChat over the workspace's Web API: what it says arrives as meant, and each fault becomes the right error."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import pytest

from bot.domain.models import Job, Known, Mark, Notice, NoticeKind, Thread, What
from bot.errors import (
    ChatBusy,
    ChatError,
    ChatNotAllowed,
    ChatNotInChannel,
    ChatRefused,
    ChatUncertain,
    ChatUnreachable,
)
from bot.slack.blocks import Message
from bot.slack.chat import SlackChat
from bot.slack.proxies import proxy_for
from bot.slack.response_urls import ResponseUrls
from bot.slack.web_api import identify, new_client, new_session
from bot.slack.whispers import Whispers
from bot.slack.wording import Wording
from bot.workspace import WorkspaceServer

LINK = "https://git.example/team/guides/pull/7"


@dataclass
class World:
    """A chat in a workspace; `thread` is one whose card is not posted yet, in #docs."""

    workspace: WorkspaceServer
    chat: SlackChat
    response_urls: ResponseUrls
    thread: Thread

    async def posted(self) -> Thread:
        """The thread once its card is posted."""
        return replace(self.thread, ts=await self.chat.post_card(self.thread, "th1/card"))

    def elsewhere(self, channel: str) -> Thread:
        return replace(self.thread, channel_id=self.workspace.channel(channel).id)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    workspace = WorkspaceServer()
    await workspace.start()
    session = new_session()
    client = new_client(workspace.bot_token, session, base_url=workspace.api_url)
    identity = await identify(client)
    urls = ResponseUrls(session)
    wording = Wording(bot_user_id=identity.bot_user_id)
    thread = Thread(
        id="th1",
        team_id=identity.team_id,
        channel_id=workspace.channel("docs").id,
        asker_id=workspace.person("ana").id,
        prompt="Tell <!channel> about <https://evil.example|this>",
        project_id="p",
        created_at=asyncio.get_running_loop().time(),
    )
    yield World(workspace, SlackChat(client, identity, wording, Whispers(client, urls)), urls, thread)
    await session.close()
    await workspace.stop()


def notice(what: What = What.STARTED, key: str = "th1/started", **facts: str) -> Notice:
    return Notice(id=1, key=key, thread_id="th1", kind=NoticeKind.POST, what=what, facts=facts, created_at=0.0)


async def test_who_we_are_is_asked_once_at_start(world: World) -> None:
    client = new_client(world.workspace.bot_token, new := new_session(), base_url=world.workspace.api_url)
    identity = await identify(client)
    assert identity.bot_user_id == world.workspace.app.bot_user_id
    assert identity.bot_id == world.workspace.app.bot_id
    assert identity.team_id == world.workspace.state.team.id
    await new.close()


async def test_a_bad_token_is_told_apart(world: World) -> None:
    client = new_client("xoxb-wrong-secret", new := new_session(), base_url=world.workspace.api_url)
    with pytest.raises(ChatNotAllowed) as caught:
        await identify(client)
    assert caught.value.reason == "invalid_auth"
    assert "secret" not in repr(caught.value)
    await new.close()


async def test_the_card_carries_its_key_and_notifies_nobody_but_the_asker(world: World) -> None:
    thread = await world.posted()
    (message,) = world.workspace.messages("docs")[-1:]
    assert message.ts == thread.ts
    assert message.metadata == {"event_type": "pagehand_notice", "event_payload": {"key": "th1/card"}}
    assert "<!channel>" not in message.text + str(message.blocks)
    assert "|this>" not in message.text + str(message.blocks)
    assert "<https://evil" not in str(message.blocks)


async def test_the_card_is_brought_to_the_newest_state_and_keeps_its_key(world: World) -> None:
    thread = await world.posted()
    known = Known(job=Job("j1", "completed", pr_link=LINK))
    await world.chat.update_card(replace(thread, known=known))
    (message,) = world.workspace.messages("docs")[-1:]
    assert "pull request is ready" in message.text
    assert message.metadata is not None
    await world.chat.update_card(replace(thread, known=known), plain=True)
    (message,) = world.workspace.messages("docs")[-1:]
    assert not message.blocks


async def test_a_notice_is_a_reply_in_the_thread(world: World) -> None:
    thread = await world.posted()
    ts = await world.chat.post(thread, notice(What.FINISHED, "th1/finished", link=LINK))
    card, reply = world.workspace.thread("docs", thread.ts or "")
    assert (card.ts, reply.ts) == (thread.ts, ts)
    assert reply.text.startswith(f"<@{thread.asker_id}>")


async def test_plain_notices_have_no_blocks(world: World) -> None:
    thread = await world.posted()
    await world.chat.post(thread, replace(notice(), plain=True))
    assert not world.workspace.thread("docs", thread.ts or "")[-1].blocks


async def test_a_card_is_found_by_its_key_in_a_busy_channel(world: World) -> None:
    ana = world.workspace.person("ana")
    ts = await world.chat.post_card(world.thread, "th1/card")
    for number in range(230):
        await ana.say("docs", f"message {number}")
    assert await world.chat.find(world.thread, "th1/card") == ts
    assert await world.chat.find(world.thread, "th2/card") is None


async def test_a_notice_is_found_by_its_key_in_a_long_thread(world: World) -> None:
    thread = await world.posted()
    ana = world.workspace.person("ana")
    for number in range(230):
        await ana.say("docs", f"reply {number}", thread_ts=thread.ts)
    ts = await world.chat.post(thread, notice())
    assert await world.chat.find(thread, "th1/started") == ts
    assert await world.chat.find(thread, "th1/finished") is None


async def test_a_message_by_somebody_else_is_not_taken_for_ours(world: World) -> None:
    thread = await world.posted()
    ana = world.workspace.person("ana")
    forged = await ana.say("docs", "mine", thread_ts=thread.ts)
    forged.metadata = {"event_type": "pagehand_notice", "event_payload": {"key": "th1/started"}}
    assert await world.chat.find(thread, "th1/started") is None


async def test_the_newest_mark_is_the_only_one(world: World) -> None:
    thread = await world.posted()
    reply = await world.workspace.person("ana").say("docs", "and this", thread_ts=thread.ts)
    for mark in (Mark.RECORDED, Mark.RECORDED, Mark.TAKEN, Mark.PROBLEM, Mark.RECORDED):
        await world.chat.mark(thread, reply.ts, mark, instead_of=set(Mark) - {mark})
        assert list(reply.reactions) == [mark.value]


async def test_a_mark_costs_no_call_that_is_not_needed(world: World) -> None:
    thread = await world.posted()
    reply = await world.workspace.person("ana").say("docs", "and this", thread_ts=thread.ts)
    await world.chat.mark(thread, reply.ts, Mark.RECORDED, instead_of=[])
    await world.chat.mark(thread, reply.ts, Mark.TAKEN, instead_of=[Mark.RECORDED])
    assert list(reply.reactions) == [Mark.TAKEN.value]
    calls = [call.method for call in world.workspace.calls if call.method.startswith("reactions.")]
    assert calls == ["reactions.add", "reactions.add", "reactions.remove"]


async def test_several_processes_marking_one_reply_leave_one_mark(world: World) -> None:
    thread = await world.posted()
    reply = await world.workspace.person("ana").say("docs", "and this", thread_ts=thread.ts)
    one, two = (
        SlackChat(world.chat._client, world.chat._identity, world.chat._wording, world.chat._whispers) for _ in "12"
    )
    marked = [(one, Mark.RECORDED), (two, Mark.PROBLEM), (one, Mark.RECORDED), (two, Mark.RECORDED), (one, Mark.TAKEN)]
    for chat, mark in marked:
        await chat.mark(thread, reply.ts, mark, instead_of=set(Mark) - {mark})
        assert list(reply.reactions) == [mark.value]


async def test_marks_of_people_are_left_alone(world: World) -> None:
    thread = await world.posted()
    ana = world.workspace.person("ana")
    reply = await ana.say("docs", "and this", thread_ts=thread.ts)
    await ana.react("docs", reply.ts, "eyes")
    await world.chat.mark(thread, reply.ts, Mark.TAKEN, instead_of=[Mark.RECORDED])
    assert set(reply.reactions) == {"eyes", Mark.TAKEN.value}


async def test_a_deleted_reply_needs_no_mark(world: World) -> None:
    thread = await world.posted()
    ana = world.workspace.person("ana")
    reply = await ana.say("docs", "oops", thread_ts=thread.ts)
    await ana.delete("docs", reply.ts)
    await world.chat.mark(thread, reply.ts, Mark.TAKEN, instead_of=[Mark.RECORDED])


# -- words for one person ---------------------------------------------------------------------------------------------


def told(world: World, **facts: str) -> Notice:
    person = world.workspace.person("ana").id
    return notice(What.ANSWER, "th1/told", person=person, answer="sent_again", **facts)


async def test_one_person_is_told_in_the_channel(world: World) -> None:
    await world.chat.tell(world.thread, told(world))
    (message,) = world.workspace.person("ana").ephemerals("docs")
    assert message.text == "It is being sent again."
    assert world.workspace.person("ben").ephemerals("docs") == []


async def test_a_response_url_reaches_people_where_the_bot_is_no_member(world: World) -> None:
    thread, ana = world.elsewhere("leads"), world.workspace.person("ana")
    url = world.workspace._response_urls.issue(world.workspace.origin, "commands", ana.id, thread.channel_id)
    world.response_urls.remember(ana.id, thread.channel_id, url)
    calls = len(world.workspace.calls)
    await world.chat.tell(thread, notice(What.CANNOT_POST, person=ana.id, reason="channel_not_found"))
    (message,) = ana.ephemerals("leads")
    assert "/invite" in message.text
    assert len(world.workspace.calls) == calls


async def test_without_one_it_is_a_direct_message(world: World) -> None:
    ana = world.workspace.person("ana")
    await world.chat.tell(world.elsewhere("leads"), notice(What.CANNOT_POST, person=ana.id, reason="channel_not_found"))
    assert "/invite" in world.workspace.messages("ana")[-1].text
    assert ana.ephemerals("leads") == []


async def test_a_response_url_that_is_used_up_or_gone_is_no_obstacle(world: World) -> None:
    ana = world.workspace.person("ana")
    url = world.workspace._response_urls.issue(world.workspace.origin, "commands", ana.id, world.thread.channel_id)
    world.response_urls.remember(ana.id, world.thread.channel_id, url)
    for _ in range(7):
        await world.chat.tell(world.thread, told(world))
    world.response_urls.remember(ana.id, world.thread.channel_id, f"{world.workspace.origin}/commands/T/unknown")
    await world.chat.tell(world.thread, told(world))
    assert len(ana.ephemerals("docs")) == 8


async def test_a_response_url_is_forgotten_in_time(world: World) -> None:
    time = [0.0]
    urls = ResponseUrls(world.response_urls._session, monotonic=lambda: time[0])
    ana = world.workspace.person("ana")
    url = world.workspace._response_urls.issue(world.workspace.origin, "commands", ana.id, world.thread.channel_id)
    urls.remember(ana.id, world.thread.channel_id, url)
    assert await urls.send(ana.id, world.thread.channel_id, Message("now"))
    time[0] = 30 * 60.0
    assert not await urls.send(ana.id, world.thread.channel_id, Message("later"))


async def test_words_for_nobody_are_refused(world: World) -> None:
    with pytest.raises(ChatRefused):
        await world.chat.tell(world.thread, notice(What.ANSWER, answer="sent_again"))


async def test_a_long_prompt_is_told_in_several_messages(world: World) -> None:
    ana = world.workspace.person("ana")
    text = "\n".join(f"line {number} & <more>" for number in range(2_000))
    await world.chat.tell(world.thread, notice(What.WHOLE_PROMPT, person=ana.id, text=text))
    told_in = ana.ephemerals("docs")
    assert len(told_in) > 1
    assert "line 1999" in str(told_in[-1].blocks)


async def test_joining(world: World) -> None:
    general, leads = world.workspace.channel("general"), world.workspace.channel("leads")
    with pytest.raises(ChatNotInChannel):
        await world.chat.post_card(world.elsewhere("general"), "k")
    await world.chat.join(general.id)
    await world.chat.post_card(world.elsewhere("general"), "k")
    with pytest.raises(ChatNotInChannel):
        await world.chat.join(leads.id)


# -- faults -----------------------------------------------------------------------------------------------------------

Fault = Callable[[WorkspaceServer], object]


async def failing(world: World, fault: Fault) -> ChatError:
    fault(world.workspace)
    with pytest.raises(ChatError) as caught:
        await world.chat.post_card(world.thread, "th1/card")
    assert caught.value.__cause__ is None
    return caught.value


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("not_in_channel", ChatNotInChannel),
        *((code, ChatNotAllowed) for code in ("invalid_auth", "account_inactive", "token_revoked", "token_expired")),
        *((code, ChatNotAllowed) for code in ("not_authed", "missing_scope", "no_permission", "ekm_access_denied")),
        *(
            (code, ChatUncertain)
            for code in ("internal_error", "fatal_error", "service_unavailable", "request_timeout")
        ),
        *((code, ChatRefused) for code in ("channel_not_found", "is_archived", "msg_too_long", "invalid_blocks")),
        *((code, ChatRefused) for code in ("restricted_action", "an_error_of_next_year")),
        ("ratelimited", ChatBusy),
    ],
)
async def test_slacks_error_codes_by_what_is_to_be_done(world: World, code: str, kind: type[ChatError]) -> None:
    error = await failing(world, lambda workspace: workspace.faults.error(code, method="chat.postMessage"))
    assert type(error) is kind
    assert error.reason == code


async def test_busy_says_how_long(world: World) -> None:
    error = await failing(world, lambda workspace: workspace.faults.rate_limit(7, method="chat.postMessage"))
    assert isinstance(error, ChatBusy)
    assert error.retry_after == 7.0


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("fault", ["drop", "server_error"])
async def test_what_may_have_arrived_is_uncertain_and_tried_once(world: World, fault: str, *, applied: bool) -> None:
    before = len(world.workspace.messages("docs"))
    error = await failing(
        world, lambda workspace: getattr(workspace.faults, fault)(applied=applied, method="chat.postMessage")
    )
    assert type(error) is ChatUncertain
    assert len(world.workspace.messages("docs")) == before + applied
    found = await world.chat.find(world.thread, "th1/card")
    assert (found is not None) is applied


async def test_no_answer_in_time_is_uncertain(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.slack.web_api.CALL_SECONDS", -0.9)
    error = await failing(world, lambda workspace: workspace.faults.delay(60, method="chat.postMessage"))
    assert type(error) is ChatUncertain
    assert error.reason == "no_answer_in_time"


async def test_revoked_tokens(world: World) -> None:
    error = await failing(world, lambda workspace: workspace.revoke_tokens("account_inactive"))
    assert type(error) is ChatNotAllowed
    world.workspace.restore_tokens()
    await world.posted()


async def test_an_archived_channel(world: World) -> None:
    error = await failing(world, lambda workspace: workspace.archive("docs"))
    assert (type(error), error.reason) == (ChatRefused, "is_archived")


async def test_a_channel_it_was_removed_from(world: World) -> None:
    error = await failing(world, lambda workspace: workspace.remove_bot("docs"))
    assert isinstance(error, ChatNotInChannel)


async def test_nobody_listening_certainly_did_not_arrive(world: World) -> None:
    session = new_session()
    client = new_client(world.workspace.bot_token, session, base_url=world.workspace.api_url)
    chat = SlackChat(client, world.chat._identity, Wording(), Whispers(client, world.response_urls))
    await world.workspace.begin_outage()
    with pytest.raises(ChatUnreachable):
        await chat.post_card(world.thread, "k")
    await world.workspace.end_outage()
    await chat.post_card(world.thread, "k")
    await session.close()


async def test_a_connection_that_was_cut_while_idle_is_uncertain(world: World) -> None:
    await world.workspace.begin_outage()
    error = await failing(world, lambda _: None)
    assert type(error) is ChatUncertain


HTML = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>"
PLAIN = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nbusy"
CUT = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"ok": tr'
NO_TS = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"ok": true}'
A_LIST = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"
NOT_JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 6\r\n\r\n<html>"


@pytest.mark.parametrize("answer", [HTML, PLAIN, CUT, NO_TS, A_LIST, NOT_JSON, b"", b"nonsense\r\n\r\n"])
async def test_answers_that_are_not_slacks_are_uncertain(world: World, answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    session = new_session()
    client = new_client("xoxb-x", session, base_url=f"http://127.0.0.1:{port}/api/")
    chat = SlackChat(client, world.chat._identity, Wording(), Whispers(client, ResponseUrls(session)))
    with pytest.raises(ChatUncertain):
        await chat.post_card(world.thread, "k")
    server.close()
    await session.close()


async def test_a_proxy_is_not_asked_for_this_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    session = new_session()
    client = new_client(world.workspace.bot_token, session, base_url=world.workspace.api_url)
    await SlackChat(client, world.chat._identity, Wording(), Whispers(client, world.response_urls)).post_card(
        world.thread, "k"
    )
    assert proxy_for("https://slack.com/api/") == "http://127.0.0.1:9"
    monkeypatch.setenv("NO_PROXY", "slack.com")
    assert proxy_for("https://slack.com/api/") is None
    await session.close()


async def test_no_token_and_no_text_is_logged_even_at_debug(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ana = world.workspace.person("ana")
    url = world.workspace._response_urls.issue(world.workspace.origin, "commands", ana.id, world.thread.channel_id)
    world.response_urls.remember(ana.id, world.thread.channel_id, url)
    await world.posted()
    await world.chat.tell(world.thread, told(world))
    await failing(world, lambda workspace: workspace.faults.server_error(method="chat.postMessage"))
    assert world.workspace.bot_token not in caplog.text
    assert "evil.example" not in caplog.text
    assert url.rsplit("/", 1)[1] not in caplog.text
