"""The listening socket, which can close and reopen at the same address."""

import socket

from aiohttp import web

from bot.runtime.http.server import listening_socket


class Listener:
    """Serves an application. During an outage it refuses connections, like a machine that is down."""

    def __init__(self) -> None:
        self.origin = ""
        self._runner: web.AppRunner | None = None
        self._site: web.SockSite | None = None
        self._address = ("", 0)
        self._held: socket.socket | None = None
        """Reserves the port during an outage, so that the system does not give it to another program."""

    async def start(self, application: web.Application, host: str, port: int) -> str:
        """Listens. Returns the origin. Raises OSError if the address is taken, or not this machine's."""
        listener = listening_socket(host, port)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await self._serve(self._runner, listener)
        self._address = (host, listener.getsockname()[1])
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"http://{shown}:{self._address[1]}"
        return self.origin

    async def stop(self) -> None:
        self._release()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
            self.origin = ""

    async def begin_outage(self) -> None:
        """Stops listening and breaks every connection."""
        if self._runner is None or self._site is None:
            return
        await self._site.stop()
        self._site = None
        self._held = _bound(*self._address)
        server = self._runner.server
        for connection in server.connections if server else ():
            if connection.transport is not None:
                connection.transport.abort()

    async def end_outage(self) -> None:
        """Listens again, at the same address."""
        if self._runner is None or self._site is not None:
            return
        self._release()
        await self._serve(self._runner, listening_socket(*self._address))

    async def _serve(self, runner: web.AppRunner, listener: socket.socket) -> None:
        self._site = web.SockSite(runner, listener)
        await self._site.start()

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _bound(host: str, port: int) -> socket.socket:
    """Returns a socket that is bound to an address without listening, so that connections are refused."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    held = socket.socket(family, kind, protocol)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # although closing connections still use it
    held.bind(address)
    return held
