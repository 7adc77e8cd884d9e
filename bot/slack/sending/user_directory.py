"""The people of the workspace, by users.info, cached in one place for the whole process."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from pydantic import AliasPath, Field, StrictBool
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.people import Account, Member
from bot.errors import ChatMissingScope, ChatRejected
from bot.ports.slack import Members
from bot.runtime.text import displayable
from bot.runtime.untrusted_json import LenientModel, Text
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import call

RIGHTS_KEPT = 300.0
"""Seconds for which what Slack says about a person counts: somebody who was made a guest can keep their permissions for
that long.
"""
_LONGEST_NAME = 80


class UserDirectory(ExpiringCache[Member | None]):
    """One per process. `monotonic` returns the time in seconds."""

    def __init__(self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(seconds=RIGHTS_KEPT, monotonic=monotonic)
        self._client = client

    async def look_up(self, user_id: str) -> Member | None:
        """Returns a person, from the cache if they were fetched recently; None for an unknown id. Raises ChatError."""
        return await self.get(user_id, self._fetch)

    async def _fetch(self, user_id: str) -> Member | None:
        try:
            user = (await call(self._client.users_info(user=user_id))).get("user")
        except ChatMissingScope:
            raise
        except ChatRejected:
            return None
        return read_user(user_id, DescribedUser.read(user)) if isinstance(user, dict) else None


class UserProfile(LenientModel):
    """The names that a person chose."""

    display_name: Text = ""
    real_name: Text = ""


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
    enterprise_id: Annotated[Text, Field(validation_alias=AliasPath("enterprise_user", "enterprise_id"))] = ""

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
        account=Account.BOT if user.is_bot or user.is_workflow_bot else Account.PERSON,
        deleted=user.deleted,
        enterprise_id=user.enterprise_id,
    )


class SlackMembers(Members):
    """One per process. `identity` says which workspace and organization are ours."""

    def __init__(self, directory: UserDirectory, identity: Identity) -> None:
        self._directory = directory
        self._identity = identity

    async def member(self, person_id: str) -> Member:
        """See Members. Everybody in our organization counts as a member of our workspace."""
        user = await self._directory.look_up(person_id)
        if user is None:
            raise ChatRejected("user_not_found")
        return self._counted(user)

    def known_member(self, person_id: str) -> Member | None:
        """See Members."""
        user = self._directory.known(person_id) if self._directory.is_fresh(person_id) else None
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
