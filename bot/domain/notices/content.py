"""The common interface of all notices: how they are delivered, whom they are about, and the texts that they quote."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any, ClassVar, Self, cast


class Delivery(StrEnum):
    """How a notice reaches people."""

    CARD = "card"
    """The thread's first message: posted once, then kept at the newest state."""
    POST = "post"
    """A message in the thread."""
    REACTION = "reaction"
    """The reaction on a reply that shows its state."""
    EPHEMERAL = "ephemeral"
    """A message for one person only, in the thread's channel."""


class Quotes:
    """A dataclass that may quote people. `quotes` names the fields that do: texts, or containers of texts."""

    quotes: ClassVar[tuple[str, ...]] = ()

    def with_texts(self, change: Callable[[str], str]) -> Self:
        """Returns a copy with `change` applied to each text that people wrote."""
        changed = {name: _changed(getattr(self, name), change) for name in self.quotes}
        return cast("Self", replace(cast("Any", self), **changed)) if changed else self

    @property
    def texts(self) -> list[str]:
        """Each text that people wrote."""
        texts: list[str] = []

        def noted(text: str) -> str:
            texts.append(text)
            return text

        self.with_texts(noted)
        return texts


class NoticeContent(Quotes):
    """The content of a notice."""

    @property
    def about(self) -> str:
        """The id of the person whom it is for or about; empty if there is none."""
        return ""

    def addressed_to(self, person_id: str) -> Self:
        """Returns a copy that addresses this person, if it addresses anybody."""
        del person_id
        return self


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case Quotes():
            return value.with_texts(change)
        case list() | tuple():
            return type(value)(_changed(item, change) for item in value)
        case dict():
            return {name: _changed(item, change) for name, item in value.items()}
        case _:
            return value
