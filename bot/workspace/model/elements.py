"""Interactive elements: finding them in blocks, and the values that they hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bot.workspace.model.block_kit import parts
from bot.workspace.model.entities import Json, SlackError

InputValue = str | Sequence[str] | None
"""What a person enters: text, the value of one or several options, an id, or None for nothing."""
Values = dict[str, dict[str, Json]]
"""What elements hold, as in Slack's ``state.values``: by block id and action id."""


@dataclass(frozen=True)
class _ValueFields:
    """The fields for an element's value: in Slack's payloads, and in the element for an initial one, if it has such."""

    field: str
    initial: str = ""
    of_options: bool = False
    several: bool = False


_VALUE_FIELDS: Final[Mapping[str, _ValueFields]] = {
    "plain_text_input": _ValueFields("value", "initial_value"),
    "number_input": _ValueFields("value"),
    "static_select": _ValueFields("selected_option", "initial_option", of_options=True),
    "radio_buttons": _ValueFields("selected_option", "initial_option", of_options=True),
    "checkboxes": _ValueFields("selected_options", "initial_options", of_options=True, several=True),
    "multi_static_select": _ValueFields("selected_options", of_options=True, several=True),
    "conversations_select": _ValueFields("selected_conversation"),
}


@dataclass(frozen=True)
class Element:
    """An element and its block, as the app defined them."""

    block: Json
    body: Json

    @property
    def block_id(self) -> str:
        return str(self.block["block_id"])

    @property
    def action_id(self) -> str:
        return str(self.body["action_id"])

    @property
    def type(self) -> str:
        return str(self.body["type"])

    @property
    def has_value(self) -> bool:
        return self.type in _VALUE_FIELDS

    @property
    def dispatches(self) -> bool:
        """Whether the app hears when it is used: always, except in inputs without ``dispatch_action``."""
        return self.block["type"] != "input" or bool(self.block.get("dispatch_action"))

    @property
    def is_required(self) -> bool:
        return self.block["type"] == "input" and not self.block.get("optional")

    def initial(self, conversation: str | None) -> Json:
        """Returns what it holds at first. ``conversation`` is the one where the person opened the view."""
        fields = _VALUE_FIELDS[self.type]
        found = self.body.get(fields.initial)
        if conversation and self.body.get("default_to_current_conversation"):
            found = conversation
        return self._held(found if found is not None else [] if fields.several else None)

    def entered(self, given: InputValue) -> Json:
        """Returns what it holds after a person has entered something.

        Raises:
            SlackError: ``invalid_option`` for a value that it does not offer or of the wrong kind.
        """
        fields = _VALUE_FIELDS[self.type]
        if fields.several:
            names = [given] if isinstance(given, str) else list(given or ())
            return self._held([self._option(name) for name in names])
        if not (given is None or isinstance(given, str)):
            raise SlackError("invalid_option")
        if fields.of_options and given is not None:
            return self._held(self._option(given))
        return self._held(given or None)

    def _held(self, value: object) -> Json:
        return {"type": self.type, _VALUE_FIELDS[self.type].field: value}

    def _option(self, value: str) -> Json:
        for option in self.body["options"]:
            if option["value"] == value:
                return dict(option)
        raise SlackError("invalid_option")


def elements(blocks: Sequence[Json] | None) -> Iterator[Element]:
    """Yields the elements of blocks that have an action id, in order."""
    for block in blocks or ():
        yield from (Element(block, body) for body in parts(block) if "action_id" in body)


def value_of(held: Json) -> object:
    """Returns the value in what an element holds; None or [] if it is empty."""
    return held.get(_VALUE_FIELDS[held["type"]].field)


def values_of(blocks: Sequence[Json], before: Values, conversation: str | None) -> Values:
    """Returns what a view's elements hold: what elements with the same ids held before, or initial values.

    Args:
        blocks: The view's blocks.
        before: The previous values of its elements.
        conversation: The id of the one where the person opened the view.
    """
    values: Values = {}
    for element in elements(blocks):
        if element.has_value:
            held = before.get(element.block_id, {}).get(element.action_id)
            kept = held if held and held["type"] == element.type else element.initial(conversation)
            values.setdefault(element.block_id, {})[element.action_id] = kept
    return values
