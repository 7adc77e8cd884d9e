"""The errors in a submitted view: those that Slack finds itself, and those that the app answers."""

import re
from collections.abc import Mapping

from bot.workspace.model.elements import Element, elements, value_of
from bot.workspace.model.errors import SlackError
from bot.workspace.model.views import View

MISSING = "Please complete this required field."
MAX_TEXT = 40_000
"""Characters of a text without a limit by the app. Slack documents none; this is a message's."""
MALFORMED = "dispatch_unknown_error"
_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?", re.ASCII)


def errors_in_inputs(view: View) -> dict[str, str]:
    """Returns the errors that Slack itself finds in the inputs, by block id."""
    errors: dict[str, str] = {}
    for element in elements(view.blocks):
        if not element.has_value:
            continue
        value = value_of(view.values[element.block_id][element.action_id])
        if error := _error_in_input(element, value):
            errors[element.block_id] = error
    return errors


def _error_in_input(element: Element, value: object) -> str | None:
    if not value:
        return MISSING if element.is_required else None
    if not isinstance(value, str):
        return None
    if element.type == "number_input":
        return _error_in_number(element, value)
    longest = element.body.get("max_length") or MAX_TEXT
    return f"Enter no more than {longest} characters." if len(value) > longest else None


def _error_in_number(element: Element, value: str) -> str | None:
    if not _NUMBER.fullmatch(value) or ("." in value and not element.body.get("is_decimal_allowed")):
        return "Enter a number." if element.body.get("is_decimal_allowed") else "Enter a whole number."
    return None


def errors_by_app(view: View, errors: object) -> dict[str, str]:
    """Returns the errors in an acknowledgement. Raises SlackError if one does not name an input of the view."""
    inputs = {str(block["block_id"]) for block in view.blocks if block["type"] == "input"}
    if not isinstance(errors, Mapping) or not errors:
        raise SlackError(MALFORMED)
    if not all(block_id in inputs and isinstance(words, str) for block_id, words in errors.items()):
        raise SlackError(MALFORMED)
    return dict(errors)
