"""Looks up the names of people, channels and user groups when a text that mentions them is sent or shown, but never
before an acknowledgement.

Names are optional: if one is not available quickly, the id is used.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.messages import DIRECT_MESSAGE, PRIVATE_CHANNEL, USER_GROUP, is_person, mentioned
from bot.errors import ChatError, ChatMissingScope, ChatNotAllowed, ChatRejected, ChatUncertain
from bot.ports.slack import ChannelReader, DisplayNames, Groups
from bot.runtime.text import displayable
from bot.runtime.untrusted_json import LenientModel, Texts, objects_at, text_at
from bot.slack.sending.conversations import SlackChannels
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.user_directory import UserDirectory
from bot.slack.sending.web_api import call

logger = logging.getLogger(__name__)

_KEPT = 300.0
"""Seconds for which a name is cached."""
_LONGEST_NAME = 80
_GROUP, _ALL_GROUPS = "S", "all"
"""What the ids of user groups begin with, and the key of all groups, which come in one answer."""
_GROUPS_KEPT = 300.0
"""Seconds for which a group's members are cached: somebody who left it can count as a member for that long."""


class MembersAnswer(LenientModel):
    """The answer of usergroups.users.list."""

    users: Texts = ()


class SlackGroups(Groups):
    """One per process. User groups need the scope usergroups:read and a paid plan; otherwise they are empty."""

    def __init__(self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._cache = ExpiringCache[frozenset[str]](seconds=_GROUPS_KEPT, monotonic=monotonic)
        self._logged: set[str] = set()

    async def members_of(self, group_ids: Collection[str]) -> frozenset[str]:
        """See Groups."""
        members = await asyncio.gather(*(self._cache.get(group_id, self._fetch) for group_id in group_ids))
        return frozenset[str]().union(*members)

    async def _fetch(self, group_id: str) -> frozenset[str]:
        try:
            answer = MembersAnswer.read(await call(self._client.usergroups_users_list(usergroup=group_id)))
        except ChatRejected as error:
            if group_id not in self._logged:
                words = "the user group %s counts as empty, because Slack does not show it (%s)"
                logger.warning(words, group_id, error.reason)
                self._logged.add(group_id)
            return frozenset()
        return frozenset(answer.users)


_MOST_LOOKED_UP = 20
"""Maximum number of names looked up for one text, because Slack allows about 100 calls a minute (Tier 4)."""
_PAUSE_WHERE_NOT_ALLOWED, _PAUSE = 300.0, 30.0
"""Seconds for which no name is looked up after a failure."""


class SlackPeople(DisplayNames):
    """The names of people, channels and user groups that texts mention, by users.info, conversations.info and
    usergroups.list. A text is read by people other than its writer, so the name of a private channel is not shown.

    One per process. `patience` is how many seconds a text waits for all of its names. `directory` and `channels` are
    shared with other callers.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        directory: UserDirectory | None = None,
        channels: ChannelReader | None = None,
        patience: float = 2.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._directory = directory or UserDirectory(client, monotonic=monotonic)
        self._channels = channels or SlackChannels(client, monotonic=monotonic)
        self._channel_names = ExpiringCache[str](seconds=_KEPT, monotonic=monotonic)
        self._groups = ExpiringCache[Mapping[str, str]](seconds=_KEPT, monotonic=monotonic)
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
        """Returns a name, or an empty text if it is not available."""
        fresh = self._is_fresh(slack_id)
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

    def _is_fresh(self, slack_id: str) -> bool:
        if is_person(slack_id):
            return self._directory.is_fresh(slack_id)
        if slack_id.startswith(_GROUP):
            return self._groups.is_fresh(_ALL_GROUPS)
        return self._channel_names.is_fresh(slack_id)

    async def _look_up(self, slack_id: str) -> str:
        """Returns a name, or a description of a place that must not be named. Raises ChatError."""
        if is_person(slack_id):
            user = await self._directory.look_up(slack_id)
            return user.name if user is not None else ""
        if slack_id.startswith(_GROUP):
            return (await self._groups.get(_ALL_GROUPS, self._fetch_groups)).get(slack_id) or USER_GROUP
        return await self._channel_names.get(slack_id, self._fetch_channel)

    async def _fetch_channel(self, channel_id: str) -> str:
        try:
            channel = await self._channels.channel(channel_id)
        except ChatRejected:
            return PRIVATE_CHANNEL  # Slack gives no other information
        if channel.is_direct:
            return DIRECT_MESSAGE
        return channel.name if channel.name and not channel.is_private else PRIVATE_CHANNEL

    async def _fetch_groups(self, _: str) -> Mapping[str, str]:
        try:
            groups = objects_at(await call(self._client.usergroups_list(include_disabled=True)), "usergroups")
        except ChatRejected:
            return {}
        return {text_at(group, "id"): displayable(text_at(group, "handle"))[:_LONGEST_NAME] for group in groups}

    def _last_known(self, slack_id: str) -> str:
        user = self._directory.known(slack_id)
        return user.name if user is not None else ""

    def _pause(self, error: ChatError) -> None:
        """Pauses look-ups for a while, and logs the first failure."""
        not_allowed = isinstance(error, ChatNotAllowed | ChatMissingScope)
        seconds = _PAUSE_WHERE_NOT_ALLOWED if not_allowed else _PAUSE
        self._paused_until = max(self._paused_until, self._monotonic() + (error.retry_after or seconds))
        if not self._failure_logged:
            self._failure_logged = True
            logger.warning("names of mentions cannot be looked up, so ids are shown: %s", error)


async def names_in(texts: Iterable[str], people: DisplayNames | None) -> Mapping[str, str]:
    """Returns the names for the mentions in recorded texts."""
    ids = [user_id for text in texts for user_id in mentioned(text)]
    return await people.names(ids) if ids and people is not None else {}
