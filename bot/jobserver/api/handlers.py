"""The handlers of the job API: create, message, get, cancel, upload, and the document that describes them."""

import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web
from pydantic import ValidationError

from bot.jobserver.api.openapi import openapi_document
from bot.jobserver.errors import (
    FileMismatchError,
    FileNotUploadedError,
    FileTooLargeError,
    IdempotencyKeyReusedError,
    JobArchivedError,
    JobNotFoundError,
    RateLimitExceededError,
    RequestRejectedError,
    UploadSpaceError,
)
from bot.jobserver.models import AgentJob, CancelBody, ErrorBody, PromptBody, UploadedFile, media_type
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import JobTemplate, PromptRequest
from bot.jobserver.store.uploads import UploadStore
from bot.runtime.http.connection import vouch_for

_STATUS: dict[type[RequestRejectedError], int] = {
    FileMismatchError: 400,
    FileNotUploadedError: 400,
    FileTooLargeError: 413,
    UploadSpaceError: 507,
    JobArchivedError: 400,
    JobNotFoundError: 404,
    IdempotencyKeyReusedError: 422,
    RateLimitExceededError: 429,
}
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_FILE_ID = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 18


def error_response(_: web.Request, status: int, message: str) -> web.Response:
    return web.json_response(text=ErrorBody(error=message).model_dump_json(), status=status)


class JobApiHandlers:
    """The handlers. `wake` is told the id of a job that got work, `interrupt` the number of an instruction to stop.

    `as_of_now` returns a job with what may have changed outside of this server; `mirror_state` says how far the copy of
    the repository is that jobs start from.
    """

    def __init__(
        self,
        settings: JobServerSettings,
        jobs: JobStore,
        uploads: UploadStore,
        *,
        template: Callable[[], JobTemplate],
        wake: Callable[[str], None],
        interrupt: Callable[[int], None],
        as_of_now: Callable[[AgentJob], Awaitable[AgentJob]],
        mirror_state: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._jobs = jobs
        self._uploads = uploads
        self._template = template
        self._wake = wake
        self._interrupt = interrupt
        self._as_of_now = as_of_now
        self._mirror_state = mirror_state
        self._key_digest = _digest(settings.api_key.get_secret_value())

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v2/agent/{project_id}/job", self.create)
        app.router.add_get("/v2/agent/{project_id}/job/{job_id}", self.get)
        app.router.add_post("/v2/agent/{project_id}/job/{job_id}/message", self.message)
        app.router.add_post("/v2/agent/{project_id}/job/{job_id}/cancel", self.cancel)
        app.router.add_post("/v2/agent/{project_id}/job/{job_id}/discard", self.discard)
        app.router.add_put("/v2/agent/{project_id}/file/{file_id}", self.upload)
        app.router.add_get("/openapi.json", self.openapi)
        app.router.add_get("/health", self.health)

    async def create(self, request: web.Request) -> web.Response:
        return await self._submit(request, None, status=201)

    async def message(self, request: web.Request) -> web.Response:
        return await self._submit(request, request.match_info["job_id"], status=200)

    async def get(self, request: web.Request) -> web.Response:
        if unauthorized := self._unauthorized(request):
            return unauthorized
        try:
            job = await self._jobs.get(self._settings.project_id, request.match_info["job_id"])
        except RequestRejectedError as error:
            return _rejected(request, error)
        return _job_response(await self._as_of_now(job), 200)

    async def cancel(self, request: web.Request) -> web.Response:
        if unauthorized := self._unauthorized(request):
            return unauthorized
        try:
            body = CancelBody.model_validate_json(await request.read() or b"{}")
            cancelled = await self._jobs.cancel(
                self._settings.project_id, request.match_info["job_id"], body.requested_by
            )
        except ValidationError as error:
            return error_response(request, 400, _what_is_wrong(error))
        except RequestRejectedError as error:
            return _rejected(request, error)
        if cancelled.running is not None:
            self._interrupt(cancelled.running)
        return _job_response(cancelled.job, 200)

    async def discard(self, request: web.Request) -> web.Response:
        if unauthorized := self._unauthorized(request):
            return unauthorized
        try:
            job = await self._jobs.discard(self._settings.project_id, request.match_info["job_id"])
        except RequestRejectedError as error:
            return _rejected(request, error)
        return _job_response(job, 200)

    async def upload(self, request: web.Request) -> web.Response:
        if unauthorized := self._unauthorized(request):
            return unauthorized
        file_id = request.match_info["file_id"]
        if not _FILE_ID.fullmatch(file_id):
            words = "the address must end with the file's SHA-256, in 64 hexadecimal digits of which none is a capital"
            return error_response(request, 400, words)
        if (request.content_length or 0) > self._uploads.limits.file:
            return _rejected(request, self._uploads.limits.too_large())
        try:
            await self._uploads.add(file_id, _mimetype(request), _chunks(request))
        except RequestRejectedError as error:
            return _rejected(request, error)
        return web.json_response(text=UploadedFile(id=file_id).model_dump_json())

    async def openapi(self, _: web.Request) -> web.Response:
        return web.json_response(openapi_document(self._settings.max_prompt_characters))

    async def health(self, _: web.Request) -> web.Response:
        await self._jobs.check()
        return web.json_response({"status": "ok", "mirror": self._mirror_state()})

    async def _submit(self, request: web.Request, job_id: str | None, *, status: int) -> web.Response:
        if unauthorized := self._unauthorized(request):
            return unauthorized
        key = request.headers.get("Idempotency-Key")
        if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
            return error_response(request, 400, "Idempotency-Key must be 1 to 255 visible ASCII characters")
        body = await self._body(request)
        if isinstance(body, web.Response):
            return body
        asked = PromptRequest(self._settings.project_id, body.prompt, job_id, key, body.requested_by, body.files)
        try:
            job = await self._jobs.submit(asked, self._template())
        except RequestRejectedError as error:
            return _rejected(request, error)
        self._wake(job.id)
        return _job_response(job, status)

    async def _body(self, request: web.Request) -> PromptBody | web.Response:
        try:
            body = PromptBody.model_validate_json(await request.read())
        except ValidationError as error:
            return error_response(request, 400, _what_is_wrong(error))
        limit = self._settings.max_prompt_characters
        if len(body.prompt) > limit:
            return error_response(request, 413, f"the prompt is longer than {limit} characters")
        return body

    def _unauthorized(self, request: web.Request) -> web.Response | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        # Digests have one length, so that the comparison tells nothing about the key's.
        is_ours = hmac.compare_digest(_digest(token.strip()), self._key_digest)
        if scheme.lower() != "bearer" or not is_ours:
            response = error_response(request, 401, "the API key is missing or wrong: send Authorization: Bearer <key>")
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        vouch_for(request)
        if request.match_info["project_id"] != self._settings.project_id:
            return error_response(request, 404, "there is no such project here")
        return None


def _rejected(request: web.Request, error: RequestRejectedError) -> web.Response:
    response = error_response(request, _STATUS[type(error)], str(error))
    if isinstance(error, RateLimitExceededError):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def _mimetype(request: web.Request) -> str:
    return media_type(request.headers.get("Content-Type")) or "application/octet-stream"


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    async for chunk in request.content.iter_chunked(_CHUNK_BYTES):
        yield chunk


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()


def _job_response(job: AgentJob, status: int) -> web.Response:
    return web.json_response(text=job.model_dump_json(by_alias=True), status=status)


def _what_is_wrong(error: ValidationError) -> str:
    """Says it without repeating what was sent."""
    first = error.errors(include_input=False, include_context=False, include_url=False)[0]
    if first["type"] == "json_invalid":
        return "the body is not JSON"
    if not first["loc"]:
        return 'the body must be an object, such as {"prompt": "..."}'
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"
