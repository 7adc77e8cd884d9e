"""Runs the `typos` program, which finds misspellings offline with a dictionary."""

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from bot.jobserver import subprocesses
from bot.jobserver.errors import EditError

_TIME_LIMIT_S = 60.0
_OUTPUT_LIMIT = 50_000_000
_FOUND, _NOTHING_FOUND = 2, 0
_ARGUMENTS = ("--isolated", "--no-check-filenames", "--format", "json", "--file-list", "-")


async def find_typos(root: Path, paths: Iterable[PurePosixPath]) -> Mapping[str, Sequence[str]]:
    """Returns the misspellings on these pages, each with its corrections.

    Raises:
        EditError: the program is missing, failed, or took too long.
    """
    listed = "".join(f"./{path}\n" for path in paths if str(path).isprintable())
    output = subprocesses.FirstBytes(_OUTPUT_LIMIT)
    command = subprocesses.Command(
        (_program(), *_ARGUMENTS),
        root,
        {"PATH": "", "LC_ALL": "C.UTF-8"},
        _TIME_LIMIT_S,
        listed.encode(),
    )
    try:
        code = await subprocesses.run(command, stdout=output) if listed else _NOTHING_FOUND
    except OSError as error:
        raise EditError(f"the program `typos` could not be run: {error.strerror}") from error
    except subprocesses.ProcessTimeoutError as error:
        raise EditError("the program `typos` took too long") from error
    if code not in {_FOUND, _NOTHING_FOUND}:
        raise EditError(f"the program `typos` ended with exit code {code}")
    return dict(filter(None, map(_typo, output.getvalue().splitlines())))


def _typo(line: bytes) -> tuple[str, Sequence[str]] | None:
    try:
        entry = json.loads(line)
    except ValueError:  # the last line can be cut off
        return None
    match entry:
        case {"type": "typo", "typo": str(wrong), "corrections": list(corrections)}:
            return wrong, list(map(str, corrections))
    return None


def _program() -> str:
    beside = Path(sys.executable).with_name("typos")
    program = str(beside) if beside.is_file() else shutil.which("typos")
    if program is None:
        raise EditError("the program `typos` is not installed: pip install typos")
    return program
