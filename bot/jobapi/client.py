"""The job API's client: httpx over the aiohttp transport (a fifth of the CPU that httpx's own pool takes)."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from functools import lru_cache, partial
from http import HTTPStatus as Status
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import quote

import httpx

from bot import __version__
from bot.errors import (
    JobApiBusy,
    JobApiError,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUncertain,
    JobApiUnreachable,
    JobApiUnreadable,
    JobGone,
)
from bot.jobapi.http_errors import JobApiOperation, error_for_status, error_without_answer
from bot.jobapi.models import Job, PromptCall, PromptFile, Requester, SeenJob
from bot.jobapi.probe import NO_JOB
from bot.jobapi.settings import JobApiSettings
from bot.jobapi.transport import JobApiTransport
from bot.jobapi.wire import (
    MAX_BODY,
    MAX_WORDS,
    cancel_body,
    error_message_in,
    parse_job,
    parse_upload,
    prompt_body,
    unzipped,
)
from bot.runtime.log_context import REQUEST_ID_HEADER, current_log_context
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.text import printable_line


class BusyGate:
    """Pauses calls for projects whose limit is used up.

    Creates and messages pause together, because they share the project's limit (100 an hour at the hosted API). Polls
    have no documented limit and pause separately. So do cancels, which may be what helps.

    Args:
        default_pause: Seconds to pause if the response has no Retry-After.
    """

    def __init__(self, *, default_pause: float) -> None:
        self._default_pause = default_pause
        self._closed: dict[tuple[str, JobApiOperation], tuple[float, JobApiBusy]] = {}

    def check(self, operation: JobApiOperation, project_id: str) -> None:
        """Raises JobApiBusy during a pause, with the text of the response that caused it and the remaining seconds."""
        until, answer = self._closed.get(_limit(operation, project_id), (0.0, None))
        left = until - asyncio.get_running_loop().time()
        if answer is not None and left > 0:
            message = "The job API asked to leave this project alone for a while."
            raise JobApiBusy(message, words=answer.words, status=answer.status, retry_after=left)

    def close(self, operation: JobApiOperation, project_id: str, answer: JobApiBusy) -> None:
        """Starts a pause as long as a response asks, or keeps a longer one."""
        seconds = self._default_pause if answer.retry_after is None else answer.retry_after
        limit, until = _limit(operation, project_id), asyncio.get_running_loop().time() + seconds
        if until > self._closed.get(limit, (0.0, answer))[0]:
            self._closed[limit] = (until, answer)


def _limit(operation: JobApiOperation, project_id: str) -> tuple[str, JobApiOperation]:
    """Returns the key of the limit that a call counts against."""
    together = operation is JobApiOperation.MESSAGE
    return project_id, JobApiOperation.CREATE if together else operation


class KeyChoice:
    """Chooses between the keys of a job API: the newest, until another one is known to be accepted instead."""

    def __init__(self, keys: RotatingSecret) -> None:
        self._keys = keys
        self._preferred: tuple[tuple[str, ...], str] = ((), "")

    def first(self) -> str:
        """Returns the key to try first."""
        keys = self._keys.values
        known_for, preferred = self._preferred
        return preferred if known_for == keys else keys[0]

    def other(self, tried: str) -> str | None:
        """Returns the other key, if there is one."""
        return next((key for key in self._keys.values if key != tried), None)

    def prefer(self, key: str) -> None:
        """Remembers a key that the job API has accepted, until the keys change."""
        self._preferred = (self._keys.values, key)


_CREATE_PATH = "/v2/agent/{projectId}/job"
_MESSAGE_PATH = "/v2/agent/{projectId}/job/{id}/message"
_CANCEL_PATH = "/v2/agent/{projectId}/job/{id}/cancel"
_DISCARD_PATH = "/v2/agent/{projectId}/job/{id}/discard"
_UPLOAD_PATH = "/v2/agent/{projectId}/file/{id}"
"""The last three are not in the specification; Pagehand's own job server has them."""
_KEPT_ADDRESSES = 20_000
"""Jobs whose parsed URL is cached, because parsing takes a tenth of a poll."""
MAX_UPLOAD_BYTES = 25_000_000
"""The largest file that is uploaded."""
_WITH_WORDS = frozenset({JobApiOperation.CREATE, JobApiOperation.MESSAGE, JobApiOperation.UPLOAD})
"""Calls whose content people wrote, which a firewall can dislike."""
_KEY_CHECK_TIMEOUT = 5.0
"""Seconds; a lease lasts longer than a call by more."""
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,50}/[A-Za-z0-9!#$&^_.+-]{1,50}")


class HttpJobApi:
    """The job API over HTTP (ports.JobApi). Create one per project, and `aclose` it at the end.

    The proxies (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) and certificates (SSL_CERT_FILE, SSL_CERT_DIR) of the
    environment are used, because many company networks require them. They are read once, here. Addresses of this
    machine never go through a proxy. Redirects are not followed, because they would send the key elsewhere.

    Raises:
        ConfigError: The proxy is neither http nor https.
    """

    def __init__(self, settings: JobApiSettings, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._settings = settings
        self._keys = KeyChoice(settings.api_key)
        self._busy_gate = BusyGate(default_pause=settings.default_pause)
        # Well below the total, so that a timeout while connecting certainly means that nothing was sent.
        connect = min(settings.connect_timeout, settings.timeout / 2)
        self._timeout = httpx.Timeout(settings.timeout, connect=connect, pool=connect)
        self._transport = transport or JobApiTransport(settings)
        self._address = lru_cache(maxsize=_KEPT_ADDRESSES)(self._parsed_address)
        self._client = httpx.AsyncClient(
            transport=self._transport,
            headers={
                "User-Agent": f"Pagehand/{__version__}",
                "Accept": "application/json",
                # A job is short. A server that compresses its answers all the same is read, too.
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
            },
            timeout=self._timeout,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            event_hooks={"response": [_leave_redirect]},
        )

    def __repr__(self) -> str:
        return f"HttpJobApi({self._settings.base_url!r})"

    async def create(self, project_id: str, call: PromptCall) -> Job:
        """Starts a job."""
        url = self._url(_CREATE_PATH, project_id)
        body = prompt_body(call)
        return await self._call(JobApiOperation.CREATE, project_id, url, body, call.idempotency_key)

    async def send_message(self, project_id: str, job_id: str, call: PromptCall) -> Job:
        """Sends a follow-up to a job."""
        url = self._url(_MESSAGE_PATH, project_id, job_id)
        body = prompt_body(call)
        return await self._call(JobApiOperation.MESSAGE, project_id, url, body, call.idempotency_key, job_id)

    async def cancel(
        self, project_id: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops a job and its waiting messages; safe to repeat."""
        url = self._url(_CANCEL_PATH, project_id, job_id)
        body = cancel_body(requester)
        return await self._call(JobApiOperation.CANCEL, project_id, url, body, idempotency_key, job_id)

    async def discard(self, project_id: str, job_id: str, *, idempotency_key: str) -> Job:
        """Discards the work of a failed job; safe to repeat."""
        url = self._url(_DISCARD_PATH, project_id, job_id)
        return await self._call(JobApiOperation.DISCARD, project_id, url, b"{}", idempotency_key, job_id)

    def can_cancel(self, project_id: str) -> bool:  # noqa: ARG002 - the port asks for each project
        """Returns whether `cancel` is supported."""
        return self._settings.can_cancel

    def takes_files(self, project_id: str) -> bool:  # noqa: ARG002 - the same
        """Returns whether `upload` is supported."""
        return self._settings.takes_files

    async def get(self, project_id: str, job_id: str) -> Job:
        """Reads a job."""
        return self._job_in(await self._read(project_id, job_id), job_id)

    async def look(self, project_id: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """Reads a job. Returns None if the response is identical to the one with the fingerprint `unless`."""
        body = await self._read(project_id, job_id)
        fingerprint = hashlib.blake2b(body, digest_size=16).digest()
        return None if fingerprint == unless else SeenJob(self._job_in(body, job_id), fingerprint)

    async def upload(self, project_id: str, content: bytes, *, name: str, mimetype: str) -> PromptFile:
        """Uploads a file, to which requests can then refer. Safe to repeat.

        Raises:
            JobApiRejected: The job API accepts no files, or not this one.
            JobApiUnreachable: Retry, even if it may have arrived.
        """
        if len(content) > MAX_UPLOAD_BYTES:
            raise JobApiRejected(f"A file of more than {MAX_UPLOAD_BYTES:,} bytes is not sent to the job API.")
        url = self._url(_UPLOAD_PATH, project_id, await asyncio.to_thread(_sha256, content))
        try:
            body = await self._exchange(JobApiOperation.UPLOAD, project_id, partial(self._put, url, content, mimetype))
        except JobApiUncertain as error:
            raise JobApiUnreachable(str(error), words=error.words) from None
        return PromptFile(parse_upload(body), name, mimetype)

    async def aclose(self) -> None:
        """Closes every connection. Later calls raise JobApiUnreachable."""
        await self._client.aclose()

    def _url(self, template: str, project_id: str, job_id: str = "-") -> str:
        # The encoded values contain no braces, so one cannot be mistaken for the other's placeholder.
        path = template.replace("{projectId}", _segment(project_id)).replace("{id}", _segment(job_id))
        return self._settings.base_url + path

    def _parsed_address(self, project_id: str, job_id: str) -> httpx.URL:
        return httpx.URL(self._url(self._settings.get_path, project_id, job_id))

    async def _read(self, project_id: str, job_id: str) -> bytes:
        request = partial(self._poll, self._address(project_id, job_id))
        return await self._exchange(JobApiOperation.GET, project_id, request)

    async def _call(  # noqa: PLR0917 - a call's parts, in the order of the request
        self, operation: JobApiOperation, project_id: str, url: str, content: bytes, key: str, job_id: str = ""
    ) -> Job:
        body = await self._exchange(operation, project_id, partial(self._post, url, content, key))
        return self._job_in(body, job_id)

    def _job_in(self, body: bytes, job_id: str) -> Job:
        try:
            return parse_job(body, self._hide_key, asked_id=job_id)
        except JobApiUnreadable as error:
            words = self._words_in(body)
            problem = str(error)
        raise JobApiUnreadable(problem, words=words)

    async def _exchange(self, operation: JobApiOperation, project_id: str, build: Callable[[], httpx.Request]) -> bytes:
        """Sends a request, unless the project is paused, and returns the body of a successful response."""
        self._busy_gate.check(operation, project_id)
        outcome = await self._attempt_with_keys(operation, build)
        if isinstance(outcome, JobApiBusy) and outcome.status not in {Status.CONFLICT, Status.LOCKED}:  # of one job
            self._busy_gate.close(operation, project_id, outcome)
        if operation in _WITH_WORDS and await self._is_firewalls(outcome, project_id):
            outcome = JobApiRejected("A firewall in front of the job API refused this (403).", status=Status.FORBIDDEN)
        # Raised outside of any except clause, because the original error's context contains the request with the key.
        if isinstance(outcome, JobApiError):
            raise outcome
        return outcome

    async def _is_firewalls(self, outcome: bytes | JobApiError, project_id: str) -> bool:
        """Returns whether a page refused a request while the job API takes the key: then it is about the words."""
        if not (isinstance(outcome, JobApiNotAllowed) and outcome.status == Status.FORBIDDEN and outcome.is_page):
            return False
        try:
            async with asyncio.timeout(_KEY_CHECK_TIMEOUT):
                await self._read(project_id, NO_JOB)
        except (JobApiError, TimeoutError) as error:
            return isinstance(error, JobGone)
        return True

    async def _attempt_with_keys(
        self, operation: JobApiOperation, build: Callable[[], httpx.Request]
    ) -> bytes | JobApiError:
        """Sends a request with one key and, if the job API does not know it and so has done nothing, with the other."""
        key = self._keys.first()
        outcome = await self._attempt(operation, build, key)
        other = self._keys.other(key)
        if other is None or not (isinstance(outcome, JobApiNotAllowed) and outcome.status == Status.UNAUTHORIZED):
            return outcome
        outcome = await self._attempt(operation, build, other)
        if isinstance(outcome, bytes):
            self._keys.prefer(other)
        return outcome

    async def _attempt(
        self, operation: JobApiOperation, build: Callable[[], httpx.Request], key: str
    ) -> bytes | JobApiError:
        if self._client.is_closed:
            return JobApiUnreachable("The job API cannot be reached: Pagehand is stopping.")
        response: httpx.Response | None = None
        body: bytes | None = None
        try:
            async with asyncio.timeout(self._settings.timeout):
                request = build()
                request.headers["Authorization"] = f"Bearer {key}"
                response = await self._send(request)
                try:
                    body = await _read(response)
                finally:
                    await response.aclose()
        except Exception as error:  # noqa: BLE001 - aiohttp lets built-in errors through on malformed responses
            if response is None:
                return error_without_answer(error)
        if not response.is_success:  # only the status matters, even if the body never arrived
            words = self._words_in(body or b"")
            return error_for_status(operation, response, words, body or b"")
        if body is None:
            return JobApiUnreadable("The job API's answer is not a job: it did not come in whole.")
        return body

    async def _send(self, request: httpx.Request) -> httpx.Response:
        if request.method != "GET":
            return await self._client.send(request, stream=True)
        # Bypasses the client, which would double the CPU time of a poll and adds only redirects, cookies and
        # authentication, none of which is needed.
        response = await self._transport.handle_async_request(request)
        await _leave_redirect(response)
        return response

    def _poll(self, url: httpx.URL) -> httpx.Request:
        timeout = {"timeout": self._timeout.as_dict()}
        request = httpx.Request("GET", url, headers=self._client.headers, extensions=timeout)
        request.headers.encoding = "ascii"  # otherwise httpx detects it again for each header
        request.headers.update(_request_id())
        return request

    def _post(self, url: str, content: bytes, idempotency_key: str) -> httpx.Request:
        headers = {"Idempotency-Key": idempotency_key, **_request_id()}
        return self._client.build_request("POST", url, content=content, headers=headers)

    def _put(self, url: str, content: bytes, mimetype: str) -> httpx.Request:
        kind = mimetype if _MEDIA_TYPE.fullmatch(mimetype) else "application/octet-stream"
        return self._client.build_request("PUT", url, content=content, headers={"Content-Type": kind, **_request_id()})

    def _words_in(self, body: bytes) -> str:
        return printable_line(self._hide_key(error_message_in(body)), MAX_WORDS)

    def _hide_key(self, text: str) -> str:
        for key in self._settings.api_key.ever_held:
            text = text.replace(key, "***")
        return text


def _request_id() -> dict[str, str]:
    """The header by which a request is found in the log of the job API; none outside of a request."""
    request_id = current_log_context().request
    return {REQUEST_ID_HEADER: request_id} if request_id else {}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _segment(value: str) -> str:
    """Returns a path segment. `.` and `..` are rejected, because even percent-encoded they would change the path."""
    if value in {"", ".", ".."}:
        raise JobApiRejected(f"{value!r} cannot be the name of a project or job.")
    return quote(value, safe="", errors="replace")


async def _read(response: httpx.Response) -> bytes:
    """Returns the body, decompressed. Stops soon after MAX_BODY, and a longer body counts as unreadable."""
    body = bytearray()
    async for chunk in _chunks(response):
        body += chunk
        if len(body) > MAX_BODY:
            break
    return unzipped(bytes(body))


def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("the transport answers without a stream")
    return aiter(response.stream)


async def _leave_redirect(response: httpx.Response) -> None:
    # Otherwise httpx prepares the next request and, if Location is malformed, fails as if the connection was lost.
    if location := response.headers.pop("location", ""):
        response.extensions["location"] = location
