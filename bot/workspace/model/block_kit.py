"""Block Kit as Slack documents it: which fields each block and element has, and how long they may be.

Slack refuses a field it does not know, so the models do too. Limits are those of docs.slack.dev.
"""

from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag, model_validator

from bot.workspace.model.entities import Json

_INTERACTIVE = frozenset({"button", "overflow", "static_select", "checkboxes", "radio_buttons"})
Id = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=3000)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Text(Strict):
    """A text object; ``emoji`` belongs to plain_text and ``verbatim`` to mrkdwn."""

    type: Literal["plain_text", "mrkdwn"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=3000)]
    emoji: bool | None = None
    verbatim: bool | None = None

    @model_validator(mode="after")
    def _options_fit_the_type(self) -> "Text":
        if self.type == "plain_text" and self.verbatim is not None:
            raise ValueError("invalid additional property: verbatim")
        if self.type == "mrkdwn" and self.emoji is not None:
            raise ValueError("invalid additional property: emoji")
        return self


class PlainText(Strict):
    type: Literal["plain_text"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=3000)]
    emoji: bool | None = None


class FieldText(Text):
    text: ShortText


class LabelText(PlainText):
    """The text of a button, an option or a confirmation's button."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=75)]


class HeaderText(PlainText):
    text: Annotated[str, StringConstraints(min_length=1, max_length=150)]


class PlaceholderText(PlainText):
    text: Annotated[str, StringConstraints(min_length=1, max_length=150)]


class ConfirmText(Text):
    text: Annotated[str, StringConstraints(min_length=1, max_length=300)]


class ConfirmTitle(PlainText):
    text: Annotated[str, StringConstraints(min_length=1, max_length=100)]


class ConfirmLabel(PlainText):
    text: Annotated[str, StringConstraints(min_length=1, max_length=30)]


class Confirm(Strict):
    title: ConfirmTitle
    text: ConfirmText
    confirm: ConfirmLabel
    deny: ConfirmLabel
    style: Literal["primary", "danger"] | None = None


class Option(Strict):
    text: Text
    value: Annotated[str, StringConstraints(min_length=1, max_length=150)]
    description: Text | None = None
    url: Url | None = None


class Button(Strict):
    type: Literal["button"]
    text: LabelText
    action_id: Id | None = None
    value: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    url: Url | None = None
    style: Literal["primary", "danger"] | None = None
    confirm: Confirm | None = None
    accessibility_label: Annotated[str, StringConstraints(max_length=75)] | None = None


class Overflow(Strict):
    type: Literal["overflow"]
    options: Annotated[list[Option], Field(min_length=1, max_length=5)]
    action_id: Id | None = None
    confirm: Confirm | None = None


class StaticSelect(Strict):
    type: Literal["static_select"]
    options: Annotated[list[Option], Field(min_length=1, max_length=100)]
    action_id: Id | None = None
    placeholder: PlaceholderText | None = None
    initial_option: Option | None = None
    confirm: Confirm | None = None
    focus_on_load: bool | None = None


class Image(Strict):
    type: Literal["image"]
    alt_text: ShortText
    image_url: Url | None = None
    slack_file: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _has_a_source(self) -> "Image":
        if (self.image_url is None) == (self.slack_file is None):
            raise ValueError("must have one of image_url and slack_file")
        return self


class OtherElement(BaseModel):
    """Elements that are passed through: known by type, their fields not looked into."""

    type: Literal[
        "channels_select",
        "checkboxes",
        "conversations_select",
        "datepicker",
        "datetimepicker",
        "external_select",
        "feedback_buttons",
        "icon_button",
        "multi_channels_select",
        "multi_conversations_select",
        "multi_external_select",
        "multi_static_select",
        "multi_users_select",
        "radio_buttons",
        "timepicker",
        "users_select",
        "workflow_button",
    ]
    action_id: Id | None = None


Action = Annotated[Button | Overflow | StaticSelect | OtherElement, Field(discriminator="type")]
Accessory = Annotated[Button | Overflow | StaticSelect | Image | OtherElement, Field(discriminator="type")]


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


class OtherBlock(BaseModel):
    """Blocks that are passed through: known by type, their fields not looked into."""

    type: Literal[
        "card", "carousel", "alert", "context_actions", "file", "input", "plan", "table", "task_card", "video"
    ]
    block_id: Id | None = None


AnyBlock = Annotated[
    Section | Divider | Header | Context | Actions | ImageBlock | Markdown | RichText | OtherBlock,
    Field(discriminator="type"),
]


def assign_ids(blocks: list[Json] | None) -> None:
    """Gives blocks and their interactive elements the ids that the app left out, as Slack does."""
    for block in blocks or []:
        block.setdefault("block_id", uuid4().hex[:5])
        for element in (*_objects(block.get("elements")), *_objects(block.get("accessory"))):
            if element.get("type") in _INTERACTIVE:
                element.setdefault("action_id", uuid4().hex[:5])


def _objects(value: object) -> list[Json]:
    if isinstance(value, dict):
        return [value]
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
