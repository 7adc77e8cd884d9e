"""The user groups of the workspace: bot.ports.slack.Groups over Slack's usergroups.users.list."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatRejected
from bot.ports.slack import Groups
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.web_api import call

logger = logging.getLogger(__name__)

_KEPT = 300.0
"""Seconds for which a group's members count as known: so long may somebody who left it still be taken for a member."""


class SlackGroups(Groups):
    """One for a process. User groups need the scope usergroups:read and a paid plan; without, they are empty."""

    def __init__(self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._cache = ExpiringCache[frozenset[str]](seconds=_KEPT, monotonic=monotonic)
        self._logged: set[str] = set()

    async def members_of(self, group_ids: Collection[str]) -> frozenset[str]:
        """See Groups."""
        members = await asyncio.gather(*(self._cache.get(group_id, self._fetch) for group_id in group_ids))
        return frozenset[str]().union(*members)

    async def _fetch(self, group_id: str) -> frozenset[str]:
        try:
            answer = await call(self._client.usergroups_users_list(usergroup=group_id))
        except ChatRejected as error:
            self._log_once(group_id, error.reason)
            return frozenset()
        users = answer.get("users")
        return frozenset(user for user in users if isinstance(user, str)) if isinstance(users, list) else frozenset()

    def _log_once(self, group_id: str, reason: str) -> None:
        if group_id not in self._logged:
            self._logged.add(group_id)
            logger.warning(
                "nobody counts as a member of the user group %s: Slack does not show it (%s)", group_id, reason
            )
