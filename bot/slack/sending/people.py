"""The names of people, from Slack's users.info: looked up when a text that mentions them is sent or shown, never before
an acknowledgement.

A name is a courtesy: where it cannot be had at once, the id has to do, and nothing waits for it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatError, ChatMissingScope, ChatNotAllowed, ChatUncertain, ChatUnreachable
from bot.ports import People
from bot.slack.sending.user_directory import UserDirectory

logger = logging.getLogger(__name__)

_MOST_LOOKED_UP = 20
"""People in one text that are looked up: Slack allows some 100 calls a minute (Tier 4)."""
_PAUSE_WHERE_NOT_ALLOWED, _PAUSE = 300.0, 30.0
"""Seconds for which no name is looked up after a failure."""


class SlackPeople(People):
    """One for a process. `patience` is how many seconds a text waits for all of its names; `directory` is the one that
    others ask as well.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        directory: UserDirectory | None = None,
        patience: float = 2.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory or UserDirectory(client, monotonic=monotonic)
        self._patience = patience
        self._monotonic = monotonic
        self._paused_until = 0.0
        self._failure_logged = False

    async def names(self, ids: Sequence[str]) -> Mapping[str, str]:
        """See People."""
        wanted = ids[:_MOST_LOOKED_UP]
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.gather(*map(self._look_up, wanted))
        except TimeoutError:
            self._pause(ChatUncertain("no_answer_in_time"))
        found = ((user_id, self._directory.known(user_id)) for user_id in wanted)
        return {user_id: user.name for user_id, user in found if user is not None and user.name}

    async def _look_up(self, user_id: str) -> None:
        if self._directory.is_fresh(user_id) or self._monotonic() < self._paused_until:
            return
        try:
            await self._directory.look_up(user_id)
        except ChatError as error:
            self._pause(error)
        else:
            self._failure_logged = False

    def _pause(self, error: ChatError) -> None:
        """Looks nobody up for a while, and logs the first failure."""
        not_allowed = isinstance(error, ChatNotAllowed | ChatMissingScope)
        seconds = _PAUSE_WHERE_NOT_ALLOWED if not_allowed else _PAUSE
        if isinstance(error, ChatUnreachable):
            seconds = error.retry_after or seconds
        self._paused_until = max(self._paused_until, self._monotonic() + seconds)
        if not self._failure_logged:
            self._failure_logged = True
            logger.warning("people whom a text mentions keep their ids: their names cannot be had (%s)", error.reason)
