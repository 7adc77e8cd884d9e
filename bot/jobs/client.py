"""The job API's client: httpx over the aiohttp transport (a fifth of the CPU that httpx's own pool takes)."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import lru_cache, partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import quote

import httpx

from bot import __version__
from bot.domain.jobs.job import Job
from bot.domain.requests.request import Requester, UploadedFile
from bot.errors import JobApiBusy, JobApiError, JobApiRejected, JobApiUncertain, JobApiUnreachable, JobApiUnreadable
from bot.jobs.http_errors import JobApiOperation, error_for_status, error_without_answer
from bot.jobs.settings import JobApiSettings
from bot.jobs.transport import JobApiTransport
from bot.jobs.wire import MAX_BODY, MAX_WORDS, cancel_body, error_message_in, parse_job, parse_upload, prompt_body
from bot.ports.job_api import PromptCall, SeenJob
from bot.runtime.text import printable_line


class BusyGate:
    """Holds calls back from projects that the job API asked to leave alone for a while.

    Creates and messages wait together, since their limit is the project's (the hosted API's is 100 an hour); polls, for
    which none is stated, wait apart, and so do cancels, which may be what helps.

    Args:
        default_pause: Seconds for which a project is left alone where the API names no time.
    """

    def __init__(self, *, default_pause: float) -> None:
        self._default_pause = default_pause
        self._closed: dict[tuple[str, JobApiOperation], tuple[float, JobApiBusy]] = {}

    def check(self, operation: JobApiOperation, project_id: str) -> None:
        """Raises JobApiBusy while the project is to be left alone: with the answer that asked for it, in the job API's
        own words, and the seconds that are left.
        """
        until, answer = self._closed.get(_limit(operation, project_id), (0.0, None))
        left = until - asyncio.get_running_loop().time()
        if answer is not None and left > 0:
            message = "The job API asked to leave this project alone for a while."
            raise JobApiBusy(message, words=answer.words, status=answer.status, retry_after=left)

    def close(self, operation: JobApiOperation, project_id: str, answer: JobApiBusy) -> None:
        """Keeps calls back for as long as an answer asks, counted from now; never for a shorter time than before."""
        seconds = self._default_pause if answer.retry_after is None else answer.retry_after
        limit, until = _limit(operation, project_id), asyncio.get_running_loop().time() + seconds
        if until > self._closed.get(limit, (0.0, answer))[0]:
            self._closed[limit] = (until, answer)


def _limit(operation: JobApiOperation, project_id: str) -> tuple[str, JobApiOperation]:
    """Returns the key of the limit that a call counts against."""
    together = operation is JobApiOperation.MESSAGE
    return project_id, JobApiOperation.CREATE if together else operation


_CREATE_PATH = "/v2/agent/{projectId}/job"
_MESSAGE_PATH = "/v2/agent/{projectId}/job/{id}/message"
_CANCEL_PATH = "/v2/agent/{projectId}/job/{id}/cancel"
_DISCARD_PATH = "/v2/agent/{projectId}/job/{id}/discard"
_UPLOAD_PATH = "/v2/agent/{projectId}/file/{id}"
"""The last three are not of the specification: Pagehand's own job server has them."""
_KEPT_ADDRESSES = 20_000
"""Jobs whose address is kept as httpx parsed it, which takes a tenth of a poll."""
MAX_UPLOAD_BYTES = 25_000_000
"""The largest file that is sent at all."""
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,50}/[A-Za-z0-9!#$&^_.+-]{1,50}")


class HttpJobApi:
    """The job API over HTTP (ports.JobApi). One for a process; `aclose` it at the end.

    The environment's proxies (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) and certificates (SSL_CERT_FILE,
    SSL_CERT_DIR) are obeyed, since many companies let nothing out without them; they are read once, here, and no proxy
    stands before an address of this machine. Redirects are not followed: they would carry the key elsewhere.

    Raises:
        ConfigError: The proxy is neither http nor https.
    """

    def __init__(self, settings: JobApiSettings, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._settings = settings
        self._busy_gate = BusyGate(default_pause=settings.default_pause)
        # Well below the whole, so that what runs out while connecting is known not to have arrived.
        connect = min(settings.connect_timeout, settings.timeout / 2)
        self._timeout = httpx.Timeout(settings.timeout, connect=connect, pool=connect)
        self._transport = transport or JobApiTransport(settings)
        self._address = lru_cache(maxsize=_KEPT_ADDRESSES)(self._parsed_address)
        self._client = httpx.AsyncClient(
            transport=self._transport,
            headers={
                "Authorization": f"Bearer {settings.api_key.get_secret_value()}",
                "User-Agent": f"Pagehand/{__version__}",
                "Accept": "application/json",
                # A job is short, and a compressed answer of a few kilobytes can unfold into gigabytes.
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
        return await self._call(JobApiOperation.MESSAGE, project_id, url, body, call.idempotency_key)

    async def cancel(
        self, project_id: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops what a job does and what waits for it; safe to repeat."""
        url = self._url(_CANCEL_PATH, project_id, job_id)
        return await self._call(JobApiOperation.CANCEL, project_id, url, cancel_body(requester), idempotency_key)

    async def discard(self, project_id: str, job_id: str, *, idempotency_key: str) -> Job:
        """Throws away what a failed job got done; safe to repeat."""
        url = self._url(_DISCARD_PATH, project_id, job_id)
        return await self._call(JobApiOperation.DISCARD, project_id, url, b"{}", idempotency_key)

    def can_cancel(self, project_id: str) -> bool:  # noqa: ARG002 - the port asks for each project
        """Whether `cancel` is there."""
        return self._settings.can_cancel

    def takes_files(self, project_id: str) -> bool:  # noqa: ARG002 - the same
        """Whether files can go with a request."""
        return self._settings.takes_files

    async def get(self, project_id: str, job_id: str) -> Job:
        """Reads a job."""
        return self._job_in(await self._read(project_id, job_id))

    async def look(self, project_id: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """Reads a job, unless the answer is the one with this fingerprint, byte for byte."""
        body = await self._read(project_id, job_id)
        fingerprint = hashlib.blake2b(body, digest_size=16).digest()
        return None if fingerprint == unless else SeenJob(self._job_in(body), fingerprint)

    async def upload(self, project_id: str, content: bytes, *, name: str, mimetype: str) -> UploadedFile:
        """Gives the job API a file that can go with a request then. Sending the same bytes again does no harm.

        Raises:
            JobApiRejected: It takes no files, or not this one.
            JobApiUnreachable: Try again; also where it may have arrived.
        """
        if len(content) > MAX_UPLOAD_BYTES:
            raise JobApiRejected(f"A file of more than {MAX_UPLOAD_BYTES:,} bytes is not sent to the job API.")
        url = self._url(_UPLOAD_PATH, project_id, await asyncio.to_thread(_sha256, content))
        try:
            body = await self._exchange(JobApiOperation.UPLOAD, project_id, partial(self._put, url, content, mimetype))
        except JobApiUncertain as error:
            raise JobApiUnreachable(str(error), words=error.words) from None
        return UploadedFile(parse_upload(body), name, mimetype)

    async def aclose(self) -> None:
        """Closes every connection. Later calls raise JobApiUnreachable."""
        await self._client.aclose()

    def _url(self, template: str, project_id: str, job_id: str = "-") -> str:
        # The encoded values hold no braces, so that one cannot stand for the other.
        path = template.replace("{projectId}", _segment(project_id)).replace("{id}", _segment(job_id))
        return self._settings.base_url + path

    def _parsed_address(self, project_id: str, job_id: str) -> httpx.URL:
        return httpx.URL(self._url(self._settings.get_path, project_id, job_id))

    async def _read(self, project_id: str, job_id: str) -> bytes:
        request = partial(self._poll, self._address(project_id, job_id))
        return await self._exchange(JobApiOperation.GET, project_id, request)

    async def _call(self, operation: JobApiOperation, project_id: str, url: str, content: bytes, key: str) -> Job:
        return self._job_in(await self._exchange(operation, project_id, partial(self._post, url, content, key)))

    def _job_in(self, body: bytes) -> Job:
        return self._without_key(parse_job(body, self._hide_key))

    async def _exchange(self, operation: JobApiOperation, project_id: str, build: Callable[[], httpx.Request]) -> bytes:
        """Sends a request, unless the project is to be left alone, and returns the body of a success."""
        self._busy_gate.check(operation, project_id)
        outcome = await self._attempt(operation, build)
        if isinstance(outcome, JobApiBusy):
            self._busy_gate.close(operation, project_id, outcome)
        # Raised here, where no foreign error is being handled: as its context it would carry the request and its key.
        if isinstance(outcome, JobApiError):
            raise outcome
        return outcome

    async def _attempt(self, operation: JobApiOperation, build: Callable[[], httpx.Request]) -> bytes | JobApiError:
        if self._client.is_closed:
            return JobApiUnreachable("The job API cannot be reached: Pagehand is stopping.")
        response: httpx.Response | None = None
        body: bytes | None = None
        try:
            async with asyncio.timeout(self._settings.timeout):
                response = await self._send(build())
                try:
                    body = await _read(response)
                finally:
                    await response.aclose()
        except Exception as error:  # noqa: BLE001 - libraries let bare errors through (aiohttp on a malformed answer)
            if response is None:
                return error_without_answer(error)
        if not response.is_success:  # the status alone decides, even if its body never came
            return error_for_status(operation, response, self._words_in(body or b""))
        if body is None:
            return JobApiUnreadable("The job API's answer is not a job: it did not come in whole.")
        return body

    async def _send(self, request: httpx.Request) -> httpx.Response:
        if request.method != "GET":
            return await self._client.send(request, stream=True)
        # Past the client, which takes as long as all else about a poll: what it adds to the transport (redirects,
        # cookies, authentication) is not wanted.
        response = await self._transport.handle_async_request(request)
        await _leave_redirect(response)
        return response

    def _poll(self, url: httpx.URL) -> httpx.Request:
        timeout = {"timeout": self._timeout.as_dict()}
        request = httpx.Request("GET", url, headers=self._client.headers, extensions=timeout)
        request.headers.encoding = "ascii"  # else httpx finds it out anew for each header that is looked at
        return request

    def _post(self, url: str, content: bytes, idempotency_key: str) -> httpx.Request:
        headers = {"Idempotency-Key": idempotency_key}
        return self._client.build_request("POST", url, content=content, headers=headers)

    def _put(self, url: str, content: bytes, mimetype: str) -> httpx.Request:
        kind = mimetype if _MEDIA_TYPE.fullmatch(mimetype) else "application/octet-stream"
        return self._client.build_request("PUT", url, content=content, headers={"Content-Type": kind})

    def _words_in(self, body: bytes) -> str:
        return printable_line(self._hide_key(error_message_in(body)), MAX_WORDS)

    def _without_key(self, job: Job) -> Job:
        """Hides our key in what the job API answers. The id is left alone, since it addresses the job."""
        key = self._settings.api_key.get_secret_value()
        shown = {name: getattr(job, name) for name in ("status", "pr_link", "repository", "ref", "model")}
        hidden: dict[str, Any] = {name: self._hide_key(text) for name, text in shown.items() if text and key in text}
        return replace(job, **hidden) if hidden else job

    def _hide_key(self, text: str) -> str:
        return text.replace(self._settings.api_key.get_secret_value(), "***")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _segment(value: str) -> str:
    """One path segment. `.` and `..` would move up the path, even percent-encoded, and so cannot be sent."""
    if value in {"", ".", ".."}:
        raise JobApiRejected(f"{value!r} cannot be the name of a project or job.")
    return quote(value, safe="", errors="replace")


async def _read(response: httpx.Response) -> bytes:
    """Returns the body; where it is longer than MAX_BODY, only a little more than that, which counts as unreadable."""
    body = bytearray()
    async for chunk in _chunks(response):
        body += chunk
        if len(body) > MAX_BODY:
            break
    return bytes(body)


def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("the transport answers without a stream")
    return aiter(response.stream)


async def _leave_redirect(response: httpx.Response) -> None:
    # Otherwise httpx prepares the next request, and fails as if the connection had broken when Location is malformed.
    if location := response.headers.pop("location", ""):
        response.extensions["location"] = location
