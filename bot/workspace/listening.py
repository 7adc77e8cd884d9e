"""The listening socket, which can go away and come back at the same address."""

from aiohttp import web


class Listening:
    """Serves an application; an outage refuses connections as a machine that is down does."""

    def __init__(self) -> None:
        self.origin = ""
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._address = ("", 0)

    async def start(self, application: web.Application, host: str, port: int) -> str:
        """Listen and return the origin."""
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, host, port)
        await self._site.start()
        bound = self._runner.addresses[0]
        self._address = (host, bound[1])
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"http://{shown}:{bound[1]}"
        return self.origin

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
            self.origin = ""

    async def pause(self) -> None:
        """Stop listening and break every connection."""
        if self._runner is None or self._site is None:
            return
        await self._site.stop()
        self._site = None
        server = self._runner.server
        for connection in server.connections if server else ():
            if connection.transport is not None:
                connection.transport.abort()

    async def resume(self) -> None:
        if self._runner is None or self._site is not None:
            return
        host, port = self._address
        self._site = web.TCPSite(self._runner, host, port)
        await self._site.start()
