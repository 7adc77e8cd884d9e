"""Words for one person that do not stand in the thread that they are about. Pure."""

from bot.slack.rendering.blocks import Message, section
from bot.slack.rendering.text import escape, safe_url
from bot.slack.rendering.words.answers import LINK_TO_JOB

_MAX_LINK = 2_000


def leading_to(thread_url: str, message: Message) -> Message:
    """Returns a message with the address of the thread that it is about, where that is known."""
    url = escape(safe_url(thread_url) or "")
    if not url or len(url) > _MAX_LINK:
        return message
    link = LINK_TO_JOB(url=url)
    return Message(f"{message.text}\n{link}", (*message.blocks, section(link)) if message.blocks else ())
