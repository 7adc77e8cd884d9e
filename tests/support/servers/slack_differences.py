"""A Slack workspace that differs from ours, as the real one may: in answers, in payloads, and in what it refuses."""

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from support.servers.slack_faults import FaultyWorkspace

from bot.workspace.delivery.deliveries import Ack, Envelope, Transport
from bot.workspace.web_api.endpoint import read_arguments

Changed = Callable[[dict[str, Any]], object]
"""Changes an answer or a payload in place."""


class DifferentWorkspace(FaultyWorkspace):
    """`answers` has what is different by method, `payloads` by Slack's type of an event or interaction; blocks of
    the types in `refused_blocks` it refuses.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.answers: dict[str, Changed] = {}
        self.payloads: dict[str, Changed] = {}
        self.refused_blocks: set[str] = set()
        self.middlewares.append(self._differ)
        self.deliveries.transport = _Different(self.deliveries.transport, self.payloads)

    @web.middleware
    async def _differ(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        method = request.match_info.get("method", "")
        if method.startswith("chat.") and self.refused_blocks:
            _, arguments = await read_arguments(request)
            blocks = arguments.as_dict().get("blocks") or []
            if self.refused_blocks & {block["type"] for block in blocks}:
                return web.json_response({"ok": False, "error": "invalid_blocks"})
        answer = await handler(request)
        if method in self.answers:
            assert isinstance(answer, web.Response)
            assert isinstance(answer.body, bytes)
            body = json.loads(answer.body)
            self.answers[method](body)
            answer.body = json.dumps(body).encode()
        return answer


class _Different:
    def __init__(self, transport: Transport, payloads: dict[str, Changed]) -> None:
        self._transport = transport
        self._payloads = payloads

    @property
    def connected(self) -> bool:
        return self._transport.connected

    async def wait_until_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - as the protocol has it
        await self._transport.wait_until_connected(timeout)

    async def send(self, envelope: Envelope, ack_timeout: float) -> Ack:
        payload = envelope.payload
        kind = payload.get("event", {}).get("subtype") or payload.get("event", {}).get("type") or payload.get("type")
        if kind in self._payloads:
            self._payloads[kind](payload)
        return await self._transport.send(envelope, ack_timeout)
