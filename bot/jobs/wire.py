"""The job API's JSON (specification, parts 2 and 4): read tolerantly, for it promises little, and written exactly."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from bot.domain.jobs.job import Job
from bot.domain.requests.request import Requester, UploadedFile
from bot.errors import JobApiUnreadable
from bot.jobs.details import Hide, details_from
from bot.ports.job_api import PromptCall
from bot.runtime.text import printable_line

MAX_BODY = 2 << 20
"""The longest answer that is read, in bytes; a job takes less than a thousand, its details some more."""
MAX_WORDS = 500
MAX_ID = 500
MAX_FILE_NAME = 200
MAX_LINK = 3000
"""The longest link that Slack takes on a button, in characters."""

_BOM = b"\xef\xbb\xbf"
_HTML = re.compile(r"<\s{0,5}/?\s{0,5}(!doctype|html|head|body|script|style|title|h1)\b", re.IGNORECASE)
_URL_CREDENTIALS = re.compile(r"^(https?://)[^/]*@", re.IGNORECASE)
_LOOKED_AT = 20_000
"""Characters in which a web page is looked for."""
_WORD_FIELDS = ("error", "message", "detail", "msg", "title")


def _optional(limit: int) -> Callable[[Any], str | None]:
    def read(value: Any) -> str | None:
        return printable_line(value, limit) or None if isinstance(value, str) else None

    return read


def _repository(value: Any) -> Any:
    # An address that git can push to may hold a token, which must not be shown in a channel.
    return _URL_CREDENTIALS.sub(r"\1", value) if isinstance(value, str) else None


def _link(value: Any) -> str | None:
    # A shortened link would lead elsewhere, so one that is too long counts as missing.
    return printable_line(value, MAX_LINK) or None if isinstance(value, str) and len(value) <= MAX_LINK else None


def _id(value: Any) -> str:
    """Never altered, since it addresses the job; refused if no path can hold it."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    text = str(value) if whole or (isinstance(value, float) and math.isfinite(value)) else value
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > MAX_ID:
        raise ValueError("not an id")
    if text in {".", ".."}:
        raise ValueError("a path segment with a meaning of its own")
    return text


def _status(value: Any) -> str:
    if not isinstance(value, str) or not (text := printable_line(value, 100)):
        raise ValueError("not a status")
    return text


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True, hide_input_in_errors=True)


class JobSource(_Wire):
    """The repository and branch that a job works on."""

    repository: Annotated[str | None, BeforeValidator(_optional(500)), BeforeValidator(_repository)] = None
    ref: Annotated[str | None, BeforeValidator(_optional(300))] = None


def _source(value: Any) -> Any:
    return value if isinstance(value, dict | JobSource) else JobSource()


class AgentJob(_Wire):
    """The Agent job. Only an id and a status are needed; of the others, what has the wrong type counts as missing.

    Write it with `model_dump_json(by_alias=True)`.
    """

    id: Annotated[str, BeforeValidator(_id)]
    status: Annotated[str, BeforeValidator(_status)]
    source: Annotated[JobSource, BeforeValidator(_source)] = JobSource()
    model: Annotated[str | None, BeforeValidator(_optional(200))] = None
    pr_link: Annotated[str | None, BeforeValidator(_link), Field(alias="prLink")] = None
    created_at: Annotated[str | None, BeforeValidator(_optional(64)), Field(alias="createdAt")] = None
    archived_at: Annotated[str | None, BeforeValidator(_optional(64)), Field(alias="archivedAt")] = None
    details: Annotated[Any, Field(exclude_if=lambda value: value is None)] = None
    """Not of the specification, as it came."""

    def to_job(self, hide: Hide = str) -> Job:
        """Returns the same as the domain has it. `hide` takes secrets out of the texts of the details."""
        return Job(
            id=self.id,
            status=self.status,
            pr_link=self.pr_link,
            repository=self.source.repository,
            ref=self.source.ref,
            model=self.model,
            created_at=self.created_at,
            archived_at=self.archived_at,
            details=details_from(self.details, hide),
        )


class PromptBody(_Wire):
    """The body of both POST operations. What is not of the specification only ours takes: `requestedBy` and `files`."""

    prompt: str
    requested_by: Annotated[Requester | None, Field(serialization_alias="requestedBy")] = None
    files: tuple[UploadedFile, ...] | None = None


def prompt_body(call: PromptCall) -> bytes:
    """Returns the bytes to send. Half of a surrogate pair, which UTF-8 cannot carry, is replaced."""
    named = tuple(
        replace(file, name=printable_line(_encodable(file.name), MAX_FILE_NAME) or "file") for file in call.files
    )
    body = PromptBody(prompt=_encodable(call.prompt), requested_by=call.requester, files=named or None)
    return body.model_dump_json(by_alias=True, exclude_none=True).encode()


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class CancelBody(_Wire):
    """The body of a cancel, which is not of the specification."""

    requested_by: Annotated[Requester | None, Field(serialization_alias="requestedBy")] = None


def cancel_body(requested_by: Requester | None = None) -> bytes:
    """Returns the bytes to send."""
    return CancelBody(requested_by=requested_by).model_dump_json(by_alias=True, exclude_none=True).encode()


def parse_upload(body: bytes) -> str:
    """Reads the id of an uploaded file. Raises JobApiUnreadable for any other bytes."""
    try:
        data = from_json(body.removeprefix(_BOM)) if len(body) <= MAX_BODY else None
    except ValueError:
        data = None
    found = data.get("id") if isinstance(data, dict) else None
    if not isinstance(found, str) or not found.isprintable() or not 0 < len(found) <= MAX_ID:
        raise JobApiUnreadable("The job API's answer to a file has no usable id.")
    return found


def parse_job(body: bytes, hide: Hide = str) -> Job:
    """Reads an Agent job. Raises JobApiUnreadable for any other bytes. `hide` takes secrets out of its details."""
    problem = _why_not_a_job(body)
    if not problem:
        try:
            return AgentJob.model_validate_json(body.removeprefix(_BOM)).to_job(hide)
        except ValidationError as error:
            problem = _why_not_valid(error)
    # Raised out here, so that the answer is not carried along as the error's context.
    raise JobApiUnreadable(f"The job API's answer is not a job: {problem}.")


def _why_not_a_job(body: bytes) -> str:
    if len(body) > MAX_BODY:
        return f"it is longer than {MAX_BODY} bytes"
    start = body[:100].lstrip()
    if not start and not body.strip():
        return "it is empty"
    return "it is a web page" if start.startswith(b"<") else ""


def _why_not_valid(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    named = {str(detail["loc"][0]) for detail in details if detail["loc"]}
    return f"it has no usable {' and no usable '.join(sorted(named))}" if named else "it is no complete JSON object"


def error_message_in(body: bytes) -> str:
    """Returns the API's own words in the body of an error, as they came: `{"error": "..."}` and other common shapes.

    Empty where there are none, or where they are a web page. Pass them through `printable_line` before they are shown.
    """
    if len(body) > MAX_BODY:
        return ""
    try:
        data = from_json(body.removeprefix(_BOM))
    except ValueError:
        return ""
    text = "; ".join(_words(data))
    return "" if _HTML.search(text[:_LOOKED_AT]) else text


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value
    elif isinstance(value, list):
        for item in value[:5]:
            yield from _words(item)
    elif isinstance(value, dict):
        for name in _WORD_FIELDS:
            if found := list(_words(value.get(name))):
                yield from found
                return
