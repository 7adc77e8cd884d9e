"""The few Block Kit blocks that Pagehand uses. Texts given here are escaped already (bot.slack.text)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Block = dict[str, Any]

SHOW_PROMPT = "show_prompt"
SEND_AGAIN = "send_again"
OPEN_PULL_REQUEST = "open_pull_request"

MAX_SECTION = 3_000
MAX_TEXT = 3_500
"""Slack advises 4,000 for a message's text, and refuses an update above that."""


@dataclass(frozen=True)
class Message:
    """What to post: `text` is what notifications and screen readers get, and all there is where `blocks` is empty."""

    text: str
    blocks: tuple[Block, ...] = ()

    def in_words(self) -> "Message":
        """The same without blocks, for a place where Slack refused them."""
        return Message(self.text)


def mrkdwn(text: str) -> Block:
    """Escaped text; `verbatim` keeps Slack from finding `@here`, `#channel` or addresses in it."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def words(text: str) -> Block:
    """Words of our own, for buttons and dialogs."""
    return {"type": "plain_text", "text": text, "emoji": False}


def section(text: str) -> Block:
    """A paragraph, at most MAX_SECTION wide."""
    return {"type": "section", "text": mrkdwn(text)}


def context(texts: Sequence[str]) -> Block:
    """Small print, at most 10 texts."""
    return {"type": "context", "elements": [mrkdwn(text) for text in texts]}


def actions(*buttons: Block) -> Block:
    """A row of buttons."""
    return {"type": "actions", "elements": list(buttons)}


def button(label: str, action_id: str, value: str, *, confirm: Block | None = None) -> Block:
    """A button whose click comes back with `value` (at most 2,000; half a character, which JSON can hold, as `?`)."""
    whole = value.encode("utf-8", "replace").decode()
    made: Block = {"type": "button", "text": words(label), "action_id": action_id, "value": whole}
    return made if confirm is None else made | {"confirm": confirm}


def link_button(label: str, action_id: str, url: str) -> Block:
    """A button that opens an address; Slack reports its click too."""
    return {"type": "button", "text": words(label), "action_id": action_id, "url": url, "style": "primary"}


def confirmation(title: str, text: str, yes: str, no: str) -> Block:
    """The question that Slack asks before a click counts."""
    return {"title": words(title), "text": words(text), "confirm": words(yes), "deny": words(no)}
