"""The facts about the installation that Pagehand's messages mention, how words are filled in with them, and links to a
message's thread.

The words stand where they are used, here and in bot.notices. Each text says what happened, what it means and what to
do, in at most two short sentences; a test checks all of them as one page. Pagehand calls itself "I", and calls what is
behind the job API "the agent".
"""

import re
from dataclasses import dataclass
from functools import cached_property

from bot.notices.said import ELLIPSIS, Markup
from bot.slack.rendering import text
from bot.slack.rendering.blocks import ChatMessage, section
from bot.slack.rendering.text import channel, escape, one_line, opening, person, pieces, quote, safe_url

_CHANNEL = re.compile(r"(?=.*[0-9])[CG][A-Z0-9]{7,30}")
_MAX_LINK = 2_000


@dataclass(frozen=True)
class MessageContext:
    """Facts about the installation, and bot.notices.said.Renderer for Slack.

    `command` is the slash command, `admin` the id of a Slack user or channel, or a few words, `bot_user_id` the user to
    invite, and `workspace` the workspace's name. With `several_projects`, each job's project is shown. Of one message:
    whether its thread is somebody else's conversation (`among_others`), and whom it mentions.
    """

    command: str = "/docs"
    admin: str = ""
    bot_user_id: str = ""
    several_projects: bool = False
    workspace: str = ""
    among_others: bool = False
    mentioned: str = ""

    def __call__(self, words: str, /, **parts: Markup | int) -> Markup:
        """See Renderer."""
        return Markup(words.format_map(self._facts | parts))

    @cached_property
    def _facts(self) -> dict[str, Markup | int]:
        return {
            "ask": self._ask(),
            "bot": person(self.bot_user_id) if self.bot_user_id else Markup("@Pagehand"),
            "command": escape(self.command),
            "slash": Markup(f"`{escape(self.command)}`"),
            "workspace": one_line(self.workspace, 100) or Markup("the workspace I belong to"),
            "reply": Markup("Mention Pagehand here" if self.among_others else "Reply here"),
        }

    def _ask(self) -> Markup:
        if _CHANNEL.fullmatch(self.admin):
            return channel(self.admin)
        return person(self.admin) if self.admin else Markup("whoever installed Pagehand")

    person = staticmethod(text.person)
    line = staticmethod(text.one_line)
    link = staticmethod(text.link)
    moment = staticmethod(text.moment)
    day_and_time = staticmethod(text.day_and_time)

    def addressed(self, person_id: str, words: Markup) -> Markup:
        """See Renderer."""
        return self("{who} {words}", who=person(person_id), words=words) if person_id else words

    def quote(self, text: str, characters: int = 300, lines: int = 4, width: int = 1_500) -> Markup:
        """See Renderer."""
        shown, cut = opening(text, characters=characters, lines=lines)
        return quote((pieces(shown + (ELLIPSIS if cut else ""), width) or [""])[0])


def leading_to(thread_url: str, message: ChatMessage, label: str = "Go to the job") -> ChatMessage:
    """Returns a message with the link to the thread, or the message, that it is about, if known."""
    url = escape(safe_url(thread_url) or "")
    if not url or len(url) > _MAX_LINK:
        return message
    to_job = f"<{url}|{label}>"
    return ChatMessage(f"{message.text}\n{to_job}", (*message.blocks, section(to_job)) if message.blocks else ())
