"""Slack's Bolt app with Pagehand's listeners, and the one door by which payloads reach it."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.listeners import buttons, catch_all, commands, replies
from bot.slack.logs import quiet_libraries, quiet_logger
from bot.slack.recording import PATIENCE, NotRecorded, Recorder, Service
from bot.slack.web_api import Identity
from bot.slack.whispers import Whispers
from bot.slack.wording import Wording

logger = logging.getLogger(__name__)


class SlackApp:
    """Takes Slack's payloads from a receiver and answers them.

    Bolt gets a client without a token: nothing on the way to an acknowledgement may call Slack, so that it comes in
    time even when Slack's Web API is down. `patience` is the time in seconds for recording a command or a click.
    """

    def __init__(
        self,
        service: Service,
        *,
        identity: Identity,
        wording: Wording,
        whispers: Whispers,
        patience: float = PATIENCE,
    ) -> None:
        quiet_libraries()
        self._recorder = Recorder(whispers, patience=patience)
        self.bolt = _bolt()
        commands.register(self.bolt, service, self._recorder, whispers, wording)
        replies.register(self.bolt, service, self._recorder, wording, bot_user_id=identity.bot_user_id)
        buttons.register(self.bolt, service, self._recorder, whispers)
        catch_all.register(self.bolt, wording)
        self.bolt.error(_failed)

    async def take_payload(self, payload: dict[str, Any]) -> BoltResponse:
        """Answers a payload that came through a socket. A status other than 200 means: do not acknowledge."""
        try:
            return await self.bolt.async_dispatch(AsyncBoltRequest(mode="socket_mode", body=payload))
        except Exception as error:  # noqa: BLE001 - Bolt trips over payloads that are not as documented
            return _left_alone(error)

    async def take_request(self, body: str, content_type: str) -> BoltResponse:
        """Answers an HTTP request whose signature has been checked."""
        try:
            request = AsyncBoltRequest(mode="http", body=body, headers={"content-type": content_type})
            return await self.bolt.async_dispatch(request)
        except Exception as error:  # noqa: BLE001 - the same
            return _left_alone(error)

    async def drain(self, timeout: float) -> None:  # noqa: ASYNC109 - the caller shares one deadline among several
        """Waits for what is still being recorded."""
        await self._recorder.drain(timeout)


def _bolt() -> AsyncApp:
    """Every check that would call Slack, or log what people wrote, is off; the receivers verify who is calling."""
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
            ignoring_self_events_enabled=False,
            attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )


@contextmanager
def _without_slack_environment() -> Iterator[None]:
    """Bolt reads SLACK_... variables behind its caller's back; a client id and secret among them turn it to OAuth."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("SLACK_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


async def _authorize() -> AuthorizeResult:
    """Slack's signature or our own socket says who is calling; `auth.test` at start-up said that the token is good."""
    return AuthorizeResult(enterprise_id=None, team_id=None)


async def _failed(error: Exception) -> BoltResponse:
    """Our listeners raise NotRecorded only; anything else is Bolt tripping over a payload."""
    return BoltResponse(status=503) if isinstance(error, NotRecorded) else _left_alone(error)


def _left_alone(error: Exception) -> BoltResponse:
    logger.warning("a payload that can't be read (%s) is acknowledged and left alone", type(error).__name__)
    return BoltResponse(status=200, body="")
