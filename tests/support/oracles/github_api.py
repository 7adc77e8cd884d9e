"""What GitHub documents of its REST API: whether a call is one of these, and an answer one to it.

The documents are GitHub's own, from npm's `@octokit/openapi`. Where that is not installed, nothing is found wrong.
"""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jsonschema import Draft4Validator
from jsonschema.exceptions import best_match
from support.agents.packages import Package, cached_folder

PACKAGE = Package("@octokit/openapi", "23.0.2")
DOCUMENTS = ("api.github.com", "ghes-3.19")
OF_ANY_CALL = {301, 302, 307, 308, 401, 403, 404, 410, 429}
"""Statuses that GitHub's guides name for all calls, where the operation lists only some; it sends 5xx, too."""
NULLABLE = (
    ("pull-request", "head", "repo"),
    ("pull-request-simple", "head", "repo"),
    ("pull-request-review-comment", "line"),
)
"""What is null at times, though the documents do not say so: a fork can be deleted, and a comment outdated."""
_ERROR = "#/components/schemas/basic-error"


class GitHubApi:
    """One of the documents. Schemas take only the keys that they name: GitHub's leave that open."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._validator = Draft4Validator(document)
        self._closed: set[int] = set()
        for kind, *parts, name in NULLABLE:
            told = document["components"]["schemas"][kind]["properties"]
            for part in parts:
                told = told[part]["properties"]
            told[name] = {"anyOf": [told[name]], "nullable": True}
        self._templates = [
            (re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))), operations)
            for template, operations in sorted(document["paths"].items(), key=lambda item: item[0].count("{"))
        ]

    def operation(self, method: str, path: str) -> dict[str, Any]:
        """Returns the operation of a call, empty for none."""
        for pattern, operations in self._templates:
            if pattern.fullmatch(path):
                operation: dict[str, Any] = operations.get(method.lower(), {})
                return operation
        return {}

    def example(self, method: str, path: str) -> Any:
        """Returns GitHub's own example of a call's successful answer."""
        responses = self.operation(method, path)["responses"]
        told = self._resolved(next(responses[status] for status in ("200", "201") if status in responses))
        return self._resolved(next(iter(told["content"]["application/json"]["examples"].values())))["value"]

    def faults(self, method: str, path: str, body: object, status: int, answer: object) -> Iterator[str]:
        """Yields what is wrong with a call and its answer. `path` has the query."""
        place, _, query = path.partition("?")
        operation = self.operation(method, place)
        if not operation:
            yield "there is no such operation"
            return
        parameters = {one["name"]: one for one in map(self._resolved, operation.get("parameters", ()))}
        for name, value in parse_qsl(query):
            if name not in parameters:
                yield f"there is no parameter {name}"
            else:
                yield from self._invalid(int(value) if value.isdigit() else value, parameters[name]["schema"])
        if body is not None:
            yield from self._invalid(body, _schema(self._resolved(operation.get("requestBody", {}))))
        told = self._resolved(operation["responses"].get(str(status), {}))
        if not told and status not in OF_ANY_CALL and status < 500:
            yield f"it does not answer {status}"
        elif status != 304:
            yield from self._invalid(answer, _schema(told) or {"$ref": _ERROR})

    def _resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        while reference := node.get("$ref"):
            node = self._document
            for name in reference[2:].split("/"):
                node = node[name]
        return node

    def _invalid(self, value: object, schema: dict[str, Any]) -> Iterator[str]:
        self._close(schema)
        error = best_match(self._validator.evolve(schema=schema).iter_errors(value))
        if error is not None:
            yield f"{error.json_path}: {error.message[:300]}"

    def _close(self, schema: dict[str, Any]) -> None:
        """Makes a schema of OpenAPI 3.0 one of JSON Schema, in place, with all that it refers to."""
        schema = self._resolved(schema)
        if id(schema) in self._closed:
            return
        self._closed.add(id(schema))
        for name in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(name, ()):
                self._close(part)
        for part in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
            if isinstance(part, dict):
                self._close(part)
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        if schema.pop("nullable", False):
            inner = dict(schema)
            self._closed.add(id(inner))
            schema.clear()
            schema["anyOf"] = [inner, {"type": "null"}]


def _schema(told: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = told.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


@functools.cache
def documents() -> tuple[GitHubApi, ...]:
    """Returns the documents; none if they are not installed."""
    folder = cached_folder(PACKAGE)
    if folder is None:
        return ()
    generated = folder / "node_modules" / PACKAGE.name / "generated"
    return tuple(GitHubApi(json.loads(Path(generated, f"{name}.json").read_bytes())) for name in DOCUMENTS)


def official_faults(method: str, path: str, body: object, status: int, answer: object) -> list[str]:
    """Returns what is wrong with a call and its answer, in any of the documents."""
    return [
        f"{method} {path} {status}: {fault} ({name})"
        for name, api in zip(DOCUMENTS, documents(), strict=False)
        for fault in api.faults(method, path, body, status, answer)
    ]
