"""A job API for tests, over real HTTP: it follows the specification, records all calls, and answers
wrongly where a test says so.

Times are monotonic seconds, the same in all processes of the machine. Jobs progress only when the test shows it
(`show`) or lets them (`autopilot`).
"""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from aiohttp import web
from support.oracles.promises import Poll
from support.servers.free_ports import free_port

from bot.jobapi.models import Mode, ProposalState
from bot.jobapi.probe import NO_JOB

KEY = "mk_planted_admin_key"
PROJECT = "docs"
_TURNS_TO_ACCEPT = 5
"""Turns of the event loop after which a connection that was just accepted is open, so that stopping closes it, too."""


class Operation(StrEnum):
    CREATE = "create"
    MESSAGE = "message"
    GET = "get"
    CANCEL = "cancel"
    DISCARD = "discard"
    UPLOAD = "upload"


_PROMPTS = frozenset({Operation.CREATE, Operation.MESSAGE})


class Cut(StrEnum):
    """Where a connection breaks without warning."""

    UNANSWERED = "unanswered"
    MIDWAY = "midway"
    """The length and half of the body have been sent."""


@dataclass(frozen=True)
class Fault:
    """One way to answer wrongly.

    `applied`: the call is carried out anyway. `status` and `body` None: unchanged. `delay` is in seconds, after the
    call was carried out.
    """

    applied: bool = False
    status: int | None = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: Cut | None = None


def refusing(status: int, words: str = "", *, applied: bool = False, **headers: str) -> Fault:
    """Answers with a status and the API's own words; header names are given with underscores."""
    body = json.dumps({"error": words}).encode() if words else b""
    return Fault(applied, status, body, {name.replace("_", "-"): value for name, value in headers.items()})


WEB_PAGE = Fault(True, 200, b"<!doctype html><html><body>Sign in</body></html>", {"Content-Type": "text/html"})
"""Of a proxy or a login."""
GARBAGE = Fault(applied=True, body=b'\xff\xfe{"id": \x00]')
TRUNCATED = Fault(applied=True, cut=Cut.MIDWAY)


def cut(*, applied: bool) -> Fault:
    return Fault(applied, cut=Cut.UNANSWERED)


def slow(seconds: float) -> Fault:
    return Fault(applied=True, delay=seconds)


@dataclass(frozen=True)
class Created:
    prompt: str
    key: str
    job_id: str
    at: float
    project: str = PROJECT
    files: tuple[str, ...] = ()
    """The ids of the attached files."""


@dataclass(frozen=True)
class Message:
    job_id: str
    prompt: str
    key: str
    at: float


@dataclass
class Attempt:
    """A received call, carried out or not."""

    operation: Operation
    job_id: str
    prompt: str
    key: str
    at: float
    body: bytes = b""
    applied: bool = False
    project: str = PROJECT


@dataclass
class _Switch:
    operation: Operation | None
    prompt: str | None
    times: int | None
    fault: Fault

    def fits(self, attempt: Attempt) -> bool:
        return self.operation in {None, attempt.operation} and self.prompt in {None, attempt.prompt}


class FakeJobApiServer:
    """The job API and its records. `honours_keys`: a repeated Idempotency-Key runs once and gets the first
    answer, as with our job server.
    """

    def __init__(self, *, honours_keys: bool = False) -> None:
        self.honours_keys = honours_keys
        self.projects = {PROJECT}
        self.created: list[Created] = []
        self.messages: list[Message] = []
        self.cancelled: list[str] = []
        """Ids of jobs, each as often as it was cancelled."""
        self.discarded: list[str] = []
        """The same, of those whose partial work was discarded."""
        self.accepted: list[tuple[str, str]] = []
        """The plans that were accepted, and the keys of the messages that did."""
        self.polls: list[Poll] = []
        """Each ends when it is answered or the client disconnects."""
        self.attempts: list[Attempt] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        """Uploaded files, by id."""
        self.pictures: dict[str, bytes] = {}
        """Those of pages, by id, for the test to add to."""
        self._plans = 0
        self._taken: dict[str, dict[str, Any]] = {}
        self._switches: list[_Switch] = []
        self._polls_to_end: int | None = None
        self._polled: Counter[str] = Counter()
        self._runner: web.AppRunner | None = None
        self._port = free_port()
        self._changed = asyncio.Event()
        self.links: dict[str, list[str]] = {}
        """The pull requests that each job had, the newest last."""
        self.merged: set[str] = set()
        """Their links, for the test to add to."""

    # -- running --------------------------------------------------------------------------------------------------

    async def start(self) -> str:
        """Starts, also after a `stop`, and returns the base URL, which stays the same."""
        app = web.Application(client_max_size=10_000_000)
        app.router.add_post("/v2/agent/{project}/job", partial(self._shielded, Operation.CREATE))
        for operation in (Operation.MESSAGE, Operation.CANCEL, Operation.DISCARD):
            app.router.add_post(f"/v2/agent/{{project}}/job/{{id}}/{operation}", partial(self._shielded, operation))
        app.router.add_get("/v2/agent/{project}/job/{id}", self._get)
        app.router.add_get("/v2/agent/{project}/job/{id}/pull-request", self._pull_request)
        app.router.add_get("/v2/agent/{project}/job/{id}/picture/{picture}", self._picture)
        app.router.add_put("/v2/agent/{project}/file/{id}", partial(self._shielded, Operation.UPLOAD))
        # A disconnecting client cancels its handler: so a poll ends when the polling process was killed.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        return self.url

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Stops; the records and the jobs are kept."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            for site in runner.sites:
                await site.stop()
            for _ in range(_TURNS_TO_ACCEPT):
                await asyncio.sleep(0)
            await runner.cleanup()

    async def until(self, condition: Callable[[], Any], seconds: float = 30.0) -> None:
        """Waits until the records fulfil a condition; TimeoutError after `seconds`."""
        async with asyncio.timeout(seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    # -- what the test decides ------------------------------------------------------------------------------------

    def show(self, job_id: str, status: str | None = None, link: str | None = None, **fields: Any) -> None:
        """From now on the job looks like this. Without a status it keeps its own; the link is always set."""
        job = self.jobs[job_id]
        if status is not None:
            self._turn(job, status)
        job["prLink"] = link
        if link is not None:
            self.links.setdefault(job_id, []).append(link)
        job.update(fields)

    def autopilot(self, *, polls: int = 2) -> None:
        """Jobs complete with a link by themselves, once polled this often."""
        self._polls_to_end = polls

    def fail(
        self,
        fault: Fault,
        operation: Operation | None = None,
        *,
        times: int | None = 1,
        prompt: str | None = None,
    ) -> None:
        """Answers the next matching calls like this; `times` None: until `heal`. Older faults come first."""
        self._switches.append(_Switch(operation, prompt, times, fault))

    def heal(self) -> None:
        """Removes all faults."""
        self._switches.clear()

    # -- the records ----------------------------------------------------------------------------------------------

    def job_of(self, prompt: str) -> str:
        """Returns the id of the only job created with this prompt."""
        ids = [entry.job_id for entry in self.created if entry.prompt == prompt]
        assert len(ids) == 1, f"{len(ids)} jobs were created for {prompt!r}"
        return ids[0]

    def follow_ups(self, job_id: str) -> list[str]:
        """Returns the follow-ups that a job took, in order."""
        return [message.prompt for message in self.messages if message.job_id == job_id]

    def words_taken(self) -> list[str]:
        """Returns the follow-ups that all jobs took, in order, each separately even if several were merged."""
        return [words for message in self.messages for words in message.prompt.split("\n\n")]

    def tried(self, operation: Operation, prompt: str | None = None) -> int:
        """Returns how many calls came in, carried out or not."""
        return sum(attempt.operation is operation and prompt in {None, attempt.prompt} for attempt in self.attempts)

    # -- the operations -------------------------------------------------------------------------------------------

    async def _shielded(self, operation: Operation, request: web.Request) -> web.StreamResponse:
        """Carries a call out to its end, even if the client does not wait for it."""
        return await asyncio.shield(self._take(operation, request))

    async def _take(self, operation: Operation, request: web.Request) -> web.StreamResponse:
        job_id, raw, prompt, key = request.match_info.get("id", ""), await request.read(), "", ""
        if operation in _PROMPTS:
            prompt, key = _prompt_of(request, raw), request.headers.get("Idempotency-Key", "")
        project = request.match_info["project"]
        return await self._answer(
            request, Attempt(operation, job_id, prompt, key, time.monotonic(), raw, project=project)
        )

    async def _get(self, request: web.Request) -> web.StreamResponse:
        poll = Poll(request.match_info["id"], time.monotonic())
        if poll.job_id != NO_JOB:
            self.polls.append(poll)
        try:
            return await self._take(Operation.GET, request)
        finally:
            poll.ended = time.monotonic()

    async def _pull_request(self, request: web.Request) -> web.Response:
        """Each job's newest, also while the job is at work again, is open and fails a check until it is merged."""
        refused, links = self._refusal(request), self.links.get(request.match_info["id"])
        if refused is not None or links is None:
            status, body = refused or (404, {"error": "no pull request"})
            return web.json_response(body, status=status)
        link = links[-1]
        checks = [{"name": "lint", "outcome": "failed"}]
        told = {"state": "merged", "endedBy": "rae"} if link in self.merged else {"state": "open", "checks": checks}
        return web.json_response({"number": 1, "link": link, "head": "a1", **told})

    async def _picture(self, request: web.Request) -> web.Response:
        status, body = self._refusal(request) or (200, {})
        if status != 200:
            return web.json_response(body, status=status)
        return web.Response(body=self.pictures[request.match_info["picture"]], content_type="image/png")

    def _carry_out(self, attempt: Attempt) -> tuple[int, dict[str, Any]]:
        """Cancels, discards and uploads are like those of our own job server: they are not in the specification."""
        if attempt.operation in _PROMPTS:
            if not attempt.prompt:
                return 400, {"error": "prompt is required"}
            if self.honours_keys and attempt.key in self._taken:
                return 200, self._taken[attempt.key]
        if attempt.operation is Operation.UPLOAD:
            attempt.applied, self.files[attempt.job_id] = True, attempt.body
            return 200, {"id": attempt.job_id}
        job = self._new_job(attempt) if attempt.operation is Operation.CREATE else self.jobs.get(attempt.job_id)
        if job is None:
            return 404, {"error": "no such job"}
        if attempt.operation in _PROMPTS and not self._accept(attempt, job):
            return 409, {"error": "This plan can't be started any more."}
        attempt.applied = True
        self._apply(attempt, job)
        return (201 if attempt.operation is Operation.CREATE else 200), job

    def _new_job(self, attempt: Attempt) -> dict[str, Any]:
        job_id = f"job-{len(self.jobs) + 1}"
        files = tuple(file["id"] for file in json.loads(attempt.body).get("files", ()))
        self.created.append(Created(attempt.prompt, attempt.key, job_id, attempt.at, attempt.project, files))
        self.jobs[job_id] = _new_job(job_id)
        return self.jobs[job_id]

    def _apply(self, attempt: Attempt, job: dict[str, Any]) -> None:
        match attempt.operation:
            case Operation.GET:
                self._polled[job["id"]] += 1
                if job["status"] == "active" and self._polled[job["id"]] >= (self._polls_to_end or math.inf):
                    self._turn(job, "completed")
                    job["prLink"] = f"https://git.example/docs/pull/{job['id'].removeprefix('job-')}"
                    self.links.setdefault(job["id"], []).append(job["prLink"])
            case Operation.CANCEL:
                self.cancelled.append(job["id"])
                if job["status"] == "active":
                    self._turn(job, "completed")
            case Operation.DISCARD:
                self.discarded.append(job["id"])
                if job["status"] != "active":
                    job.get("details", {}).pop("partialWork", None)
            case Operation.MESSAGE:
                self.messages.append(Message(job["id"], attempt.prompt, attempt.key, attempt.at))
                if job["status"] != "archived":
                    self._turn(job, "active")
        if attempt.operation in _PROMPTS:
            self._end_at_once(attempt, job)
            self._taken[attempt.key] = dict(job)
            self._polled[job["id"]] = 0

    def _end_at_once(self, attempt: Attempt, job: dict[str, Any]) -> None:
        """Ends the job with a new plan, or an answer, if only that is asked for."""
        mode = json.loads(attempt.body).get("mode")
        if mode == Mode.PLAN:
            self._plans += 1
            text, state = f"Plan {self._plans}.", ProposalState.PROPOSED
            job["details"] = {"summary": text, "proposal": {"id": f"plan-{self._plans}", "state": state, "text": text}}
        elif mode == Mode.ASK:
            job["details"] = {"summary": f"Answer to {attempt.prompt}", "revision": attempt.key, "mode": mode}
        elif job.get("details", {}).get("mode"):
            job["details"] = {}
        if mode in {Mode.PLAN, Mode.ASK}:
            self._turn(job, "completed")

    def _accept(self, attempt: Attempt, job: dict[str, Any]) -> bool:
        """Accepts the plan that a message names, if any. False if that cannot be."""
        plan = json.loads(attempt.body).get("proposal")
        proposed = job.get("details", {}).get("proposal", {})
        if plan is None:
            return True
        if (plan, ProposalState.PROPOSED) != (proposed.get("id"), proposed.get("state")):
            return False
        self.accepted.append((plan, attempt.key))
        job["details"] = {"proposal": {**proposed, "state": ProposalState.ACCEPTED}}
        return True

    @staticmethod
    def _turn(job: dict[str, Any], status: str) -> None:
        job["status"] = status
        if status == "active":
            job["prLink"] = None

    # -- answering ------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request, attempt: Attempt) -> web.StreamResponse:
        self.attempts.append(attempt)
        try:
            fault = self._fault(attempt) or Fault(applied=True)
            carried_out = partial(self._carry_out, attempt) if fault.applied else (lambda: (500, {"error": "failed"}))
            status, body = self._refusal(request) or carried_out()
            status, content = fault.status or status, json.dumps(body).encode()
        finally:
            self._changed.set()
        await asyncio.sleep(fault.delay)
        return await self._send(request, fault, status, content if fault.body is None else fault.body)

    def _refusal(self, request: web.Request) -> tuple[int, dict[str, Any]] | None:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return 401, {"error": "no such key"}
        if request.match_info["project"] not in self.projects:
            return 404, {"error": "no such project"}
        return None

    @staticmethod
    async def _send(request: web.Request, fault: Fault, status: int, body: bytes) -> web.StreamResponse:
        transport = request.transport
        if fault.cut is Cut.UNANSWERED and transport is not None:
            transport.abort()
            return web.Response()
        headers = {"Content-Type": "application/json", **fault.headers}
        if fault.cut is None:
            return web.Response(status=status, body=body, headers=headers)
        answer = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(body))})
        await answer.prepare(request)
        await answer.write(body[: len(body) // 2])
        if transport is not None:
            transport.close()  # after everything written was sent
        return answer

    def _fault(self, attempt: Attempt) -> Fault | None:
        for switch in self._switches:
            if switch.fits(attempt):
                if switch.times is not None:
                    switch.times -= 1
                    if not switch.times:
                        self._switches.remove(switch)
                return switch.fault
        return None


def _prompt_of(request: web.Request, body: bytes) -> str:
    """Returns the prompt; empty if there is none that can be used."""
    try:
        prompt = json.loads(body)["prompt"]
    except (ValueError, KeyError, TypeError):
        return ""
    return prompt if isinstance(prompt, str) and request.content_type == "application/json" else ""


def _new_job(job_id: str) -> dict[str, Any]:
    return {
        "id": job_id,
        "status": "active",
        "source": {"repository": "acme/docs", "ref": "main"},
        "model": "m1",
        "prLink": None,
        "createdAt": "2026-01-05T10:00:00Z",
        "archivedAt": None,
    }
