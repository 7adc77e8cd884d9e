"""Slack's documented limits on blocks, tested just within and just beyond."""

import copy
from typing import Any

import pytest

from bot.workspace.model.entities import SlackError
from bot.workspace.model.views import ViewKind
from bot.workspace.wire.views import checked_blocks, checked_view


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text}


def button(**fields: Any) -> dict[str, Any]:
    return {"type": "button", "text": plain("b"), **fields}


def actions(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "actions", "elements": list(elements)}


def option(value: str = "v") -> dict[str, Any]:
    return {"text": plain("o"), "value": value}


def task(number: int = 0, status: str = "pending", **fields: Any) -> dict[str, Any]:
    return {"type": "task_card", "task_id": str(number), "title": "t", "status": status, **fields}


def card(**fields: Any) -> dict[str, Any]:
    return {"type": "card", "actions": [button()], **fields}


def plan(*tasks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "plan", "title": "p", "tasks": list(tasks), **fields}


def image(**fields: Any) -> dict[str, Any]:
    return {"type": "image", "slack_file": {"id": "F0123456789"}, "alt_text": "a"} | fields


GOOD: list[dict[str, Any]] = [
    {"type": "section", "text": mrkdwn("x" * 3000) | {"verbatim": True}, "block_id": "i" * 255},
    {"type": "section", "text": mrkdwn("x"), "accessory": button(value="v" * 2000)},
    {"type": "header", "text": plain("x" * 150)},
    {"type": "context", "elements": [mrkdwn("x")] * 10},
    actions(*[button(url="u" * 3000, action_id=f"a{n}", style="primary") for n in range(25)]),
    actions({"type": "overflow", "options": [option(str(n)) for n in range(5)], "action_id": "o"}),
    actions({"type": "static_select", "options": [option()], "placeholder": plain("choose")}),
    {"type": "markdown", "text": "x" * 12_000},
    plan(*map(task, range(50)), block_id="p"),
    plan(*(task(number, status) for number, status in enumerate(("in_progress", "complete", "error")))),
    card(title=mrkdwn("x" * 150), subtitle=mrkdwn("x" * 150), body=mrkdwn("x" * 200)),
    {"type": "card", "actions": [button(url="https://x.example")], "block_id": "c"},
    image(alt_text="x" * 2000, title=plain("x" * 2000)),
]

BAD: list[dict[str, Any]] = [
    {"type": "section"},
    image(alt_text=""),
    image(title=mrkdwn("x")),
    image(slack_file={"id": "f1"}),
    image(slack_file={"id": "F0123456789", "url": "https://x.example"}),
    {"type": "section", "text": plain("x") | {"verbatim": True}},
    {"type": "section", "text": mrkdwn("x" * 3001)},
    {"type": "section", "text": mrkdwn("x"), "block_id": "i" * 256},
    {"type": "header", "text": plain("x" * 151)},
    {"type": "header", "text": mrkdwn("x")},
    {"type": "context", "elements": [mrkdwn("x")] * 11},
    {"type": "context", "elements": []},
    actions(*[button()] * 26),
    actions(button(text=plain("x" * 76))),
    actions(button(value="v" * 2001)),
    actions(button(url="u" * 3001)),
    actions(button(action_id="a" * 256)),
    actions(button(style="purple")),
    actions({"type": "marquee"}),
    {"type": "rich_text", "elements": []},
    {"type": "markdown", "text": "x" * 12_001},
    plan(*map(task, range(51))),
    plan(task(1), task(1)),
    plan(task(status="completed")),
    plan(task(title="")),
    plan(title=plain("p")),
    plan({"type": "header", "text": plain("x")}),
    task(status="complete"),
    card(title=mrkdwn("x" * 151)),
    card(subtitle=mrkdwn("x" * 151)),
    card(body=mrkdwn("x" * 201)),
    card(title="x"),
    {"type": "card", "body": mrkdwn("x")},
    {"type": "card", "actions": [button()] * 4},
    {"type": "section", "text": {"type": "mrkdwn", "text": None}},
]


@pytest.mark.parametrize("block", GOOD, ids=lambda block: str(block["type"]))
def test_blocks_within_the_limits(block: dict[str, Any]) -> None:
    assert checked_blocks([copy.deepcopy(block)]) == [block]


@pytest.mark.parametrize("block", BAD, ids=lambda value: str(value)[:40])
def test_blocks_beyond_the_limits(block: dict[str, Any]) -> None:
    with pytest.raises(SlackError, match=r"^invalid_blocks$"):
        checked_blocks([block])


@pytest.mark.parametrize("kind", ["home", "modal"])
def test_plans_are_for_messages_only(kind: ViewKind) -> None:
    view = {"type": kind, **({"title": plain("t")} if kind == "modal" else {})}
    assert checked_view({**view, "blocks": [card(body=mrkdwn("x"))]}, kind)
    with pytest.raises(SlackError, match=r"^invalid_arguments$"):
        checked_view({**view, "blocks": [plan(task())]}, kind)


def test_block_ids_are_unique_and_markdown_is_limited_in_all() -> None:
    for blocks, words in (
        ([{"type": "markdown", "text": "x", "block_id": "a"}] * 2, "not unique"),
        ([{"type": "markdown", "text": "x" * 7000}] * 2, "less than 12001"),
    ):
        with pytest.raises(SlackError) as caught:
            checked_blocks(blocks)
        assert words in caught.value.messages[0]
