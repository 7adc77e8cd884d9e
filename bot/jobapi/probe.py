"""Asks a job API what it can do beyond the specification, without changing anything: each question is about a job, or
a file, that there cannot be.
"""

from dataclasses import dataclass
from http import HTTPStatus as Status
from typing import Self
from urllib.parse import quote

import httpx

from bot.jobapi.models import Mode
from bot.jobapi.settings import JobApiSettings
from bot.jobapi.transport import HEADERS, JobApiTransport, read_body
from bot.jobapi.wire import json_in

NO_JOB = "pagehand-doctor"
"""The id of no job, the digest of no file, the name of no operation, and nobody's key."""


@dataclass(frozen=True)
class FoundAddress:
    """What tells a job API from anything else that answers 404; None where it cannot be told.

    Attributes:
        has_jobs: A job is not found there in other words than an address that there cannot be.
        checks_keys: A key that nobody has is refused.
    """

    has_jobs: bool | None
    checks_keys: bool | None


_Answer = tuple[int, bytes]
"""An answer's status and body."""


class JobApiProbe:
    """Asks the job API of one project. It is a context manager, which closes its connections."""

    def __init__(self, settings: JobApiSettings, project_id: str) -> None:
        self._base = settings.base_url
        self._id = project_id
        self._project = quote(project_id, safe="", errors="replace")
        self._job = settings.get_path.replace("{projectId}", self._project).replace("{id}", NO_JOB)
        self._client = httpx.AsyncClient(
            transport=JobApiTransport(settings),
            headers=HEADERS | {"Authorization": f"Bearer {settings.api_key.newest}"},
            timeout=settings.timeout,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def address(self) -> FoundAddress:
        """Looks for a job, for what is not there, and for a job with another key."""
        job, other = await self._ask("GET", self._job), await self._ask("GET", f"{self._job}/{NO_JOB}")
        refused = await self._ask("GET", self._job, {"Authorization": f"Bearer {NO_JOB}"})
        return FoundAddress(
            None if job is None or other is None else self._words_of(job) != self._words_of(other),
            None if refused is None else refused[0] in {Status.UNAUTHORIZED, Status.FORBIDDEN},
        )

    def _words_of(self, answer: _Answer) -> tuple[int, bytes]:
        status, body = answer
        return status, _without(body.replace(self._job.encode(), b""), f"/{NO_JOB}")

    async def abilities(self) -> dict[str, bool | None]:
        """Returns whether the job API has each ability, by its name; None where that cannot be told."""
        job = f"/v2/agent/{self._project}/job/{NO_JOB}"
        unknown = await self._ask("POST", f"{job}/{NO_JOB}")
        cancel = await self._ask("POST", f"{job}/cancel")
        upload = await self._ask("PUT", f"/v2/agent/{self._project}/file/{NO_JOB}")
        described = await self._ask("GET", "/openapi.json")
        document = described[1] if described is not None and described[0] == Status.OK else b""
        return {
            "cancel": _is_there(cancel, unknown, "cancel"),
            "files": _is_there(upload, unknown, "file"),
            "idempotent": _is_described(document, b"Idempotency-Key"),
            "requester": _is_described(document, b"requestedBy"),
            "instruction": _is_described(document, b'"instruction"'),
            "pull_request": _is_described(document, b'"getPullRequest"'),
            "pictures": _is_described(document, b'"getPicture"'),
            "modes": _takes_plans(document, self._id),
        }

    async def _ask(self, method: str, path: str, headers: dict[str, str] | None = None) -> _Answer | None:
        try:
            body = b"{}" if method == "POST" else b""
            request = self._client.build_request(method, self._base + path, content=body, headers=headers)
            response = await self._client.send(request, stream=True)
            try:
                return response.status_code, await read_body(response)
            finally:
                await response.aclose()
        except Exception:  # noqa: BLE001 - whatever it was, nothing is known; and its words can quote the key
            return None


def _is_there(answer: _Answer | None, unknown: _Answer | None, operation: str) -> bool | None:
    """Tells an operation that finds no such job from one that is not there at all: that is answered like any other that
    is not, but for its own name where the answer repeats it.
    """
    if answer is None or unknown is None:
        return None
    status, body = answer
    if status in {Status.METHOD_NOT_ALLOWED, Status.NOT_IMPLEMENTED}:
        return False
    if status >= Status.INTERNAL_SERVER_ERROR:
        return None
    if status != Status.NOT_FOUND:
        return status not in {Status.UNAUTHORIZED, Status.FORBIDDEN, Status.TOO_MANY_REQUESTS} or None
    return (status, _without(body, operation)) != (unknown[0], _without(unknown[1], NO_JOB))


def _without(body: bytes, word: str) -> bytes:
    return body.replace(word.encode(), b"").replace(NO_JOB.encode(), b"")


def _takes_plans(document: bytes, project_id: str) -> bool | None:
    """Returns whether a project takes plans, which our job server tells of each; of others, whether modes are known."""
    try:
        return Mode.PLAN in json_in(document)["x-projects"][project_id]["modes"]
    except (ValueError, LookupError, TypeError):
        return _is_described(document, b'"mode"')


def _is_described(document: bytes, name: bytes) -> bool | None:
    return name in document if document else None
