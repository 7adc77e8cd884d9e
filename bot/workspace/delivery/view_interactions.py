"""Interactions in modals and on the Home tab, and how the app's answers change the view."""

import re
from collections.abc import Mapping

from bot.workspace.delivery.deliveries import Deliveries
from bot.workspace.delivery.interactions import InteractionResult, deliver_interaction
from bot.workspace.model.elements import Element, InputValue, elements, value_of
from bot.workspace.model.entities import Json, User
from bot.workspace.model.errors import SlackError
from bot.workspace.model.views import OpenViews, View
from bot.workspace.wire.interaction_payloads import InteractionPayloads
from bot.workspace.wire.views import checked_view

MISSING = "Please complete this required field."
MAX_TEXT = 40_000
"""Characters of a text without a limit by the app. Slack documents none; this is a message's."""
_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?", re.ASCII)
MALFORMED = "dispatch_unknown_error"


class ViewInteractions:
    """Delivers interactions in views and changes the views as the app answers.

    Args:
        views: The views.
        payloads: Builds the payloads.
        deliveries: Delivers them.
    """

    def __init__(self, views: OpenViews, payloads: InteractionPayloads, deliveries: Deliveries) -> None:
        self._views = views
        self._payloads = payloads
        self._deliveries = deliveries

    async def press(self, user: User, view: View, action: Json) -> InteractionResult:
        """Uses a button or menu of a view. ``action`` describes it in the payload."""
        return await deliver_interaction(self._deliveries, self._payloads.view_actions(user, view, action))

    async def enter(
        self, user: User, view: View, element: Element, given: InputValue, *, dispatch: bool
    ) -> InteractionResult:
        """Puts a value into an element and tells the app if the element dispatches."""
        held = self._views.enter(view, element, given)
        if not (dispatch and element.dispatches):
            return InteractionResult(ok=True)
        action = held | {"block_id": element.block_id, "action_id": element.action_id}
        return await deliver_interaction(self._deliveries, self._payloads.view_actions(user, view, action))

    async def submit(self, user: User, view: View) -> InteractionResult:
        """Submits a modal. Errors that Slack itself finds are shown at once, without asking the app."""
        if errors := _errors_in_inputs(view):
            self._views.show_errors(view, errors)
            return InteractionResult(ok=False, error="invalid_input", errors=errors)
        if view.errors:
            self._views.show_errors(view, {})
        result = await deliver_interaction(self._deliveries, self._payloads.view_submission(user, view))
        if not result.ok:
            return result
        try:
            return self._answer(view, result.payload or {})
        except SlackError:
            return InteractionResult(ok=False, error=MALFORMED, payload=result.payload)

    async def close(self, user: User, view: View, *, clear: bool) -> InteractionResult:
        """Closes a modal, with ``clear`` by the cross at its top. The app hears of it with ``notify_on_close``."""
        self._views.close(view)
        if not view.notifies_on_close:
            return InteractionResult(ok=True)
        return await deliver_interaction(self._deliveries, self._payloads.view_closed(user, view, is_cleared=clear))

    def _answer(self, view: View, payload: Json) -> InteractionResult:
        """Carries out the acknowledgement of a submission.

        Raises:
            SlackError: Slack does not understand it; the view stays as it is.
        """
        match payload.get("response_action"):
            case None if not payload:
                self._views.close(view)
            case "errors":
                errors = _errors_by_app(view, payload.get("errors"))
                self._views.show_errors(view, errors)
                return InteractionResult(ok=True, payload=payload, errors=errors)
            case "update":
                self._views.update(view, checked_view(payload.get("view"), "modal"))
            case _:
                raise SlackError(MALFORMED)
        return InteractionResult(ok=True, payload=payload)


def _errors_in_inputs(view: View) -> dict[str, str]:
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


def _errors_by_app(view: View, errors: object) -> dict[str, str]:
    """Returns the errors in an acknowledgement. Each must name an input of the view."""
    inputs = {str(block["block_id"]) for block in view.blocks if block["type"] == "input"}
    if not isinstance(errors, Mapping) or not errors:
        raise SlackError(MALFORMED)
    if not all(block_id in inputs and isinstance(words, str) for block_id, words in errors.items()):
        raise SlackError(MALFORMED)
    return dict(errors)
