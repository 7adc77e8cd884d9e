"""The people of the workspace, by users.info, cached in one place for the whole process."""

import time
from collections.abc import Callable
from dataclasses import replace

from pydantic import StrictBool
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.people import Account, Member
from bot.errors import ChatMissingScope, ChatRejected
from bot.ports.slack import Members
from bot.runtime.text import displayable
from bot.runtime.untrusted_json import LenientModel, Text
from bot.slack.sending.expiring_cache import RecentDict, SingleFlight
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import call

_MOST_KEPT = 5_000
_KEPT, _UNKNOWN_KEPT = 3_600.0, 300.0
"""Seconds for which a person counts as known, and for which an unknown id or a missing name does."""
RIGHTS_KEPT = 300.0
"""Seconds for which cached data about a person decides what they may do: somebody who was made a guest can keep their
permissions for that long.
"""
_LONGEST_NAME = 80


class UserDirectory:
    """One per process. `monotonic` returns the time in seconds."""

    def __init__(self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._monotonic = monotonic
        self._known = RecentDict[str, tuple[Member | None, float]](_MOST_KEPT)
        self._flights = SingleFlight[Member | None]()

    def is_fresh(self, user_id: str, *, within: float = _KEPT) -> bool:
        """Returns whether this id is cached and was fetched within the given number of seconds."""
        if user_id not in self._known:
            return False
        found, asked_at = self._known[user_id]
        kept = _KEPT if found is not None and found.name else _UNKNOWN_KEPT
        return self._monotonic() < asked_at + min(kept, within)

    def known(self, user_id: str) -> Member | None:
        """Returns the cached data, however old."""
        return self._known[user_id][0] if user_id in self._known else None

    async def look_up(self, user_id: str, *, within: float = _KEPT) -> Member | None:
        """Returns a person, from the cache if they were fetched recently enough; None for an unknown id. Raises
        ChatError.
        """
        if self.is_fresh(user_id, within=within):
            return self.known(user_id)
        return await self._flights.get(user_id, self._fetch)

    async def _fetch(self, user_id: str) -> Member | None:
        asked_at = self._monotonic()  # the response may lack changes that happen while it is on its way
        try:
            user = (await call(self._client.users_info(user=user_id))).get("user")
            found = read_user(user_id, DescribedUser.read(user)) if isinstance(user, dict) else None
        except ChatMissingScope:
            raise
        except ChatRejected:
            found = None
        self._known[user_id] = (found, asked_at)
        return found


class UserProfile(LenientModel):
    """The names that a person chose."""

    display_name: Text = ""
    real_name: Text = ""


class EnterpriseUser(LenientModel):
    """A person in their organization."""

    enterprise_id: Text = ""


class DescribedUser(LenientModel):
    """A person as Slack describes them. Unless Slack says otherwise, they are a guest. Slack no longer shows the old
    `name`.
    """

    team_id: Text = ""
    is_restricted: StrictBool = True
    is_ultra_restricted: StrictBool = True
    is_bot: StrictBool = False
    is_workflow_bot: StrictBool = False
    deleted: StrictBool = False
    real_name: Text = ""
    profile: UserProfile = UserProfile()
    enterprise_user: EnterpriseUser = EnterpriseUser()

    @property
    def shown_name(self) -> str:
        """The name that Slack shows, on one line."""
        for text in (self.profile.display_name, self.profile.real_name, self.real_name):
            name = " ".join(displayable(text).split())[:_LONGEST_NAME].strip()
            if name:
                return name
        return ""


def read_user(user_id: str, user: DescribedUser) -> Member:
    """Returns the properties of a person that permissions depend on."""
    return Member(
        id=user_id,
        name=user.shown_name,
        team_id=user.team_id,
        is_guest=user.is_restricted or user.is_ultra_restricted,
        account=Account.WORKFLOW if user.is_workflow_bot else Account.BOT if user.is_bot else Account.PERSON,
        deleted=user.deleted,
        enterprise_id=user.enterprise_user.enterprise_id,
    )


class SlackMembers(Members):
    """One per process. `identity` says which workspace and organization are ours."""

    def __init__(self, directory: UserDirectory, identity: Identity) -> None:
        self._directory = directory
        self._identity = identity

    async def member(self, person_id: str) -> Member:
        """See Members. Everybody in our organization counts as a member of our workspace."""
        user = await self._directory.look_up(person_id, within=RIGHTS_KEPT)
        if user is None:
            raise ChatRejected("user_not_found")
        return self._counted(user)

    def known_member(self, person_id: str) -> Member | None:
        """See Members."""
        fresh = self._directory.is_fresh(person_id, within=RIGHTS_KEPT)
        user = self._directory.known(person_id) if fresh else None
        return self._counted(user) if user else None

    def known_account(self, user_id: str) -> Account | None:
        """See Members. An account never changes hands, so cached data counts however old it is."""
        if (user := self._directory.known(user_id)) is not None:
            return user.account
        return Account.BOT if self._directory.is_fresh(user_id) else None

    def _counted(self, user: Member) -> Member:
        ours = self._identity.enterprise_id
        colleague = bool(ours) and ours in {user.enterprise_id, user.team_id}
        return replace(user, team_id=self._identity.team_id) if colleague else user
