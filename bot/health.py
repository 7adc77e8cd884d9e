"""Whether the bot can work: what it tells its operator, in the log and to whoever asks for its health."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from aiohttp import web

logger = logging.getLogger(__name__)

TOO_LONG = 300.0
"""Seconds that a part may get nowhere before the bot counts as unable to work."""
LOOK_EVERY = 5.0


@dataclass(frozen=True)
class Part:
    """A part of the bot, how long it has got nowhere (in seconds; 0 while it works), and why."""

    name: str
    failing_for: float = 0.0
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether it works, or has stopped so recently that it may be a moment's trouble."""
        return self.failing_for < TOO_LONG


class Health:
    """Watches the parts. `parts` tells how they are now."""

    def __init__(self, parts: Callable[[], Iterable[Part]]) -> None:
        self._parts = parts
        self._told: set[str] = set()

    def state(self) -> Mapping[str, object]:
        """The health as JSON: `ok`, and each part's trouble in words."""
        parts = list(self._parts())
        return {
            "ok": all(part.ok for part in parts),
            "parts": {part.name: _words(part) for part in parts},
        }

    def look(self) -> None:
        """Logs each part that has got nowhere for too long, once, and its recovery."""
        for part in self._parts():
            if not part.ok and part.name not in self._told:
                self._told.add(part.name)
                logger.error("%s has not worked for %.0f minutes: %s", part.name, part.failing_for / 60, part.why)
            elif part.failing_for == 0 and part.name in self._told:
                self._told.discard(part.name)
                logger.warning("%s works again", part.name)

    async def watch(self) -> None:
        """Looks now and then, for ever."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY)


class HealthPage:
    """Serves /health, where Socket Mode leaves no other address: status 200 while all is well, else 503."""

    def __init__(self, health: Health, *, host: str, port: int) -> None:
        self._health = health
        self._host = host
        self._port = port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listens. Raises OSError where the port is taken."""
        served = web.Application(client_max_size=1024)
        served.router.add_get("/health", self._show)
        self._runner = web.AppRunner(served, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        logger.info("health is shown at port %s", self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Listens no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _show(self, _: web.Request) -> web.Response:
        state = self._health.state()
        return web.json_response(state, status=200 if state["ok"] else 503)


def _words(part: Part) -> str:
    return "works" if part.failing_for == 0 else f"has not worked for {part.failing_for:.0f} s: {part.why}"
