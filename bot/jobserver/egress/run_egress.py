"""Opens network access for one run of a program in the sandbox."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bot.errors import ConfigError
from bot.jobserver.egress.addresses import Resolve
from bot.jobserver.egress.proxy import ConnectProxy, resolve
from bot.jobserver.egress.refusals import EgressRefusals
from bot.jobserver.egress.upstream_proxy import upstream_of
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Door, Program
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import OPEN, AllowedHost

PROXY_PORT = 8702
"""Inside the sandbox, whose own loopback interface has nothing else."""
_PROXY = f"http://127.0.0.1:{PROXY_PORT}"
_LOOPBACK = "127.0.0.1,localhost"
PROXY_VARIABLES = {
    **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), _PROXY),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), _LOOPBACK),
}
"""Tell programs about the proxy; a program that ignores them has no network."""
Connected = Callable[[Program], Program]
"""Adds this run's network access to a program."""


class Egress(Protocol):
    """How programs reach other hosts."""

    def opened(self, refusals: EgressRefusals) -> AbstractAsyncContextManager[Connected]:
        """Opens access for one run, and counts refusals.

        Raises:
            EditError: it cannot be opened.
        """
        ...


class OpenEgress:
    """Programs reach whatever this machine can reach."""

    @contextlib.asynccontextmanager
    async def opened(self, _: EgressRefusals) -> AsyncIterator[Connected]:
        yield lambda program: program


@dataclass(frozen=True)
class ListedEgress:
    """Programs reach the allowed hosts through a proxy, and nothing else; never the job server at `own_port`."""

    allowed: Sequence[AllowedHost] = ()
    own_port: int = 0
    resolve: Resolve = resolve

    @contextlib.asynccontextmanager
    async def opened(self, refusals: EgressRefusals) -> AsyncIterator[Connected]:
        proxy = ConnectProxy(self.allowed, refusals, self.resolve, self.own_port)
        with tempfile.TemporaryDirectory(prefix="pagehand-") as directory:
            door = Door(PROXY_PORT, Path(directory, "proxy"))
            async with contextlib.AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(proxy.listening(door.socket))
                except OSError as error:
                    raise EditError(f"its way to other hosts cannot be opened: {error.strerror or error}") from error
                yield lambda program: _with_proxy(program, door)


def egress_for(settings: JobServerSettings) -> Egress:
    """Returns the access that the settings allow; the job server itself is never reachable.

    Raises:
        JobServerError: the proxy of the server's network cannot be used.
    """
    if settings.egress == OPEN:
        return OpenEgress()
    try:
        for host in settings.egress:
            upstream_of(host)
    except ConfigError as error:
        raise JobServerError(str(error)) from None
    return ListedEgress(settings.egress, settings.port)


def _with_proxy(program: Program, door: Door) -> Program:
    environment = {**program.environment, **PROXY_VARIABLES}
    return replace(program, environment=environment, doors=(*program.doors, door))
