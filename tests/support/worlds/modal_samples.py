"""Modals as an app gives them, for the tests of the workspace's page."""

from typing import Any

Json = dict[str, Any]


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def option(text: str, value: str) -> Json:
    return {"text": plain(text), "value": value}


def input_block(block_id: str, label: str, element: Json, **more: Any) -> Json:
    """Returns an input whose element has the same id as its block."""
    return {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "element": {"action_id": block_id, **element},
    } | more


def modal(*blocks: Json, title: str = "New task", **more: Any) -> Json:
    return {
        "type": "modal",
        "callback_id": "task",
        "title": plain(title),
        "submit": plain("Start"),
        "blocks": [*blocks],
    } | more


PROMPT = input_block("prompt", "What to do", {"type": "plain_text_input", "multiline": True, "max_length": 40})
TITLE = input_block("title", "Title", {"type": "plain_text_input"}, optional=True)
PROJECT = input_block(
    "project", "Project", {"type": "static_select", "options": [option("Guide", "guide"), option("Handbook", "book")]}
)
CHANNEL = input_block("place", "Where", {"type": "conversations_select", "default_to_current_conversation": True})
TELL = input_block(
    "tell",
    "Tell me",
    {"type": "radio_buttons", "options": [option("In the thread", "thread"), option("Not at all", "no")]},
    hint=plain("When it is done"),
)
EXTRAS = input_block(
    "extras",
    "Extras",
    {"type": "checkboxes", "options": [option("Quietly", "quiet"), option("With the thread", "thread")]},
    optional=True,
)
WHOLE = modal(
    {"type": "section", "block_id": "intro", "text": {"type": "mrkdwn", "text": "*Hand over* a task"}},
    PROMPT,
    TITLE,
    PROJECT,
    CHANNEL,
    TELL,
    EXTRAS,
    {"type": "context", "elements": [{"type": "mrkdwn", "text": "It may take a while."}]},
)
