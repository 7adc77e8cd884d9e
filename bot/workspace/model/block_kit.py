"""Block Kit's blocks and views, as far as Pagehand uses them: their fields, and the limits that docs.slack.dev gives.

Slack refuses a field that it does not know. These models do, too, and also what they leave out of Block Kit.
"""

from typing import Annotated, Literal
from uuid import uuid4

from pydantic import Field, StringConstraints, model_validator

from bot.workspace.model.entities import Json
from bot.workspace.model.kit_elements import (
    Action,
    FieldText,
    HeaderText,
    Id,
    InputElement,
    PlainText,
    ShortText,
    Strict,
    Text,
)

_TEXTS = frozenset({"plain_text", "mrkdwn"})


class Block(Strict):
    block_id: Id | None = None


class Section(Block):
    type: Literal["section"]
    text: Text | None = None
    fields: Annotated[list[FieldText], Field(min_length=1, max_length=10)] | None = None
    accessory: Action | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Section":
        if self.text is None and self.fields is None:
            raise ValueError("missing required field: text")
        return self


class Divider(Block):
    type: Literal["divider"]


class Header(Block):
    type: Literal["header"]
    text: HeaderText


class Context(Block):
    type: Literal["context"]
    elements: Annotated[list[FieldText], Field(min_length=1, max_length=10)]


class Actions(Block):
    type: Literal["actions"]
    elements: Annotated[list[Action], Field(min_length=1, max_length=25)]


class Markdown(Block):
    type: Literal["markdown"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=12_000)]


class InputLabel(PlainText):
    """An input's label or hint."""

    text: ShortText


class InputBlock(Block):
    type: Literal["input"]
    label: InputLabel
    element: InputElement
    dispatch_action: bool | None = None
    hint: InputLabel | None = None
    optional: bool | None = None


_Shared = Section | Divider | Header | Context | Actions | InputBlock
MessageBlock = Annotated[_Shared | Markdown, Field(discriminator="type")]
ViewBlock = Annotated[_Shared, Field(discriminator="type")]


def assign_ids(blocks: list[Json] | None) -> None:
    """Adds the ids of blocks and interactive elements that the app left out, as Slack does."""
    for block in blocks or []:
        block.setdefault("block_id", uuid4().hex[:5])
        for element in (block.get("accessory"), block.get("element"), *(block.get("elements") or ())):
            if element and element["type"] not in _TEXTS:
                element.setdefault("action_id", uuid4().hex[:5])


MAX_BLOCKS = 100
"""In a view."""
MAX_BYTES = 250_000


class _Title(PlainText):
    text: Annotated[str, StringConstraints(min_length=1, max_length=24)]


class _View(Strict):
    private_metadata: Annotated[str, StringConstraints(max_length=3000)] | None = None
    callback_id: Annotated[str, StringConstraints(max_length=255)] | None = None


class ModalView(_View):
    """A modal. With inputs, it must have a submit button."""

    type: Literal["modal"]
    title: _Title
    blocks: Annotated[list[ViewBlock], Field(max_length=MAX_BLOCKS)]
    submit: _Title | None = None
    close: _Title | None = None
    notify_on_close: bool | None = None

    @model_validator(mode="after")
    def _can_be_submitted(self) -> "ModalView":
        if self.submit is None and any(isinstance(block, InputBlock) for block in self.blocks):
            raise ValueError("missing required field: submit")
        return self


class HomeView(_View):
    """A Home tab."""

    type: Literal["home"]
    blocks: Annotated[list[ViewBlock], Field(max_length=MAX_BLOCKS)]
