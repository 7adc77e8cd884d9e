"""Checkers: programs that run in the sandbox, the settings that enable them, and what they find.

Supported are Vale, markdownlint-cli2, cspell, codespell and lychee.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import AliasPath, BaseModel, Field, TypeAdapter, ValidationError

from bot.jobserver import subprocesses
from bot.jobserver.checks.change import CheckedChange, text_of
from bot.jobserver.documents import is_page
from bot.jobserver.egress.proxy import Egress, EgressRefusals
from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.interface import Program, Sandbox, Workspace
from bot.jobserver.sandbox.limits import RunLimits

_OUTPUT_BYTES = 2_000_000
_MARKDOWNLINT = re.compile(
    r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9})(?::\d{1,9})? (?:(?:error|warning) )?(?P<words>[^\n]+)"
)
_CSPELL = re.compile(r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9}):\d{1,9} - (?P<words>[^\n]+)")
_CODESPELL = re.compile(r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9}): (?P<words>[^\n]+ ==> [^\n]+)")
_BROKEN_LINKS = 2
_LONGEST = 2000
_OF_SITES = frozenset(("", ".html", ".htm"))
R = TypeVar("R")


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
            EditError: it cannot be started, took too long, or used too many resources.
        """
        with tempfile.TemporaryDirectory(dir=copy.parent, prefix="check-") as home:
            workspace, refusals = Workspace(copy, Path(home)), EgressRefusals()
            async with self.egress.opened(refusals) as connected:
                program = self.sandbox.prepare(connected(Program(arguments, self.environment)), workspace)
                output = subprocesses.LastBytes(_OUTPUT_BYTES)
                code = await self.limits.run("it", program.command(self.time_limit), workspace, stdout=output.write)
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
class Checker:
    """A program that a repository can have settings for.

    `command` is followed by the paths of pages, each in the form `page`. `read` parses its output into findings and may
    raise `JobServerError`. It applies to the pages of a folder, the first group of `settings`, if a file's path
    matches; to all if a file at the root that is `shared` by many programs contains a match, or if it is installed and
    `needs_no_settings`. `endings` are the file types that it checks; if empty, all.
    """

    name: str
    command: tuple[str, ...]
    read: Callable[[Finished], Iterable[LineFault]]
    settings: re.Pattern[str]
    page: Callable[[str], str] = "./{}".format
    shared: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    endings: frozenset[str] = frozenset()
    needs_no_settings: bool = False

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.command[0]) is not None

    def arguments(self, pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
        return (*self.command, *(self.page(str(page)) for page in pages))

    def checks(self, path: PurePosixPath) -> bool:
        """Tells by its name whether a file is a page of a type that it checks."""
        return is_page(path) and (not self.endings or path.suffix.lower() in self.endings)

    def pages(self, change: CheckedChange) -> list[PurePosixPath]:
        """Returns the changed pages that it checks according to the settings in the base branch."""
        pages = list(filter(self.checks, change.changed_pages))
        if not pages:
            return []
        texts = ((mark, text_of(change.before, PurePosixPath(name))) for name, mark in self.shared.items())
        if any(text is not None and mark.search(text) for mark, text in texts):
            return pages
        if self.needs_no_settings and self.is_installed:
            return pages
        found = (self.settings.fullmatch(str(path)) for path in change.paths_before)
        folders = {PurePosixPath(each[1]) for each in found if each}
        return [page for page in pages if not folders.isdisjoint(page.parents)]


def could_not_run(done: Finished) -> JobServerError:
    """Returns the error for a program that failed, with the end of its output."""
    words = " ".join(done.output.split())[-250:]
    return JobServerError(f"it ended with exit code {done.exit_code}{f': {words}' if words else ''}")


def _reader(parse: Callable[[str], re.Match[str] | None], found: int) -> Callable[[Finished], Iterator[LineFault]]:
    """Returns a parser for output with one finding per line; `found` is the exit code that means findings."""

    def read(done: Finished) -> Iterator[LineFault]:
        findings = [match for text in done.output.splitlines() if (match := parse(text))]
        if done.exit_code and not (done.exit_code == found and findings):
            raise could_not_run(done)
        for match in findings:
            yield LineFault(PurePosixPath(match["path"]), int(match["line"]), match["words"])

    return read


MARKDOWNLINT = Checker(
    "markdownlint",
    ("markdownlint-cli2", "--no-globs"),
    _reader(_MARKDOWNLINT.fullmatch, 1),
    page=":{}".format,  # the colon makes it a name instead of a pattern
    settings=re.compile(r"\A(|.*?/)\.markdownlint(?:-cli2)?\.(?:jsonc?|ya?ml|[cm]js)"),
    shared={"package.json": re.compile(r'"markdownlint-cli2"\s*:\s*\{')},
    endings=frozenset({".md", ".markdown"}),
)
CSPELL = Checker(
    "cspell",
    (
        "cspell", "lint", "--reporter=default", "--no-progress", "--no-summary", "--no-color", "--no-cache",
        "--no-must-find-files", "--file",
    ),
    _reader(_CSPELL.fullmatch, 1),
    settings=re.compile(
        r"\A(|.*?/)(?:\.(?:config|vscode)/\.?c[sS]pell(?:\.config)?\.(?:jsonc?|ya?ml|toml|[cm]?[jt]s)"
        r"|\.?c[sS]pell\.(?:jsonc?|ya?ml)|\.?cspell\.config\.(?:jsonc?|ya?ml|toml|[cm]?[jt]s))"
    ),
    shared={"package.json": re.compile(r'"cspell"\s*:\s*\{')},
)  # fmt: skip
CODESPELL = Checker(
    "codespell",
    ("codespell", "--disable-colors", "--interactive=0"),
    _reader(_CODESPELL.fullmatch, 65),
    settings=re.compile(r"()\.codespellrc"),
    shared={
        "setup.cfg": re.compile(r"^\[codespell\]", re.MULTILINE),
        "pyproject.toml": re.compile(r"^\[tool\.codespell\]", re.MULTILINE),
    },
)


class ValeAlert(BaseModel):
    """A finding of Vale (https://vale.sh, JSON output); those of the mildest severity, `suggestion`, are dropped."""

    check: str = Field(alias="Check", max_length=200)
    line: int = Field(alias="Line")
    message: str = Field(alias="Message")
    severity: Literal["suggestion", "warning", "error"] = Field(alias="Severity")


class _LycheeLink(BaseModel):
    """A broken link in the JSON output of lychee (https://lychee.cli.rs)."""

    url: str = Field(max_length=_LONGEST)
    text: str = Field(validation_alias=AliasPath("status", "text"), max_length=_LONGEST)
    line: int = Field(validation_alias=AliasPath("span", "line"))


class _LycheeReport(BaseModel):
    error_map: dict[str, list[_LycheeLink]]


VALE_REPORT = TypeAdapter(dict[str, list[ValeAlert]])


def parse_report(report: TypeAdapter[R], output: str) -> R:
    """Parses a program's report.

    Raises:
        JobServerError: the output is not as the program documents it.
    """
    try:
        return report.validate_json(output)
    except ValidationError:
        raise JobServerError("its report cannot be read") from None


def _read_vale(done: Finished) -> Iterator[LineFault]:
    if done.exit_code:
        raise could_not_run(done)
    for name, alerts in parse_report(VALE_REPORT, done.output).items():
        for alert in alerts:
            if alert.severity != "suggestion":
                yield LineFault(PurePosixPath(name), alert.line, f"{alert.message} ({alert.check})")


VALE = Checker(
    "Vale",
    ("vale", "--no-exit", "--output=JSON"),
    _read_vale,
    settings=re.compile(r"()[._]?vale\.ini"),
)


def _literal(name: str) -> str:
    """Returns a pattern that matches only this name, since lychee reads every name as a pattern."""
    return "./" + "".join(f"[{sign}]" if sign in "[*?" else sign for sign in name)


def _read_lychee(done: Finished) -> Iterator[LineFault]:
    """Yields broken links to files; whether others work depends on the settings of the web server."""
    if done.exit_code not in {0, _BROKEN_LINKS}:
        raise could_not_run(done)
    report = parse_report(TypeAdapter(_LycheeReport), done.output[done.output.find("{") :])
    for name, links in report.error_map.items():
        for link in links:
            if (target := _file(link.url, done)) is not None:
                yield LineFault(PurePosixPath(name), link.line, f"the link to `{target}`: {link.text}", missing=target)


def _file(url: str, done: Finished) -> PurePosixPath | None:
    """Returns the file that a link leads to; None if it is not in the copy, or an address that a site may have."""
    parts = urlsplit(url)
    path, copy = PurePosixPath(unquote(parts.path)), PurePosixPath(done.copy)
    is_inside = parts.scheme == "file" and path.is_relative_to(copy) and path.suffix not in _OF_SITES
    return path.relative_to(copy) if is_inside else None


LYCHEE = Checker(
    "lychee",
    ("lychee", "--offline", "--no-progress", "--format=json", "--cache=false", "--"),
    _read_lychee,
    page=_literal,
    settings=re.compile(r"()(?:lychee\.toml|\.lycheeignore)"),
    needs_no_settings=True,
)
CHECKERS = (VALE, MARKDOWNLINT, CSPELL, CODESPELL, LYCHEE)
