"""The job API's JSON (specification, parts 2 and 4): parsed leniently, because little is promised, and written
exactly.
"""

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
"""The longest response that is read, in bytes; a job has less than a thousand, its details some more."""
MAX_WORDS = 500
MAX_ID = 500
MAX_FILE_NAME = 200
MAX_LINK = 3000
"""The longest link that Slack accepts on a button, in characters."""

_BOM = b"\xef\xbb\xbf"
_HTML = re.compile(r"<\s{0,5}/?\s{0,5}(!doctype|html|head|body|script|style|title|h1)\b", re.IGNORECASE)
_URL_CREDENTIALS = re.compile(r"^(https?://)[^/]*@", re.IGNORECASE)
_LOOKED_AT = 20_000
"""Characters that are checked for HTML."""
_WORD_FIELDS = ("error", "message", "detail", "msg", "title")


def _optional(limit: int) -> Callable[[Any], str | None]:
    def read(value: Any) -> str | None:
        return printable_line(value, limit) or None if isinstance(value, str) else None

    return read


def _repository(value: Any) -> Any:
    # A URL that git can push to may contain a token, which must not be shown in a channel.
    return _URL_CREDENTIALS.sub(r"\1", value) if isinstance(value, str) else None


def _link(value: Any) -> str | None:
    # A shortened link would lead elsewhere, so a long one counts as missing.
    return printable_line(value, MAX_LINK) or None if isinstance(value, str) and len(value) <= MAX_LINK else None


def _id(value: Any) -> str:
    """Returns an id unchanged, because it addresses the job. Raises ValueError if no URL path can contain it."""
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
    """The Agent job. Only id and status are required; other fields of the wrong type count as missing.

    Serialize it with `model_dump_json(by_alias=True)`.
    """

    id: Annotated[str, BeforeValidator(_id)]
    status: Annotated[str, BeforeValidator(_status)]
    source: Annotated[JobSource, BeforeValidator(_source)] = JobSource()
    model: Annotated[str | None, BeforeValidator(_optional(200))] = None
    pr_link: Annotated[str | None, BeforeValidator(_link), Field(alias="prLink")] = None
    created_at: Annotated[str | None, BeforeValidator(_optional(64)), Field(alias="createdAt")] = None
    archived_at: Annotated[str | None, BeforeValidator(_optional(64)), Field(alias="archivedAt")] = None
    details: Annotated[Any, Field(exclude_if=lambda value: value is None)] = None
    """Not in the specification; unparsed."""

    def to_job(self, hide: Hide = str) -> Job:
        """Returns the domain's job. `hide` masks secrets in the texts of the details."""
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
    """The body of both POST operations. Only `prompt` is in the specification; our server has them all."""

    prompt: str
    instruction: str | None = None
    requested_by: Annotated[Requester | None, Field(serialization_alias="requestedBy")] = None
    files: tuple[UploadedFile, ...] | None = None


def prompt_body(call: PromptCall) -> bytes:
    """Returns the bytes to send. Lone surrogates, which UTF-8 cannot encode, are replaced."""
    named = tuple(
        replace(file, name=printable_line(_encodable(file.name), MAX_FILE_NAME) or "file") for file in call.files
    )
    instruction = None if call.instruction is None else _encodable(call.instruction)
    body = PromptBody(
        prompt=_encodable(call.prompt), instruction=instruction, requested_by=call.requester, files=named or None
    )
    return body.model_dump_json(by_alias=True, exclude_none=True).encode()


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class CancelBody(_Wire):
    """The body of a cancel, which is not in the specification."""

    requested_by: Annotated[Requester | None, Field(serialization_alias="requestedBy")] = None


def cancel_body(requested_by: Requester | None = None) -> bytes:
    """Returns the bytes to send."""
    return CancelBody(requested_by=requested_by).model_dump_json(by_alias=True, exclude_none=True).encode()


def parse_upload(body: bytes) -> str:
    """Parses the id of an uploaded file. Raises JobApiUnreadable for any other response."""
    try:
        data = from_json(body.removeprefix(_BOM)) if len(body) <= MAX_BODY else None
    except ValueError:
        data = None
    found = data.get("id") if isinstance(data, dict) else None
    if not isinstance(found, str) or not found.isprintable() or not 0 < len(found) <= MAX_ID:
        raise JobApiUnreadable("The job API's answer to a file has no usable id.")
    return found


def parse_job(body: bytes, hide: Hide = str) -> Job:
    """Parses an Agent job. Raises JobApiUnreadable for any other response. `hide` masks secrets in its details."""
    problem = _why_not_a_job(body)
    if not problem:
        try:
            return AgentJob.model_validate_json(body.removeprefix(_BOM)).to_job(hide)
        except ValidationError as error:
            problem = _why_not_valid(error)
    # Raised outside of the except clause, so that the error's context does not contain the response.
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
    """Returns the API's own words from the body of an error: `{"error": "..."}` and other common shapes.

    Empty if there are none, or they are a web page. They are unprocessed: use `printable_line` before showing them.
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
