"""What people do in modals and on the Home tab, and what the app's acknowledgement does to the view."""

import re
from collections.abc import Mapping
from decimal import Decimal

from bot.workspace.delivery.deliveries import Deliveries
from bot.workspace.delivery.interactions import InteractionResult, failed_delivery
from bot.workspace.delivery.transport import NotDeliveredError
from bot.workspace.model.elements import Element, InputValue, elements, value_of
from bot.workspace.model.entities import Json, User
from bot.workspace.model.errors import SlackError
from bot.workspace.model.views import OpenViews, View
from bot.workspace.wire.interaction_payloads import InteractionPayloads
from bot.workspace.wire.views import checked_view

MISSING = "Please complete this required field."
LONGEST = 40_000
"""How many characters a text may have where the app sets no limit. It may set 3,000 at most; without, Slack takes far
more, and names no end. This one is a message's.
"""
_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?", re.ASCII)
MALFORMED = "dispatch_unknown_error"


class ViewInteractions:
    """Delivers what people do in views, and changes the views as the app answers.

    Args:
        views: The views.
        payloads: Makes what the app is told.
        deliveries: Brings it to the app.
    """

    def __init__(self, views: OpenViews, payloads: InteractionPayloads, deliveries: Deliveries) -> None:
        self._views = views
        self._payloads = payloads
        self._deliveries = deliveries

    async def press(self, user: User, view: View, action: Json) -> InteractionResult:
        """Uses a button or menu of a view. ``action`` is its part of the payload."""
        return await self._tell(self._payloads.view_actions(user, view, action))

    async def enter(
        self, user: User, view: View, element: Element, given: InputValue, *, dispatch: bool
    ) -> InteractionResult:
        """Puts a value into an element; the app is told where the element is one that tells it."""
        held = self._views.enter(view, element, given)
        if not (dispatch and element.tells_the_app):
            return InteractionResult(ok=True)
        action = held | {"block_id": element.block_id, "action_id": element.action_id}
        return await self._tell(self._payloads.view_actions(user, view, action))

    async def submit(self, user: User, view: View) -> InteractionResult:
        """Submits a modal. What Slack itself finds missing is shown at once, and the app hears nothing of it."""
        if errors := _own_errors(view):
            self._views.show_errors(view, errors)
            return InteractionResult(ok=False, error="invalid_input", errors=errors)
        if view.errors:
            self._views.show_errors(view, {})
        result = await self._tell(self._payloads.view_submission(user, view))
        if not result.ok:
            return result
        try:
            return self._answer(view, result.payload or {})
        except SlackError:
            return InteractionResult(ok=False, error=MALFORMED, payload=result.payload)

    async def close(self, user: User, view: View, *, clear: bool) -> InteractionResult:
        """Closes a modal as its button does, or all that are open. Each that wants to know of it is told."""
        closed = self._views.clear(user.id) if clear else [view]
        self._views.close(view)
        result = InteractionResult(ok=True)
        for each in closed:
            if each.notifies_on_close:
                result = await self._tell(self._payloads.view_closed(user, each, is_cleared=clear))
        return result

    async def _tell(self, payload: Json) -> InteractionResult:
        try:
            ack = await self._deliveries.request("interactive", payload)
        except NotDeliveredError as error:
            return failed_delivery(error)
        return InteractionResult(ok=True, payload=ack.payload)

    def _answer(self, view: View, payload: Json) -> InteractionResult:
        """Does what the acknowledgement of a submission says.

        Raises:
            SlackError: It says nothing that Slack understands; the view stays as it is.
        """
        match payload.get("response_action"):
            case None if not payload:
                self._views.close(view)
            case "clear":
                self._views.clear(view.user)
            case "errors":
                errors = _given_errors(view, payload.get("errors"))
                self._views.show_errors(view, errors)
                return InteractionResult(ok=True, payload=payload, errors=errors)
            case "update":
                self._views.update(view, checked_view(payload.get("view"), "modal"))
            case "push":
                self._views.push(view.user, checked_view(payload.get("view"), "modal"))
            case _:
                raise SlackError(MALFORMED)
        return InteractionResult(ok=True, payload=payload)


def _held(view: View, element: Element) -> Json:
    return view.values[element.block_id][element.action_id]


def _own_errors(view: View) -> dict[str, str]:
    """Returns what Slack itself finds wrong with the inputs, by block id."""
    errors: dict[str, str] = {}
    for element in elements(view.blocks):
        if element.holds_a_value and (wrong := _wrong(element, value_of(_held(view, element)))):
            errors[element.block_id] = wrong
    return errors


def _wrong(element: Element, value: object) -> str | None:
    if not value:
        return MISSING if element.is_required else None
    if not isinstance(value, str):
        return None
    if element.type == "number_input":
        return _wrong_number(element, value)
    longest = element.body.get("max_length") or LONGEST
    return f"Enter no more than {longest} characters." if len(value) > longest else None


def _wrong_number(element: Element, value: str) -> str | None:
    if not _NUMBER.fullmatch(value) or ("." in value and not element.body.get("is_decimal_allowed")):
        return "Enter a number." if element.body.get("is_decimal_allowed") else "Enter a whole number."
    least, most = element.body.get("min_value"), element.body.get("max_value")
    if least is not None and Decimal(value) < Decimal(least):
        return f"Enter {least} or more."
    return f"Enter {most} or less." if most is not None and Decimal(value) > Decimal(most) else None


def _given_errors(view: View, errors: object) -> dict[str, str]:
    """Returns the errors of an acknowledgement, if each stands at an input of the view."""
    inputs = {str(block["block_id"]) for block in view.blocks if block["type"] == "input"}
    if not isinstance(errors, Mapping) or not errors:
        raise SlackError(MALFORMED)
    if not all(block_id in inputs and isinstance(words, str) for block_id, words in errors.items()):
        raise SlackError(MALFORMED)
    return dict(errors)
