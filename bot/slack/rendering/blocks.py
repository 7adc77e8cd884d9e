"""The few Block Kit blocks that Pagehand uses. Their arguments are already escaped (bot.slack.rendering.text)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import starmap
from typing import Any

from bot.notices.said import Button, ButtonId
from bot.slack.rendering.text import label, safe_url, shorten_plain

Block = dict[str, Any]

SHOW_PROMPT = "show_prompt"
"""Action ids identify a click and come with its `value`. The value of this one is the id of the job's thread. Those of
notices are in bot.notices.said.
"""
SHOW_ANSWER = "show_answer"
"""`<the thread's id>/<the answer's id>`."""
HAND_OVER = "hand_over"
"""`<the message's ts>/<its thread's ts>`: opens a modal for a message whose writer was asked what to do with it."""
FOLLOW_UP = "follow_up"
"""The thread's id: opens a modal for a message to the agent."""
RETRY_JOB = "retry_job"
"""The thread's id."""
CARD_MENU = "card_menu"
"""A menu: the `value` of `selected_option` comes from `menu_value`; `read_menu_value` reads it."""
CHOOSE_PROJECT = "choose_project"
"""`<the thread's id>/<the project's name>`; in a menu, this value is in `selected_option`."""
CHOOSE_PROJECT_BUTTONS = tuple(f"{CHOOSE_PROJECT}_{number}" for number in range(1, 6))
"""The same with a button per project, if there are few: the buttons of a row must have different ids."""

SEND_EXAMPLES = tuple(f"send_example_{number}" for number in range(1, 6))
"""`<the thread's id>/<the prompt>`; the button shows the prompt."""
SEND_ANSWERS = tuple(f"send_answer_{number}" for number in range(1, 6))
CHOOSE_ANSWER = "choose_answer"
"""The same in a list: the value is in `selected_option`."""
FILL_IN_ANSWER = "fill_in_answer"
"""`<the thread's id>/<the fields>` (bot.slack.rendering.modals): opens a modal with these fields."""
ASK_FOR_PROJECT = "ask_for_project"
"""The id of a thread whose project has to be chosen."""


class MenuItem(StrEnum):
    """An item of a card's menu."""

    WHOLE_REQUEST = "whole_request"
    MUTE = "mute"
    UNMUTE = "unmute"
    PROJECT = "project"
    """Another project for the same prompt."""
    JOB_ID = "job_id"
    """Shows the job's id privately, as text to copy."""


class RichBlock(StrEnum):
    """A kind of block that not every Slack takes. It shows what plainer blocks say, too."""

    PLAN = "plan"
    CARD = "card"


MAX_VALUE, MAX_OPTION, MAX_OPTION_VALUE = 2_000, 75, 150
"""Slack's limits for the value of a button, and for the label and the value of a menu's option."""
MAX_TASKS, MAX_CARD_TITLE, MAX_CARD_BODY = 50, 150, 200
"""Slack's limits for a plan and a card. Their `block_id` stays since another one closes what a reader has opened."""
MAX_WORDS = 300
"""How much is said of a picture; Slack would take 2,000."""
MAX_REASON = 1_000
"""How much of a foreign reason is shown."""
MAX_TEXT = 3_500
"""Slack recommends 4,000 for a message's text, and rejects a longer update."""


@dataclass(frozen=True)
class ChatMessage:
    """A message to post. `text` is for notifications and screen readers; if `blocks` is empty, it is the whole
    message.
    """

    text: str
    blocks: tuple[Block, ...] = ()

    @property
    def content(self) -> dict[str, Any]:
        """The arguments of Slack's methods."""
        return {"text": self.text, "blocks": list(self.blocks) or None}

    @property
    def rich(self) -> frozenset[RichBlock]:
        """The kinds of block in it that not every Slack takes."""
        return frozenset(RichBlock(block["type"]) for block in self.blocks if block["type"] in set(RichBlock))

    def without_blocks(self) -> "ChatMessage":
        """Returns the message without blocks, for when Slack rejects them."""
        return ChatMessage(self.text)


def mrkdwn(text: str) -> Block:
    """Returns escaped text; `verbatim` keeps Slack from recognizing `@here`, `#channel` or URLs in it."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def plain_text(text: str) -> Block:
    """Returns text of our own, for buttons and dialogs."""
    return {"type": "plain_text", "text": text, "emoji": False}


def section(text: str) -> Block:
    """Returns a paragraph, at most 3,000 wide (Slack's limit)."""
    return {"type": "section", "text": mrkdwn(text)}


def markdown(text: str) -> Block:
    """Returns a block of Markdown that is already safe (bot.slack.rendering.agent_markdown)."""
    return {"type": "markdown", "text": text}


def image(file: str, words: str, title: str) -> Block:
    """Returns a picture that was uploaded, with words for those who cannot see it, and its name."""
    shown = {
        "slack_file": {"id": file},
        "alt_text": label(words, MAX_WORDS),
        "title": plain_text(label(title, MAX_WORDS)),
    }
    return {"type": "image"} | shown


def paragraph(text: str, *buttons: Block) -> ChatMessage:
    """Returns a message of one paragraph, with its buttons."""
    return ChatMessage(text, (section(text), actions(*buttons)) if buttons else (section(text),))


def context_block(texts: Sequence[str]) -> Block:
    """Returns small print, at most 10 texts."""
    return {"type": "context", "elements": [mrkdwn(text) for text in texts]}


def plan(title: str, tasks: Iterable[Block]) -> Block:
    """Returns a checklist of at most MAX_TASKS tasks."""
    return {"type": RichBlock.PLAN.value, "block_id": "agent_plan", "title": title, "tasks": list(tasks)}


def task(number: int, title: str, status: str) -> Block:
    """Returns a task of a plan. `number` says which it is, whatever its title becomes."""
    return {"type": "task_card", "task_id": str(number), "title": title, "status": status}


def card(title: str, subtitle: str, body: str, button: Block) -> Block:
    """Returns a framed summary: title and subtitle of at most MAX_CARD_TITLE, the body of at most MAX_CARD_BODY."""
    texts = {"title": title, "subtitle": subtitle, "body": body}
    shown = {name: mrkdwn(text) for name, text in texts.items() if text}
    return {"type": RichBlock.CARD.value, "block_id": "pull_request", **shown, "actions": [button]}


def actions(*buttons: Block) -> Block:
    """Returns a row of buttons. Where a message or Home is updated, it needs a `block_id` that stays: otherwise Slack
    makes a new one each time, and a button whose dialog is open meanwhile is gone.
    """
    return {"type": "actions", "elements": list(buttons)}


def button(label: str, action_id: str, value: str, *, confirm: Block | None = None) -> Block:
    """Returns a button whose click comes back with `value` (at most MAX_VALUE wide)."""
    made: Block = {"type": "button", "text": plain_text(label), "action_id": action_id, "value": _sendable(value)}
    return made if confirm is None else made | {"confirm": confirm}


def menu_value(item: MenuItem, thread_id: str) -> str:
    """Returns the value of an item of a card's menu."""
    return f"{item}/{thread_id}"


def read_menu_value(value: str) -> tuple[MenuItem, str] | None:
    """Returns the chosen item of a card's menu and the thread's id; None if the value is something else."""
    item, _, thread_id = value.partition("/")
    return (MenuItem(item), thread_id) if item in set(MenuItem) and thread_id else None


def menu(action_id: str, options: Mapping[str, str]) -> Block:
    """Returns an overflow menu of up to 5 options: the values by label, each up to MAX_OPTION_VALUE wide."""
    return {"type": "overflow", "action_id": action_id, "options": list(starmap(option, options.items()))}


def select(action_id: str, placeholder: str, options: Mapping[str, str]) -> Block:
    """Returns a select list of up to 100 options, given as for `menu`."""
    made = {"type": "static_select", "action_id": action_id, "placeholder": plain_text(placeholder)}
    return made | {"options": list(starmap(option, options.items()))}


def choices(action_ids: Sequence[str], list_id: str, placeholder: str, values: Mapping[str, str]) -> list[Block]:
    """Returns a button for each value, given by label, if there are ids for so many; otherwise a list."""
    if len(values) > len(action_ids):
        return [select(list_id, placeholder, values)]
    pairs = zip(action_ids, values.items(), strict=False)
    return [button(label, action_id, value) for action_id, (label, value) in pairs]


def option(label: str, value: str) -> Block:
    """Returns an option, with as much of its label as Slack allows."""
    return {"text": plain_text(shorten_plain(label, MAX_OPTION)), "value": _sendable(value)}


def _sendable(value: str) -> str:
    """Returns the value with lone surrogates replaced by `?`, because Slack rejects them."""
    return value.encode("utf-8", "replace").decode()


def said_by(buttons: Iterable[Button]) -> list[Block]:
    """Returns the buttons of a notice, without those that have nothing to send."""
    return [block for each in buttons if each.value and (block := _said_by(each)) is not None]


def _said_by(made: Button) -> Block | None:
    if made.action is ButtonId.OPEN_PULL_REQUEST:
        url = safe_url(made.value)
        return None if url is None else link_button(made.label, made.action.value, url)
    asked = made.confirm
    confirm = None if asked is None else confirmation(asked.title, asked.text, asked.yes, asked.no)
    return button(made.label, made.action.value, made.value[:MAX_VALUE], confirm=confirm)


def link_button(label: str, action_id: str, url: str) -> Block:
    """Returns a button that opens a URL; Slack also reports its click."""
    return {"type": "button", "text": plain_text(label), "action_id": action_id, "url": url}


def confirmation(title: str, text: str, yes: str, no: str) -> Block:
    """Returns the question that Slack asks before a click counts."""
    return {"title": plain_text(title), "text": plain_text(text), "confirm": plain_text(yes), "deny": plain_text(no)}
