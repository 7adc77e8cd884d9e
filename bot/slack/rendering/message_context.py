"""What Pagehand's words depend on: the installation, and where a private message is shown."""

from dataclasses import dataclass

from bot.slack.rendering.blocks import Message, section
from bot.slack.rendering.text import Markup, escape, one_line, person, safe_url
from bot.slack.rendering.words import names
from bot.slack.rendering.words.answers import LINK_TO_JOB


@dataclass(frozen=True)
class MessageContext:
    """`command` is the slash command's name; `admin` a Slack user's id or words; `bot_user_id` is who to invite.
    `several_projects`: there is more than one project, so that each job's is told. `workspace` is Slack's name of it.
    """

    command: str = "/docs"
    admin: str = ""
    bot_user_id: str = ""
    several_projects: bool = False
    workspace: str = ""

    @property
    def ask(self) -> Markup:
        """Whom to ask, as markup."""
        return person(self.admin) if self.admin else names.WHOEVER_INSTALLED

    @property
    def bot(self) -> Markup:
        """Pagehand, as markup."""
        return person(self.bot_user_id) if self.bot_user_id else names.PAGEHAND

    @property
    def slash(self) -> Markup:
        """The command, as markup."""
        return names.COMMAND(command=escape(self.command))

    @property
    def home_workspace(self) -> Markup:
        """The workspace that Pagehand belongs to, as markup."""
        return one_line(self.workspace, 100) or names.WORKSPACE


_MAX_LINK = 2_000


def leading_to(thread_url: str, message: Message) -> Message:
    """Returns a message with the address of the thread that it is about, where that is known."""
    url = escape(safe_url(thread_url) or "")
    if not url or len(url) > _MAX_LINK:
        return message
    link = LINK_TO_JOB(url=url)
    return Message(f"{message.text}\n{link}", (*message.blocks, section(link)) if message.blocks else ())
