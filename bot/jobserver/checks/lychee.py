"""lychee, the link checker, kept to files of the repository (https://lychee.cli.rs, JSON output)."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.jobserver.checks.checker import Checker, Finding, could_not_run
from bot.jobserver.checks.program import CheckCouldNotRunError, Finished

_BROKEN_LINKS = 2
_LONGEST = 2000


class _Span(BaseModel):
    model_config = ConfigDict(frozen=True)
    line: int


class _Status(BaseModel):
    model_config = ConfigDict(frozen=True)
    text: str = Field(max_length=_LONGEST)


class _Link(BaseModel):
    model_config = ConfigDict(frozen=True)
    url: str = Field(max_length=_LONGEST)
    status: _Status
    span: _Span


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)
    error_map: dict[str, list[_Link]]


def _command(pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
    options = ("--offline", "--no-progress", "--format=json", "--cache=false")
    return ("lychee", *options, "--", *(f"./{_literal(str(page))}" for page in pages))


def _literal(name: str) -> str:
    """A name as a pattern that means nothing else: lychee takes every name for a pattern."""
    return "".join(f"[{sign}]" if sign in "[*?" else sign for sign in name)


def _read(done: Finished) -> Iterator[Finding]:
    """Yields links to files: what it says of others depends on settings of whoever serves the pages."""
    if done.exit_code not in {0, _BROKEN_LINKS}:
        raise could_not_run(done)
    try:
        report = _Report.model_validate_json(done.output[done.output.find("{") :])
    except ValidationError:
        raise CheckCouldNotRunError("its report cannot be read") from None
    for name, links in report.error_map.items():
        for link in links:
            if (target := _file(link.url, done)) is not None:
                words = f"the link to `{target}`: {link.status.text}"
                yield Finding(PurePosixPath(name), link.span.line, words, missing=target)


def _file(url: str, done: Finished) -> PurePosixPath | None:
    """Returns the file that a link leads to; None for any other."""
    parts = urlsplit(url)
    path = PurePosixPath(unquote(parts.path))
    is_inside = parts.scheme == "file" and path.is_relative_to(PurePosixPath(done.copy))
    return path.relative_to(PurePosixPath(done.copy)) if is_inside else None


LYCHEE = Checker("lychee", "lychee", _command, _read, settings=re.compile(r"lychee\.toml|\.lycheeignore"))
