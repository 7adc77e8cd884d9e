"""The names of people, channels and user groups: looked up when a text that mentions them is sent or shown, never
before an acknowledgement.

A name is a courtesy: where it cannot be had at once, the id has to do, and nothing waits for it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.context.message_text import is_person
from bot.errors import ChatError, ChatMissingScope, ChatNotAllowed, ChatUncertain, ChatUnreachable
from bot.ports.slack import Channels, People
from bot.slack.sending.channels import SlackChannels
from bot.slack.sending.mentioned_places import MentionedPlaces
from bot.slack.sending.user_directory import UserDirectory

logger = logging.getLogger(__name__)

_MOST_LOOKED_UP = 20
"""Of what one text mentions, so much is looked up: Slack allows some 100 calls a minute (Tier 4)."""
_PAUSE_WHERE_NOT_ALLOWED, _PAUSE = 300.0, 30.0
"""Seconds for which no name is looked up after a failure."""


class SlackPeople(People):
    """One for a process. `patience` is how many seconds a text waits for all of its names; `directory` and
    `channels` are those that others ask as well.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        directory: UserDirectory | None = None,
        channels: Channels | None = None,
        patience: float = 2.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory or UserDirectory(client, monotonic=monotonic)
        asked = channels or SlackChannels(client, monotonic=monotonic)
        self._places = MentionedPlaces(client, asked, monotonic=monotonic)
        self._patience = patience
        self._monotonic = monotonic
        self._paused_until = 0.0
        self._failure_logged = False

    async def names(self, ids: Sequence[str]) -> Mapping[str, str]:
        """See People."""
        wanted, found = ids[:_MOST_LOOKED_UP], dict[str, str]()

        async def look_up(slack_id: str) -> None:
            found[slack_id] = await self._name(slack_id)

        try:
            async with asyncio.timeout(self._patience):
                await asyncio.gather(*map(look_up, wanted))
        except TimeoutError:
            self._pause(ChatUncertain("no_answer_in_time"))
        return {slack_id: name for slack_id in wanted if (name := found.get(slack_id) or self._last_known(slack_id))}

    async def _name(self, slack_id: str) -> str:
        """Returns a name where it can be had, else nothing."""
        fresh = (self._directory if is_person(slack_id) else self._places).is_fresh(slack_id)
        if not fresh and self._monotonic() < self._paused_until:
            return ""
        try:
            name = await self._look_up(slack_id)
        except ChatError as error:
            self._pause(error)
            return ""
        if not fresh:
            self._failure_logged = False
        return name

    async def _look_up(self, slack_id: str) -> str:
        if not is_person(slack_id):
            return await self._places.name(slack_id)
        user = await self._directory.look_up(slack_id)
        return user.name if user is not None else ""

    def _last_known(self, slack_id: str) -> str:
        user = self._directory.known(slack_id)
        return user.name if user is not None else ""

    def _pause(self, error: ChatError) -> None:
        """Looks nobody up for a while, and logs the first failure."""
        not_allowed = isinstance(error, ChatNotAllowed | ChatMissingScope)
        seconds = _PAUSE_WHERE_NOT_ALLOWED if not_allowed else _PAUSE
        if isinstance(error, ChatUnreachable):
            seconds = error.retry_after or seconds
        self._paused_until = max(self._paused_until, self._monotonic() + seconds)
        if not self._failure_logged:
            self._failure_logged = True
            logger.warning("what a text mentions keeps its id: names cannot be had (%s)", error.reason)
