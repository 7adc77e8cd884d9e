"""What people do on the page: each operation is one POST with a JSON object."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.elements import Element, InputValue, elements
from bot.workspace.model.entities import Json, SlackError
from bot.workspace.model.views import View
from bot.workspace.page.requests import Handler, Uploads, failure, json_body, outcome
from bot.workspace.people import Actor, WorkspacePeople
from bot.workspace.wire.arguments import Arguments, invalid_argument

Operation = Callable[[Actor, Arguments], Awaitable[Json | None]]
"""Returns more fields of the answer, if there are any."""


class Operations:
    """The operations and their endpoints.

    Args:
        people: The people who act.
        app: The app, for its commands.
        uploads: The files to send with messages.
    """

    def __init__(self, people: WorkspacePeople, app: AppConfig, uploads: Uploads) -> None:
        self._people = people
        self._app = app
        self._uploads = uploads

    def handlers(self) -> dict[str, Handler]:
        """Returns an endpoint for each operation, by name."""
        operations: dict[str, Operation] = {
            "send": self._send,
            "forward": _forward,
            "press": _press,
            "edit": _edit,
            "delete": lambda actor, given: actor.delete(*_message(given)),
            "react": _react,
            "join": lambda actor, given: actor.join(given.text("channel")),
            "shortcut": _run_shortcut,
            "home": _open_home,
            "use": _use,
            "submit": _submit,
            "close": _close,
        }
        return {name: self._endpoint(operation) for name, operation in operations.items()}

    def _endpoint(self, operation: Operation) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                arguments = Arguments(await json_body(request))
                actor = self._people.human(arguments.text("as"))
                return web.json_response({"ok": True} | (await operation(actor, arguments) or {}))
            except SlackError as error:
                return web.json_response(failure(error))

        return handle

    async def _send(self, actor: Actor, arguments: Arguments) -> Json | None:
        text, thread_ts = arguments.text("text"), arguments.text("thread_ts") or None
        if text.startswith("/") and not thread_ts:
            return await self._command(actor, arguments.text("channel"), text)
        files = self._uploads.take(actor, _upload_ids(arguments))
        broadcast = arguments.flag("broadcast")
        channel = arguments.text("channel")
        message = await actor.say(channel, text, thread_ts=thread_ts, broadcast=broadcast, files=files)
        return {"ts": message.ts}

    async def _command(self, actor: Actor, channel: str, text: str) -> Json | None:
        name, _, rest = text.strip().partition(" ")
        if name == "/invite":
            await actor.invite(channel, rest.strip())
            return None
        if actor.is_external:
            return _refusal("Commands are not for people of other organisations. Write a message instead.")
        if self._app.command(name) is None:
            return _refusal(f"{name[:50]} is not a valid command.")
        await actor.command(channel, name, rest.strip())
        return None


def _refusal(words: str) -> Json:
    return {"ok": False, "error": words}


def _upload_ids(arguments: Arguments) -> list[str]:
    ids = arguments.as_dict().get("uploads", [])
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise invalid_argument("must be a list of ids [json-pointer:/uploads]")
    return ids


# messages


def _message(arguments: Arguments) -> tuple[str, str]:
    """Returns the channel and timestamp of the message."""
    return arguments.text("channel"), arguments.text("ts")


async def _forward(actor: Actor, arguments: Arguments) -> Json:
    channel, thread_ts = arguments.text("to"), arguments.text("thread_ts") or None
    message = await actor.forward(*_message(arguments), channel, thread_ts=thread_ts, text=arguments.text("text"))
    return {"ts": message.ts}


async def _press(actor: Actor, arguments: Arguments) -> Json:
    block, value = arguments.text("block_id") or None, arguments.text("value") or None
    return outcome(await actor.press(*_message(arguments), arguments.text("action_id"), block_id=block, value=value))


async def _edit(actor: Actor, arguments: Arguments) -> None:
    await actor.edit(*_message(arguments), arguments.text("text"))


async def _react(actor: Actor, arguments: Arguments) -> None:
    """Adds a reaction, or removes it if the person already has it."""
    name = arguments.text("name")
    try:
        await actor.react(*_message(arguments), name)
    except SlackError as error:
        if error.code != "already_reacted":
            raise
        await actor.unreact(*_message(arguments), name)


# shortcuts, modals and the Home tab


async def _run_shortcut(actor: Actor, arguments: Arguments) -> Json:
    """Runs a global shortcut, or one on the given message."""
    callback_id, ts = arguments.text("callback_id"), arguments.text("ts")
    if ts:
        return outcome(await actor.shortcut(arguments.text("channel"), ts, callback_id))
    return outcome(await actor.global_shortcut(callback_id))


async def _open_home(actor: Actor, arguments: Arguments) -> None:
    """Tells the app which of its tabs the person opened, if it has that tab."""
    try:
        await actor.views.open_home("home" if arguments.text("tab") == "home" else "messages")
    except SlackError as error:
        if error.code != "tab_disabled":
            raise


async def _use(actor: Actor, arguments: Arguments) -> Json:
    """Uses an element of a view. First enters the page's other values, since the app gets all of them."""
    view = actor.views.find(arguments.text("view_id"))
    element = view.element(arguments.text("action_id"), arguments.text("block_id") or None)
    await _enter_all(actor, view, arguments, but=element)
    value, block_id = _input_value(arguments.as_dict().get("value")), element.block_id
    if element.has_value:
        return outcome(await actor.views.enter(element.action_id, value, block_id=block_id, view_id=view.id))
    name = value if isinstance(value, str) else None
    return outcome(await actor.views.press(element.action_id, value=name, block_id=block_id, view_id=view.id))


async def _submit(actor: Actor, arguments: Arguments) -> Json:
    view = actor.views.find(arguments.text("view_id"))
    await _enter_all(actor, view, arguments)
    return outcome(await actor.views.submit(view.id))


async def _close(actor: Actor, arguments: Arguments) -> Json:
    """Closes a modal. Closing a closed one is no error."""
    try:
        result = await actor.views.close(actor.views.find(arguments.text("view_id")).id, clear=arguments.flag("clear"))
    except SlackError as error:
        if error.code != "not_found":
            raise
        return {}
    return outcome(result)


async def _enter_all(actor: Actor, view: View, arguments: Arguments, *, but: Element | None = None) -> None:
    """Enters the page's values."""
    values = arguments.as_dict().get("values")
    for element in elements(view.blocks):
        block = values.get(element.block_id) if isinstance(values, Mapping) else None
        if element != but and element.has_value and isinstance(block, Mapping) and element.action_id in block:
            value, block_id = _input_value(block[element.action_id]), element.block_id
            await actor.views.enter(element.action_id, value, block_id=block_id, view_id=view.id, dispatch=False)


def _input_value(value: object) -> InputValue:
    """Returns a validated value.

    Raises:
        SlackError: ``invalid_option`` if it is neither a text, nor a list of texts, nor None.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    raise SlackError("invalid_option")
