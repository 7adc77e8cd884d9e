"""The job API's client."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from yarl import URL

from bot import __version__
from bot.domain.jobs import Job
from bot.domain.requests import Requester, UploadedFile
from bot.errors import JobApiBusy, JobApiError, JobApiRejected, JobApiUncertain, JobApiUnreachable, JobApiUnreadable
from bot.jobs.http_errors import JobApiOperation, error_for_status, error_without_answer
from bot.jobs.http_exchange import HttpConnections, HttpRequest, HttpSender
from bot.jobs.rate_limit_gate import RateLimitGate
from bot.jobs.settings import JobApiSettings
from bot.jobs.wire import (
    MAX_WORDS,
    cancel_body,
    error_message_in,
    parse_job,
    parse_upload,
    printable_line,
    prompt_body,
)

_CREATE_PATH = "/v2/agent/{projectId}/job"
_MESSAGE_PATH = "/v2/agent/{projectId}/job/{id}/message"
_CANCEL_PATH = "/v2/agent/{projectId}/job/{id}/cancel"
_UPLOAD_PATH = "/v2/agent/{projectId}/file/{id}"
"""The last two are not of the specification: Pagehand's own job server has them."""
MAX_UPLOAD_BYTES = 25_000_000
"""The largest file that is sent at all."""
_PATH_SIGNS = "%/:?#[]@!$&'()*+,;={}~"
"""Besides letters and digits, what a path and its query may hold as it is."""
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,50}/[A-Za-z0-9!#$&^_.+-]{1,50}")


class HttpJobApi:
    """The job API over HTTP (ports.JobApi). One for a process; `aclose` it at the end.

    The environment's proxies (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) and certificates (SSL_CERT_FILE,
    SSL_CERT_DIR) are obeyed, since many companies let nothing out without them; they are read once, here, and no proxy
    stands before an address of this machine. Redirects are not followed: they would carry the key elsewhere.

    Raises:
        ConfigError: The proxy is neither http nor https.
    """

    def __init__(self, settings: JobApiSettings, *, sender: HttpSender | None = None) -> None:
        self._settings = settings
        self._rate_limit_gate = RateLimitGate(default_pause=settings.default_pause)
        self._base_url = str(URL(settings.base_url)).rstrip("/")
        self._get_path = quote(settings.get_path, safe=_PATH_SIGNS)
        self._key = settings.api_key.get_secret_value()
        self._sender = sender or HttpConnections(settings, _headers(self._key))
        self._closed = False

    def __repr__(self) -> str:
        return f"HttpJobApi({self._settings.base_url!r})"

    async def create(
        self,
        project_id: str,
        prompt: str,
        *,
        idempotency_key: str,
        requester: Requester | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> Job:
        """Starts a job."""
        url = self._url(_CREATE_PATH, project_id)
        body = prompt_body(prompt, requester, files)
        return await self._call(JobApiOperation.CREATE, project_id, url, body, idempotency_key)

    async def send_message(
        self,
        project_id: str,
        job_id: str,
        prompt: str,
        *,
        idempotency_key: str,
        requester: Requester | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> Job:
        """Sends a follow-up to a job."""
        url = self._url(_MESSAGE_PATH, project_id, job_id)
        body = prompt_body(prompt, requester, files)
        return await self._call(JobApiOperation.MESSAGE, project_id, url, body, idempotency_key)

    async def cancel(
        self, project_id: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops what a job does and what waits for it; safe to repeat."""
        url = self._url(_CANCEL_PATH, project_id, job_id)
        return await self._call(JobApiOperation.CANCEL, project_id, url, cancel_body(requester), idempotency_key)

    def can_cancel(self, project_id: str) -> bool:  # noqa: ARG002 - the port asks for each project
        """Whether `cancel` is there."""
        return self._settings.can_cancel

    def takes_files(self, project_id: str) -> bool:  # noqa: ARG002 - the same
        """Whether files can go with a request."""
        return self._settings.takes_files

    async def get(self, project_id: str, job_id: str) -> Job:
        """Reads a job."""
        return self._job_in(await self._read(project_id, job_id))

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
            body = await self._exchange(JobApiOperation.UPLOAD, project_id, _put(url, content, mimetype))
        except JobApiUncertain as error:
            raise JobApiUnreachable(str(error), words=error.words) from None
        return UploadedFile(parse_upload(body), name, mimetype)

    async def aclose(self) -> None:
        """Closes every connection. Later calls raise JobApiUnreachable."""
        self._closed = True
        await self._sender.aclose()

    def _url(self, template: str, project_id: str, job_id: str = "-") -> str:
        # The encoded values hold no braces, so that one cannot stand for the other.
        path = template.replace("{projectId}", _segment(project_id)).replace("{id}", _segment(job_id))
        return self._base_url + path

    async def _read(self, project_id: str, job_id: str) -> bytes:
        url = self._url(self._get_path, project_id, job_id)
        return await self._exchange(JobApiOperation.GET, project_id, HttpRequest("GET", url))

    async def _call(self, operation: JobApiOperation, project_id: str, url: str, content: bytes, key: str) -> Job:
        request = HttpRequest("POST", url, {"Idempotency-Key": key}, content)
        return self._job_in(await self._exchange(operation, project_id, request))

    async def _exchange(self, operation: JobApiOperation, project_id: str, request: HttpRequest) -> bytes:
        """Sends a request, unless the project is to be left alone, and returns the body of a success."""
        self._rate_limit_gate.check(operation, project_id)
        outcome = await self._attempt(operation, request)
        if isinstance(outcome, JobApiBusy):
            self._rate_limit_gate.close(operation, project_id, outcome)
        # Raised here, where no foreign error is being handled: as its context it would carry the request and its key.
        if isinstance(outcome, JobApiError):
            raise outcome
        return outcome

    async def _attempt(self, operation: JobApiOperation, request: HttpRequest) -> bytes | JobApiError:
        if self._closed:
            return JobApiUnreachable("The job API cannot be reached: Pagehand is stopping.")
        try:
            answer = await self._sender.send(request)
        except Exception as error:  # noqa: BLE001 - libraries let bare errors through (aiohttp on a malformed answer)
            return error_without_answer(error)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:  # it decides, even if no body ever came
            return error_for_status(operation, answer, self._words_in(answer.body or b""))
        if answer.body is None:
            return JobApiUnreadable("The job API's answer is not a job: it did not come in whole.")
        return answer.body

    def _job_in(self, body: bytes) -> Job:
        return self._without_key(parse_job(body, self._hide_key))

    def _words_in(self, body: bytes) -> str:
        return printable_line(self._hide_key(error_message_in(body)), MAX_WORDS)

    def _without_key(self, job: Job) -> Job:
        """Hides our key in what the job API answers. The id is left alone, since it addresses the job."""
        shown = {name: getattr(job, name) for name in ("status", "pr_link", "repository", "ref", "model")}
        hidden: dict[str, Any] = {
            name: self._hide_key(text) for name, text in shown.items() if text and self._key in text
        }
        return replace(job, **hidden) if hidden else job

    def _hide_key(self, text: str) -> str:
        return text.replace(self._key, "***")


def _headers(key: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {key}",
        "User-Agent": f"Pagehand/{__version__}",
        "Accept": "application/json",
        # A job is short, and a compressed answer of a few kilobytes can unfold into gigabytes.
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
    }


def _put(url: str, content: bytes, mimetype: str) -> HttpRequest:
    kind = mimetype if _MEDIA_TYPE.fullmatch(mimetype) else "application/octet-stream"
    return HttpRequest("PUT", url, {"Content-Type": kind}, content)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _segment(value: str) -> str:
    """One path segment. `.` and `..` would move up the path, even percent-encoded, and so cannot be sent."""
    if value in {"", ".", ".."}:
        raise JobApiRejected(f"{value!r} cannot be the name of a project or job.")
    return quote(value, safe="", errors="replace")
