"""The workspace as a server: one address for the Web API, Socket Mode, response URLs and the page."""

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from aiohttp import web

from bot.workspace.app_config import AppConfig
from bot.workspace.deliveries import RETRY_DELAYS, Deliveries, Delivery
from bot.workspace.errors import SlackError
from bot.workspace.events import Events
from bot.workspace.faults import Faults
from bot.workspace.http_delivery import HttpDelivery
from bot.workspace.interactions import Interactions
from bot.workspace.listening import Listening
from bot.workspace.models import Change, Channel, Json, Message
from bot.workspace.page import Page
from bot.workspace.people import Actor
from bot.workspace.persistence import Persistence
from bot.workspace.population import HOME, add_bot, populate
from bot.workspace.rate_limits import RateLimits
from bot.workspace.rendering import Rendering
from bot.workspace.response_urls import ResponseUrls
from bot.workspace.socket_mode import DisconnectReason, SocketMode
from bot.workspace.state import State
from bot.workspace.watching import Watching
from bot.workspace.web_api import ApiCall, Tokens, WebApi

MAX_BODY = 4 << 20
Found = TypeVar("Found")


class WorkspaceServer:
    """A Slack workspace on this machine, with one app installed.

    Args:
        app: The app; Pagehand's own by default.
        directory: Where the workspace is kept; in memory only when None.
        bot_token: The app's bot token; random by default, as are the other secrets.
        app_token: Its app-level token, for Socket Mode.
        signing_secret: Signs requests where the app has a request URL.
        redeliver_after: Seconds an app has to acknowledge before an event is sent again, or a command has failed.
        retry_delays: Seconds before each resending of an event for which nothing was listening.
        ticket_lifetime: Seconds a Socket Mode address is good for.
        rate_limited: Whether Slack's rate limits are kept.
        now: The clock, in seconds since 1970.
    """

    def __init__(
        self,
        app: AppConfig | None = None,
        *,
        directory: Path | None = None,
        bot_token: str | None = None,
        app_token: str | None = None,
        signing_secret: str | None = None,
        redeliver_after: float = 3.0,
        retry_delays: tuple[float, ...] = RETRY_DELAYS,
        ticket_lifetime: float = 30.0,
        rate_limited: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.app = app or AppConfig()
        self.bot_token = bot_token or f"xoxb-{secrets.token_hex(24)}"
        self.app_token = app_token or f"xapp-1-{secrets.token_hex(24)}"
        self.signing_secret = signing_secret or secrets.token_hex(16)
        self.state = State(HOME, now)
        self.faults = Faults()
        self._directory = directory
        self._persistence: Persistence | None = None
        self._now = now
        self._watching = Watching()
        self._tokens = Tokens(self.bot_token, self.app_token)
        self._listening = Listening()
        self._build(redeliver_after, retry_delays, ticket_lifetime)
        if rate_limited:
            self._web_api.rate_limits = RateLimits(now)
        self._fill()

    def _build(self, redeliver_after: float, retry_delays: tuple[float, ...], ticket_lifetime: float) -> None:
        rendering, token = Rendering(self.state, self.app), secrets.token_hex(12)
        self.socket_mode = SocketMode(
            self.app.app_id, self.faults, self._link_changed, self._now, ticket_lifetime=ticket_lifetime
        )
        self._http = HttpDelivery(self.app, self.signing_secret, self._now)
        self._deliveries = Deliveries(
            self.socket_mode if self.app.socket_mode else self._http,
            self.faults,
            self._watching.changed,
            ack_within=redeliver_after,
            retry_delays=retry_delays,
        )
        self._events = Events(self.state, self.app, rendering, token)
        self._response_urls = ResponseUrls(self.state, self.app, self._now)
        self._interactions = Interactions(
            self.state,
            self.app,
            rendering,
            self._deliveries,
            self._response_urls,
            origin=lambda: self.origin,
            token=token,
        )
        self._web_api = WebApi(
            self.state,
            self.app,
            rendering,
            self._tokens,
            self.faults,
            origin=lambda: self.origin,
            open_socket_url=lambda: self.socket_mode.open_url(self.origin),
            changed=self._watching.changed,
        )
        self._page = Page(self)

    def _fill(self) -> None:
        if self._directory is not None:
            self._persistence = Persistence(self._directory, self.state)
        if self._persistence is not None and self._persistence.load():
            add_bot(self.state, self.app)
        else:
            if self._persistence is not None:
                self.state.listeners.append(self._persistence.record)
            populate(self.state, self.app)
        if self._persistence is not None:
            self._persistence.save_people()
        self.state.listeners[:] = [self._happened]

    def _happened(self, change: Change) -> None:
        if self._persistence is not None:
            self._persistence.record(change)
        if self._listening.origin:
            for payload in self._events.of(change):
                self._deliveries.event(payload)
            self._page.tell(change)
        self._watching.changed()

    def _link_changed(self) -> None:
        self._page.tell_link()
        self._watching.changed()

    # starting and stopping

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen, on a free port unless one is given. Returns the origin, such as ``http://127.0.0.1:8123``."""
        application = web.Application(client_max_size=MAX_BODY)
        application.add_routes(
            [
                web.route("*", "/api/{method}", self._web_api.handle),
                web.get("/link/", self.socket_mode.handle),
                web.post(r"/{kind:commands|actions}/{team}/{secret}", self._respond),
                *self._page.routes(),
            ]
        )
        return await self._listening.start(application, host, port)

    async def stop(self) -> None:
        """Close every connection and stop listening. What was to be kept is on disk already."""
        self.faults.clear()
        await self._deliveries.stop()
        self._page.close()
        self.socket_mode.cut()
        await self._listening.stop()
        await self._http.close()
        if self._persistence is not None:
            self._persistence.close()
            self._persistence = None

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        """A response URL: ``ok`` as plain text, or the error as Slack words it."""
        try:
            body = json.loads(await request.read())
            self._response_urls.use(request.match_info["secret"], body)
        except (ValueError, RecursionError, web.RequestPayloadError):
            return web.json_response({"ok": False, "error": "invalid_payload"}, status=400)
        except SlackError as error:
            status = 404 if error.code in {"expired_url", "used_url"} else 400
            return web.json_response(error.answer(), status=status)
        return web.Response(text="ok")

    @property
    def origin(self) -> str:
        return self._listening.origin

    @property
    def api_url(self) -> str:
        """The base URL for a Slack client."""
        return f"{self.origin}/api/"

    @property
    def connected(self) -> bool:
        """Whether an app can be reached: a connection is open, or it has a request URL."""
        return self.socket_mode.connections > 0 or not self.app.socket_mode

    # looking

    @property
    def calls(self) -> list[ApiCall]:
        """The Web API calls so far, oldest first; the list grows with them."""
        return self._web_api.calls

    @property
    def deliveries(self) -> list[Delivery]:
        """The payloads sent to the app so far, with how often, and whether they were acknowledged; it grows too."""
        return self._deliveries.records

    def person(self, name: str) -> Actor:
        """A person by name or id, who can do what people do.

        Raises:
            SlackError: ``user_not_found``.
        """
        person = self.state.find_person(name)
        if person is None:
            raise SlackError("user_not_found")
        return Actor(person, self.state, self._interactions, lambda: self.state.people[self.app.bot_user_id])

    def channel(self, name: str) -> Channel:
        """A channel by name or id; a person's name stands for their direct conversation with the bot.

        Raises:
            SlackError: ``channel_not_found``.
        """
        if found := self.state.find_channel(name):
            return found
        if person := self.state.find_person(name):
            return self.state.direct_channel(self.app.bot_user_id, person.id)
        raise SlackError("channel_not_found")

    def messages(self, channel: str) -> list[Message]:
        """Every message of a channel, replies included, oldest first; ephemerals are not among them."""
        return list(self.state.conversation(self.channel(channel)))

    def thread(self, channel: str, ts: str) -> list[Message]:
        """A thread, its first message included, oldest first."""
        return self.state.conversation(self.channel(channel)).thread(ts)

    async def wait_for(self, predicate: Callable[[], Found], timeout: float = 30.0) -> Found:  # noqa: ASYNC109 - tests' word for it
        """Wait until a condition holds, woken by every change, call and delivery. Returns its value.

        Raises:
            TimeoutError: It did not hold within the seconds given.
        """
        return await self._watching.wait_for(predicate, timeout)

    async def settled(self, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - the same
        """Wait until nothing is on its way to the app any more."""
        await self._watching.wait_for(lambda: self._deliveries.in_flight == 0, timeout, "the end of all deliveries")

    # trouble and changes of the app's standing

    def archive(self, channel: str) -> None:
        place = self.channel(channel)
        self.state.set_archived(place, place.creator, archived=True)

    def unarchive(self, channel: str) -> None:
        place = self.channel(channel)
        self.state.set_archived(place, place.creator, archived=False)

    def remove_bot(self, channel: str) -> None:
        self.state.leave(self.channel(channel), self.app.bot_user_id)

    def add_bot(self, channel: str) -> None:
        self.state.join(self.channel(channel), self.app.bot_user_id)

    def revoke_tokens(self, code: str = "token_revoked") -> None:
        """Refuse the app's tokens from now on, with a code such as ``account_inactive`` or ``token_revoked``."""
        self._tokens.refusal = code

    def restore_tokens(self) -> None:
        self._tokens.refusal = None

    async def disconnect(self, reason: DisconnectReason = "refresh_requested", *, only: int | None = None) -> int:
        """Send a Socket Mode disconnect frame to all connections or some. Returns to how many."""
        return await self.socket_mode.disconnect(reason, only=only)

    async def begin_outage(self) -> None:
        """Break every connection and refuse new ones, as though the machine were gone."""
        await self._listening.pause()

    async def end_outage(self) -> None:
        """Listen again, at the same address."""
        await self._listening.resume()

    async def verify_request_url(self) -> bool:
        """Ask the app's request URL for the challenge, as Slack does when it is set."""
        return await self._http.verify_url()

    def inject_event(self, payload: Json) -> None:
        """Deliver an event payload as it is, for instance one that was delivered before."""
        self._deliveries.event(payload)
