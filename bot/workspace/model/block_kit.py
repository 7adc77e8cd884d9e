"""Block Kit's elements, blocks and views, as far as Pagehand uses them, with the limits that docs.slack.dev gives.

Slack refuses a field that it does not know. These models do, too, and also what they leave out of Block Kit.
"""

from typing import Annotated, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from bot.workspace.model.entities import Json

Id = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=3000)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Mrkdwn(Strict):
    type: Literal["mrkdwn"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=3000)]
    verbatim: bool | None = None


class PlainText(Strict):
    type: Literal["plain_text"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=3000)]
    emoji: bool | None = None


class SmallPrint(Mrkdwn):
    text: ShortText


class LabelText(PlainText):
    """A button's text."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=75)]


class LineText(PlainText):
    """A header or a placeholder."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=150)]


class ConfirmText(PlainText):
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


class Option(Strict):
    text: PlainText
    value: Annotated[str, StringConstraints(min_length=1, max_length=150)]


class Interactive(Strict):
    action_id: Id | None = None


class Confirmed(Interactive):
    confirm: Confirm | None = None


class Chooser(Confirmed):
    focus_on_load: bool | None = None


class Button(Confirmed):
    type: Literal["button"]
    text: LabelText
    value: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    url: Url | None = None
    style: Literal["primary"] | None = None


class Overflow(Confirmed):
    type: Literal["overflow"]
    options: Annotated[list[Option], Field(min_length=1, max_length=5)]


class StaticSelect(Chooser):
    type: Literal["static_select"]
    options: Annotated[list[Option], Field(min_length=1, max_length=100)]
    placeholder: LineText | None = None
    initial_option: Option | None = None


class MultiStaticSelect(Chooser):
    type: Literal["multi_static_select"]
    options: Annotated[list[Option], Field(min_length=1, max_length=100)]
    placeholder: LineText | None = None


class RadioButtons(Chooser):
    type: Literal["radio_buttons"]
    options: Annotated[list[Option], Field(min_length=1, max_length=10)]
    initial_option: Option | None = None


class Checkboxes(Chooser):
    type: Literal["checkboxes"]
    options: Annotated[list[Option], Field(min_length=1, max_length=10)]
    initial_options: Annotated[list[Option], Field(min_length=1, max_length=10)] | None = None


class ConversationFilter(Strict):
    """Which conversations to offer."""

    include: Annotated[list[Literal["im", "mpim", "private", "public"]], Field(min_length=1)] | None = None
    exclude_bot_users: bool | None = None


class ConversationsSelect(Chooser):
    type: Literal["conversations_select"]
    placeholder: LineText | None = None
    default_to_current_conversation: bool | None = None
    filter: ConversationFilter | None = None


class DispatchActionConfig(Strict):
    """When a text input tells the app what is typed."""

    trigger_actions_on: Annotated[list[Literal["on_character_entered"]], Field(min_length=1, max_length=1)]


class TextInput(Interactive):
    dispatch_action_config: DispatchActionConfig | None = None
    placeholder: LineText | None = None
    focus_on_load: bool | None = None


class PlainTextInput(TextInput):
    type: Literal["plain_text_input"]
    initial_value: str | None = None
    multiline: bool | None = None
    max_length: Annotated[int, Field(ge=1, le=3000)] | None = None


class NumberInput(TextInput):
    type: Literal["number_input"]
    is_decimal_allowed: Literal[True]


Choice = StaticSelect | MultiStaticSelect | RadioButtons | Checkboxes | ConversationsSelect
Action = Annotated[Button | Overflow | Choice, Field(discriminator="type")]
InputElement = Annotated[PlainTextInput | NumberInput | Choice, Field(discriminator="type")]

_TEXTS = frozenset({"plain_text", "mrkdwn"})


class Block(Strict):
    block_id: Id | None = None


class Section(Block):
    type: Literal["section"]
    text: Mrkdwn
    accessory: Action | None = None


class Header(Block):
    type: Literal["header"]
    text: LineText


class Context(Block):
    type: Literal["context"]
    elements: Annotated[list[SmallPrint], Field(min_length=1, max_length=10)]


class Actions(Block):
    type: Literal["actions"]
    elements: Annotated[list[Action], Field(min_length=1, max_length=25)]


class Markdown(Block):
    type: Literal["markdown"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=12_000)]


class PlanTask(Block):
    type: Literal["task_card"]
    task_id: Id
    title: ShortText
    status: Literal["pending", "in_progress", "complete", "error"]


class Plan(Block):
    type: Literal["plan"]
    title: ShortText
    tasks: Annotated[list[PlanTask], Field(max_length=50)]

    @model_validator(mode="after")
    def _has_each_task_once(self) -> "Plan":
        ids = [task.task_id for task in self.tasks]
        if len(ids) != len(set(ids)):
            raise ValueError("`task_id` is not unique")
        return self


class SlackFile(Strict):
    id: Annotated[str, StringConstraints(pattern="^F[A-Z0-9]{8,}$")]


class ImageTitle(PlainText):
    text: ShortText


class Image(Block):
    type: Literal["image"]
    slack_file: SlackFile
    alt_text: ShortText
    title: ImageTitle | None = None


class CardTitle(Mrkdwn):
    """A card's title or subtitle."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=150)]


class CardBody(Mrkdwn):
    text: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Card(Block):
    type: Literal["card"]
    title: CardTitle | None = None
    subtitle: CardTitle | None = None
    body: CardBody | None = None
    actions: Annotated[list[Button], Field(min_length=1, max_length=3)]


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


_Shared = Section | Header | Context | Actions | Card | InputBlock
MessageBlock = Annotated[_Shared | Markdown | Plan | Image, Field(discriminator="type")]
ViewBlock = Annotated[_Shared, Field(discriminator="type")]


def parts(block: Json) -> list[Json]:
    """Returns what a block contains: elements, and the texts beside them."""
    one, several = (block.get("accessory"), block.get("element")), (block.get("elements"), block.get("actions"))
    return [*filter(None, one), *(part for each in several for part in each or ())]


def assign_ids(blocks: list[Json] | None) -> None:
    """Adds the ids of blocks and interactive elements that the app left out, as Slack does."""
    for block in blocks or []:
        block.setdefault("block_id", uuid4().hex[:5])
        for element in parts(block):
            if element["type"] not in _TEXTS:
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
