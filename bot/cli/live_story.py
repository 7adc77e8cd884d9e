"""The story that `pagehand doctor --live` plays in a workspace: what the bot does for a job, by the bot's own code, and
what only a person can do. Each step notes the shapes of all that Slack says.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.app.edges import Edges
from bot.cli.live_shapes import Shape, add_fact, add_shape, code, keeps
from bot.codehosts.pull_request import Check, CheckOutcome, Found, NotModified, PullRequest, Unreadable
from bot.domain.delivery import BLOCKS_REFUSED, ReactionCall
from bot.domain.jobs.job import ACTIVE, Progress
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.threads.thread import Thread, ThreadState, Work
from bot.errors import ChatError, ChatMissingScope, ChatRateLimited, ChatRejected, ChatUncertain, ChatUnreachable
from bot.jobapi.models import Job, PlanStep, PullRequestState, StepStatus
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import AnyNotice, Notice, Reaction
from bot.notices.pull_requests import PullRequestMerged
from bot.notices.said import Markup
from bot.runtime.tasks import BackgroundTasks
from bot.runtime.untrusted_json import object_at, text_at
from bot.slack.receiving.connection_keeper import Envelope, SocketModeConnection
from bot.slack.rendering.modals import Drafted, ModalPlace, follow_up_modal, message_modal
from bot.slack.sending.conversations import raw_messages
from bot.slack.sending.web_api import SlackClient, call

_LONGEST_PAUSE = 60.0
_LINK = "https://git.example.org/docs/pull/7"
_PROMPT = "A try-out of Pagehand (nobody has to do anything): 1 < 2 & 3 > 2, *no bold*, `code`"


class Act(StrEnum):
    """What only a person can do, in words for them."""

    PRESS = "Press “Follow up…” below the new message in the channel."
    SUBMIT = "Write a word into the form that opened, and press “Send”."
    WRITE = "Write a reply in the thread of the new message."
    EDIT = "Edit that reply: change a word."
    MARK = "Add the reaction :x: to that reply."
    DELETE = "Delete that reply."
    MERGE = "Merge the pull request on its page."


class SkippedStep(Exception):
    """A step cannot be tried; says why, without names and ids."""


class Operator(Protocol):
    """A person at the workspace."""

    async def does(self, act: Act, story: "Story", seen: Awaitable[Any], /) -> Any:
        """Has the person act, and returns what was `seen` of it. Raises SkippedStep if there is nothing to see in time,
        or if they want to go on.
        """


class Watch:
    """Notes the shapes of Slack's answers, what was posted, and what is left of the limits of code hosts."""

    def __init__(self) -> None:
        self.seen: Shape = {}
        self.posted: list[tuple[str, str]] = []
        self.limited: list[str] = []
        self.remaining: list[str] = []
        self.clients: list[SlackClient] = []

    def client(self, *arguments: Any, **options: Any) -> SlackClient:
        """Makes a client that is watched."""
        self.clients.append(WatchedClient(self, *arguments, **options))
        return self.clients[-1]

    def of_requests(self) -> aiohttp.TraceConfig:
        """Returns what notes what a session's answers leave of the limits."""
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._on_request_end)
        trace.freeze()
        return trace

    async def _on_request_end(self, _session: object, _context: object, ended: aiohttp.TraceRequestEndParams) -> None:
        self.remaining.append(ended.response.headers.get("X-RateLimit-Remaining", ""))

    def answered(self, method: str, sent: dict[str, Any], answer: object) -> None:
        """Notes an answer, and whether what was sent came back in it."""
        add_shape(self.seen, method, answer)
        if method == "chat.postMessage" and (ts := text_at(answer, "ts")):
            self.posted.append((text_at(answer, "channel"), ts))
        back, given = object_at(answer, "view") or object_at(answer, "message"), sent.get("view", sent)
        for name in {"blocks", "text"} & back.keys() & given.keys():
            add_fact(self.seen, f"{method}: {name} as sent", holds=keeps(back[name], given[name]))


class WatchedClient(SlackClient):
    """Is watched, and waits when Slack first limits a method."""

    def __init__(self, watch: Watch, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watch = watch

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        """See AsyncWebClient."""
        try:
            response = await super().api_call(api_method, **options)
        except ChatRateLimited as limit:
            if limit.retry_after > _LONGEST_PAUSE or api_method in self._watch.limited:
                raise
            self._watch.limited.append(api_method)
            await asyncio.sleep(limit.retry_after)
            return await self.api_call(api_method, **options)
        except SlackApiError as error:
            self._watch.answered(api_method, {}, error.response.data)
            raise
        self._watch.answered(api_method, options.get("json") or {}, response.data)
        return response


class Ear(SocketModeConnection):
    """The app's connection. Only what contains one of `ours` is kept and acknowledged: Slack brings the rest again, to
    the bot.
    """

    def __init__(self, client: SlackClient, app_token: str) -> None:
        super().__init__(client, app_token, self._keep)
        self.ours: set[str] = set()
        self._heard: list[Envelope] = []
        self._news = asyncio.Event()
        self._acknowledging = BackgroundTasks()

    async def close(self) -> None:
        """See SocketModeConnection."""
        await self._acknowledging.cancel()
        await super().close()

    async def hears(self, is_it: Callable[[Envelope], bool]) -> Envelope:
        """Waits for a payload."""
        while (found := next(filter(is_it, self._heard), None)) is None:
            self._news.clear()
            await self._news.wait()
        return found

    def _keep(self, _connection: SocketModeConnection, envelope: Envelope) -> None:
        text = json.dumps(envelope)
        if any(mark in text for mark in self.ours):
            self._heard.append(object_at(envelope, "payload"))
            self._news.set()
            answer = self.send_socket_mode_response(SocketModeResponse(envelope["envelope_id"]))
            self._acknowledging.spawn(answer, name="acknowledging")


@dataclass(frozen=True)
class Outcome:
    """What a step showed; of one that was `skipped` or `refused`, why."""

    step: str
    seen: Shape
    seconds: float
    skipped: str = ""
    refused: str = ""


class Story:
    """One run in one channel, about a job that does not exist. `heard`: the payloads that told of acts."""

    def __init__(self, edges: Edges, watch: Watch, operator: Operator) -> None:
        self.edges = edges
        self.watch = watch
        self.client = watch.clients[0]
        self.operator = operator
        self.ear: Ear | None = None
        self.keys: list[str] = []
        self.heard: dict[Act, Envelope] = {}

    def begin(self, channel_id: str) -> None:
        """Sets the channel."""
        identity, thread_id, now = self.edges.identity, f"live-{secrets.token_hex(8)}", time.time()
        self.channel_id = channel_id
        self.thread = Thread(thread_id, identity.team_id, channel_id, identity.bot_user_id, _PROMPT, "docs", now)
        self.is_ours(thread_id)

    def is_ours(self, mark: str) -> None:
        """Notes what tells the story's payloads from others'."""
        if self.ear is not None:
            self.ear.ours.add(mark)

    async def play(self, steps: Sequence["Step"]) -> AsyncIterator[Outcome]:
        """Takes the steps, one after the other."""
        for name, step in steps:
            self.watch.seen, skipped, refused = {}, "", ""
            began = time.monotonic()
            try:
                await step(self)
            except SkippedStep as error:
                skipped = str(error)
            except ChatMissingScope as error:
                skipped = f"the app lacks the scope {', '.join(error.scopes)}"
            except (ChatRateLimited, ChatUncertain, ChatUnreachable) as error:
                skipped = f"Slack gave no usable answer ({code(error.reason.lower())})"
            except ChatError as error:
                refused = code(error.reason)
            yield Outcome(name, self.watch.seen, round(time.monotonic() - began, 1), skipped, refused)

    async def clean_up(self) -> list[str]:
        """Deletes what was posted, at whatever point of the story; returns what is left."""
        self.watch.seen = {}  # of no step
        left = ["your reply in the thread"] if Act.WRITE in self.heard and Act.DELETE not in self.heard else []
        posted = dict.fromkeys(self.watch.posted)
        try:
            lost = self.keys if len(posted) < len(self.keys) else ()
            found = [await self.edges.chat.find(self.thread, key) for key in lost]
            posted |= dict.fromkeys((self.channel_id, ts) for ts in found if ts)
        except ChatError as error:
            left.append(f"perhaps a message of mine ({code(error.reason)})")
        for channel_id, ts in reversed(posted):
            try:
                await call(self.client.chat_delete(channel=channel_id, ts=ts))
            except ChatError as error:
                if error.reason != "message_not_found":
                    left.append(f"a message of mine ({code(error.reason)})")
        return left

    def fact(self, sentence: str, *, holds: bool) -> None:
        """Notes a fact."""
        add_fact(self.watch.seen, sentence, holds=holds)

    def needs(self, *acts: Act) -> str:
        """Returns the `ts` of the card. Raises SkippedStep if that or one of these acts is missing."""
        if self.thread.card_ts is None or set(acts) - self.heard.keys():
            raise SkippedStep("a step before it is missing")
        return self.thread.card_ts

    def notice(self, message: AnyNotice) -> Notice:
        """Returns a notice of the job."""
        return Notice(0, f"{self.thread.id}/{message.kind}", self.thread.id, message, time.time())

    async def card_as_read(self) -> Envelope:
        """Returns the card as Slack's history has it."""
        return await anext(raw_messages(self.client, self.channel_id, self.needs()), {})


def _job(thread: Thread, step: StepStatus, check: CheckOutcome) -> Thread:
    plan = (PlanStep(title="Read the guide", status=StepStatus.COMPLETED), PlanStep(title="Correct it", status=step))
    work = Work(Progress(plan, "Reading", PullRequestState.OPEN))
    checks = (Check(name="links", outcome=check),)
    pull = PullRequest(number=7, link=_LINK, state=PullRequestState.OPEN, title="Correct it", head="a1", checks=checks)
    followed = FollowedPullRequest(Found(pull), read_at=thread.created_at)
    return replace(thread, state=ThreadState(Job("live", ACTIVE, _LINK), work=work), pull_request=followed)


async def _read(story: Story) -> None:
    await call(story.client.conversations_info(channel=story.channel_id))


async def _scopes(story: Story) -> None:
    if story.edges.identity.granted_scopes is None:
        raise SkippedStep("Slack's answers, or those of a proxy, do not tell them")
    for name in story.edges.identity.granted_scopes:
        story.fact(f"scope {name}", holds=True)


async def _post(story: Story) -> None:
    thread = _job(story.thread, StepStatus.IN_PROGRESS, CheckOutcome.RUNNING)
    story.keys.append(key := f"{thread.id}/card")
    story.fact("the card is taken with its blocks", holds=True)
    story.thread = replace(thread, card_ts=await _post_card(story, thread, key))
    story.is_ours(story.needs())


async def _post_card(story: Story, thread: Thread, key: str) -> str:
    """Posts it as the outbox does: each attempt may have plainer blocks, the last one has none."""
    for plain in (False, False, False, False, True):
        try:
            return await story.edges.chat.post_card(thread, key, without_blocks=plain)
        except ChatRejected as error:
            if error.reason not in BLOCKS_REFUSED:
                raise
            story.fact("the card is taken with its blocks", holds=False)
    raise SkippedStep("Slack takes the card in no form")


async def _find(story: Story) -> None:
    ts, chat, (key,) = story.needs(), story.edges.chat, story.keys
    story.fact("a post is found by its key in the channel", holds=await chat.find(story.thread, key) == ts)
    story.thread = replace(story.thread, ts=ts)
    story.fact("a post is found by its key in the thread", holds=await chat.find(story.thread, key) == ts)


async def _edit(story: Story) -> None:
    ts, chat = story.needs(), story.edges.chat
    story.thread = _job(story.thread, StepStatus.COMPLETED, CheckOutcome.PASSED)
    await chat.update_card(story.thread)
    story.fact("an edited card is not marked as edited", holds="edited" not in await story.card_as_read())
    story.fact("an edited card keeps its key", holds=await chat.find(story.thread, story.keys[0]) == ts)


async def _react(story: Story) -> None:
    ts, chat = story.needs(), story.edges.chat
    added, removed = ReactionCall(Reaction.RECORDED), ReactionCall(Reaction.RECORDED, removes=True)
    for each in (added, added, removed, removed):
        await chat.react(story.thread, ts, each)
        story.fact("a reaction is with its message", holds=("reactions" in await story.card_as_read()) != each.removes)


async def _reply(story: Story) -> None:
    card_ts, notice = story.needs(), story.notice(PullRequestMerged(_LINK, "somebody"))
    story.keys.append(notice.key)
    ts = await story.edges.chat.post(replace(story.thread, ts=card_ts), notice)
    page = await story.edges.history.messages(story.channel_id, card_ts, oldest="")
    story.fact("a thread is read oldest first", holds=[each.ts for each in page.items] == [card_ts, ts])


async def _act(act: Act, *needed: Act, story: Story) -> Envelope:
    """Has a person act, and notes the payload that tells of it."""
    story.needs(*needed)
    if story.ear is None:
        raise SkippedStep("without SLACK_APP_TOKEN nothing arrives here")
    heard: Envelope = await story.operator.does(act, story, story.ear.hears(partial(_tells, story, act)))
    add_shape(story.watch.seen, "payload", heard)
    story.heard[act] = heard
    if act is Act.WRITE:
        story.is_ours(text_at(heard, "event", "ts"))
    return heard


def _tells(story: Story, act: Act, payload: Envelope) -> bool:
    """Returns whether a payload tells of an act."""
    event, kind = object_at(payload, "event"), payload.get("type")
    reply_ts = text_at(story.heard.get(Act.WRITE), "event", "ts")
    match act:
        case Act.PRESS:
            return kind == "block_actions"
        case Act.SUBMIT:
            return kind == "view_submission"
        case Act.WRITE:
            by_person = event.get("user") != story.edges.identity.bot_user_id
            return event.get("type") == "message" and not event.get("subtype") and by_person
        case _:
            places = (("message", "ts"), ("item", "ts"), ("deleted_ts",))
            return reply_ts == text_at(event, *places[(Act.EDIT, Act.MARK, Act.DELETE).index(act)])


async def _press(story: Story) -> None:
    pressed = await _act(Act.PRESS, story=story)
    views, place = story.edges.modals.views, ModalPlace(story.channel_id, thread_id=story.thread.id)
    shown = await views.open(text_at(pressed, "trigger_id"), message_modal(Markup("Loading…")))
    await views.update(shown, follow_up_modal(place, Drafted()))


async def _tell(story: Story) -> None:
    story.needs(Act.PRESS)
    person_id = text_at(story.heard[Act.PRESS], "user", "id")
    await story.edges.reading.members.member(person_id)
    await story.edges.chat.tell(story.thread, story.notice(ActionAnswered(person_id, ActionAnswer.NOTHING_TO_STOP)))


async def follow(link: str, story: Story) -> None:
    """Reads a pull request, and has a person merge it."""
    if not link:
        raise SkippedStep("--pull-request names none")
    without_job = replace(story.thread, state=ThreadState())  # so that no job API is asked
    read = partial(story.edges.code_hosts.read, without_job, link)

    async def merged(known: Found) -> PullRequest:
        while known.pull_request.state is not PullRequestState.MERGED:
            await asyncio.sleep(_LOOK_EVERY)
            seen = await read(known)
            known = seen if isinstance(seen, Found) else known
        return known.pull_request

    first = await read(None)
    if not isinstance(first, Found):
        raise SkippedStep(f"it cannot be read ({first.reason if isinstance(first, Unreadable) else ''})")
    before = story.watch.remaining[-1]
    story.fact("an unchanged pull request is answered with 304", holds=isinstance(await read(first), NotModified))
    story.fact("that costs nothing", holds=story.watch.remaining[-1] == before != "")
    for each in first.pull_request.unread:
        story.fact(f"the token may read {code(each)}", holds=False)
    pull = await story.operator.does(Act.MERGE, story, merged(first))
    story.fact("who merged it is told", holds=bool(pull.ended_by))


_LOOK_EVERY = 5.0
Step = tuple[str, Callable[[Story], Awaitable[Any]]]
STEPS: tuple[Step, ...] = (
    ("channel", _read),
    ("scopes", _scopes),
    ("post", _post),
    ("look-up", _find),
    ("edit", _edit),
    ("reaction", _react),
    ("reply", _reply),
    ("button and form", _press),
    ("submitted form", lambda story: _act(Act.SUBMIT, Act.PRESS, story=story)),
    ("private answer", _tell),
    ("person's reply", lambda story: _act(Act.WRITE, story=story)),
    ("person's edit", lambda story: _act(Act.EDIT, Act.WRITE, story=story)),
    ("person's reaction", lambda story: _act(Act.MARK, Act.WRITE, story=story)),
    ("person's deletion", lambda story: _act(Act.DELETE, Act.WRITE, story=story)),
)
