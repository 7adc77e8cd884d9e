"""Views as Slack's payloads show them: which one it is, what it is about, and what its inputs hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.runtime.json_fields import object_at, objects_at, text_at
from bot.slack.rendering.modal_inputs import Input
from bot.slack.rendering.modals import ModalPlace, parse_place
from bot.slack.sending.views import ShownView


def view_id(body: Any) -> str:
    """Returns the id of the view that a payload is about."""
    return text_at(body, "view", "id")


def shown_view(body: Any) -> ShownView:
    """Returns the view that a payload is about, as it was shown when that happened."""
    return ShownView(view_id(body), text_at(body, "view", "hash"))


def place_of(body: Any) -> ModalPlace:
    """Returns what the view is about."""
    return parse_place(text_at(body, "view", "private_metadata"))


def text_in(body: Any, block_id: str) -> str:
    """Returns what an input of text holds; its action id is that of its block."""
    return text_at(_held(body, block_id), "value")


def choice_in(body: Any, block_id: str) -> str:
    """Returns the value of the option that is chosen; empty where none is."""
    return text_at(_held(body, block_id), "selected_option", "value")


@dataclass(frozen=True)
class GivenAnswer:
    """What an input of an agent's question holds; `text` is empty where nothing was answered."""

    block_id: str
    title: str
    text: str
    is_required: bool


def answers_in(body: Any) -> list[GivenAnswer]:
    """Returns the answers, in the order of their inputs. Own words go before what was chosen."""
    blocks = {text_at(block, "block_id"): block for block in objects_at(object_at(body, "view"), "blocks")}
    found = []
    for block_id, block in blocks.items():
        kind, _, number = block_id.partition("/")
        if kind in {Input.ANSWER, Input.REQUIRED_ANSWER}:
            text = text_in(body, f"{Input.OTHER_ANSWER}/{number}").strip() or _answered(body, block_id)
            title = text_at(block, "label", "text")
            found.append(GivenAnswer(block_id, title, text, is_required=kind == Input.REQUIRED_ANSWER))
    return found


def _answered(body: Any, block_id: str) -> str:
    chosen = [text_at(each, "value") for each in objects_at(_held(body, block_id), "selected_options")]
    return "; ".join(chosen) or choice_in(body, block_id) or text_in(body, block_id).strip()


def channel_in(body: Any, block_id: str) -> str:
    """Returns the channel that is chosen; empty where none is."""
    return text_at(_held(body, block_id), "selected_conversation")


def texts_in(body: Any, prefix: str) -> Sequence[tuple[str, str]]:
    """Returns the inputs of text whose block ids begin so, with what they hold, in the order of the blocks."""
    blocks = object_at(body, "view").get("blocks")
    ids = [text_at(block, "block_id") for block in blocks] if isinstance(blocks, list) else []
    return [(block_id, text_in(body, block_id)) for block_id in ids if block_id.startswith(prefix)]


def _held(body: Any, block_id: str) -> dict[str, Any]:
    values = object_at(object_at(object_at(body, "view"), "state"), "values")
    return object_at(object_at(values, block_id), block_id)
