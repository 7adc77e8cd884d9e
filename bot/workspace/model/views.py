"""Open views: each person's modal and Home tab, the triggers that let the app open one, and errors in what is sent."""

import re
import secrets
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal
from uuid import uuid4

from bot.workspace.model.block_kit import assign_ids
from bot.workspace.model.elements import Element, InputValue, Values, elements, value_of, values_of
from bot.workspace.model.entities import Json, SlackError

ViewKind = Literal["modal", "home"]


@dataclass
class View:
    """A view that a person has open.

    Args:
        id: Slack's id.
        user: Who sees it.
        content: The app's validated definition: title, blocks, callback_id, private_metadata and so on.
        hash: Changes whenever the view does.
        values: The values of its elements.
        errors: Errors in inputs, by block id; shown until the next submission.
        conversation: The id of the conversation where the person opened it.
    """

    id: str
    user: str
    content: Json
    hash: str
    values: Values = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    conversation: str | None = None

    @property
    def kind(self) -> ViewKind:
        return "home" if self.content["type"] == "home" else "modal"

    @property
    def blocks(self) -> list[Json]:
        return list(self.content["blocks"])

    @property
    def title(self) -> str:
        """The title's text; empty for Home."""
        return _label(self.content.get("title"))

    @property
    def submit(self) -> str | None:
        """The submit button's text; None without a button."""
        return _label(self.content.get("submit")) or None

    @property
    def callback_id(self) -> str:
        return str(self.content.get("callback_id") or "")

    @property
    def notifies_on_close(self) -> bool:
        return bool(self.content.get("notify_on_close"))

    def element(self, action_id: str, block_id: str | None = None) -> Element:
        """Returns the first element with these ids.

        Raises:
            SlackError: ``action_not_found``.
        """
        for element in elements(self.blocks):
            if element.action_id == action_id and block_id in {None, element.block_id}:
                return element
        raise SlackError("action_not_found")


@dataclass(frozen=True)
class ViewChange:
    """A change to a person's modal or Home tab."""

    kind: ViewKind
    user: str


class OpenViews:
    """Each person's open modal, and their Home as last published."""

    def __init__(self) -> None:
        self.observers: list[Callable[[ViewChange], None]] = []
        self._modals: dict[str, View] = {}
        self._homes: dict[str, View] = {}

    # finding

    def modal(self, user: str) -> View | None:
        """Returns a person's open modal."""
        return self._modals.get(user)

    def home(self, user: str) -> View | None:
        """Returns a person's Home; None until the app has published one."""
        return self._homes.get(user)

    def find(self, view_id: str) -> View:
        """Returns an open modal or a Home.

        Raises:
            SlackError: ``not_found``, also for a closed modal.
        """
        for view in (*self._modals.values(), *self._homes.values()):
            if view.id == view_id:
                return view
        raise SlackError("not_found")

    # the app's changes

    def open(self, user: str, content: Json, conversation: str | None = None) -> View:
        """Opens a modal in place of an open one."""
        view = self._modals[user] = self._new_view(user, content, conversation)
        self._notify(view)
        return view

    def update(self, view: View, content: Json) -> View:
        """Gives a view new content. Elements that keep their block id and action id keep what was entered."""
        self._fill(view, content)
        view.errors = {}
        self._notify(view)
        return view

    def publish(self, user: str, content: Json) -> View:
        """Gives a person's Home its content."""
        view = self._homes.get(user)
        if view is not None:
            return self.update(view, content)
        view = self._homes[user] = self._new_view(user, content, None)
        self._notify(view)
        return view

    def show_errors(self, view: View, errors: Mapping[str, str]) -> None:
        view.errors = dict(errors)
        self._notify(view)

    def _new_view(self, user: str, content: Json, conversation: str | None) -> View:
        view_id = f"V{uuid4().hex[:10].upper()}"
        view = View(view_id, user, {}, "", conversation=conversation)
        self._fill(view, content)
        return view

    def _fill(self, view: View, content: Json) -> None:
        view.content = deepcopy(content)
        assign_ids(view.content["blocks"])
        view.values = values_of(view.blocks, view.values, view.conversation)
        view.hash = f"{secrets.randbelow(10**10)}.{secrets.token_hex(4)}"

    # the person's changes

    def enter(self, view: View, element: Element, value: InputValue) -> Json:
        """Puts a value into an element and returns what it now holds."""
        held = element.entered(value)
        view.values.setdefault(element.block_id, {})[element.action_id] = held
        self._notify(view)
        return held

    def close(self, view: View) -> None:
        """Closes a modal. Does nothing for a closed one."""
        if self._modals.get(view.user) is view:
            del self._modals[view.user]
            self._notify(view)

    def _notify(self, view: View) -> None:
        for observer in tuple(self.observers):
            observer(ViewChange(view.kind, view.user))


def _label(text: object) -> str:
    return str(text.get("text", "")) if isinstance(text, dict) else ""


TRIGGER_SECONDS = 3.0
MAX_REMEMBERED = 10_000


@dataclass(frozen=True)
class Trigger:
    """What a trigger id refers to: who did something, and in which conversation, by their ids."""

    user: str
    channel: str | None = None


class Triggers:
    """Issues trigger ids and accepts each once.

    Args:
        now: The clock, in seconds.
        lifetime: Seconds until a trigger id expires.
    """

    def __init__(self, now: Callable[[], float], lifetime: float = TRIGGER_SECONDS) -> None:
        self.lifetime = lifetime
        self._now = now
        self._issued: dict[str, tuple[Trigger, float]] = {}

    def issue(self, trigger: Trigger) -> str:
        while len(self._issued) >= MAX_REMEMBERED:
            del self._issued[next(iter(self._issued))]
        now = self._now()
        trigger_id = f"{int(now)}.{secrets.randbelow(10**10)}.{secrets.token_hex(16)}"
        self._issued[trigger_id] = trigger, now + self.lifetime
        return trigger_id

    def check(self, trigger_id: str) -> Trigger:
        """Returns what a trigger id refers to, without using it up.

        Raises:
            SlackError: ``invalid_trigger_id`` or ``expired_trigger_id``.
        """
        trigger, expires = self._issued.get(trigger_id, (None, 0.0))
        if trigger is None:
            raise SlackError("invalid_trigger_id")
        if expires < self._now():
            raise SlackError("expired_trigger_id")
        return trigger

    def use_up(self, trigger_id: str) -> None:
        del self._issued[trigger_id]


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
        return None if _NUMBER.fullmatch(value) else "Enter a number."
    longest = element.body.get("max_length") or MAX_TEXT
    return f"Enter no more than {longest} characters." if len(value) > longest else None


def errors_by_app(view: View, errors: object) -> dict[str, str]:
    """Returns the errors in an acknowledgement. Raises SlackError if one does not name an input of the view."""
    inputs = {str(block["block_id"]) for block in view.blocks if block["type"] == "input"}
    if isinstance(errors, Mapping) and errors and inputs.issuperset(errors):
        return {block_id: str(words) for block_id, words in errors.items()}
    raise SlackError(MALFORMED)
