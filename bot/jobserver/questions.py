"""Questions of agents, with their choices, as the job API has them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class ApiModel(BaseModel):
    """What the job API says or hears: names in camelCase, as its specification has them."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class FieldKind(StrEnum):
    """What is an answer to a field."""

    CHOICE = "choice"
    CHOICES = "choices"
    YES_OR_NO = "yes_or_no"
    NUMBER = "number"
    TEXT = "text"


class QuestionOption(ApiModel):
    """One of the answers to choose from."""

    label: str = Field(description="What the message that answers says.")
    description: str | None = None


class QuestionField(ApiModel):
    """One thing that is asked."""

    title: str
    kind: FieldKind
    options: tuple[QuestionOption, ...] = Field((), description="Of a choice or choices.")
    own_words: bool = Field(False, description="Whether another answer than the options will do.")
    required: bool = False

    def with_words(self, change: Callable[[str], str]) -> Self:
        """Returns it with all its words changed, such as by what takes secrets out."""
        options = tuple(
            QuestionOption(label=change(option.label), description=option.description and change(option.description))
            for option in self.options
        )
        return self.model_copy(update={"title": change(self.title), "options": options})


@dataclass(frozen=True)
class Question:
    """What an agent has to know before it can go on. `words`: all of it, in Markdown; `fields`: what can be chosen."""

    words: str
    fields: tuple[QuestionField, ...] = ()
