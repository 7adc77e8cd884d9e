"""What a person does at the page with the app's shortcuts, modals and Home tab."""

from collections.abc import Mapping

from bot.workspace.model.elements import Element, InputValue, elements, value_of
from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.model.views import View
from bot.workspace.page.requests import outcome
from bot.workspace.people import Actor
from bot.workspace.wire.arguments import Arguments


async def run_shortcut(actor: Actor, given: Arguments) -> Json:
    """Runs a shortcut: on a message, where one is named."""
    callback_id, ts = given.text("callback_id"), given.text("ts")
    if ts:
        return outcome(await actor.shortcut(given.text("channel"), ts, callback_id))
    return outcome(await actor.global_shortcut(callback_id))


async def open_home(actor: Actor, given: Arguments) -> Json:
    """Tells the app which of its tabs the person opened. Where it has no such tab there is nothing to tell."""
    try:
        await actor.views.open_home("home" if given.text("tab") == "home" else "messages")
    except SlackError as error:
        if error.code != "tab_disabled":
            raise
    return {}


async def use(actor: Actor, given: Arguments) -> Json:
    """Uses an element of a view. Whatever else was entered there is taken along, since the app is told all of it."""
    view = _view(actor, given)
    element = view.element(given.text("action_id"), given.text("block_id") or None)
    await _enter_all(actor, view, given, but=element)
    value, block_id = _input_value(given.as_dict().get("value")), element.block_id
    if element.holds_a_value:
        return outcome(await actor.views.enter(element.action_id, value, block_id=block_id, view_id=view.id))
    name = value if isinstance(value, str) else None
    return outcome(await actor.views.press(element.action_id, value=name, block_id=block_id, view_id=view.id))


async def submit(actor: Actor, given: Arguments) -> Json:
    view = _view(actor, given)
    await _enter_all(actor, view, given)
    return outcome(await actor.views.submit(view.id))


async def close(actor: Actor, given: Arguments) -> Json:
    """Closes a modal, or all of them. One that is closed already is as it should be."""
    try:
        result = await actor.views.close(_view(actor, given).id, clear=given.flag("all"))
    except SlackError as error:
        if error.code != "not_found":
            raise
        return {}
    return outcome(result)


def _view(actor: Actor, given: Arguments) -> View:
    """Returns the view that is named.

    Raises:
        SlackError: ``not_found``; it is closed, or another one is on top of it.
    """
    for view in (actor.views.top, actor.views.home()):
        if view is not None and view.id == given.text("view_id"):
            return view
    raise SlackError("not_found")


async def _enter_all(actor: Actor, view: View, given: Arguments, *, but: Element | None = None) -> None:
    """Enters what the page holds, wherever the view holds something else."""
    values = given.as_dict().get("values")
    for element in elements(view.blocks):
        if not element.holds_a_value or element == but:
            continue
        value = _value_at(values, element)
        if value is not _ABSENT and value != _bare(view, element):
            entered, block_id = _input_value(value), element.block_id
            await actor.views.enter(element.action_id, entered, block_id=block_id, view_id=view.id, dispatch=False)


_ABSENT = object()


def _value_at(values: object, element: Element) -> object:
    block = values.get(element.block_id) if isinstance(values, Mapping) else None
    return block.get(element.action_id, _ABSENT) if isinstance(block, Mapping) else _ABSENT


def _bare(view: View, element: Element) -> object:
    """Returns what an element holds in the page's words: an option stands for its value."""
    held = value_of(view.values[element.block_id][element.action_id])
    return [_name(each) for each in held] if isinstance(held, list) else _name(held)


def _name(chosen: object) -> object:
    return chosen["value"] if isinstance(chosen, dict) else chosen


def _input_value(value: object) -> InputValue:
    """Returns a value as people enter it.

    Raises:
        SlackError: ``invalid_option``; it is neither text, nor a list of texts, nor nothing.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    raise SlackError("invalid_option")
