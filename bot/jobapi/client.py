"""The job API's client: httpx over the aiohttp transport (a fifth of the CPU that httpx's own pool takes)."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus as Status
from operator import itemgetter
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
    NoSuchProject,
)
from bot.jobapi.http_errors import JobApiOperation, error_for_status, error_without_answer
from bot.jobapi.models import LARGEST_PICTURE, Job, PromptCall, PromptFile, Requester, SeenJob
from bot.jobapi.probe import NO_JOB
from bot.jobapi.settings import JobApiSettings
from bot.jobapi.transport import HEADERS, JobApiTransport, read_body
from bot.jobapi.wire import (
    MAX_BODY,
    MAX_WORDS,
    cancel_body,
    error_message_in,
    parse_job,
    parse_upload,
    prompt_body,
)
from bot.runtime.logging import REQUEST_ID_HEADER, current_log_context
from bot.runtime.text import printable_line

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
    """The job APIs of all projects over HTTP (ports.JobApi): each has its own address, key, connections and limits.
    `aclose` it at the end.

    The proxies (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) and certificates (SSL_CERT_FILE, SSL_CERT_DIR) of the
    environment are used, because many company networks require them. They are read once, here. Addresses of this
    machine never go through a proxy. Redirects are not followed, because they would send the key elsewhere.

    Args:
        projects: Each project's id at its job API, and the settings of that, by the project's name.
        transport: Used instead of connections.

    Raises:
        ConfigError: The proxy is neither http nor https.
    """

    def __init__(
        self,
        projects: Mapping[str, tuple[str, JobApiSettings]],
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._projects = {name: _Project(*project, transport) for name, project in projects.items()}

    async def create(self, project: str, call: PromptCall) -> Job:
        """Starts a job."""
        return await self._of(project).post(JobApiOperation.CREATE, "", prompt_body(call), call.idempotency_key)

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        """Sends a follow-up to a job."""
        return await self._of(project).post(JobApiOperation.MESSAGE, job_id, prompt_body(call), call.idempotency_key)

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops a job and its waiting messages; safe to repeat."""
        return await self._of(project).post(JobApiOperation.CANCEL, job_id, cancel_body(requester), idempotency_key)

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        """Discards the work of a failed job; safe to repeat."""
        return await self._of(project).post(JobApiOperation.DISCARD, job_id, b"{}", idempotency_key)

    async def get(self, project: str, job_id: str) -> Job:
        """Reads a job."""
        of = self._of(project)
        return of.job_in(await of.read(job_id), job_id)

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """Reads a job. Returns None if the response is identical to the one with the fingerprint `unless`."""
        of = self._of(project)
        body = await of.read(job_id)
        fingerprint = hashlib.blake2b(body, digest_size=16).digest()
        return None if fingerprint == unless else SeenJob(of.job_in(body, job_id), fingerprint)

    async def pull_request(self, project: str, job_id: str) -> bytes:
        """Reads a job's pull request (`bot.codehosts.job_server`). Only if the job API tells it."""
        of = self._of(project)
        return await of.get(JobApiOperation.PULL_REQUEST, job_id)

    async def picture(self, project: str, job_id: str, picture_id: str) -> bytes:
        """Reads a picture of a job's details; of one that is too large, more than LARGEST_PICTURE."""
        of = self._of(project)
        return await of.get(JobApiOperation.PICTURE, job_id, picture_id)

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> PromptFile:
        """Uploads a file, to which requests can then refer. Safe to repeat.

        Raises:
            JobApiRejected: The job API accepts no files, or not this one.
            JobApiUnreachable: Retry, even if it may have arrived.
        """
        of = self._of(project)
        if len(content) > MAX_UPLOAD_BYTES:
            raise JobApiRejected(f"A file of more than {MAX_UPLOAD_BYTES:,} bytes is not sent to the job API.")
        try:
            body = await of.put(content, mimetype)
        except JobApiUncertain as error:
            raise JobApiUnreachable(str(error), words=error.words) from None
        return PromptFile(parse_upload(body), name, mimetype)

    async def aclose(self) -> None:
        """Closes every connection. Later calls raise JobApiUnreachable."""
        await asyncio.gather(*(each.aclose() for each in self._projects.values()))

    def _of(self, project: str) -> "_Project":
        """The project of that name. Jobs of the time when it was the only one are known by its id."""
        if project in self._projects:
            return self._projects[project]
        same_id = [each for each in self._projects.values() if each.id == project]
        if len(same_id) != 1:
            raise NoSuchProject("Pagehand's settings do not have this project any more.")
        return same_id[0]


class _Project:
    """A project's job API. `id` is what that calls the project.

    Creates and messages pause together while the limit is used up that they share (100 an hour at the hosted API).
    Polls have no documented limit and pause separately. So do cancels, which may be what helps.
    """

    def __init__(self, project_id: str, settings: JobApiSettings, transport: httpx.AsyncBaseTransport | None) -> None:
        self.id = project_id
        self.settings = settings
        self._accepted_key: tuple[tuple[str, ...], str] = ((), "")
        """The key that the job API was seen to accept instead of the newest, and the keys that there were then."""
        self._paused: dict[JobApiOperation, tuple[float, JobApiBusy]] = {}
        # Well below the total, so that a timeout while connecting certainly means that nothing was sent.
        connect = min(settings.connect_timeout, settings.timeout / 2)
        self._timeout = httpx.Timeout(settings.timeout, connect=connect, pool=connect)
        self._transport = transport or JobApiTransport(settings)
        self._closed = False
        self._address = lru_cache(maxsize=_KEPT_ADDRESSES)(self._parsed_address)
        self._headers = httpx.Headers(HEADERS | {"User-Agent": f"Pagehand/{__version__}"})

    async def aclose(self) -> None:
        """Closes every connection."""
        self._closed = True
        await self._transport.aclose()

    async def post(self, operation: JobApiOperation, job_id: str, content: bytes, key: str) -> Job:
        """Makes a call; `key` is its idempotency key."""
        url = self._url(operation.value, "-" if operation is JobApiOperation.CREATE else job_id)
        request = self._request("POST", url, content, {"Idempotency-Key": key})
        return self.job_in(await self._exchange(operation, request), job_id)

    async def put(self, content: bytes, mimetype: str) -> bytes:
        """Uploads a file."""
        digest = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
        kind = mimetype if _MEDIA_TYPE.fullmatch(mimetype) else "application/octet-stream"
        request = self._request("PUT", self._url(JobApiOperation.UPLOAD.value, digest), content, {"Content-Type": kind})
        return await self._exchange(JobApiOperation.UPLOAD, request)

    async def get(self, operation: JobApiOperation, job_id: str, picture_id: str = "") -> bytes:
        """Reads something about a job."""
        url = self._url(operation.value, job_id)
        if picture_id:
            url = url.replace("{pictureId}", _segment(picture_id))
        return await self._exchange(operation, self._request("GET", url, None, {}))

    async def read(self, job_id: str) -> bytes:
        """Reads a job."""
        return await self._exchange(JobApiOperation.GET, self._request("GET", self._address(job_id), None, {}))

    def job_in(self, body: bytes, job_id: str) -> Job:
        """Returns the job of a response. Raises JobApiUnreadable."""
        try:
            job = parse_job(body, self._hide_key, asked_id=job_id)
        except JobApiUnreadable as error:
            words = self._words_in(body)
            problem = str(error)
        else:
            if job.details is None or not job.details.pictures or self.settings.pictures:
                return job
            return replace(job, details=job.details.model_copy(update={"pictures": ()}))
        raise JobApiUnreadable(problem, words=words)

    def _url(self, template: str, job_id: str) -> str:
        # The encoded values contain no braces, so one cannot be mistaken for the other's placeholder.
        path = template.replace("{projectId}", _segment(self.id)).replace("{id}", _segment(job_id))
        return self.settings.base_url + path

    def _parsed_address(self, job_id: str) -> httpx.URL:
        return httpx.URL(self._url(self.settings.get_path, job_id))

    async def _exchange(self, operation: JobApiOperation, request: httpx.Request) -> bytes:
        """Sends a request, unless there is a pause, and returns the body of a successful response."""
        limit = JobApiOperation.CREATE if operation is JobApiOperation.MESSAGE else operation
        self._check_pause(limit)
        outcome = await self._attempt_with_keys(operation, request)
        if isinstance(outcome, JobApiBusy) and outcome.status not in {Status.CONFLICT, Status.LOCKED}:  # of one job
            seconds = self.settings.default_pause if outcome.retry_after is None else outcome.retry_after
            until = asyncio.get_running_loop().time() + seconds
            self._paused[limit] = max(self._paused.get(limit, (0.0, outcome)), (until, outcome), key=itemgetter(0))
        if operation in _WITH_WORDS and await self._is_firewalls(outcome):
            outcome = JobApiRejected("A firewall in front of the job API refused this (403).", status=Status.FORBIDDEN)
        # Raised outside of any except clause, because the original error's context contains the request with the key.
        if isinstance(outcome, JobApiError):
            raise outcome
        return outcome

    def _check_pause(self, limit: JobApiOperation) -> None:
        """Raises JobApiBusy during a pause, with the text of the response that caused it and the remaining seconds."""
        until, answer = self._paused.get(limit, (0.0, None))
        left = until - asyncio.get_running_loop().time()
        if answer is not None and left > 0:
            message = "The job API asked to leave this project alone for a while."
            raise JobApiBusy(message, words=answer.words, status=answer.status, retry_after=left)

    async def _is_firewalls(self, outcome: bytes | JobApiError) -> bool:
        """Returns whether a page refused a request while the job API takes the key: then it is about the words."""
        if not (isinstance(outcome, JobApiNotAllowed) and outcome.status == Status.FORBIDDEN and outcome.is_page):
            return False
        try:
            async with asyncio.timeout(_KEY_CHECK_TIMEOUT):
                await self.read(NO_JOB)
        except (JobApiError, TimeoutError) as error:
            return isinstance(error, JobGone)
        return True

    async def _attempt_with_keys(self, operation: JobApiOperation, request: httpx.Request) -> bytes | JobApiError:
        """Sends a request with the newest key, or the one that is known to be accepted instead; if the job API does not
        know it and so has done nothing, with the other.
        """
        keys = self.settings.api_key.values
        known_for, accepted = self._accepted_key
        key = accepted if known_for == keys else keys[0]
        outcome = await self._attempt(operation, request, key)
        other = next((each for each in self.settings.api_key.values if each != key), None)
        if other is None or not (isinstance(outcome, JobApiNotAllowed) and outcome.status == Status.UNAUTHORIZED):
            return outcome
        outcome = await self._attempt(operation, request, other)
        if isinstance(outcome, bytes):
            self._accepted_key = (self.settings.api_key.values, other)
        return outcome

    async def _attempt(self, operation: JobApiOperation, request: httpx.Request, key: str) -> bytes | JobApiError:
        if self._closed:
            return JobApiUnreachable("The job API cannot be reached: Pagehand is stopping.")
        response: httpx.Response | None = None
        body: bytes | None = None
        try:
            async with asyncio.timeout(self.settings.timeout):
                request.headers["Authorization"] = f"Bearer {key}"
                # Not httpx's client: it would double the CPU time of a poll and adds only redirects, cookies and
                # authentication, none of which is needed.
                response = await self._transport.handle_async_request(request)
                try:
                    most = LARGEST_PICTURE if operation is JobApiOperation.PICTURE else MAX_BODY
                    body = await read_body(response, most)
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

    def _request(
        self, method: str, url: str | httpx.URL, content: bytes | None, headers: dict[str, str]
    ) -> httpx.Request:
        timeout = {"timeout": self._timeout.as_dict()}
        request = httpx.Request(method, url, headers=self._headers, content=content, extensions=timeout)
        request.headers.encoding = "ascii"  # otherwise httpx detects it again for each header
        request.headers.update(headers)
        if request_id := current_log_context().request:
            request.headers[REQUEST_ID_HEADER] = request_id  # by which it is found in the log of the job API
        return request

    def _words_in(self, body: bytes) -> str:
        return printable_line(self._hide_key(error_message_in(body)), MAX_WORDS)

    def _hide_key(self, text: str) -> str:
        for key in self.settings.api_key.ever_held:
            text = text.replace(key, "***")
        return text


def _segment(value: str) -> str:
    """Returns a path segment. `.` and `..` are rejected, because even percent-encoded they would change the path."""
    if value in {"", ".", ".."}:
        raise JobApiRejected(f"{value!r} cannot be the name of a project or job.")
    return quote(value, safe="", errors="replace")
