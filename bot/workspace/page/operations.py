"""What a person does at the page: each operation is one POST with a JSON object."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.page import view_operations
from bot.workspace.page.guard import Handler
from bot.workspace.page.requests import failure, json_body, outcome
from bot.workspace.page.uploads import Uploads
from bot.workspace.people import Actor, People
from bot.workspace.wire.arguments import Arguments, invalid_argument

Operation = Callable[[Actor, Arguments], Awaitable[Json]]


class Operations:
    """The operations, and the endpoints that run them.

    Args:
        people: Those who act.
        app: The app, for its commands.
        uploads: The files that messages are sent with.
    """

    def __init__(self, people: People, app: AppConfig, uploads: Uploads) -> None:
        self._people = people
        self._app = app
        self._uploads = uploads

    def handlers(self) -> dict[str, Handler]:
        """Returns an endpoint for each operation, by name."""
        operations: dict[str, Operation] = {
            "send": self._send,
            "forward": self._forward,
            "press": self._press,
            "edit": self._edit,
            "delete": self._delete,
            "react": self._react,
            "join": self._join,
            "shortcut": view_operations.run_shortcut,
            "home": view_operations.open_home,
            "use": view_operations.use,
            "submit": view_operations.submit,
            "close": view_operations.close,
        }
        return {name: self._endpoint(operation) for name, operation in operations.items()}

    def _endpoint(self, operation: Operation) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                arguments = Arguments(await json_body(request))
                actor = self._people.human(arguments.text("as"))
                return web.json_response({"ok": True} | await operation(actor, arguments))
            except SlackError as error:
                return web.json_response(failure(error))

        return handle

    async def _send(self, actor: Actor, given: Arguments) -> Json:
        text, thread_ts = given.text("text"), given.text("thread_ts") or None
        if text.startswith("/") and not thread_ts:
            return await self._command(actor, given.text("channel"), text)
        files = self._uploads.take(actor, _upload_ids(given))
        broadcast = given.flag("broadcast")
        channel = given.text("channel")
        message = await actor.say(channel, text, thread_ts=thread_ts, broadcast=broadcast, files=files)
        return {"ts": message.ts}

    async def _command(self, actor: Actor, channel: str, text: str) -> Json:
        name, _, rest = text.strip().partition(" ")
        if name == "/invite":
            await actor.invite(channel, rest.strip())
            return {}
        if actor.is_external:
            return _refusal("Commands are not for people of other organisations. Write a message instead.")
        if self._app.command(name) is None:
            return _refusal(f"{name[:50]} is not a valid command.")
        await actor.command(channel, name, rest.strip())
        return {}

    async def _forward(self, actor: Actor, given: Arguments) -> Json:
        channel, thread_ts = given.text("to"), given.text("thread_ts") or None
        original = given.text("channel"), given.text("ts")
        message = await actor.forward(*original, channel, thread_ts=thread_ts, text=given.text("text"))
        return {"ts": message.ts}

    async def _press(self, actor: Actor, given: Arguments) -> Json:
        block, value = given.text("block_id") or None, given.text("value") or None
        channel, ts = given.text("channel"), given.text("ts")
        return outcome(await actor.press(channel, ts, given.text("action_id"), block_id=block, value=value))

    async def _edit(self, actor: Actor, given: Arguments) -> Json:
        await actor.edit(given.text("channel"), given.text("ts"), given.text("text"))
        return {}

    async def _delete(self, actor: Actor, given: Arguments) -> Json:
        await actor.delete(given.text("channel"), given.text("ts"))
        return {}

    async def _react(self, actor: Actor, given: Arguments) -> Json:
        """Adds a reaction, or takes it back where the person has reacted so already."""
        channel, ts, name = given.text("channel"), given.text("ts"), given.text("name")
        try:
            await actor.react(channel, ts, name)
        except SlackError as error:
            if error.code != "already_reacted":
                raise
            await actor.unreact(channel, ts, name)
        return {}

    async def _join(self, actor: Actor, given: Arguments) -> Json:
        await actor.join(given.text("channel"))
        return {}


def _refusal(words: str) -> Json:
    return {"ok": False, "error": words}


def _upload_ids(given: Arguments) -> list[str]:
    ids = given.as_dict().get("uploads", [])
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise invalid_argument("must be a list of ids [json-pointer:/uploads]")
    return ids
