"""The supported checkers: markdownlint-cli2, cspell and codespell (one finding per line), Vale and lychee."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.jobserver.checks.checker import (
    CheckCouldNotRunError,
    Checker,
    Finished,
    LineFault,
    SharedSettings,
    could_not_run,
)

_MARKDOWNLINT = re.compile(
    r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9})(?::\d{1,9})? (?:(?:error|warning) )?(?P<words>[^\n]+)"
)
_CSPELL = re.compile(r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9}):\d{1,9} - (?P<words>[^\n]+)")
_CODESPELL = re.compile(r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9}): (?P<words>[^\n]+ ==> [^\n]+)")
_RUNTIME_ERROR = 2
_WORDS = re.compile(r'"Text":\s?"((?:[^"\\]|\\.){1,500})')
_BROKEN_LINKS = 2
_LONGEST = 2000
_OF_SITES = frozenset(("", ".html", ".htm"))


def _reader(
    parse: Callable[[str], re.Match[str] | None], found: Collection[int]
) -> Callable[[Finished], Iterator[LineFault]]:
    """Returns a parser for output with one finding per line; `found` are the exit codes that mean findings."""

    def read(done: Finished) -> Iterator[LineFault]:
        findings = [_finding(match) for text in done.output.splitlines() if (match := parse(text))]
        if done.exit_code and not (done.exit_code in found and findings):
            raise could_not_run(done)
        yield from findings

    return read


def _finding(match: re.Match[str]) -> LineFault:
    return LineFault(PurePosixPath(match["path"]), int(match["line"]), match["words"])


def _markdownlint(pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
    return (
        "markdownlint-cli2",
        "--no-globs",
        *(f":{page}" for page in pages),
    )  # the colon makes it a name instead of a pattern


def _cspell(pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
    options = ("--reporter=default", "--no-progress", "--no-summary", "--no-color", "--no-cache")
    return ("cspell", "lint", *options, "--no-must-find-files", "--file", *(f"./{page}" for page in pages))


def _codespell(pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
    return ("codespell", "--disable-colors", "--interactive=0", *(f"./{page}" for page in pages))


MARKDOWNLINT = Checker(
    "markdownlint",
    "markdownlint-cli2",
    _markdownlint,
    _reader(_MARKDOWNLINT.fullmatch, {1}),
    beside=re.compile(r"\.markdownlint(?:-cli2)?\.(?:jsonc?|ya?ml|[cm]js)"),
    shared=(SharedSettings("package.json", re.compile(r'"markdownlint-cli2"\s*:\s*\{')),),
    endings=frozenset({".md", ".markdown"}),
)
CSPELL = Checker(
    "cspell",
    "cspell",
    _cspell,
    _reader(_CSPELL.fullmatch, {1}),
    settings=re.compile(r"\.(?:config|vscode)/\.?c[sS]pell(?:\.config)?\.(?:jsonc?|ya?ml|toml|[cm]?[jt]s)"),
    beside=re.compile(r"\.?c[sS]pell\.(?:jsonc?|ya?ml)|\.?cspell\.config\.(?:jsonc?|ya?ml|toml|[cm]?[jt]s)"),
    shared=(SharedSettings("package.json", re.compile(r'"cspell"\s*:\s*\{')),),
)
CODESPELL = Checker(
    "codespell",
    "codespell",
    _codespell,
    _reader(_CODESPELL.fullmatch, {65}),
    settings=re.compile(r"\.codespellrc"),
    shared=(
        SharedSettings("setup.cfg", re.compile(r"^\[codespell\]", re.MULTILINE)),
        SharedSettings("pyproject.toml", re.compile(r"^\[tool\.codespell\]", re.MULTILINE)),
    ),
)


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class ValeAlert(_Report):
    """A finding of Vale (https://vale.sh, JSON output); those of the mildest severity, `suggestion`, are dropped."""

    check: str = Field(alias="Check", max_length=200)
    line: int = Field(alias="Line")
    message: str = Field(alias="Message")
    severity: Literal["suggestion", "warning", "error"] = Field(alias="Severity")


_VALE_REPORT = TypeAdapter(dict[str, list[ValeAlert]])


def _vale(pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
    return ("vale", "--no-exit", "--output=JSON", *(f"./{page}" for page in pages))


def parse_report(output: str) -> Mapping[str, Sequence[ValeAlert]]:
    """Returns the alerts of each file in Vale's JSON output.

    Raises:
        CheckCouldNotRunError: the output is not as Vale documents it.
    """
    try:
        return _VALE_REPORT.validate_json(output)
    except ValidationError:
        raise CheckCouldNotRunError("its report cannot be read") from None


def _read_vale(done: Finished) -> Iterator[LineFault]:
    if done.exit_code:
        raise CheckCouldNotRunError(_words(done.output, done.exit_code))
    for name, alerts in parse_report(done.output).items():
        for alert in alerts:
            if alert.severity != "suggestion":
                yield LineFault(PurePosixPath(name), alert.line, f"{alert.message} ({alert.check})")


def _words(output: str, exit_code: int) -> str:
    found = _WORDS.search(output)
    words = found[1] if found else " ".join(output.split())[-300:]
    kind = "it could not be run" if exit_code == _RUNTIME_ERROR else f"it ended with exit code {exit_code}"
    return f"{kind}: {words}" if words else kind


VALE = Checker("Vale", "vale", _vale, _read_vale, settings=re.compile(r"\.vale\.ini|_vale\.ini|vale\.ini"))


class _LycheeSpan(_Report):
    line: int


class _LycheeStatus(_Report):
    text: str = Field(max_length=_LONGEST)


class _LycheeLink(_Report):
    url: str = Field(max_length=_LONGEST)
    status: _LycheeStatus
    span: _LycheeSpan


class _LycheeReport(_Report):
    """The JSON output of lychee (https://lychee.cli.rs)."""

    error_map: dict[str, list[_LycheeLink]]


def _lychee(pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
    options = ("--offline", "--no-progress", "--format=json", "--cache=false")
    return ("lychee", *options, "--", *(f"./{_literal(str(page))}" for page in pages))


def _literal(name: str) -> str:
    """Returns a pattern that matches only this name, since lychee reads every name as a pattern."""
    return "".join(f"[{sign}]" if sign in "[*?" else sign for sign in name)


def _read_lychee(done: Finished) -> Iterator[LineFault]:
    """Yields broken links to files; whether others work depends on the settings of the web server."""
    if done.exit_code not in {0, _BROKEN_LINKS}:
        raise could_not_run(done)
    try:
        report = _LycheeReport.model_validate_json(done.output[done.output.find("{") :])
    except ValidationError:
        raise CheckCouldNotRunError("its report cannot be read") from None
    for name, links in report.error_map.items():
        for link in links:
            if (target := _file(link.url, done)) is not None:
                words = f"the link to `{target}`: {link.status.text}"
                yield LineFault(PurePosixPath(name), link.span.line, words, missing=target)


def _file(url: str, done: Finished) -> PurePosixPath | None:
    """Returns the file that a link leads to; None if it is not in the copy, or an address that a site may have."""
    parts = urlsplit(url)
    path = PurePosixPath(unquote(parts.path))
    is_inside = (
        parts.scheme == "file" and path.is_relative_to(PurePosixPath(done.copy)) and path.suffix not in _OF_SITES
    )
    return path.relative_to(PurePosixPath(done.copy)) if is_inside else None


LYCHEE = Checker(
    "lychee",
    "lychee",
    _lychee,
    _read_lychee,
    settings=re.compile(r"lychee\.toml|\.lycheeignore"),
    needs_no_settings=True,
)
