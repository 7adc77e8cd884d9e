"""Slack's Bolt app with Pagehand's listeners, and the only entrance for payloads, which passes only what is for us."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.findings import LastTime
from bot.domain.requests.request import Arrival
from bot.errors import AuthorUnknown, NotRecorded, StoreError
from bot.ports.service import ServicePort
from bot.ports.slack import Members
from bot.runtime.health import RecordingHealth
from bot.slack.receiving.dependencies import Authors, Dependencies, context_with
from bot.slack.receiving.listeners import (
    buttons,
    catch_all,
    commands,
    events,
    messages,
    modals,
    openings,
)
from bot.slack.receiving.modal_opener import ModalEdges, ModalOpener
from bot.slack.receiving.payloads.payload import SlackPayload, log_safe, parse_body
from bot.slack.receiving.request_recorder import RECORDING_TIMEOUT, RequestRecorder
from bot.slack.rendering.ephemeral_texts import OTHER_INSTALLATION
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import quiet_logger

logger = logging.getLogger(__name__)


LISTENERS = (commands, messages, events, buttons)
"""The listeners in order: the first one that matches a payload gets it. `catch_all` answers the rest."""
AT_A_TIME = 64
"""Payloads that are worked on; others wait."""


class SlackApp:
    """Handles and answers Slack's payloads from a receiver.

    Bolt gets a client without a token: nothing on the way to an acknowledgement may call Slack, so that it comes in
    time even when Slack's Web API is down. A command or a click is recorded within `recording_timeout` seconds, or
    answered without; `recording_health` gets failures to record, `note` the kinds that arrive. Without
    `members`, no app posts for a person.
    """

    def __init__(
        self,
        service: ServicePort,
        *,
        identity: Identity,
        message_context: MessageContext,
        ephemeral_sender: EphemeralSender,
        modal_edges: ModalEdges,
        members: Members | None = None,
        recording_health: RecordingHealth | None = None,
        recording_timeout: float = RECORDING_TIMEOUT,
        note: Callable[[LastTime], None] = lambda _: None,
        acknowledged: Callable[[int, float], None] = lambda _, __: None,
    ) -> None:
        self._note = note
        self._acknowledged = acknowledged
        self._recording_health = recording_health or RecordingHealth(time.monotonic)
        recorder = RequestRecorder(ephemeral_sender, self._recording_health, recording_timeout=recording_timeout)
        opener = ModalOpener(service, recorder, modal_edges)
        dependencies = Dependencies(service, recorder, message_context, identity, Authors(members, recorder), opener)
        self._recorder, self._logged = recorder, dependencies.logged
        self._identity = identity
        self._turns = asyncio.Semaphore(AT_A_TIME)
        self.bolt = _bolt_app()
        for listener in LISTENERS:
            listener.register(self.bolt, dependencies)
        modals.ModalListeners(service, recorder, opener, identity).register(self.bolt)
        openings.register(self.bolt, opener, identity)
        catch_all.register(self.bolt, dependencies)
        self.bolt.error(self._on_error)

    async def handle_payload(self, payload: dict[str, Any]) -> BoltResponse:
        """Answers a payload of any transport. A status other than 200 means: do not acknowledge."""
        async with self._turns:
            began = time.perf_counter()
            response = await self._handle(payload)
            self._acknowledged(response.status, time.perf_counter() - began)
            return response

    async def _handle(self, payload: dict[str, Any]) -> BoltResponse:
        response = self._early_response(SlackPayload.read(payload))
        if response is not None:
            return response
        if (kind := _kind_of(payload)) is not None:
            self._note(kind)
        return await self._dispatch(payload, Arrival.LIVE)

    def _early_response(self, payload: SlackPayload) -> BoltResponse | None:
        """Returns the response to what no listener needs to see, as a payload for another app; None for the rest."""
        if payload.type == "url_verification":
            return None  # Bolt knows the answer, and it names no workspace
        if payload.ssl_check == "1":  # Slack only checks the address's certificate
            return BoltResponse(status=200, body="")
        if not payload.is_for(self._identity):
            self._log_other_installation(payload)
            return BoltResponse(status=200, body=OTHER_INSTALLATION if payload.command else "")
        if payload.type == "app_rate_limited":
            logger.error(  # at most 30,000 events an hour (docs.slack.dev, `app_rate_limited`)
                "Slack holds events back: replies of this time are missing, please write them again. It does so beyond "
                "30,000 events an hour, or where too many were not acknowledged"
            )
            return BoltResponse(status=200, body="")
        return None

    def _log_other_installation(self, payload: SlackPayload) -> None:
        authorized = payload.authorizations[0].team_id if payload.authorizations else ""
        team_id = authorized or payload.team_id or (payload.team.id if payload.team else "")
        where = f"workspace {log_safe(team_id) or 'not named'}, app {log_safe(payload.api_app_id) or 'not named'}"
        if self._logged.add(where):
            logger.warning(
                "requests of another workspace or app start nothing: %s; this is workspace %s, app %s",
                where,
                self._identity.team_id,
                self._identity.app_id or "not known",
            )

    async def handle_past(self, payload: dict[str, Any], arrival: Arrival) -> None:
        """Handles a missed event (bot.slack.receiving.history) as if Slack had sent it. Raises NotRecorded."""
        response = await self._dispatch(payload, arrival)
        if response.status != HTTPStatus.OK:
            raise NotRecorded

    async def _dispatch(self, payload: dict[str, Any], arrival: Arrival) -> BoltResponse:
        try:
            # In this mode Bolt accepts the parsed payload; otherwise it would read the body itself.
            request = AsyncBoltRequest(mode="socket_mode", body=payload, context=context_with(arrival))
            return await self.bolt.async_dispatch(request)
        except Exception as error:  # noqa: BLE001 - Bolt trips over payloads that are not as documented
            return self._acknowledge_unreadable(error, payload)

    async def handle_http_body(self, body: str, content_type: str) -> BoltResponse:
        """Answers the body of an HTTP request whose signature has been checked."""
        payload = parse_body(body, content_type)
        if payload is None:
            logger.warning("a signed request cannot be read and is turned away: nothing that Slack documents")
            return BoltResponse(status=400, body="")
        return await self.handle_payload(payload)

    async def drain(self, timeout: float) -> None:  # noqa: ASYNC109 - the caller shares one deadline among several
        """Waits for what is still being recorded, at most `timeout` seconds."""
        await self._recorder.drain(timeout)

    async def _on_error(self, error: Exception, body: dict[str, Any]) -> BoltResponse:
        """What the service could not record is not acknowledged, so that Slack sends it again. Any other error is about
        a payload that cannot be read.
        """
        if isinstance(error, AuthorUnknown):
            return BoltResponse(status=503)
        if isinstance(error, StoreError | NotRecorded):
            self._recording_health.record_failure(error)
            return BoltResponse(status=503)
        return self._acknowledge_unreadable(error, body)

    def _acknowledge_unreadable(self, error: Exception, payload: Any) -> BoltResponse:
        """Acknowledges a payload that cannot be read, and logs each kind once."""
        kind, error_type = SlackPayload.read(payload).kind, type(error).__name__
        if self._logged.add(f"{error_type}: {kind}"):
            text = "a payload of a kind that Pagehand does not know is acknowledged and left alone: %s (%s)"
            logger.warning(text, kind, error_type)
        return BoltResponse(status=200, body="")


def _kind_of(payload: dict[str, Any]) -> LastTime | None:
    match payload:
        case {"command": str()}:
            return LastTime.COMMAND
        case {"type": "event_callback"}:
            return LastTime.EVENT
        case {"type": str(), "trigger_id": str()} | {"type": "view_closed"}:
            return LastTime.CLICK
        case _:
            return None


def _bolt_app() -> AsyncApp:
    """Turns off checks that would call Slack or log what people wrote; the receivers verify the caller."""
    bolt_logger = quiet_logger("bot.slack.bolt")
    with _without_slack_environment():
        return AsyncApp(
            name="pagehand",
            logger=bolt_logger,
            client=AsyncWebClient(logger=bolt_logger, retry_handlers=[]),
            signing_secret="",
            authorize=_authorize,
            process_before_response=True,
            raise_error_for_unhandled_request=True,
            request_verification_enabled=False,
            ssl_check_enabled=False,
            ignoring_self_events_enabled=False,  # what a tool posts for a person is not ours
            attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )


@contextmanager
def _without_slack_environment() -> Iterator[None]:
    """Bolt reads SLACK_... variables itself; a client id and secret among them would switch it to OAuth."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("SLACK_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


async def _authorize() -> AuthorizeResult:
    """The signature or our own socket verifies the caller; `auth.test` at start-up verified the token."""
    return AuthorizeResult(enterprise_id=None, team_id=None)
