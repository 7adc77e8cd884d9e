"""The job API over HTTP, and its OpenAPI 3.1 document, generated from its models."""

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

from bot import __version__
from bot.codehosts.pull_request import PullRequest
from bot.jobapi.models import AgentJob, CancelBody, ErrorBody, JobDetails, PromptBody, UploadedFile, media_type
from bot.jobserver.errors import (
    CodeHostError,
    GitError,
    PullRequestNotFoundError,
    RateLimitExceededError,
    RequestRejectedError,
)
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import Choices, JobTemplate, PromptRequest
from bot.jobserver.store.uploads import UploadStore
from bot.runtime.http.server import mark_authenticated
from bot.runtime.logging import REQUEST_ID_FORM, REQUEST_ID_HEADER, current_log_context, log_context
from bot.runtime.rotating_secrets import RotatingSecret

_REF = "#/components/schemas/{model}"
_BYTES = "bytes"
_IDEMPOTENCY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A request with the same key and body gets the first response again, and nothing is done twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
_REQUEST_ID = {
    "description": "The request's id in the server's log. Without one of this form, the server makes one.",
    "schema": {"type": "string", "pattern": f"^{REQUEST_ID_FORM}$"},
}
logger = logging.getLogger(__name__)

Body = TypeVar("Body", bound=BaseModel)
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_FILE_ID = re.compile(r"[0-9a-f]{64}")


def openapi_document(max_prompt_characters: int, projects: Mapping[str, Choices]) -> dict[str, Any]:
    """Returns the document, ready to be serialized as JSON; `x-projects` tells what can be chosen in each project."""
    _, definitions = models_json_schema(
        [
            (AgentJob, "serialization"),
            (PullRequest, "serialization"),
            (PromptBody, "validation"),
            (CancelBody, "validation"),
            (UploadedFile, "serialization"),
            (ErrorBody, "serialization"),
        ],
        ref_template=_REF,
    )
    schemas = definitions["$defs"]
    schemas["PromptBody"]["properties"]["prompt"]["maxLength"] = max_prompt_characters
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pagehand job server", "version": __version__},
        "x-projects": {name: vars(choices) for name, choices in projects.items()},
        "paths": {
            path: {method.lower(): _operation(path, to_camel(handler.__name__), body, answer, errors)}
            for method, path, handler, body, answer, errors in _OPERATIONS
        },
        "components": {
            "schemas": schemas,
            "parameters": {"RequestId": {"name": REQUEST_ID_HEADER, "in": "header", **_REQUEST_ID}},
            "headers": {"RequestId": {"required": True, **_REQUEST_ID}},
            "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"apiKey": []}],
    }


def _operation(path: str, name: str, body: str, answer: str, errors: str) -> dict[str, Any]:
    names = re.findall(r"\{(\w+)\}", path)
    parameters: list[Any] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
    ]
    described: dict[str, Any] = {
        "operationId": name,
        "parameters": [*parameters, {"$ref": "#/components/parameters/RequestId"}],
    }
    if body == "PromptBody":
        described["parameters"].append(_IDEMPOTENCY)
    if body:
        described["requestBody"] = {"required": body != "CancelBody", "content": _content(body)}
    headers = {REQUEST_ID_HEADER: {"$ref": "#/components/headers/RequestId"}}
    models = {"201" if name == "createJob" else "200": answer, **dict.fromkeys(errors.split(), "ErrorBody")}
    described["responses"] = {
        status: {"description": HTTPStatus(int(status)).phrase, "content": _content(model), "headers": headers}
        for status, model in models.items()
    }
    return described


def _content(model: str) -> dict[str, Any]:
    if model == _BYTES:
        return {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    return {"application/json": {"schema": {"$ref": _REF.format(model=model)}}}


def error_response(_: web.Request, status: int, message: str) -> web.Response:
    return web.json_response(text=ErrorBody(error=message).model_dump_json(), status=status)


@dataclass(frozen=True)
class ProjectApi:
    """What the handlers do their work with for one project. `as_of_now` updates a job with changes made outside this
    server; `file_of_job` reads a file of a commit on a job's branch.
    """

    api_key: RotatingSecret
    jobs: JobStore
    uploads: UploadStore
    template: JobTemplate
    as_of_now: Callable[[AgentJob], Awaitable[AgentJob]]
    pull_requests: PullRequests
    file_of_job: Callable[[str, str, str], Awaitable[bytes | None]]


@dataclass(frozen=True)
class JobApiHandlers:
    """The handlers. `projects` returns the projects by their ids.

    `wake` receives the id of a job with new work, `interrupt` the number of an instruction to stop.
    """

    projects: Callable[[], Mapping[str, ProjectApi]]
    max_prompt_characters: int
    wake: Callable[[str], None]
    interrupt: Callable[[int], None]

    def routes(self) -> Iterator[web.RouteDef]:
        for method, path, handler, *_ in _OPERATIONS:
            yield web.route(method, path, self._authorized(handler))
        yield web.get("/openapi.json", self.openapi)

    async def create_job(self, project: ProjectApi, request: web.Request) -> web.Response:
        return await self._submit(project, request, None, status=201)

    async def send_message(self, project: ProjectApi, request: web.Request) -> web.Response:
        return await self._submit(project, request, request.match_info["id"], status=200)

    async def get_job(self, project: ProjectApi, request: web.Request) -> web.Response:
        job = await project.jobs.get(request.match_info["id"])
        return _job_response(await project.as_of_now(job), 200)

    async def get_pull_request(self, project: ProjectApi, request: web.Request) -> web.Response:
        """Answers 304 if it is as the client knows it."""
        job = await project.jobs.get(request.match_info["id"])
        opened = job.details.pull_request if job.details else None
        if opened is None or opened.number is None:
            raise RequestRejectedError("this job has no pull request", 404)
        try:
            found = await project.pull_requests.read(opened.number)
        except PullRequestNotFoundError as error:
            raise RequestRejectedError(str(error), 404) from None
        except CodeHostError as error:
            raise RequestRejectedError(f"the pull request cannot be read: {error}", 503) from None
        text = found.model_dump_json(by_alias=True)
        etag = hashlib.sha256(text.encode()).hexdigest()[:32]
        if any(known.value == etag for known in request.if_none_match or ()):
            return web.Response(status=304, headers={"ETag": f'"{etag}"'})
        return web.json_response(text=text, headers={"ETag": f'"{etag}"'})

    async def get_picture(self, project: ProjectApi, request: web.Request) -> web.Response:
        """Sends a picture that the job's details tell of, and nothing else of the repository."""
        details = (await project.jobs.get(request.match_info["id"])).details or JobDetails()
        told = next((each for each in details.pictures if each.id == request.match_info["pictureId"]), None)
        if told is None or details.revision is None:
            raise RequestRejectedError("this job has no such picture", 404)
        try:
            content = await project.file_of_job(request.match_info["id"], details.revision, told.path)
        except GitError as error:
            raise RequestRejectedError(f"the picture cannot be read: {error}", 503) from None
        if content is None or hashlib.sha256(content).hexdigest() != told.id:
            raise RequestRejectedError("this picture is no longer in the repository", 404)
        kind = told.mimetype or "application/octet-stream"
        return web.Response(body=content, content_type=kind, headers={"X-Content-Type-Options": "nosniff"})

    async def cancel_job(self, project: ProjectApi, request: web.Request) -> web.Response:
        body = _parsed(CancelBody, await request.read() or b"{}")
        cancelled = await project.jobs.cancel(request.match_info["id"], body.requested_by)
        _log_accepted("cancel", cancelled.job)
        if cancelled.running is not None:
            self.interrupt(cancelled.running)
        return _job_response(cancelled.job, 200)

    async def discard_work(self, project: ProjectApi, request: web.Request) -> web.Response:
        return _job_response(await project.jobs.discard(request.match_info["id"]), 200)

    async def upload_file(self, project: ProjectApi, request: web.Request) -> web.Response:
        file_id = request.match_info["sha256"]
        if not _FILE_ID.fullmatch(file_id):
            raise RequestRejectedError("the address must end with the file's SHA-256, as 64 lowercase hex digits")
        if (request.content_length or 0) > project.uploads.limits.file:
            raise project.uploads.limits.too_large()
        kind = media_type(request.headers.get("Content-Type")) or "application/octet-stream"
        await project.uploads.add(file_id, kind, request.content.iter_chunked(1 << 18))
        return web.json_response(text=UploadedFile(id=file_id).model_dump_json())

    async def openapi(self, _: web.Request) -> web.Response:
        projects = {name: project.jobs.choices for name, project in self.projects().items()}
        return web.json_response(openapi_document(self.max_prompt_characters, projects))

    async def _submit(
        self, project: ProjectApi, request: web.Request, job_id: str | None, *, status: int
    ) -> web.Response:
        key = request.headers.get("Idempotency-Key", secrets.token_hex())
        if not _IDEMPOTENCY_KEY.fullmatch(key):
            raise RequestRejectedError("Idempotency-Key must be 1 to 255 visible ASCII characters")
        body = _parsed(PromptBody, await request.read())
        limit = self.max_prompt_characters
        if len(body.prompt) > limit:
            raise RequestRejectedError(f"the prompt is longer than {limit} characters", 413)
        prompt = PromptRequest(body.prompt, job_id, key, body.requested_by, body.files, mode=body.mode)
        prompt = replace(prompt, words=body.instruction, request_id=current_log_context().request)
        prompt = replace(prompt, model=body.model or "", effort=body.effort or "", proposal=body.proposal or "")
        job = await project.jobs.submit(prompt, project.template)
        _log_accepted("message" if job_id else "job", job)
        self.wake(job.id)
        return _job_response(job, status)

    def _authorized(self, handler: "_Handler") -> Handler:
        """Wraps a handler: checks the API key first, and turns a rejection into a response with the error's status."""

        async def authorized(request: web.Request) -> web.StreamResponse:
            opened = self._opened_by_key(request)
            if not opened:
                words = "the API key is missing or wrong: send Authorization: Bearer <key>"
                response = error_response(request, 401, words)
                response.headers["WWW-Authenticate"] = "Bearer"
                return response
            mark_authenticated(request)
            project = opened.get(request.match_info["projectId"])
            if project is None:
                return error_response(request, 404, "there is no such project here")
            try:
                return await handler(self, project, request)
            except RequestRejectedError as error:
                response = error_response(request, error.status, str(error))
                if isinstance(error, RateLimitExceededError):
                    response.headers["Retry-After"] = str(error.retry_after)
                return response

        return authorized

    def _opened_by_key(self, request: web.Request) -> dict[str, ProjectApi]:
        """Returns the projects of which a request has the key: one, or none."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        # Digests have equal lengths, and all keys are compared: the time reveals neither a length nor which key it was.
        sent = _digest(token.strip() if scheme.lower() == "bearer" else "")
        opened = {
            name: project
            for name, project in self.projects().items()
            if sum(hmac.compare_digest(sent, _digest(key)) for key in project.api_key.values)
        }
        return opened if len(opened) == 1 else {}  # two may have come to have the same one


_Handler = Callable[[JobApiHandlers, ProjectApi, web.Request], Coroutine[Any, Any, web.Response]]
_JOBS, _JOB = "/v2/agent/{projectId}/job", "/v2/agent/{projectId}/job/{id}"
_FILE = "/v2/agent/{projectId}/file/{sha256}"
_OPERATIONS: Sequence[tuple[str, str, _Handler, str, str, str]] = (
    ("POST", _JOBS, JobApiHandlers.create_job, "PromptBody", "AgentJob", "400 401 404 413 422 429"),
    ("POST", f"{_JOB}/message", JobApiHandlers.send_message, "PromptBody", "AgentJob", "400 401 404 409 413 422 429"),
    ("POST", f"{_JOB}/cancel", JobApiHandlers.cancel_job, "CancelBody", "AgentJob", "400 401 404"),
    ("POST", f"{_JOB}/discard", JobApiHandlers.discard_work, "", "AgentJob", "401 404"),
    ("GET", _JOB, JobApiHandlers.get_job, "", "AgentJob", "401 404"),
    ("GET", f"{_JOB}/pull-request", JobApiHandlers.get_pull_request, "", "PullRequest", "401 404 503"),
    ("GET", f"{_JOB}/picture/{{pictureId}}", JobApiHandlers.get_picture, "", _BYTES, "401 404 503"),
    ("PUT", _FILE, JobApiHandlers.upload_file, _BYTES, "UploadedFile", "400 401 404 413 507"),
)
"""Method, path, handler, body, answer and errors of each operation; it has the handler's name."""


def _log_accepted(what: str, job: AgentJob) -> None:
    with log_context(replace(current_log_context(), job=job.id)):
        logger.info("%s accepted: %s", what, job.status)


def _parsed(model: type[Body], data: bytes) -> Body:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        # What was sent is not repeated.
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        words = f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
        if first["type"] == "json_invalid":
            words = "the body is not JSON"
        elif not first["loc"]:
            words = 'the body must be an object, such as {"prompt": "..."}'
        raise RequestRejectedError(words) from None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()


def _job_response(job: AgentJob, status: int) -> web.Response:
    return web.json_response(text=job.model_dump_json(by_alias=True), status=status)
