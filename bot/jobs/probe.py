"""Asks a job API what it can do beyond the specification, without changing anything: each question is about a job, or
a file, that there cannot be.
"""

from dataclasses import dataclass
from http import HTTPStatus as Status
from typing import Self
from urllib.parse import quote

import httpx

from bot.jobs.settings import JobApiSettings
from bot.jobs.transport import JobApiTransport
from bot.jobs.wire import unzipped

NO_JOB = "pagehand-doctor"
"""The id of no job, the digest of no file, and the name of no operation."""
_NOT_THERE = frozenset({Status.METHOD_NOT_ALLOWED, Status.NOT_IMPLEMENTED})
_LONGEST = 500_000
"""Bytes of an answer that are read."""


@dataclass(frozen=True)
class FoundAbilities:
    """What a job API was seen to be able to do; None where that cannot be told."""

    cancel: bool | None = None
    files: bool | None = None
    idempotent: bool | None = None
    requester: bool | None = None
    instruction: bool | None = None


@dataclass(frozen=True)
class _Answer:
    status: int
    body: bytes


class JobApiProbe:
    """Asks the job API of one project. It is a context manager, which closes its connections."""

    def __init__(self, settings: JobApiSettings, project_id: str) -> None:
        self._base = settings.base_url
        self._project = quote(project_id, safe="", errors="replace")
        self._client = httpx.AsyncClient(
            transport=JobApiTransport(settings),
            headers={
                "Authorization": f"Bearer {settings.api_key.newest}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
            },
            timeout=settings.timeout,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def abilities(self) -> FoundAbilities:
        """Returns what the job API can do. Where nothing answers, nothing can be told."""
        job = f"/v2/agent/{self._project}/job/{NO_JOB}"
        unknown = await self._ask("POST", f"{job}/{NO_JOB}")
        cancel = await self._ask("POST", f"{job}/cancel")
        upload = await self._ask("PUT", f"/v2/agent/{self._project}/file/{NO_JOB}")
        described = await self._ask("GET", "/openapi.json")
        document = described.body if described is not None and described.status == Status.OK else b""
        return FoundAbilities(
            _is_there(cancel, unknown, "cancel"),
            _is_there(upload, unknown, "file"),
            _is_described(document, b"Idempotency-Key"),
            _is_described(document, b"requestedBy"),
            _is_described(document, b'"instruction"'),
        )

    async def _ask(self, method: str, path: str) -> _Answer | None:
        try:
            request = self._client.build_request(method, self._base + path, content=b"{}" if method == "POST" else b"")
            response = await self._client.send(request, stream=True)
            try:
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > _LONGEST:
                        break
            finally:
                await response.aclose()
        except Exception:  # noqa: BLE001 - whatever it was, nothing is known; and its words can quote the key
            return None
        return _Answer(response.status_code, unzipped(bytes(body)))


def _is_there(answer: _Answer | None, unknown: _Answer | None, operation: str) -> bool | None:
    """Tells an operation that finds no such job from one that is not there at all: that is answered like any other that
    is not, but for its own name where the answer repeats it.
    """
    if answer is None or unknown is None:
        return None
    if answer.status in _NOT_THERE:
        return False
    if answer.status >= Status.INTERNAL_SERVER_ERROR:
        return None
    if answer.status != Status.NOT_FOUND:
        return answer.status not in {Status.UNAUTHORIZED, Status.FORBIDDEN, Status.TOO_MANY_REQUESTS} or None
    same = answer.status == unknown.status and _without(answer.body, operation) == _without(unknown.body, NO_JOB)
    return not same


def _without(body: bytes, word: str) -> bytes:
    return body.replace(NO_JOB.encode(), b"").replace(word.encode(), b"")


def _is_described(document: bytes, name: bytes) -> bool | None:
    return name in document if document else None
