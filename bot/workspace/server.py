"""The workspace as a server: one address for the Web API, Socket Mode, response URLs and the page."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from bot.workspace.delivery.deliveries import RETRY_DELAYS, Deliveries
from bot.workspace.delivery.interactions import Interactions
from bot.workspace.delivery.response_urls import IssuedResponseUrls
from bot.workspace.delivery.signed_http import SignedHttp
from bot.workspace.delivery.socket_mode import SocketMode
from bot.workspace.delivery.transport import Transport
from bot.workspace.delivery.view_interactions import ViewInteractions
from bot.workspace.listener import Listener
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.changes import ChangeSignal
from bot.workspace.model.entities import Change, Channel, Message
from bot.workspace.model.errors import SlackError
from bot.workspace.model.manifests import AppManifests
from bot.workspace.model.sample_data import HOME, install_bot_user, populate
from bot.workspace.model.state import State
from bot.workspace.model.triggers import LIFETIME_SECONDS, Triggers
from bot.workspace.model.views import OpenViews, ViewChange
from bot.workspace.page.endpoints import Page
from bot.workspace.people import WorkspacePeople
from bot.workspace.persistence import Persistence
from bot.workspace.person_views import ActorContext
from bot.workspace.web_api.credentials import Credentials
from bot.workspace.web_api.endpoint import RateLimits, ReceivedCall, WebApi
from bot.workspace.web_api.file_downloads import FileDownloads
from bot.workspace.web_api.method import MethodCall
from bot.workspace.wire.arguments import Arguments
from bot.workspace.wire.event_payloads import EventPayloads
from bot.workspace.wire.interaction_payloads import InteractionPayloads
from bot.workspace.wire.rendering import Renderer


class WorkspaceChannels:
    """The channels, by name or id: ``channels["docs"]``. A person's name means their conversation with the app.

    Each method raises SlackError ``channel_not_found`` if there is no such channel.

    Args:
        state: The workspace.
        app: The app.
    """

    def __init__(self, state: State, app: AppConfig) -> None:
        self._state = state
        self._app = app

    def __getitem__(self, name: str) -> Channel:
        if found := self._state.find_channel(name):
            return found
        if user := self._state.find_user(name):
            return self._state.direct_channel(self._app.bot_user_id, user.id)
        raise SlackError("channel_not_found")

    def messages(self, name: str) -> list[Message]:
        """Returns all messages of a channel, including replies but not ephemeral messages, oldest first."""
        return list(self._state.conversation(self[name]))

    def thread(self, name: str, ts: str) -> list[Message]:
        """Returns a thread, including its first message, oldest first."""
        return self._state.conversation(self[name]).thread(ts)

    def archive(self, name: str) -> None:
        self._state.set_archived(self[name], self[name].creator, archived=True)

    def unarchive(self, name: str) -> None:
        self._state.set_archived(self[name], self[name].creator, archived=False)

    def add_bot(self, name: str) -> None:
        self._state.join(self[name], self._app.bot_user_id)

    def remove_bot(self, name: str) -> None:
        self._state.leave(self[name], self._app.bot_user_id)


class Interference:
    """Where tests make calls, envelopes and handshakes fail. This one changes nothing."""

    async def answer(self, call: ReceivedCall) -> web.StreamResponse:
        """Carries out a call."""
        return call.carry_out()

    def transport(self, transport: Transport) -> Transport:
        """Returns the transport for envelopes."""
        return transport

    def refuses_handshake(self) -> bool:
        """Returns whether to refuse a WebSocket handshake, as for an expired ticket."""
        return False


MAX_BODY_BYTES = 4 << 20


class WorkspaceServer:
    """A Slack workspace on this machine, with one app installed.

    Its parts: ``people`` and ``channels`` for acting and looking, ``views`` for open modals and Home tabs, ``changes``
    for waiting, ``listener`` for outages, ``credentials`` for revoking tokens, ``manifests`` for changing the
    app, ``web_api`` and ``deliveries`` for records of what the app called and was sent, ``socket_mode`` and
    ``signed_http`` for the transports to the app.

    Args:
        app: The app; by default one like Pagehand.
        is_installed: Whether the app exists. If not, the first app that ``apps.manifest.create`` creates is it, and its
            tokens are good once ``install`` was called.
        directory: Where to store the workspace; None keeps it in memory only.
        credentials: The app's tokens and secrets; random by default.
        ack_timeout: Seconds after which an unacknowledged event is sent again, or a command has failed.
        retry_delays: Seconds before each retry of an event if nothing was listening.
        ticket_lifetime: Seconds until a Socket Mode URL expires.
        trigger_lifetime: Seconds until a trigger id expires.
        rate_limits: Slack's rate limits; None for none.
        now: The clock, in seconds since 1970.
        interference: Where tests make calls and envelopes fail.
    """

    def __init__(
        self,
        app: AppConfig | None = None,
        *,
        is_installed: bool = True,
        directory: Path | None = None,
        credentials: Credentials | None = None,
        ack_timeout: float = 3.0,
        retry_delays: tuple[float, ...] = RETRY_DELAYS,
        ticket_lifetime: float = 30.0,
        trigger_lifetime: float = LIFETIME_SECONDS,
        rate_limits: RateLimits | None = None,
        now: Callable[[], float] = time.time,
        interference: Interference | None = None,
    ) -> None:
        self.app = app or AppConfig()
        self.credentials = credentials or Credentials()
        self.manifests = AppManifests(self.app, self.credentials.signing_secret, exists=is_installed)
        if not is_installed:
            self.credentials.revoke("invalid_auth")
        self.state = State(HOME, now)
        self.channels = WorkspaceChannels(self.state, self.app)
        self.changes = ChangeSignal()
        self._interference = interference or Interference()
        self.listener = Listener()
        self.views = OpenViews()
        self._renderer = Renderer(self.state, self.app, self._origin)
        self.triggers = Triggers(now, trigger_lifetime)
        self._build_delivery(ack_timeout, retry_delays, ticket_lifetime, now)
        self._build_endpoints(rate_limits)
        self._persistence = Persistence(directory, self.state) if directory else None
        self._load_or_populate()
        self.state.observers.append(self._on_change)
        self.views.observers.append(self._on_view_change)

    def _build_delivery(
        self, ack_timeout: float, retry_delays: tuple[float, ...], ticket_lifetime: float, now: Callable[[], float]
    ) -> None:
        """Builds the parts that deliver payloads to the app."""
        state, app, token = self.state, self.app, self.credentials.verification_token
        self.socket_mode = SocketMode(
            app.app_id,
            self._interference.refuses_handshake,
            self._on_connection_change,
            self._origin,
            now,
            ticket_lifetime=ticket_lifetime,
        )
        self.signed_http = SignedHttp(app, lambda: self.credentials.signing_secret, now)
        self._transport = self._interference.transport(self.socket_mode if app.socket_mode else self.signed_http)
        self.deliveries = Deliveries(self._transport, self.changes, ack_timeout=ack_timeout, retry_delays=retry_delays)
        self.response_urls = IssuedResponseUrls(state, app, now, self._origin)
        payloads = InteractionPayloads(state, app, self._renderer, self.triggers, token)
        self.interactions = Interactions(state, app, payloads, self.deliveries, self.response_urls)
        self._view_interactions = ViewInteractions(self.views, payloads, self.deliveries)
        self._events = EventPayloads(state, app, self._renderer, self.views, token)

    def _build_endpoints(self, rate_limits: RateLimits | None) -> None:
        """Builds the parts that the app and the page call."""
        self.web_api = WebApi(
            self.state,
            self.manifests,
            self._new_call,
            self.credentials,
            rate_limits,
            answer=self._interference.answer,
            notify=self.changes.notify,
        )
        self.files = FileDownloads(self.state, self.app, self.credentials)
        self.people = WorkspacePeople(
            ActorContext(self.state, self.app, self._renderer, self.views, self.interactions, self._view_interactions)
        )
        self._page = Page(self.state, self.app, self.people, self._transport)

    def _new_call(self, arguments: Arguments) -> MethodCall:
        granted = replace(self.app, scopes=self.credentials.granted(self.manifests.granted_scopes))
        return MethodCall(
            self.state,
            granted,
            self.manifests,
            self._renderer,
            self.views,
            self.triggers,
            arguments,
            self.origin,
            self.socket_mode.open_url,
        )

    def _load_or_populate(self) -> None:
        if self._persistence is not None and self._persistence.load():
            install_bot_user(self.state, self.app)
        else:
            populate(self.state, self.app)
        if self._persistence is not None:
            self._persistence.save_users_and_channels()

    def _on_change(self, change: Change) -> None:
        if self._persistence is not None:
            self._persistence.record(change)
        if self.origin:
            for payload in self._events.for_change(change):
                self.deliveries.send_event(payload)
            self._page.streams.show_change(change)
        self.changes.notify()

    def _on_view_change(self, change: ViewChange) -> None:
        self._page.streams.show_view_change(change)
        self.changes.notify()

    def _on_connection_change(self) -> None:
        self._page.streams.show_link(connected=self._transport.connected)
        self.changes.notify()

    def install(self) -> None:
        """Installs the app, or reinstalls it: its tokens are good, and all scopes of its manifest are granted."""
        self.manifests.install()
        self.credentials.reinstall()
        self.credentials.restore()

    def _origin(self) -> str:
        return self.origin

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listens, on a free port unless one is given. Returns the origin, such as ``http://127.0.0.1:8123``."""
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.add_routes(
            [
                web.route("*", "/api/{method}", self.web_api.handle),
                web.get("/link/", self.socket_mode.handle),
                web.post(r"/{kind:commands|actions|app}/{team}/{secret}", self.response_urls.handle),
                *self.files.routes(),
                *self._page.routes(),
            ]
        )
        return await self.listener.start(application, host, port)

    async def stop(self) -> None:
        """Closes every connection and stops listening. Stored data is already on disk."""
        await self.deliveries.stop()
        self._page.streams.close()
        self.socket_mode.abort_connections()
        await self.listener.stop()
        await self.signed_http.close()
        if self._persistence is not None:
            self._persistence.close()
            self._persistence = None

    @property
    def origin(self) -> str:
        """The server's address; empty until it has started."""
        return self.listener.origin

    @property
    def api_url(self) -> str:
        """The base URL for a Slack client."""
        return f"{self.origin}/api/"

    @property
    def connected(self) -> bool:
        """Whether the app has an open connection or a request URL."""
        return self._transport.connected
