"""An app in its own process, and signed commands that arrive there by a schedule, for benchmarks."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import psutil  # type: ignore[import-untyped]  # it has no types of its own

from bot.slack.receiving.http_receiver import signature_of

SECRET = "benchmark-signing-secret"
PATH = "/slack/events"
BOT_WITHOUT_LIMITS = str(Path(__file__).with_name("bot_without_limits.py"))
"""Runs the bot for measurements without Slack's rate limits."""


class Load:
    """Commands that arrive by a schedule."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._url = f"http://127.0.0.1:{port}{PATH}"

    async def run(self, rate: float, count: int) -> list[float]:
        """Returns the latency of each in milliseconds."""
        begin = time.perf_counter()
        tasks = []
        for number in range(count):
            at = begin + number / rate
            await asyncio.sleep(max(at - time.perf_counter(), 0.0))
            tasks.append(asyncio.create_task(self._one(at)))
        return await asyncio.gather(*tasks)

    async def _one(self, at: float) -> float:
        text = "Describe the new settings page " + "and its options " * 5
        await self.send(text=text, user_id="UANA", channel_id="C1")
        return (time.perf_counter() - at) * 1000

    async def send(self, **fields: str) -> None:
        """Sends one command, with its own number in the text."""
        told = {"command": "/docs", "team_id": "T1", "response_url": "https://hooks.slack.com/commands/1"}
        body = urlencode(told | {"trigger_id": secrets.token_hex(16)} | fields).encode()
        now = str(int(time.time()))
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Slack-Request-Timestamp": now,
            "X-Slack-Signature": signature_of(SECRET, now, body).decode(),
        }
        async with self._session.post(self._url, data=body, headers=headers) as response:
            words = await response.text()
        if response.status != 200:
            raise SystemExit(f"{response.status}: {words}")


def environment(address: str, port: int, database_url: str, directory: str) -> dict[str, str]:
    """Returns the bot's settings: jobs are rarely polled, since this is about starts."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": directory,
        "SLACK_BOT_TOKEN": "xoxb-benchmark",
        "SLACK_SIGNING_SECRET": SECRET,
        "SLACK_API_URL": f"{address}/api",
        "JOB_API_URL": address,
        "JOB_API_KEY": "benchmark-key",
        "JOB_API_PROJECT": "docs",
        "DATABASE_URL": database_url,
        "PAGEHAND_POLL_FASTEST": "60",
        "PAGEHAND_POLL_SLOWEST": "60",
        "PAGEHAND_LOG_LEVEL": "WARNING",
        "PORT": str(port),
    }


@contextlib.asynccontextmanager
async def process(port: int, *arguments: str, env: dict[str, str] | None = None) -> AsyncIterator[psutil.Process]:
    """Starts a process that listens on the port, and waits until it is ready, or is an app without health checks."""
    child = await asyncio.create_subprocess_exec(sys.executable, *arguments, env=env)
    try:
        while not await _is_ready(port):
            if child.returncode is not None:
                raise SystemExit("the app did not start")
            await asyncio.sleep(0.05)
        yield psutil.Process(child.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        await child.wait()


async def _is_ready(port: int) -> bool:
    try:
        async with aiohttp.request("GET", f"http://127.0.0.1:{port}/health/ready") as answer:
            return answer.status != HTTPStatus.SERVICE_UNAVAILABLE
    except aiohttp.ClientError:
        return False
