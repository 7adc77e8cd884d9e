"""Checkers that print a finding a line: markdownlint-cli2, cspell and codespell."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import PurePosixPath

from bot.jobserver.checks.checker import Checker, Finding, SharedSettings, could_not_run
from bot.jobserver.checks.program import Finished

_MARKDOWNLINT = re.compile(
    r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9})(?::\d{1,9})? (?:(?:error|warning) )?(?P<words>[^\n]+)"
)
_CSPELL = re.compile(r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9}):\d{1,9} - (?P<words>[^\n]+)")
_CODESPELL = re.compile(r"(?P<path>[^\n]{1,4000}?):(?P<line>\d{1,9}): (?P<words>[^\n]+ ==> [^\n]+)")


def _reader(
    parse: Callable[[str], re.Match[str] | None], found: Collection[int]
) -> Callable[[Finished], Iterator[Finding]]:
    """Returns what reads such lines; `found` are the exit codes that stand for findings."""

    def read(done: Finished) -> Iterator[Finding]:
        findings = [_finding(match) for text in done.output.splitlines() if (match := parse(text))]
        if done.exit_code and not (done.exit_code in found and findings):
            raise could_not_run(done)
        yield from findings

    return read


def _finding(match: re.Match[str]) -> Finding:
    return Finding(PurePosixPath(match["path"]), int(match["line"]), match["words"])


def _markdownlint(pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
    return ("markdownlint-cli2", "--no-globs", *(f":{page}" for page in pages))  # the colon: a name, not a pattern


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
