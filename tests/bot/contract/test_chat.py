"""SlackChat over the workspace's Web API: posts arrive as intended, and each fault becomes the right error."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

import pytest
from slack_sdk.errors import SlackApiError
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.slack_world import SlackWorld, slack_world

from bot.app.edges import wait_for_identity
from bot.domain.delivery import BLOCKS_REFUSED, TOO_LONG, ReactionCall
from bot.domain.jobs.job import Progress, answer_of, digest
from bot.domain.requests.request import Surface
from bot.domain.threads.thread import Planning, ProposalEnd, Thread, ThreadOrigin, ThreadState, Work
from bot.errors import (
    ChatError,
    ChatMissingScope,
    ChatRateLimited,
    ChatRejected,
    ChatTooRich,
    ChatUncertain,
    ChatUnreachable,
    StoreUnavailable,
)
from bot.jobapi.models import (
    Job,
    PlanStep,
    ProposedPage,
)
from bot.notices.answers import ActionAnswer, ActionAnswered, CardNotPosted
from bot.notices.job import JobStarted
from bot.notices.notice import Notice, NoticeContent, Reaction
from bot.notices.pictures import PagePicture, PicturesShown
from bot.notices.proposals import ProposalMade, ProposalPressed
from bot.notices.said import ButtonId
from bot.slack.rendering.blocks import SHOW_ANSWER, ChatMessage
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.chat import SlackChat
from bot.slack.sending.conversations import SlackRequesters
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.web_api import NewestChannelIds, SlackClient, new_session, slack_proxy
from bot.workspace.model.app_config import DEFAULT_SCOPES, AppConfig
from bot.workspace.wire.interaction_payloads import find_action

LINK = "https://git.example/team/guides/pull/7"


@pytest.fixture
async def world() -> AsyncIterator[SlackWorld]:
    async with slack_world() as made:
        yield made


STARTED = JobStarted("j1")


@asynccontextmanager
async def another_chat(world: SlackWorld, base_url: str = "") -> AsyncIterator[SlackChat]:
    """With connections of its own."""
    async with new_session() as session:
        token = world.workspace.credentials.bot_token
        client = SlackClient(token, session, base_url=base_url or world.workspace.api_url)
        private = EphemeralSender(client)
        yield SlackChat(client, world.identity, MessageContext(), private)


def notice(message: NoticeContent = STARTED, key: str = "th1/started") -> Notice:
    return Notice(id=1, key=key, thread_id="th1", message=message, created_at=0.0)


async def test_the_card_carries_its_key_and_notifies_only_the_requester(world: SlackWorld) -> None:
    thread = await world.posted()
    (message,) = world.workspace.channels.messages("docs")[-1:]
    assert message.ts == thread.ts
    assert message.metadata == {"event_type": "pagehand_notice", "event_payload": {"key": "th1/card"}}
    assert "<!channel>" not in message.text + str(message.blocks)
    assert "|this>" not in message.text + str(message.blocks)
    assert "<https://evil" not in str(message.blocks)


async def test_an_updated_card_keeps_its_key(world: SlackWorld) -> None:
    thread = await world.posted()
    state = ThreadState(job=Job("j1", "completed", pr_link=LINK))
    await world.chat.update_card(replace(thread, state=state))
    (message,) = world.workspace.channels.messages("docs")[-1:]
    assert "Finished with a pull request" in message.text
    assert message.metadata is not None
    await world.chat.update_card(replace(thread, state=state), without_blocks=True)
    (message,) = world.workspace.channels.messages("docs")[-1:]
    assert not message.blocks


PLANNING = Planning("plan-1", 1.0)


async def test_a_plans_post_shows_what_became_of_it(world: SlackWorld) -> None:
    """Its words and pages are nobody's commands; without buttons it is the same message, with the same key."""
    pages = (ProposedPage(path="docs/<!here>.md", reason="It names @channel"),)
    words = "I'd rename *it* <!channel>. " * 99
    made = ProposalMade("plan-1", answer_of(words), pages, 3)
    thread = replace(await world.posted(), state=ThreadState(planning=PLANNING))
    plan = notice(made, "th1/plan")
    ts = await world.chat.post(thread, plan)
    (message,) = world.workspace.channels.messages("docs")[-1:]
    shown = str(message.blocks)
    assert [block["type"] for block in message.blocks or ()] == ["section", "markdown", "section", "actions"]
    for action_id in (ButtonId.ACCEPT_PROPOSAL, ButtonId.DROP_PROPOSAL):
        assert find_action(message.blocks, action_id, None, "th1/plan-1")
    assert find_action(message.blocks, SHOW_ANSWER, None, f"th1/{digest(words)}")
    assert all(each not in shown + message.text for each in ("<!channel>", "<!here>"))
    assert "• and 2 more" in shown
    dropped = replace(PLANNING, proposal_end=ProposalEnd.DROPPED, proposal_end_by="UBEN")
    await world.chat.update(replace(thread, state=ThreadState(planning=dropped)), plan, ts)
    (message,) = world.workspace.channels.messages("docs")[-1:]
    assert (message.ts, message.text.split("\n")[0]) == (ts, "Dropped by <@UBEN>. Reply here for another plan.")
    assert message.metadata == {"event_type": "pagehand_notice", "event_payload": {"key": "th1/plan"}}
    assert ButtonId.ACCEPT_PROPOSAL not in str(message.blocks)
    assert "I'd rename" in str(message.blocks)


async def test_a_press_on_an_outdated_plan_is_answered_with_a_link_to_the_newer_one(world: SlackWorld) -> None:
    thread, ana = replace(await world.posted(), has_replies=True), world.workspace.people["ana"]
    pressed = ProposalPressed(ana.id, ProposalEnd.OUTDATED, thread.ts or "")
    await ana.say("docs", "and this", thread_ts=thread.ts)
    await world.chat.tell(thread, notice(pressed, "th1/pressed"))
    link = await world.permalinks.soon(thread.channel_id, thread.ts or "", seconds=5)
    assert ana.ephemerals("docs")[-1].text.endswith(f"<{link}|Go there>")


async def test_a_button_whose_dialog_is_open_outlives_an_update(world: SlackWorld) -> None:
    thread = await world.posted()
    stop = find_action(world.workspace.channels.messages("docs")[-1].blocks, ButtonId.STOP_JOB, None, "th1")
    await world.chat.update_card(replace(thread, state=ThreadState(job=Job("j1", "active"))))
    (message,) = world.workspace.channels.messages("docs")[-1:]
    assert "Active" in message.text
    assert find_action(message.blocks, ButtonId.STOP_JOB, stop["block_id"], "th1")["value"] == "th1"


RICH = ThreadState(
    job=Job("j1", "completed", pr_link=LINK), work=Work(progress=Progress((PlanStep(title="Write it"),)))
)


async def updated(world: SlackWorld, thread: Thread) -> tuple[list[str], int]:
    """Updates the card as often as there is a plainer one. Returns the kinds of its blocks, and the number of calls."""
    tries = 0
    while True:
        tries += 1
        with suppress(ChatTooRich):
            await world.chat.update_card(thread)
            break
    message = world.workspace.channels.messages("docs")[-1]
    return [block["type"] for block in message.blocks or ()], tries


@pytest.mark.parametrize("error", sorted(BLOCKS_REFUSED - TOO_LONG))
async def test_a_kind_of_block_that_slack_refuses_is_left_out_of_every_card(world: SlackWorld, error: str) -> None:
    thread = replace(await world.posted(), state=RICH)
    assert await updated(world, thread) == (["section", "plan", "section", "card", "context", "actions"], 1)
    world.workspace.faults.refuse_blocks("plan", error=error)
    changed = replace(thread, prompt="Another")
    assert await updated(world, changed) == (["section", "section", "card", "context", "actions"], 3)
    assert await updated(world, thread) == (["section", "section", "card", "context", "actions"], 1)
    message = world.workspace.channels.messages("docs")[-1]
    assert message.metadata == {"event_type": "pagehand_notice", "event_payload": {"key": "th1/card"}}
    other = replace(world.thread, id="th2", state=RICH)
    assert await world.chat.post_card(other, "th2/card") == world.workspace.channels.messages("docs")[-1].ts


async def test_what_slack_refuses_for_another_reason_keeps_its_blocks(world: SlackWorld) -> None:
    thread = replace(await world.posted(), state=RICH)
    faults = world.workspace.faults
    kinds: tuple[tuple[Callable[[], object], type[ChatError]], ...] = (
        (partial(faults.rate_limit, method="chat.update"), ChatRateLimited),
        (partial(faults.drop, method="chat.update"), ChatUncertain),
        (partial(faults.refuse_blocks, "card", error="is_archived"), ChatRejected),
    )
    for begin, error in kinds:
        begin()
        with pytest.raises(error) as caught:
            await world.chat.update_card(thread)
        assert not isinstance(caught.value, ChatTooRich)
    world.workspace.faults.clear()
    assert (await updated(world, thread))[1] == 1
    assert world.chat.rich_blocks.left_out("th1", ChatMessage("", ({"type": "plan"}, {"type": "card"}))) == set()


async def test_a_card_is_found_by_its_key_in_a_busy_channel(world: SlackWorld) -> None:
    ana = world.workspace.people["ana"]
    ts = await world.chat.post_card(world.thread, "th1/card")
    for number in range(230):
        await ana.say("docs", f"message {number}")
    assert await world.chat.find(world.thread, "th1/card") == ts
    assert await world.chat.find(world.thread, "th2/card") is None


async def test_a_foreign_message_with_the_key_is_not_taken_for_the_bots(world: SlackWorld) -> None:
    thread = await world.posted()
    ana = world.workspace.people["ana"]
    forged = await ana.say("docs", "mine", thread_ts=thread.ts)
    forged.metadata = {"event_type": "pagehand_notice", "event_payload": {"key": "th1/started"}}
    assert await world.chat.find(thread, "th1/started") is None


async def test_marks_are_added_and_removed_by_one_idempotent_call_each(world: SlackWorld) -> None:
    thread = await world.posted()
    reply = await world.workspace.people["ana"].say("docs", "and this", thread_ts=thread.ts)
    for reaction in Reaction:
        for _ in "12":
            await world.chat.react(thread, reply.ts, ReactionCall(reaction))
    assert list(reply.reactions) == [reaction.value for reaction in Reaction]
    for reaction in Reaction:
        for _ in "12":
            await world.chat.react(thread, reply.ts, ReactionCall(reaction, removes=True))
    assert reply.reactions == {}
    calls = [call.method for call in world.workspace.web_api.calls if call.method.startswith("reactions.")]
    assert calls == [*["reactions.add"] * 2 * len(Reaction), *["reactions.remove"] * 2 * len(Reaction)]


async def test_marking_a_deleted_reply_is_not_an_error(world: SlackWorld) -> None:
    thread = await world.posted()
    ana = world.workspace.people["ana"]
    reply = await ana.say("docs", "oops", thread_ts=thread.ts)
    await ana.delete("docs", reply.ts)
    await world.chat.react(thread, reply.ts, ReactionCall(Reaction.ACCEPTED))
    await world.chat.react(thread, reply.ts, ReactionCall(Reaction.RECORDED, removes=True))


# -- existing threads -------------------------------------------------------------------------------------------------


async def in_conversation(world: SlackWorld) -> tuple[Thread, str]:
    """A job without a card yet, in a thread that people began; and that thread's root message."""
    root = await world.workspace.people["ben"].say("docs", "Who knows about the guides?")
    return replace(world.thread, ts=root.ts, origin=ThreadOrigin.CONVERSATION), root.ts


async def test_in_an_existing_thread_the_card_is_a_reply(world: SlackWorld) -> None:
    """It and its notices are found there by their keys, even if people continue to talk."""
    thread, root = await in_conversation(world)
    ts = await world.chat.post_card(thread, "th1/card")
    for number in range(230):
        await world.workspace.people["ana"].say("docs", f"reply {number}", thread_ts=root)
    thread = replace(thread, card_ts=ts)
    started = await world.chat.post(thread, notice())
    assert [message.ts for message in world.workspace.channels.thread("docs", root)][:2] == [root, ts]
    assert [await world.chat.find(thread, key) for key in ("th1/started", "th1/finished")] == [started, None]
    uncertain = replace(thread, card_ts=None)
    assert [await world.chat.find(uncertain, key) for key in ("th1/card", "th2/card")] == [ts, None]


async def test_nothing_is_posted_for_a_thread_without_a_card(world: SlackWorld) -> None:
    """It would be a separate message in the channel, without explanation."""
    (thread, _), before = await in_conversation(world), world.workspace.web_api.calls.copy()
    for each in (thread, replace(thread, ts=None)):
        with pytest.raises(ChatRejected, match="card_not_posted"):
            await world.chat.post(each, notice())
    assert not [call for call in world.workspace.web_api.calls[len(before) :] if call.method == "chat.postMessage"]


async def test_a_thread_whose_root_was_deleted_takes_no_card(world: SlackWorld) -> None:
    """There is nothing to find in it either, so a doubt about an earlier attempt ends."""
    thread, root = await in_conversation(world)
    await world.workspace.people["ben"].delete("docs", root)
    assert await world.chat.find(thread, "th1/card") is None
    with pytest.raises(ChatRejected, match="thread_not_found"):
        await world.chat.post_card(thread, "th1/card")


# -- private messages -------------------------------------------------------------------------------------------------


def told(world: SlackWorld) -> Notice:
    person = world.workspace.people["ana"].id
    return notice(ActionAnswered(person, ActionAnswer.SENT_AGAIN), "th1/told")


async def test_a_person_is_answered_privately_in_a_thread_that_slack_shows(world: SlackWorld) -> None:
    """Slack shows it if the thread has a reply; otherwise it goes to the channel, with the card's permalink."""
    thread, ana = await world.posted(), world.workspace.people["ana"]
    await world.chat.tell(thread, told(world))
    await ana.say("docs", "and this", thread_ts=thread.ts)
    await world.chat.tell(replace(thread, has_replies=True), told(world))
    before, within = ana.ephemerals("docs")
    assert (before.thread_ts, within.thread_ts) == (None, thread.ts)
    link = await world.permalinks.soon(thread.channel_id, thread.ts or "", seconds=5)
    assert before.text == f"Sending it again.\n<{link}|Go to the job>"
    assert within.text == "Sending it again."


async def test_answers_to_home_go_to_the_direct_message(world: SlackWorld) -> None:
    """It has the card's permalink."""
    thread, ana = replace(await world.posted(), has_replies=True), world.workspace.people["ana"]
    answer = ActionAnswered(ana.id, ActionAnswer.STARTED_AGAIN, asked_on=Surface.HOME)
    await world.chat.tell(thread, notice(answer, "th1/told"))
    message = world.workspace.channels.messages("ana")[-1]
    assert message.text.endswith("|Go to the job>")
    assert ana.ephemerals("docs") == []


async def test_people_are_told_directly_where_the_bot_is_not_a_member(world: SlackWorld) -> None:
    thread, ana = world.elsewhere("leads"), world.workspace.people["ana"]
    await world.chat.tell(thread, notice(CardNotPosted(ana.id, "channel_not_found")))
    assert "/invite" in world.workspace.channels.messages("ana")[-1].text
    assert ana.ephemerals("leads") == []


# -- an app that was installed with fewer scopes --------------------------------------------------------------------


def without(*scopes: str) -> AppConfig:
    return AppConfig(scopes=DEFAULT_SCOPES - set(scopes))


@pytest.mark.parametrize("posted", [True, False])
async def test_without_the_history_scope_nothing_is_looked_for(*, posted: bool) -> None:
    async with slack_world(without("channels:history")) as world:
        thread = await world.posted() if posted else world.thread
        with pytest.raises(ChatMissingScope) as caught:
            await world.chat.find(thread, "th1/card")
        assert caught.value.scopes == ("channels:history",)


# -- faults -----------------------------------------------------------------------------------------------------------

Fault = Callable[[FaultyWorkspace], object]


async def failing(world: SlackWorld, fault: Fault) -> ChatError:
    fault(world.workspace)
    with pytest.raises(ChatError) as caught:
        await world.chat.post_card(world.thread, "th1/card")
    assert caught.value.__cause__ is None
    return caught.value


async def test_a_429_carries_its_delay(world: SlackWorld) -> None:
    error = await failing(world, lambda workspace: workspace.faults.rate_limit(7, method="chat.postMessage"))
    assert isinstance(error, ChatRateLimited)
    assert error.retry_after == 7.0


async def test_the_start_waits_as_long_as_slack_asks(world: SlackWorld, caplog: pytest.LogCaptureFixture) -> None:
    world.workspace.faults.rate_limit(1, method="auth.test")
    began = asyncio.get_running_loop().time()
    await wait_for_identity(world.client)
    assert asyncio.get_running_loop().time() - began >= 1.0
    assert "cannot be reached" not in caplog.text


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("fault", ["drop", "server_error"])
async def test_a_post_that_may_have_arrived_is_not_retried(world: SlackWorld, fault: str, *, applied: bool) -> None:
    before = len(world.workspace.channels.messages("docs"))
    error = await failing(
        world, lambda workspace: getattr(workspace.faults, fault)(applied=applied, method="chat.postMessage")
    )
    assert type(error) is ChatUncertain
    assert len(world.workspace.channels.messages("docs")) == before + applied
    found = await world.chat.find(world.thread, "th1/card")
    assert (found is not None) is applied


async def test_a_timeout_is_uncertain() -> None:
    async with slack_world(call_seconds=0.5) as world:
        error = await failing(world, lambda workspace: workspace.faults.delay(60, method="chat.postMessage"))
    assert type(error) is ChatUncertain
    assert error.reason == "no_answer_in_time"


async def test_a_refused_connection_certainly_did_not_arrive(world: SlackWorld) -> None:
    async with another_chat(world) as chat:
        await world.workspace.begin_outage()
        with pytest.raises(ChatUnreachable):
            await chat.post_card(world.thread, "k")
        await world.workspace.end_outage()
        await chat.post_card(world.thread, "k")


async def test_a_connection_cut_while_idle_is_uncertain(world: SlackWorld) -> None:
    await world.workspace.begin_outage()
    error = await failing(world, lambda _: None)
    assert type(error) is ChatUncertain


OK_JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
HTML = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>"
PLAIN = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nbusy"
CUT = OK_JSON + b'Content-Length: 100\r\n\r\n{"ok": tr'
NO_TS = OK_JSON + b'Content-Length: 12\r\n\r\n{"ok": true}'
A_LIST = OK_JSON + b"Content-Length: 2\r\n\r\n[]"
NOT_JSON = OK_JSON + b"Content-Length: 6\r\n\r\n<html>"


@pytest.mark.parametrize("answer", [HTML, PLAIN, CUT, NO_TS, A_LIST, NOT_JSON, b"", b"nonsense\r\n\r\n"])
async def test_answers_not_from_slack_are_uncertain(world: SlackWorld, answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with another_chat(world, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/") as chat:
        with pytest.raises(ChatUncertain):
            await chat.post_card(world.thread, "k")
    server.close()


async def test_the_proxy_is_not_used_for_loopback(world: SlackWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    async with another_chat(world) as chat:
        await chat.post_card(world.thread, "k")
    assert slack_proxy("https://slack.com/api/") == "http://127.0.0.1:9"
    monkeypatch.setenv("NO_PROXY", "slack.com")
    assert slack_proxy("https://slack.com/api/") is None


async def test_no_token_or_text_is_logged_even_at_debug(world: SlackWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await world.posted()
    await world.chat.tell(world.thread, told(world))
    await failing(world, lambda workspace: workspace.faults.server_error(method="chat.postMessage"))
    assert world.workspace.credentials.bot_token not in caplog.text
    assert "evil.example" not in caplog.text


async def test_a_channel_with_a_changed_id_is_found_by_its_newest(world: SlackWorld) -> None:
    """This works in any process; unknown ids are refused as before."""
    asked = []

    async def find(channel_id: str) -> str:
        asked.append(channel_id)
        if channel_id == "C0AWAY":
            raise StoreUnavailable("the database is away")
        return {"G0BEFORE": "C0DOCS001"}.get(channel_id, channel_id)

    async with new_session() as session:
        token, address = world.workspace.credentials.bot_token, world.workspace.api_url
        client = SlackClient(token, session, base_url=address, channel_ids=NewestChannelIds(find))
        posted = await client.chat_postMessage(channel="G0BEFORE", text="here")
        await client.conversations_info(channel="G0BEFORE")
        await client.conversations_replies(channel="G0BEFORE", ts=posted["ts"])
        for unknown in ("C0NOWHERE", "C0AWAY"):
            with pytest.raises(SlackApiError, match="channel_not_found"):
                await client.chat_postMessage(channel=unknown, text="nowhere")
    assert asked == ["G0BEFORE", "C0NOWHERE", "C0AWAY"]
    assert posted["channel"] == "C0DOCS001"


# -- details of a job beyond the specification -------------------------------------------------------------------------


async def test_the_requester_has_a_name_an_id_and_the_threads_permalink() -> None:
    async with slack_world(names_within=2.0) as world:
        thread, ana = await world.posted(), world.id("ana")
        found = await SlackRequesters(world.permalinks, world.people).requester(ana, thread.channel_id, thread.ts or "")
    assert (found.name, found.id) == ("ana", ana)
    assert found.url is not None
    assert found.url.endswith(f"/archives/{thread.channel_id}/p{(thread.ts or '').replace('.', '')}")


PNG = b"\x89PNG\r\n\x1a\n"
METHODS = ("files.getUploadURLExternal", "files.completeUploadExternal", "files.info")


def pictures(file: str, alt: str = "The form", *others: PagePicture) -> Notice:
    shown = PagePicture("p1", "docs/form.png", alt, shown=True, file=file)
    return notice(PicturesShown(LINK, (shown, *others), 1 + len(others)), "th1/pictures/1")


async def test_an_uploaded_picture_is_shown_in_a_post_with_its_key(world: SlackWorld) -> None:
    thread = await world.posted()
    file = await world.chat.upload("form.png", PNG, words="The form")
    hostile = "<!channel> <@U0ANA> <https://evil.example|x>"
    other = PagePicture("p2", f"{hostile}.svg", hostile, link="https://git.example/x.svg")
    await world.chat.post(thread, pictures(file, hostile, other))
    said = world.workspace.channels.messages("docs")[-1]
    assert said.blocks
    words, image = said.blocks
    assert image["slack_file"] == {"id": file}
    assert "<" not in (image["alt_text"] + image["title"]["text"]).replace("<\u2060", "")
    assert said.metadata == {"event_type": "pagehand_notice", "event_payload": {"key": "th1/pictures/1"}}
    assert "docs/form.png" not in words["text"]["text"]
    shown = words["text"]["text"]
    assert [shown.count(f"<{LINK}>"), shown.count(f"<{other.link}>"), shown.count("<")] == [1, 1, 2]
    assert "<!" not in said.text
    assert "<@" not in said.text
    assert world.workspace.state.files.content(file) == PNG
    assert [call.method for call in world.workspace.web_api.calls if "files" in call.method][:2] == [*METHODS[:2]]


async def test_without_blocks_all_pictures_are_named(world: SlackWorld) -> None:
    thread = await world.posted()
    await world.chat.post(thread, replace(pictures("F404"), without_blocks=True))
    said = world.workspace.channels.messages("docs")[-1]
    assert (said.blocks, "• The form (docs/form.png)" in said.text) == (None, True)


@pytest.mark.parametrize("method", METHODS)
async def test_each_step_of_an_upload_can_fail(world: SlackWorld, method: str) -> None:
    faults = world.workspace.faults
    for fault, kind in (
        (partial(faults.rate_limit, method=method), ChatRateLimited),
        (partial(faults.server_error, method=method), ChatUncertain),
    ):
        fault()
        with pytest.raises(kind):
            await world.chat.upload("form.png", PNG, words="x")
        faults.clear()


async def test_what_slack_takes_for_no_picture_is_refused(world: SlackWorld) -> None:
    with pytest.raises(ChatRejected, match="not_a_picture"):
        await world.chat.upload("form.png", b"<html>", words="x")
    world.workspace.credentials.remove_scopes("files:write")
    with pytest.raises(ChatMissingScope, match="missing_scope"):
        await world.chat.upload("form.png", PNG, words="x")
