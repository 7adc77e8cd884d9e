"""What differs from one installation to the next in Pagehand's words."""

from dataclasses import dataclass

from bot.slack.rendering.text import escape, person


@dataclass(frozen=True)
class MessageContext:
    """`command` is the slash command's name; `admin` a Slack user's id or words; `bot_user_id` is who to invite.
    `several_projects`: there is more than one project, so that each job's is told.
    """

    command: str = "/docs"
    admin: str = ""
    bot_user_id: str = ""
    several_projects: bool = False

    @property
    def ask(self) -> str:
        """Whom to ask, as markup."""
        return person(self.admin) if self.admin else "whoever installed Pagehand"

    @property
    def bot(self) -> str:
        """Pagehand, as markup."""
        return person(self.bot_user_id) if self.bot_user_id else "@Pagehand"

    @property
    def slash(self) -> str:
        """The command, as markup."""
        return f"`{escape(self.command)}`"
