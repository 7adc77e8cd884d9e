"""Block Kit's blocks as Slack documents them: which fields each has, and how long they may be. Views included, with the
limits of docs.slack.dev.

Slack refuses a field it does not know, so the models do too. Limits are those of docs.slack.dev.
"""

from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, Discriminator, Field, StringConstraints, Tag, model_validator

from bot.workspace.model.entities import Json
from bot.workspace.model.kit_elements import (
    Accessory,
    Action,
    FieldText,
    HeaderText,
    Id,
    Image,
    InputElement,
    PlainText,
    ShortText,
    Strict,
    Text,
    Url,
)

_INTERACTIVE = frozenset(
    {
        "button",
        "channels_select",
        "checkboxes",
        "conversations_select",
        "multi_static_select",
        "number_input",
        "overflow",
        "plain_text_input",
        "radio_buttons",
        "static_select",
        "users_select",
    }
)


def _context_kind(value: object) -> str:
    return "image" if isinstance(value, dict) and value.get("type") == "image" else "text"


ContextElement = Annotated[
    Annotated[Image, Tag("image")] | Annotated[FieldText, Tag("text")], Discriminator(_context_kind)
]


class Block(Strict):
    block_id: Id | None = None


class Section(Block):
    type: Literal["section"]
    text: Text | None = None
    fields: Annotated[list[FieldText], Field(min_length=1, max_length=10)] | None = None
    accessory: Accessory | None = None
    expand: bool | None = None

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
    level: int | None = None


class Context(Block):
    type: Literal["context"]
    elements: Annotated[list[ContextElement], Field(min_length=1, max_length=10)]


class Actions(Block):
    type: Literal["actions"]
    elements: Annotated[list[Action], Field(min_length=1, max_length=25)]


class ImageBlock(Block):
    type: Literal["image"]
    alt_text: ShortText
    image_url: Url | None = None
    slack_file: dict[str, Any] | None = None
    title: PlainText | None = None


class Markdown(Block):
    type: Literal["markdown"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=12_000)]


class RichText(Block):
    type: Literal["rich_text"]
    elements: list[dict[str, Any]]


class LabelOfInput(PlainText):
    """The label of an input, and its hint."""

    text: ShortText


class InputBlock(Block):
    type: Literal["input"]
    label: LabelOfInput
    element: InputElement
    dispatch_action: bool | None = None
    hint: LabelOfInput | None = None
    optional: bool | None = None


class OtherBlock(BaseModel):
    """Blocks that are passed through: known by type, their fields not looked into."""

    type: Literal["card", "carousel", "alert", "context_actions", "file", "plan", "table", "task_card", "video"]
    block_id: Id | None = None


AnyBlock = Annotated[
    Section | Divider | Header | Context | Actions | ImageBlock | InputBlock | Markdown | RichText | OtherBlock,
    Field(discriminator="type"),
]


def assign_ids(blocks: list[Json] | None) -> None:
    """Gives blocks and their interactive elements the ids that the app left out, as Slack does."""
    for block in blocks or []:
        block.setdefault("block_id", uuid4().hex[:5])
        for element in (
            *_objects(block.get("elements")),
            *_objects(block.get("accessory")),
            *_objects(block.get("element")),
        ):
            if isinstance(kind := element.get("type"), str) and kind in _INTERACTIVE:
                element.setdefault("action_id", uuid4().hex[:5])


def _objects(value: object) -> list[Json]:
    if isinstance(value, dict):
        return [value]
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


MAX_BLOCKS = 100
MAX_BYTES = 250_000


class OtherViewBlock(BaseModel):
    """Blocks that are passed through: known by type, their fields not looked into."""

    type: Literal["card", "video"]
    block_id: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None


class Alert(BaseModel):
    """A block of modals alone, its fields not looked into."""

    type: Literal["alert"]
    block_id: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None


class OtherHomeBlock(BaseModel):
    """Blocks of Home alone, their fields not looked into."""

    type: Literal["carousel", "container", "table"]
    block_id: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None


_Shared = Section | Divider | Header | Context | Actions | ImageBlock | InputBlock | RichText | OtherViewBlock
_ModalBlock = Annotated[_Shared | Alert, Field(discriminator="type")]
_HomeBlock = Annotated[_Shared | OtherHomeBlock, Field(discriminator="type")]


class _Title(PlainText):
    text: Annotated[str, StringConstraints(min_length=1, max_length=24)]


class _View(Strict):
    private_metadata: Annotated[str, StringConstraints(max_length=3000)] | None = None
    callback_id: Annotated[str, StringConstraints(max_length=255)] | None = None
    external_id: Annotated[str, StringConstraints(max_length=255)] | None = None


class ModalView(_View):
    """A modal. One with inputs must have a button to submit it."""

    type: Literal["modal"]
    title: _Title
    blocks: Annotated[list[_ModalBlock], Field(max_length=MAX_BLOCKS)]
    submit: _Title | None = None
    close: _Title | None = None
    clear_on_close: bool | None = None
    notify_on_close: bool | None = None
    submit_disabled: bool | None = None

    @model_validator(mode="after")
    def _can_be_submitted(self) -> "ModalView":
        if self.submit is None and any(isinstance(block, InputBlock) for block in self.blocks):
            raise ValueError("missing required field: submit")
        return self


class HomeView(_View):
    """A Home tab."""

    type: Literal["home"]
    blocks: Annotated[list[_HomeBlock], Field(max_length=MAX_BLOCKS)]
