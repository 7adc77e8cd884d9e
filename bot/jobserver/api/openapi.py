"""The OpenAPI 3.1 document of the job API, generated from its models."""

from typing import Any

from pydantic.json_schema import models_json_schema

from bot import __version__
from bot.jobapi.models import AgentJob, CancelBody, ErrorBody, PromptBody, UploadedFile
from bot.runtime.log_context import REQUEST_ID_FORM, REQUEST_ID_HEADER

_REF = "#/components/schemas/{model}"
_ERRORS = {
    "400": "The body is invalid, a file has not been uploaded, or the job is archived.",
    "401": "The API key is missing or wrong.",
    "404": "No such project or job.",
    "413": "The prompt is too long.",
    "422": "The Idempotency-Key was used for another request.",
    "429": "Too many requests; Retry-After says how many seconds to wait.",
}
_UPLOAD_ERRORS = {
    "400": "The SHA-256 of the bytes differs from the one in the address.",
    "401": _ERRORS["401"],
    "404": "No such project.",
    "413": "The file is too large.",
    "507": "There is no room for more files until some are deleted.",
}
_CODES = {"getJob": ("401", "404"), "cancelJob": ("400", "401", "404"), "discardWork": ("401", "404")}
_UPLOAD = (
    "Stores a file, so that prompts can name it in `files`. The same content is stored once. It is deleted with the "
    "last job that names it, or after ten days if none does."
)
_CANCEL = (
    "Stops running and waiting instructions within 5 s. The job ends as `completed`, with what was pushed before, and "
    "its reason says who stopped it. A job that has ended does not change. A later message starts it again."
)
_DISCARD = (
    "Throws away the work of a failed instruction (`details.partialWork`): the next message starts from what was "
    "pushed before. An active job does not change."
)
_REQUEST_ID = {
    "description": "The request's id in the server's log. Without one of this form, the server makes one.",
    "schema": {"type": "string", "pattern": f"^{REQUEST_ID_FORM}$"},
}


def openapi_document(max_prompt_characters: int) -> dict[str, Any]:
    """Returns the document, ready to be serialized as JSON."""
    _, definitions = models_json_schema(
        [
            (AgentJob, "serialization"),
            (PromptBody, "validation"),
            (CancelBody, "validation"),
            (UploadedFile, "serialization"),
            (ErrorBody, "serialization"),
        ],
        ref_template=_REF,
    )
    schemas = definitions["$defs"]
    schemas["PromptBody"]["properties"]["prompt"]["maxLength"] = max_prompt_characters
    paths = {
        "/v2/agent/{projectId}/job": {"post": _post("createJob", "Create an agent job", "201")},
        "/v2/agent/{projectId}/job/{id}/message": {
            "post": _post("sendMessage", "Send a follow-up message", "200", "id")
        },
        "/v2/agent/{projectId}/job/{id}/cancel": {"post": _cancel()},
        "/v2/agent/{projectId}/job/{id}/discard": {"post": _discard()},
        "/v2/agent/{projectId}/file/{sha256}": {"put": _upload()},
        "/v2/agent/{projectId}/job/{id}": {"get": _operation("getJob", "Get an agent job", "200", "id")},
    }
    for item in paths.values():
        for operation in item.values():
            _add_request_id(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pagehand job server", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": {"RequestId": {"name": REQUEST_ID_HEADER, "in": "header", **_REQUEST_ID}},
            "headers": {"RequestId": {"required": True, **_REQUEST_ID}},
            "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"apiKey": []}],
    }


def _add_request_id(operation: dict[str, Any]) -> None:
    operation["parameters"].append({"$ref": "#/components/parameters/RequestId"})
    for response in operation["responses"].values():
        response["headers"] = {REQUEST_ID_HEADER: {"$ref": "#/components/headers/RequestId"}}


def _operation(name: str, summary: str, success: str, *more_parameters: str) -> dict[str, Any]:
    errors = {code: _json(_ERRORS[code], "ErrorBody") for code in _CODES.get(name, tuple(_ERRORS))}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [_parameter(parameter) for parameter in ("projectId", *more_parameters)],
        "responses": {success: _json("The agent job.", "AgentJob"), **errors},
    }


def _post(name: str, summary: str, success: str, *more_parameters: str) -> dict[str, Any]:
    operation = _operation(name, summary, success, *more_parameters)
    operation["requestBody"] = {"required": True, **_json(None, "PromptBody")}
    operation["parameters"].append(
        {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A request with the same key and body gets the first response again, and nothing is done "
            "twice.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }
    )
    return operation


def _cancel() -> dict[str, Any]:
    operation = _operation("cancelJob", "Cancel an agent job", "200", "id")
    return {**operation, "description": _CANCEL, "requestBody": {"required": False, **_json(None, "CancelBody")}}


def _discard() -> dict[str, Any]:
    return {**_operation("discardWork", "Discard partial work", "200", "id"), "description": _DISCARD}


def _upload() -> dict[str, Any]:
    content = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    errors = {code: _json(words, "ErrorBody") for code, words in _UPLOAD_ERRORS.items()}
    digest = {**_parameter("sha256"), "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}
    return {
        "operationId": "uploadFile",
        "summary": "Upload a file",
        "description": _UPLOAD,
        "parameters": [_parameter("projectId"), digest],
        "requestBody": {"required": True, "content": content},
        "responses": {"200": _json("The file.", "UploadedFile"), **errors},
    }


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _json(description: str | None, model: str) -> dict[str, Any]:
    content = {"content": {"application/json": {"schema": {"$ref": _REF.format(model=model)}}}}
    return content if description is None else {"description": description, **content}
