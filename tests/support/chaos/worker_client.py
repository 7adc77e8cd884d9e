"""A client of two API processes: it creates jobs and messages with keys, cancels some, and answers questions."""

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
from support.chaos.worker_world import WorkerWorld
from support.worlds.jobserver_world import JOB, KEY, WITHOUT_TLS

ANSWER = "443"
AT_ONCE = 12
"""Jobs: more would only wait for each other on a slow machine."""
PATIENCE = 150.0
"""Seconds within which a job has ended, however many processes died under it."""


@dataclass
class SentJob:
    """What was sent to a job, and acknowledged, in order: each prompt once. `answers` are those to its questions."""

    number: int
    id: str = ""
    prompts: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    told_within: float | None = None
    stopped_within: float | None = None
    """Seconds from the cancellation until its agent knew, if it had begun, and to the end, if nothing was done to any
    process: without what the slowest look at the job took meanwhile, as the measure of a busy machine.
    """
    ended: dict[str, Any] = field(default_factory=dict)


class JobClient:
    """Sends each request until an API process answers it: with the same key, so that it counts once."""

    def __init__(self, world: WorkerWorld, seed: int) -> None:
        self._world, self._seed = world, seed
        headers = {"Authorization": f"Bearer {KEY}"}
        addresses = [f"http://127.0.0.1:{port}" for port in world.ports]
        self._apis = [httpx.AsyncClient(base_url=each, headers=headers, verify=WITHOUT_TLS) for each in addresses]
        self.jobs: list[SentJob] = []
        self._running: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        for api in self._apis:
            await api.aclose()

    async def work(self, over: asyncio.Event, *, pause: float) -> None:
        """Begins jobs until it is over; then waits for the end of all."""
        while not over.is_set():
            if sum(not task.done() for task in self._running) < AT_ONCE:
                self.begin(("cancel", "ask", "follow", "follow", "plain")[len(self.jobs) % 5])
            await asyncio.sleep(pause)
        await self.all_ended()

    def begin(self, kind: str) -> None:
        job = SentJob(len(self.jobs))
        self.jobs.append(job)
        self._running.append(asyncio.create_task(self._play(job, kind), name=f"job {job.number}"))

    async def all_ended(self) -> None:
        await asyncio.gather(*self._running)

    async def _play(self, job: SentJob, kind: str) -> None:
        rng = random.Random(f"{self._seed}/{job.number}")  # noqa: S311 - repeatable
        lasts = [30.0] if kind == "cancel" else [rng.choice((0.2, 0.5, 1.0, 3.0)) for _ in range(rng.randint(1, 3))]
        for step, seconds in enumerate(lasts if kind in {"cancel", "follow"} else lasts[:1]):
            await self._send(job, f"job {job.number} step {step} for {seconds} s{' asks' if kind == 'ask' else ''}")
            await asyncio.sleep(rng.choice((0.0, 0.3, 4.0)) if kind == "follow" else 0.0)
        if kind == "cancel":
            await asyncio.sleep(rng.uniform(0.5, 3.5))
            await self._cancel(job)
        if kind == "ask" and await self._is_asked(job):
            await self._send(job, ANSWER, is_answer=True)
        await self._until_ended(job, 0.3)
        async with asyncio.timeout(PATIENCE):
            while _is_pending(job.ended):  # the server tries again to open its pull request, after a minute
                await asyncio.sleep(1.0)
                job.ended = await self._get(job)

    async def _send(self, job: SentJob, prompt: str, *, is_answer: bool = False) -> None:
        key = f"{job.number}/{len(job.prompts)}/{len(job.answers)}"
        path = f"{JOB}/{job.id}/message" if job.id else JOB
        job.id = (await self._request("POST", path, json={"prompt": prompt}, headers={"Idempotency-Key": key}))["id"]
        (job.answers if is_answer else job.prompts).append(prompt)

    async def _cancel(self, job: SentJob) -> None:
        began, asked_at = time.monotonic(), time.time()
        await self._request("POST", f"{JOB}/{job.id}/cancel")
        slowest = await self._until_ended(job, 0.05)
        if self._world.is_calm:
            job.stopped_within = time.monotonic() - began - slowest
            for told in self._world.directory.glob(f"worker-*/cancelled-{job.number}"):
                job.told_within = told.stat().st_mtime - asked_at - slowest

    async def _until_ended(self, job: SentJob, pause: float) -> float:
        """Returns how many seconds the slowest look took."""
        slowest = 0.0
        async with asyncio.timeout(PATIENCE):
            while True:
                began = time.monotonic()
                job.ended = await self._get(job)
                slowest = max(slowest, time.monotonic() - began)
                if job.ended["status"] != "active":
                    return slowest
                await asyncio.sleep(pause)

    async def _is_asked(self, job: SentJob) -> bool:
        """Waits until the job asks, or ends."""
        while (seen := await self._get(job))["status"] == "active":
            if (seen.get("details") or {}).get("question"):
                return True
            await asyncio.sleep(0.1)
        return False

    async def _get(self, job: SentJob) -> dict[str, Any]:
        return await self._request("GET", f"{JOB}/{job.id}")

    async def _request(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """Tries one after the other: a process may be dead, or its database away."""
        async with asyncio.timeout(PATIENCE):
            for attempt in range(10_000):
                with contextlib.suppress(httpx.TransportError):
                    answer = await self._apis[attempt % len(self._apis)].request(method, path, **more)
                    if not answer.is_server_error:
                        parsed: dict[str, Any] = answer.raise_for_status().json()
                        return parsed
                await asyncio.sleep(0.1)
        raise AssertionError(f"{method} {path} was not answered")


def _is_pending(job: dict[str, Any]) -> bool:
    pull_request = (job.get("details") or {}).get("pullRequest") or {}
    return pull_request.get("state") == "pending"
