"""The few Block Kit blocks that Pagehand uses. Texts given here are escaped already (bot.slack.rendering.text)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Block = dict[str, Any]

SHOW_PROMPT = "show_prompt"
SHOW_ANSWER = "show_answer"
SEND_AGAIN = "send_again"
SEND_NEW_WORDS = "send_new_words"
OPEN_PULL_REQUEST = "open_pull_request"

MAX_SECTION = 3_000
MAX_REASON = 1_000
"""How much of a reason in others' words is shown."""
MAX_TEXT = 3_500
"""Slack advises 4,000 for a message's text, and refuses an update above that."""


@dataclass(frozen=True)
class Message:
    """What to post: `text` is what notifications and screen readers get, and all there is where `blocks` is empty."""

    text: str
    blocks: tuple[Block, ...] = ()

    def without_blocks(self) -> "Message":
        """Returns the same as text alone, for a place where Slack rejects the blocks."""
        return Message(self.text)


def mrkdwn(text: str) -> Block:
    """Returns escaped text; `verbatim` keeps Slack from finding `@here`, `#channel` or addresses in it."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def plain_text(text: str) -> Block:
    """Returns text of our own, for buttons and dialogs."""
    return {"type": "plain_text", "text": text, "emoji": False}


def section(text: str) -> Block:
    """Returns a paragraph, at most MAX_SECTION wide."""
    return {"type": "section", "text": mrkdwn(text)}


def markdown(text: str) -> Block:
    """Returns Markdown that cannot mislead any more (bot.slack.rendering.agent_markdown)."""
    return {"type": "markdown", "text": text}


def paragraph(text: str, *buttons: Block) -> Message:
    """A message of one paragraph, with its buttons."""
    return Message(text, (section(text), actions(*buttons)) if buttons else (section(text),))


def context_block(texts: Sequence[str]) -> Block:
    """Returns small print, at most 10 texts."""
    return {"type": "context", "elements": [mrkdwn(text) for text in texts]}


def actions(*buttons: Block) -> Block:
    """Returns a row of buttons."""
    return {"type": "actions", "elements": list(buttons)}


def button(label: str, action_id: str, value: str, *, confirm: Block | None = None) -> Block:
    """Returns a button whose click comes back with `value` (at most 2,000 wide; half a character in it as `?`)."""
    whole = value.encode("utf-8", "replace").decode()
    made: Block = {"type": "button", "text": plain_text(label), "action_id": action_id, "value": whole}
    return made if confirm is None else made | {"confirm": confirm}


def link_button(label: str, action_id: str, url: str) -> Block:
    """Returns a button that opens an address; Slack reports its click too."""
    return {"type": "button", "text": plain_text(label), "action_id": action_id, "url": url, "style": "primary"}


def confirmation(title: str, text: str, yes: str, no: str) -> Block:
    """Returns the question that Slack asks before a click counts."""
    return {"title": plain_text(title), "text": plain_text(text), "confirm": plain_text(yes), "deny": plain_text(no)}
