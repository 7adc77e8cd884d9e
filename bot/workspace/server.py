"""The workspace as a server: one address for the Web API, Socket Mode and the page."""

import time
from collections.abc import Callable
from dataclasses import replace

from aiohttp import web
from aiohttp.typedefs import Middleware

from bot.runtime.http.server import listening_socket
from bot.workspace.delivery.deliveries import RETRY_DELAYS, Deliveries
from bot.workspace.delivery.signed_http import SignedHttp
from bot.workspace.delivery.socket_mode import SocketMode
from bot.workspace.model.app_config import AppConfig, AppManifests
from bot.workspace.model.entities import Change, Channel, Message, SlackError
from bot.workspace.model.sample_data import HOME, populate
from bot.workspace.model.state import ChangeSignal, State
from bot.workspace.model.views import TRIGGER_SECONDS, OpenViews, Triggers, ViewChange
from bot.workspace.page.endpoints import Page
from bot.workspace.people import WorkspacePeople
from bot.workspace.person_views import ActorContext
from bot.workspace.web_api.endpoint import WebApi
from bot.workspace.web_api.file_downloads import FileDownloads
from bot.workspace.web_api.method import Credentials, MethodCall
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


MAX_BODY_BYTES = 8 << 20


class WorkspaceServer:
    """A Slack workspace on this machine, with one app installed.

    Its parts: ``people`` and ``channels`` for acting and looking, ``views`` for open modals and Home tabs, ``changes``
    for waiting, ``credentials`` for revoking tokens, ``manifests`` for changing the app, ``web_api`` and ``deliveries``
    for records of what the app called and was sent, ``socket_mode`` and ``signed_http`` for the transports to the app.
    Whoever makes calls fail adds to ``middlewares`` before the start, and for what is sent replaces
    ``deliveries.transport``.

    Args:
        app: The app; by default one like Pagehand.
        is_installed: Whether the app exists. If not, the first app that ``apps.manifest.create`` creates is it, and its
            tokens are good once ``install`` was called.
        credentials: The app's tokens and secrets; random by default.
        ack_timeout: Seconds after which an unacknowledged event is sent again, or a command has failed.
        retry_delays: Seconds before each retry of an event if nothing was listening.
        trigger_lifetime: Seconds until a trigger id expires.
        now: The clock, in seconds since 1970.
    """

    def __init__(
        self,
        app: AppConfig | None = None,
        *,
        is_installed: bool = True,
        credentials: Credentials | None = None,
        ack_timeout: float = 3.0,
        retry_delays: tuple[float, ...] = RETRY_DELAYS,
        trigger_lifetime: float = TRIGGER_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.app = app or AppConfig()
        self.credentials = credentials or Credentials()
        self.manifests = AppManifests(self.app, self.credentials.signing_secret, exists=is_installed)
        if not is_installed:
            self.credentials.revoke("invalid_auth")
        self.state = State(HOME, now)
        self.channels = WorkspaceChannels(self.state, self.app)
        self.changes = ChangeSignal()
        self.middlewares: list[Middleware] = []
        self.origin = ""
        """The server's address; empty unless it is started."""
        self.runner: web.AppRunner | None = None
        self.views = OpenViews()
        self._renderer = Renderer(self.state, self.app, self._origin)
        self.triggers = Triggers(now, trigger_lifetime)
        self._build_delivery(ack_timeout, retry_delays, now)
        self._build_endpoints()
        populate(self.state, self.app)
        self.state.observers.append(self._on_change)
        self.views.observers.append(self._on_view_change)

    def _build_delivery(self, ack_timeout: float, retry_delays: tuple[float, ...], now: Callable[[], float]) -> None:
        """Builds the parts that deliver payloads to the app."""
        state, app = self.state, self.app
        self.socket_mode = SocketMode(self._on_connection_change, self._origin, now)
        self.signed_http = SignedHttp(app, lambda: self.credentials.signing_secret, now)
        self._transport = self.socket_mode if app.socket_mode else self.signed_http
        self.deliveries = Deliveries(self._transport, self.changes, ack_timeout=ack_timeout, retry_delays=retry_delays)
        self._payloads = InteractionPayloads(state, app, self._renderer, self.triggers)
        self._events = EventPayloads(state, app, self._renderer, self.views)

    def _build_endpoints(self) -> None:
        """Builds the parts that the app and the page call."""
        self.web_api = WebApi(self.state, self.manifests, self._new_call, self.credentials, self.changes.notify)
        self.files = FileDownloads(self.state, self.app, self.credentials)
        reach = self._payloads, self.deliveries
        self.people = WorkspacePeople(ActorContext(self.state, self.app, self._renderer, self.views, *reach))
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

    def _on_change(self, change: Change) -> None:
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

    def _origin(self) -> str:
        return self.origin

    def show_tip(self, text: str) -> None:
        """Shows a line above every page, such as what to try next, in Slack's format; none if it is empty."""
        self._page.streams.show_tip(text)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listens, on a free port unless one is given. Returns the origin, such as ``http://127.0.0.1:8123``.

        Raises OSError if the address is taken, or not this machine's.
        """
        listener = listening_socket(host, port)
        application = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=self.middlewares)
        application.add_routes(
            [
                web.route("*", "/api/{method}", self.web_api.handle),
                web.get("/link/", self.socket_mode.handle),
                *self.files.routes(),
                *self._page.routes(),
            ]
        )
        self.runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await self.runner.setup()
        await web.SockSite(self.runner, listener).start()
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"http://{shown}:{listener.getsockname()[1]}"
        return self.origin

    async def stop(self) -> None:
        """Closes every connection and stops listening."""
        await self.deliveries.stop()
        self._page.streams.close()
        self.socket_mode.abort_connections()
        if self.runner is not None:
            await self.runner.cleanup()
            self.origin, self.runner = "", None
        await self.signed_http.close()

    @property
    def api_url(self) -> str:
        """The base URL for a Slack client."""
        return f"{self.origin}/api/"

    @property
    def connected(self) -> bool:
        """Whether the app has an open connection or a request URL."""
        return self._transport.connected
