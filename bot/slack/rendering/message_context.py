"""The facts about the installation that Pagehand's messages mention, and links to a message's thread."""

import re
from dataclasses import dataclass

from bot.notices.said import ELLIPSIS, Markup
from bot.slack.rendering.blocks import ChatMessage, section
from bot.slack.rendering.text import (
    channel,
    day_and_time,
    escape,
    link,
    moment,
    one_line,
    opening,
    person,
    pieces,
    quote,
    safe_url,
)
from bot.slack.rendering.words import names

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


@dataclass(frozen=True)
class SlackRenderer:
    """bot.notices.said.Renderer for Slack. `among_others`: the thread is somebody else's conversation."""

    context: MessageContext
    among_others: bool = False
    mentioned: str = ""

    def __call__(self, words: str, /, **parts: Markup | int) -> Markup:
        """See Renderer."""
        context = self.context
        facts: dict[str, Markup | int] = {
            "ask": context.ask,
            "bot": context.bot,
            "command": escape(context.command),
            "slash": context.slash,
            "workspace": context.home_workspace,
            "reply": names.MENTION if self.among_others else names.REPLY,
        }
        return Markup(words.format_map(facts | parts))

    def person(self, user_id: str) -> Markup:
        """See Renderer."""
        return person(user_id)

    def line(self, text: str, limit: int = 100) -> Markup:
        """See Renderer."""
        return one_line(text, limit)

    def quote(self, text: str, characters: int = 300, lines: int = 4, width: int = 1_500) -> Markup:
        """See Renderer."""
        shown, cut = opening(text, characters=characters, lines=lines)
        return quote((pieces(shown + (ELLIPSIS if cut else ""), width) or [""])[0])

    def link(self, url: str, limit: int = 1_500) -> Markup:
        """See Renderer."""
        return link(url, limit)

    def moment(self, seconds: int) -> Markup:
        """See Renderer."""
        return moment(seconds)

    def day_and_time(self, seconds: float) -> Markup:
        """See Renderer."""
        return day_and_time(seconds)


_MAX_LINK = 2_000


def leading_to(thread_url: str, message: ChatMessage) -> ChatMessage:
    """Returns a message with the link to the thread that it is about, if known."""
    url = escape(safe_url(thread_url) or "")
    if not url or len(url) > _MAX_LINK:
        return message
    to_job = names.LINK_TO_JOB(url=url)
    return ChatMessage(f"{message.text}\n{to_job}", (*message.blocks, section(to_job)) if message.blocks else ())
