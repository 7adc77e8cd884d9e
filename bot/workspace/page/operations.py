"""What a person does at the page: each operation is one POST with a JSON object."""

import json
from collections.abc import Awaitable, Callable

from aiohttp import web

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json
from bot.workspace.model.errors import SlackError
from bot.workspace.page.error_messages import error_message
from bot.workspace.page.guard import Handler
from bot.workspace.people import Actor, People
from bot.workspace.wire.arguments import Arguments

Operation = Callable[[Actor, Arguments], Awaitable[Json]]


class Operations:
    """The operations, and the endpoints that run them.

    Args:
        people: Those who act.
        app: The app, for its commands.
    """

    def __init__(self, people: People, app: AppConfig) -> None:
        self._people = people
        self._app = app

    def handlers(self) -> dict[str, Handler]:
        """Returns an endpoint for each operation, by name."""
        operations: dict[str, Operation] = {
            "send": self._send,
            "press": self._press,
            "edit": self._edit,
            "delete": self._delete,
            "react": self._react,
            "join": self._join,
        }
        return {name: self._endpoint(operation) for name, operation in operations.items()}

    def _endpoint(self, operation: Operation) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                arguments = Arguments(await _json_body(request))
                actor = self._people.human(arguments.text("as"))
                return web.json_response({"ok": True} | await operation(actor, arguments))
            except SlackError as error:
                return web.json_response(_failure(error_message(error.code)))

        return handle

    async def _send(self, actor: Actor, given: Arguments) -> Json:
        text, thread_ts = given.text("text"), given.text("thread_ts") or None
        if text.startswith("/") and not thread_ts:
            return await self._command(actor, given.text("channel"), text)
        broadcast = given.flag("broadcast")
        message = await actor.say(given.text("channel"), text, thread_ts=thread_ts, broadcast=broadcast)
        return {"ts": message.ts}

    async def _command(self, actor: Actor, channel: str, text: str) -> Json:
        name, _, rest = text.strip().partition(" ")
        if name == "/invite":
            await actor.invite(channel, rest.strip())
            return {}
        if self._app.command(name) is None:
            return _failure(f"{name[:50]} is not a valid command.")
        await actor.command(channel, name, rest.strip())
        return {}

    async def _press(self, actor: Actor, given: Arguments) -> Json:
        block, value = given.text("block_id") or None, given.text("value") or None
        channel, ts = given.text("channel"), given.text("ts")
        result = await actor.press(channel, ts, given.text("action_id"), block_id=block, value=value)
        return {} if result.ok else _failure(error_message(result.error))

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


def _failure(words: str) -> Json:
    return {"ok": False, "error": words}


async def _json_body(request: web.Request) -> Json:
    if request.content_type != "application/json":
        raise SlackError("invalid_post_type")
    try:
        body = json.loads(await request.read())
    except web.HTTPRequestEntityTooLarge:
        raise SlackError("msg_too_long") from None
    except (ValueError, RecursionError, web.RequestPayloadError):
        raise SlackError("invalid_json") from None
    if not isinstance(body, dict):
        raise SlackError("json_not_object")
    return body
