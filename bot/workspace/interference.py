"""Between the app and this workspace: where tests let calls, envelopes and handshakes go wrong."""

from aiohttp import web

from bot.workspace.delivery.transport import Transport
from bot.workspace.web_api.endpoint import ReceivedCall


class Interference:
    """Leaves everything as it is."""

    async def answer(self, call: ReceivedCall) -> web.StreamResponse:
        """Carries a call out."""
        return call.carry_out()

    def transport(self, transport: Transport) -> Transport:
        """The way to the app that envelopes take."""
        return transport

    def refuses_handshake(self) -> bool:
        """Whether a WebSocket handshake is refused, as for an expired ticket."""
        return False
