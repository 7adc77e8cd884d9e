"""A job server in a process of its own, which a test kills; it starts again with the same settings."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from support.servers.free_ports import free_port
from support.worlds.jobserver_world import JOB, KEY, WITHOUT_TLS, until

from bot.jobserver.settings import PREFIX

PAGEHAND = ("-m", "bot")


class JobServerProcess:
    """The process, and a client with the key."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], port: int) -> None:
        self._command, self._environment = command, environment
        headers = {"Authorization": f"Bearer {KEY}"}
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, verify=WITHOUT_TLS)

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(*self._command, env=self._environment)
        await until(self._answers)

    async def _answers(self) -> bool:
        assert self._process.returncode is None
        try:
            return (await self.client.get("/health")).is_success
        except httpx.TransportError:
            return False

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask_to_stop(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def dies(self) -> None:
        async with asyncio.timeout(30):
            await self._process.wait()

    async def create(self, prompt: str) -> str:
        created = (await self.client.post(JOB, json={"prompt": prompt})).raise_for_status().json()
        return str(created["id"])

    async def ended(self, job_id: str) -> dict[str, Any]:
        async def check() -> dict[str, Any] | None:
            seen: dict[str, Any] = (await self.client.get(f"{JOB}/{job_id}")).json()
            return None if seen["status"] == "active" else seen

        return await until(check)


@asynccontextmanager
async def job_server_process(
    data: Path,
    settings: Mapping[str, str],
    program: Sequence[str] = (sys.executable, *PAGEHAND),
    environment: Mapping[str, str] = os.environ,
    arguments: Sequence[str] = ("jobserver",),
) -> AsyncIterator[JobServerProcess]:
    """Starts one; the settings are named without their prefix."""
    port = free_port()
    given = {"API_KEY": KEY, "DATA_DIRECTORY": str(data), "PORT": str(port), "ALLOW_ROOT": "true", **settings}
    named = {PREFIX + name: value for name, value in given.items()}
    server = JobServerProcess((*program, *arguments), {**environment, **named}, port)
    async with server.client:
        try:
            await server.start()
            yield server
        finally:
            server.kill()
            await server.dies()
