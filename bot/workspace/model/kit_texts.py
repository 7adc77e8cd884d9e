"""Block Kit's text objects, options and confirmations, with the limits of docs.slack.dev.

Slack refuses a field it does not know, so the models do too.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

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


class OptionGroup(Strict):
    label: LabelText
    options: Annotated[list[Option], Field(min_length=1, max_length=100)]
