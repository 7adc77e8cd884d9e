"""A model for coding agents, on loopback: it speaks the four wire formats that they use, and
answers as a test scripts.

Requests beside the agent's work (titles, routing, counting) get harmless answers.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, assert_never

from aiohttp import web
from support.servers.model_script import (
    BreakOff,
    Hang,
    ModelRequest,
    Refuse,
    Reply,
    RunCommand,
    Say,
    Script,
    Step,
    ToolCall,
    WriteFile,
    tool_call,
)
from support.servers.model_wire import anthropic, chat_completions, gemini, responses

_LARGEST_REQUEST = 50_000_000
_Parse: TypeAlias = Callable[[Mapping[str, Any], str], ModelRequest]


@dataclass(frozen=True)
class _Format:
    parse: _Parse
    whole: Callable[[Reply], Mapping[str, Any]]
    stream: Callable[[Reply], Iterable[bytes]]
    failure: Callable[[int, str], Mapping[str, Any]]


_ANTHROPIC = _Format(anthropic.parse, anthropic.whole, anthropic.stream, anthropic.failure)
_RESPONSES = _Format(responses.parse, responses.whole, responses.stream, chat_completions.failure)
_CHAT = _Format(chat_completions.parse, chat_completions.whole, chat_completions.stream, chat_completions.failure)
_GEMINI = _Format(partial(gemini.parse, stream=False), gemini.whole, gemini.stream, gemini.failure)
_GEMINI_STREAM = _Format(partial(gemini.parse, stream=True), gemini.whole, gemini.stream, gemini.failure)


class ModelServer:
    """The server and its records. `requests` holds the requests of the work itself, the oldest first."""

    def __init__(self) -> None:
        self.script = Script()
        self.requests: list[ModelRequest] = []
        self.side_calls: list[ModelRequest] = []
        self.unknown: list[str] = []
        """Requested paths that are not served here."""
        self.url = ""
        self._changed = asyncio.Event()
        self._hanging = 0

    async def until_hanging(self, seconds: float = 60.0) -> None:
        """Waits until an agent waits for an answer that never comes.

        Raises:
            TimeoutError: none did.
        """
        async with asyncio.timeout(seconds):
            while not self._hanging:
                self._changed.clear()
                await self._changed.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ModelServer"]:
        """Listens on a port of loopback; `url` has no path."""
        runner = web.AppRunner(self._app(), handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_REQUEST)
        app.router.add_post("/v1/messages", partial(self._answer, _ANTHROPIC))
        app.router.add_post("/v1/messages/count_tokens", _count_anthropic)
        app.router.add_post("/v1/responses", partial(self._answer, _RESPONSES))
        app.router.add_post("/v1/chat/completions", partial(self._answer, _CHAT))
        app.router.add_post("/v1beta/models/{model}:generateContent", partial(self._answer, _GEMINI))
        app.router.add_post("/v1beta/models/{model}:streamGenerateContent", partial(self._answer, _GEMINI_STREAM))
        app.router.add_post("/v1beta/models/{model}:countTokens", _count_gemini)
        app.router.add_route("*", "/{path:.*}", self._not_known)
        return app

    async def _not_known(self, request: web.Request) -> web.StreamResponse:
        self.unknown.append(f"{request.method} {request.path}")
        return web.json_response({"error": {"message": "there is nothing here"}}, status=404)

    async def _answer(self, wire: _Format, http: web.Request) -> web.StreamResponse:
        request = wire.parse(json.loads(await http.read()), _key(http))
        step = self.script.next_step(request.parts) if request.tools and not request.answer_schema else None
        (self.side_calls if step is None else self.requests).append(request)
        return await self._carry_out(wire, http, request, step or Say(_harmless(request)))

    async def _carry_out(
        self, wire: _Format, http: web.Request, request: ModelRequest, step: Step
    ) -> web.StreamResponse:
        match step:
            case Say() | ToolCall():
                return await _send(wire, http, request, step)
            case WriteFile() | RunCommand():
                return await _send(wire, http, request, tool_call(step, request))
            case Refuse():
                return web.json_response(wire.failure(step.status, step.message), status=step.status)
            case Hang():
                return await self._hang()
            case BreakOff():
                return await _break_off(wire, http)
        assert_never(step)

    async def _hang(self) -> web.StreamResponse:
        self._hanging += 1
        self._changed.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._hanging -= 1
        raise AssertionError("nobody sets it")


async def _send(wire: _Format, http: web.Request, request: ModelRequest, reply: Reply) -> web.StreamResponse:
    if not request.stream:
        return web.json_response(wire.whole(reply))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(http)
    for piece in wire.stream(reply):
        await response.write(piece)
    await response.write_eof()
    return response


async def _break_off(wire: _Format, http: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(http)
    pieces = list(wire.stream(Say("It is")))
    for piece in pieces[: len(pieces) // 2]:
        await response.write(piece)
    assert http.transport is not None
    http.transport.close()  # after what was written
    return response


def _key(http: web.Request) -> str:
    headers = http.headers
    bearer = headers.get("Authorization", "").removeprefix("Bearer ")
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or bearer


def _harmless(request: ModelRequest) -> str:
    return json.dumps(_example(request.answer_schema)) if request.answer_schema else "Docs"


def _example(schema: Mapping[str, Any]) -> Any:
    """Returns the smallest value that fits the schema of a side call."""
    if "enum" in schema:
        return schema["enum"][0]
    match str(schema.get("type", "string")).lower():
        case "object":
            return {name: _example(value) for name, value in schema.get("properties", {}).items()}
        case "array":
            return []
        case "boolean":
            return False
        case "number" | "integer":
            return 1
    return "docs"


async def _count_anthropic(_: web.Request) -> web.StreamResponse:
    return web.json_response({"input_tokens": 1})


async def _count_gemini(_: web.Request) -> web.StreamResponse:
    return web.json_response({"totalTokens": 1})
