"""The names of people, from Slack's users.info: looked up when a text that mentions them is sent or shown, never before
an acknowledgement.

A name is a courtesy: where it cannot be had at once, the id has to do, and nothing waits for it.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatError, ChatMissingScope, ChatNotAllowed, ChatRejected, ChatUncertain, ChatUnreachable
from bot.ports import People
from bot.runtime.json_fields import text_at
from bot.slack.rendering.text import displayable
from bot.slack.sending.web_api import call

logger = logging.getLogger(__name__)

_MOST_KEPT = 5_000
_MOST_LOOKED_UP = 20
"""People in one text that are looked up: Slack allows some 100 calls a minute (Tier 4)."""
_NAME_KEPT, _NO_NAME_KEPT = 3_600.0, 300.0
"""Seconds for which a name counts as known, and that somebody has none."""
_PAUSE_WHERE_NOT_ALLOWED, _PAUSE = 300.0, 30.0
"""Seconds for which no name is looked up after a failure."""
_LONGEST_NAME = 80


class SlackPeople(People):
    """One for a process. `patience` is how many seconds a text waits for all of its names."""

    def __init__(
        self, client: AsyncWebClient, *, patience: float = 2.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._patience = patience
        self._monotonic = monotonic
        self._names: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._lock = asyncio.Lock()
        self._paused_until = 0.0
        self._failure_logged = False

    async def names(self, ids: Sequence[str]) -> Mapping[str, str]:
        """See People."""
        wanted = ids[:_MOST_LOOKED_UP]
        try:
            async with asyncio.timeout(self._patience):
                for user_id in wanted:
                    await self._look_up(user_id)
        except TimeoutError:
            self._pause(ChatUncertain("no_answer_in_time"))
        found = {user_id: self._names[user_id][0] for user_id in wanted if user_id in self._names}
        return {user_id: name for user_id, name in found.items() if name}

    async def _look_up(self, user_id: str) -> None:
        if self._is_fresh(user_id) or self._monotonic() < self._paused_until:
            return
        async with self._lock:
            if not self._is_fresh(user_id):  # others may have asked for the same person meanwhile
                await self._fetch(user_id)

    async def _fetch(self, user_id: str) -> None:
        try:
            name = display_name((await call(self._client.users_info(user=user_id))).get("user"))
        except ChatError as error:
            if isinstance(error, ChatMissingScope) or not isinstance(error, ChatRejected):
                self._pause(error)
                return
            name = ""
        self._failure_logged = False
        self._names[user_id] = (name, self._monotonic() + (_NAME_KEPT if name else _NO_NAME_KEPT))
        self._names.move_to_end(user_id)
        while len(self._names) > _MOST_KEPT:
            self._names.popitem(last=False)

    def _is_fresh(self, user_id: str) -> bool:
        return user_id in self._names and self._monotonic() < self._names[user_id][1]

    def _pause(self, error: ChatError) -> None:
        """Looks nobody up for a while, and logs the first failure."""
        not_allowed = isinstance(error, ChatNotAllowed | ChatMissingScope)
        seconds = _PAUSE_WHERE_NOT_ALLOWED if not_allowed else _PAUSE
        if isinstance(error, ChatUnreachable):
            seconds = error.retry_after or seconds
        self._paused_until = self._monotonic() + seconds
        if not self._failure_logged:
            self._failure_logged = True
            logger.warning("people whom a text mentions keep their ids: their names cannot be had (%s)", error.reason)


def display_name(user: Any) -> str:
    """Returns the name that Slack shows of a person, on one line; `name` is an old handle that it shows no more."""
    for path in (("profile", "display_name"), ("profile", "real_name"), ("real_name",)):
        name = " ".join(displayable(text_at(user, *path)).split())[:_LONGEST_NAME].strip()
        if name:
            return name
    return ""
