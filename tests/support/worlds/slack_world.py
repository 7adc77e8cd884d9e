"""A workspace in Slack's place, and the bot's connections to it: what it receives, sends, and looks up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient
from support.fakes.recording_service import RecordingService
from support.oracles.slack_samples import invented
from support.servers.slack_faults import FaultyWorkspace

from bot.domain.projects import Project, Projects
from bot.domain.threads.thread import Thread
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.receiving.modal_opener import ModalEdges
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.receiving.socket_mode_receiver import SocketReceiver
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.chat import SlackChat
from bot.slack.sending.conversations import Permalinks, SlackConversations
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity, identify
from bot.slack.sending.people import SlackPeople
from bot.slack.sending.views import SlackViews
from bot.slack.sending.web_api import CALL_SECONDS, SlackClient, new_session
from bot.workspace.model.app_config import AppConfig


@dataclass
class SlackWorld:
    """The parts are created on first use. `names_within`: seconds that looking up names may take; None: texts show no
    names. `now` is the time of `people`. `projects` are all, by name or whole.
    """

    workspace: FaultyWorkspace
    client: AsyncWebClient
    identity: Identity
    session: aiohttp.ClientSession
    names_within: float | None
    service: RecordingService = field(default_factory=RecordingService)
    now: list[float] = field(default_factory=lambda: [0.0])
    projects: tuple[str | Project, ...] = ()

    # -- receiving ------------------------------------------------------------------------------------------------

    @cached_property
    def app(self) -> SlackApp:
        return SlackApp(
            self.service,
            identity=self.identity,
            message_context=MessageContext(),
            ephemeral_sender=self.ephemeral,
            recording_timeout=0.3,
            modal_edges=ModalEdges(self.views, self.conversations, self.people, self._all_projects),
        )

    @property
    def _all_projects(self) -> Projects:
        return Projects(tuple(Project(each) if isinstance(each, str) else each for each in self.projects))

    def receiver(self, **options: Any) -> SocketReceiver:
        return SocketReceiver(self.app, self.client, RotatingSecret(self.workspace.credentials.app_token), **options)

    async def post(self) -> str:
        """Posts a message of the bot with buttons, to reply to."""
        button = {"type": "button", "text": {"type": "plain_text", "text": "Again"}, "value": "r1"}
        elements = [{**button, "action_id": "send_again"}, {**button, "action_id": "unknown"}]
        answer = await self.client.chat_postMessage(
            channel=self.workspace.channels["docs"].id, text="card", blocks=[{"type": "actions", "elements": elements}]
        )
        return str(answer["ts"])

    # -- sending --------------------------------------------------------------------------------------------------

    @cached_property
    def ephemeral(self) -> EphemeralSender:
        return EphemeralSender(self.client)

    @cached_property
    def people(self) -> SlackPeople:
        return SlackPeople(self.client, patience=self.names_within or 0.0, monotonic=lambda: self.now[0])

    @cached_property
    def permalinks(self) -> Permalinks:
        return Permalinks(self.client)

    @cached_property
    def views(self) -> SlackViews:
        return SlackViews(
            self.client, self.people, MessageContext(), self.permalinks, projects=self._all_projects.names
        )

    @cached_property
    def conversations(self) -> SlackConversations:
        return SlackConversations(self.client, self.identity, self.people)

    @cached_property
    def chat(self) -> SlackChat:
        people = self.people if self.names_within is not None else None
        context = MessageContext(bot_user_id=self.identity.bot_user_id)
        return SlackChat(self.client, self.identity, context, self.ephemeral, people=people, permalinks=self.permalinks)

    @cached_property
    def thread(self) -> Thread:
        """Returns a thread whose card is not posted yet, in #docs."""
        return Thread(
            id="th1",
            team_id=self.identity.team_id,
            channel_id=self.workspace.channels["docs"].id,
            requester_id=self.id("ana"),
            prompt="Tell <!channel> about <https://evil.example|this>",
            project="p",
            created_at=asyncio.get_running_loop().time(),
        )

    async def posted(self) -> Thread:
        """Returns the thread once its card is posted."""
        ts = await self.chat.post_card(self.thread, "th1/card")
        return replace(self.thread, ts=ts, card_ts=ts)

    def elsewhere(self, channel: str) -> Thread:
        return replace(self.thread, channel_id=self.workspace.channels[channel].id)

    def id(self, person: str) -> str:
        return self.workspace.people[person].id

    @property
    def lookups(self) -> int:
        """Returns how often a name was looked up."""
        return len([call for call in self.workspace.web_api.calls if call.method == "users.info"])


@asynccontextmanager
async def slack_world(
    config: AppConfig | None = None,
    *,
    names_within: float | None = None,
    call_seconds: float = CALL_SECONDS,
    **options: Any,
) -> AsyncIterator[SlackWorld]:
    """Opens it; `call_seconds` is how long a call to Slack may take; `options` are those of the workspace."""
    workspace = FaultyWorkspace(config, **options)
    await workspace.start()
    try:
        async with new_session() as session:
            client = SlackClient(
                workspace.credentials.bot_token,
                session,
                base_url=workspace.api_url,
                call_seconds=call_seconds,
            )
            yield SlackWorld(workspace, client, await identify(client), session, names_within)
            assert not (made_up := invented(workspace)), made_up
    finally:
        await workspace.stop()
