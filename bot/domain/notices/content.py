"""What is true of every notice, whatever it says: how it reaches people, whom it is about, what people wrote in it."""

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
    """The one reaction on a reply that tells where it stands."""
    EPHEMERAL = "ephemeral"
    """A message for one person only, in the thread's channel."""


class Quotes:
    """A dataclass that may quote people. `quotes` names the fields in which it does: texts, or what holds texts."""

    quotes: ClassVar[tuple[str, ...]] = ()

    def with_texts(self, change: Callable[[str], str]) -> Self:
        """The same with each text that people wrote as `change` makes it."""
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
    """What a notice says, and to whom."""

    @property
    def about(self) -> str:
        """The id of the person whom it is for or about; empty where there is none."""
        return ""

    def addressed_to(self, person_id: str) -> Self:
        """The same with this person in the place of whom it addresses, where it addresses somebody."""
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
