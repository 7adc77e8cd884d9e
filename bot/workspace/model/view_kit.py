"""What an app may give as a modal or as a Home tab, with the limits of docs.slack.dev."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints, model_validator

from bot.workspace.model.block_kit import Actions, Context, Divider, Header, ImageBlock, Input, RichText, Section
from bot.workspace.model.kit_texts import PlainText, Strict

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


_Shared = Section | Divider | Header | Context | Actions | ImageBlock | Input | RichText | OtherViewBlock
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
        if self.submit is None and any(isinstance(block, Input) for block in self.blocks):
            raise ValueError("missing required field: submit")
        return self


class HomeView(_View):
    """A Home tab."""

    type: Literal["home"]
    blocks: Annotated[list[_HomeBlock], Field(max_length=MAX_BLOCKS)]
