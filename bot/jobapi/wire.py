"""The job API's JSON (specification, parts 2 and 4): parsed leniently, because little is promised, and written
exactly.
"""

import json
import re
import zlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from bot.errors import JobApiUnreadable
from bot.jobapi import models
from bot.runtime.text import printable_line

MAX_BODY = 2 << 20
"""The longest response that is read, in bytes; a job has less than a thousand, its details some more."""
MAX_WORDS = 500

_HTML = re.compile(r"<\s{0,5}/?\s{0,5}(!doctype|html|head|body|script|style|title|h1)\b", re.IGNORECASE)
_LOOKED_AT = 20_000
"""Characters that are checked for HTML."""
_WORD_FIELDS = ("error_description", "error", "message", "detail", "errors", "msg", "title")
_STATUS_PHRASES = {
    "",
    "error",
    *(re.sub(r"[\W\d_]+", " ", each.phrase.replace("'", "")).casefold() for each in HTTPStatus),
}


def prompt_body(call: models.PromptCall) -> bytes:
    """Returns the bytes to send. Lone surrogates, which UTF-8 cannot encode, are replaced."""
    body = models.PromptBody.model_construct(
        prompt=_encodable(call.prompt),
        instruction=None if call.instruction is None else _encodable(call.instruction),
        files=tuple(
            models.AttachedFile(file.id, printable_line(_encodable(file.name), 200) or "file", file.mimetype)
            for file in call.files
        ),
        requested_by=call.requester,
        mode=call.mode,
        model=_encodable(call.model) or None,
        effort=_encodable(call.effort) or None,
        proposal=call.proposal or None,
    )
    return body.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cancel_body(requested_by: models.Requester | None = None) -> bytes:
    """Returns the bytes to send."""
    body = models.CancelBody.model_construct(requested_by=requested_by)
    return body.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def unzipped(body: bytes) -> bytes:
    """Returns what a body of gzip contains, at most a byte more than MAX_BODY; any other body unchanged. No JSON begins
    like gzip, so it is recognized by that, whatever the header says.
    """
    if not body.startswith(b"\x1f\x8b"):
        return body
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, MAX_BODY + 1)
    except zlib.error:
        return body


def json_in(body: bytes) -> Any:
    """Returns the JSON value of a body. What no JSON may contain costs only the field that it is in: bytes that are no
    UTF-8, control characters, half of a surrogate pair, NaN, numbers of any length. Raises ValueError.
    """
    text = body.decode("utf-8-sig", "replace")
    try:
        return json.loads(text, strict=False, parse_int=_short_number, parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _short_number(digits: str) -> int | None:
    return int(digits) if len(digits) <= models.MAX_ID else None


def parse_upload(body: bytes) -> str:
    """Parses the id of an uploaded file. Raises JobApiUnreadable for any other response."""
    try:
        if len(body) <= MAX_BODY:
            return models.UploadedFile.model_validate(json_in(body)).id
    except ValueError:
        pass
    raise JobApiUnreadable("The job API's answer to a file has no usable id.")


def parse_job(body: bytes, hide: models.Hide = str, *, asked_id: str = "") -> models.Job:
    """Parses an Agent job. Raises JobApiUnreadable for any other response.

    Args:
        body: The response.
        hide: Masks secrets in the job's texts.
        asked_id: The id by which the job was addressed, which counts if the response has an unusable one; empty: none.
    """
    problem = _why_not_a_job(body)
    if not problem:
        try:
            return _job_in(body, hide, asked_id).as_job()
        except ValidationError as error:
            problem = _why_not_valid(error)
        except ValueError:
            problem = _INCOMPLETE
    # Raised outside of the except clause, so that the error's context does not contain the response.
    raise JobApiUnreadable(f"The job API's answer is not a job: {problem}.")


def _job_in(body: bytes, hide: models.Hide, asked_id: str) -> models.AgentJob:
    try:
        return models.AgentJob.model_validate_json(body, context=hide)  # four times as fast as the rest, and strict
    except ValidationError:
        data = json_in(body)
    if asked_id and isinstance(data, dict) and "id" in data:
        data["id"] = asked_id
    return models.AgentJob.model_validate(data, context=hide)


def _why_not_a_job(body: bytes) -> str:
    if len(body) > MAX_BODY:
        return f"it is longer than {MAX_BODY} bytes"
    start = body[:100].lstrip()
    if not start and not body.strip():
        return "it is empty"
    return "it is a web page" if start.startswith(b"<") else ""


_INCOMPLETE = "it is no complete JSON object"


def _why_not_valid(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    named = {str(detail["loc"][0]) for detail in details if detail["loc"]}
    return f"it has no usable {' and no usable '.join(sorted(named))}" if named else _INCOMPLETE


def is_json_object(body: bytes) -> bool:
    """Returns whether a job API may have written this body of an error. Web pages, text or nothing are a proxy's."""
    try:
        return len(body) <= MAX_BODY and isinstance(json_in(body), dict)
    except ValueError:
        return False


def error_message_in(body: bytes) -> str:
    """Returns the API's own words from the body of an error: `{"error": "..."}` and other common shapes.

    Empty if there are none, or they are a web page. They are unprocessed: use `printable_line` before showing them.
    """
    if len(body) > MAX_BODY:
        return ""
    try:
        data = json_in(body)
    except ValueError:
        return ""
    text = "; ".join(_words(data))
    return "" if _HTML.search(text[:_LOOKED_AT]) else text


def _words(value: Any, depth: int = 5) -> Iterator[str]:
    """Yields the reason in an error: a sentence before a code such as `too_long`, wherever it is nested."""
    if isinstance(value, str) and not _is_bare_status(value):
        yield value
    elif isinstance(value, list) and depth:
        for item in value[:5]:
            yield from _words(item, depth - 1)
    elif isinstance(value, dict) and depth:
        nested = [each for each in value.values() if isinstance(each, dict)][:5]
        named = [list(_words(each, depth - 1)) for each in (*map(value.get, _WORD_FIELDS), *nested)]
        found = [words for words in named if words]
        yield from next((words for words in found if " " in words[0].strip()), found[0] if found else [])


def _is_bare_status(text: str) -> bool:
    """Returns whether a text says no more than the response's status, such as `400 Bad Request`."""
    said = re.sub(r"[\W\d_]+", " ", text.replace("'", "")).strip().casefold()
    return said.removeprefix("error ") in _STATUS_PHRASES
