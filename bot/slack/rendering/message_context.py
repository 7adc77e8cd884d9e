"""The facts about the installation that Pagehand's messages mention, and links to a message's thread."""

import re
from dataclasses import dataclass

from bot.slack.rendering.blocks import ChatMessage, section
from bot.slack.rendering.text import Markup, channel, escape, one_line, person, safe_url
from bot.slack.rendering.words import names
from bot.slack.rendering.words.answers import LINK_TO_JOB

_CHANNEL = re.compile(r"(?=.*[0-9])[CG][A-Z0-9]{7,30}")


@dataclass(frozen=True)
class MessageContext:
    """Facts about the installation.

    `command` is the slash command, `admin` the id of a Slack user or channel, or a few words, `bot_user_id` the user to
    invite, and `workspace` the workspace's name. With `several_projects`, each job's project is shown.
    """

    command: str = "/docs"
    admin: str = ""
    bot_user_id: str = ""
    several_projects: bool = False
    workspace: str = ""

    @property
    def ask(self) -> Markup:
        """Whom to ask, as markup."""
        if _CHANNEL.fullmatch(self.admin):
            return channel(self.admin)
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


def leading_to(thread_url: str, message: ChatMessage) -> ChatMessage:
    """Returns a message with the link to the thread that it is about, if known."""
    url = escape(safe_url(thread_url) or "")
    if not url or len(url) > _MAX_LINK:
        return message
    link = LINK_TO_JOB(url=url)
    return ChatMessage(f"{message.text}\n{link}", (*message.blocks, section(link)) if message.blocks else ())
