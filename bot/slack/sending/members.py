"""Who somebody is: bot.ports.slack.Members over Slack's users.info."""

from dataclasses import replace

from bot.domain.people.members import Member
from bot.errors import ChatRejected
from bot.ports.slack import Members
from bot.slack.sending.identity import Identity
from bot.slack.sending.user_directory import RIGHTS_KEPT, UserDirectory


class SlackMembers(Members):
    """One for a process. `identity` says which workspace and organization are ours."""

    def __init__(self, directory: UserDirectory, identity: Identity) -> None:
        self._directory = directory
        self._identity = identity

    async def member(self, person_id: str) -> Member:
        """See Members. Everybody of our organization counts as one of our workspace."""
        user = await self._directory.look_up(person_id, within=RIGHTS_KEPT)
        if user is None:
            raise ChatRejected("user_not_found")
        ours = self._identity.enterprise_id
        colleague = bool(ours) and ours in {user.enterprise_id, user.member.team_id}
        return replace(user.member, team_id=self._identity.team_id) if colleague else user.member
