"""Checkers: programs that run in the sandbox, the settings that enable them, and what they find.

Supported are Vale, markdownlint-cli2, cspell, codespell and lychee.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.jobserver import subprocesses
from bot.jobserver.checks.change import CheckedChange, text_of
from bot.jobserver.documents import is_page
from bot.jobserver.egress.proxy import Egress, EgressRefusals
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Program, Sandbox, Workspace
from bot.jobserver.sandbox.limits import ProgramFailedError, RunLimits

_OUTPUT_BYTES = 2_000_000
_NONE = re.compile(r"(?!)")
_LAST_CHARACTERS = 250
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


class CheckCouldNotRunError(JobServerError):
    """The program of a check could not run to its end; the message says why."""


@dataclass(frozen=True)
class Finished:
    """How a program ended, the last 2 MB of its output, and the connections that it was refused.

    `copy` is the path of the folder that it ran in, as the program saw it.
    """

    exit_code: int
    output: str
    refused: tuple[str, ...] = ()
    copy: Path = Path()


@dataclass(frozen=True)
class CheckProgram:
    """Runs programs in the sandbox, each with a temporary HOME; `time_limit` is in seconds."""

    sandbox: Sandbox
    limits: RunLimits
    egress: Egress
    time_limit: float
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def run(self, arguments: tuple[str, ...], copy: Path) -> Finished:
        """Runs a program in the copy.

        Raises:
            CheckCouldNotRunError: it cannot be started, took too long, or used too many resources.
        """
        with tempfile.TemporaryDirectory(dir=copy.parent, prefix="check-") as home:
            workspace, refusals = Workspace(copy, Path(home)), EgressRefusals()
            try:
                async with self.egress.opened(refusals) as connected:
                    program = self.sandbox.prepare(connected(Program(arguments, self.environment)), workspace)
                    command = subprocesses.Command(
                        program.arguments, program.directory, program.environment, self.time_limit
                    )
                    output = subprocesses.LastBytes(_OUTPUT_BYTES)
                    code = await self.limits.run(command, workspace, stdout=output)
            except EditError as error:
                raise CheckCouldNotRunError(str(error)) from error
            except ProgramFailedError as error:
                raise CheckCouldNotRunError(f"it {error}") from error
        text = output.getvalue().decode(errors="replace")
        return Finished(code, text, tuple(refusals.in_words), program.copy)


@dataclass(frozen=True)
class LineFault:
    """A fault in a line, counted from 1."""

    path: PurePosixPath
    line: int
    message: str
    missing: PurePosixPath | None = None
    """The file that was not found, if that is the fault."""


@dataclass(frozen=True)
class SharedSettings:
    """A file with settings of many programs; `mark` matches if it has any for this program."""

    name: str
    mark: re.Pattern[str]


@dataclass(frozen=True)
class Checker:
    """A program that a repository can have settings for.

    It applies if there is a file whose path matches `settings` or, in a folder above a changed page or at the root, one
    whose name matches `beside`; or wherever it is installed, if it `needs_no_settings`. `command` returns its arguments
    for the paths of pages. `read` parses its output into findings and may raise `CheckCouldNotRunError`. `endings` are
    the file types that it checks; if empty, all.
    """

    name: str
    program: str
    command: Callable[[Sequence[PurePosixPath]], tuple[str, ...]]
    read: Callable[[Finished], Iterable[LineFault]]
    settings: re.Pattern[str] = _NONE
    beside: re.Pattern[str] = _NONE
    shared: Collection[SharedSettings] = ()
    endings: frozenset[str] = frozenset()
    needs_no_settings: bool = False

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.program) is not None

    def checks(self, path: PurePosixPath) -> bool:
        """Tells by its name whether a file is a page of a type that it checks."""
        return is_page(path) and (not self.endings or path.suffix.lower() in self.endings)

    def pages(self, change: CheckedChange) -> list[PurePosixPath]:
        """Returns the changed pages that it checks according to the settings in the base branch."""
        pages = list(filter(self.checks, change.changed_pages))
        if not pages:
            return []
        folders = {path.parent for path in change.paths_before if self.beside.fullmatch(path.name)}
        if PurePosixPath() in folders or self._is_set_up_at_the_root(change):
            return pages
        if self.needs_no_settings and self.is_installed:
            return pages
        return [page for page in pages if not folders.isdisjoint(page.parents)]

    def _is_set_up_at_the_root(self, change: CheckedChange) -> bool:
        if any(self.settings.fullmatch(str(path)) for path in change.paths_before):
            return True
        texts = ((file, text_of(change.before, PurePosixPath(file.name))) for file in self.shared)
        return any(text is not None and file.mark.search(text) for file, text in texts)


def could_not_run(done: Finished) -> CheckCouldNotRunError:
    """Returns the error for a program that failed, with the end of its output."""
    words = " ".join(done.output.split())[-_LAST_CHARACTERS:]
    return CheckCouldNotRunError(f"it ended with exit code {done.exit_code}{f': {words}' if words else ''}")


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
