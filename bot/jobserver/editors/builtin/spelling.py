"""Spelling by the `typos` program: offline, and only corrections it is sure of."""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath

from bot.jobserver import subprocesses
from bot.jobserver.errors import EditError

_TIME_LIMIT_S = 120.0
_OUTPUT_LIMIT = 50_000_000
_FENCE = re.compile(rb"^\s{0,3}(`{3,}|~{3,})")
_INLINE_CODE = re.compile(rb"(?<!`)`++[^`\n]++`+")
_FOUND, _NOTHING_FOUND = 2, 0


@dataclass(frozen=True)
class Correction:
    """One misspelt word: `line` counts from 1, `offset` in bytes from the line's start."""

    line: int
    offset: int
    wrong: str
    right: str


async def find_corrections(directory: Path, paths: Iterable[PurePosixPath]) -> dict[PurePosixPath, list[Correction]]:
    """Returns the misspelt words in these files, those with exactly one correction.

    Raises:
        EditError: the spelling program is missing or failed.
    """
    listed = [path for path in paths if not re.search(r"[\r\n]", str(path))]
    if not listed:
        return {}
    output = BytesIO()
    exit_code = await _run(_command(directory, listed), output)
    if exit_code not in {_FOUND, _NOTHING_FOUND}:
        raise EditError(f"the spelling check ended with exit code {exit_code}")
    return parse_report(output.getvalue())


def _command(directory: Path, paths: Iterable[PurePosixPath]) -> subprocesses.Command:
    return subprocesses.Command(
        (_program(), "--isolated", "--no-ignore", "--hidden", "--no-check-filenames", "--format", "json",
         "--file-list", "-"),
        directory,
        {"PATH": "", "LC_ALL": "C.UTF-8"},
        _TIME_LIMIT_S,
        "".join(f"./{path}\n" for path in paths).encode(errors="surrogateescape"),
    )  # fmt: skip


async def _run(command: subprocesses.Command, output: BytesIO) -> int:
    try:
        return await subprocesses.run(
            command,
            stdout=subprocesses.BoundedWriter(output, _OUTPUT_LIMIT),
            stderr=subprocesses.BoundedWriter(BytesIO(), 0),
        )
    except subprocesses.ProcessTimeoutError:
        raise EditError("the spelling check took too long") from None


def parse_report(report: bytes) -> dict[PurePosixPath, list[Correction]]:
    """Reads the program's JSON lines; a line cut short at the end is left out."""
    found: dict[PurePosixPath, list[Correction]] = {}
    for line in report.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        correction = _correction(entry)
        if correction is not None:
            found.setdefault(PurePosixPath(entry["path"]), []).append(correction)
    return found


def _correction(entry: Mapping[str, object]) -> Correction | None:
    match entry:
        case {"type": "typo", "path": str(), "line_num": int(line), "byte_offset": int(offset),
              "typo": str(wrong), "corrections": [str(right)]}:  # fmt: skip
            return Correction(line, offset, wrong, right)
    return None


def apply_corrections(text: bytes, found: Iterable[Correction]) -> tuple[bytes, int]:
    """Returns the text with its prose corrected, and how many words were; code in fences and backticks stays."""
    lines = text.split(b"\n")
    code = _code_lines(lines)
    count = 0
    for correction in sorted(found, key=lambda c: (c.line, c.offset), reverse=True):
        index = correction.line - 1
        if index >= len(lines) or code[index]:
            continue
        line, wrong, start = lines[index], correction.wrong.encode(), correction.offset
        end = start + len(wrong)
        if line[start:end] != wrong or any(m.start() < end and start < m.end() for m in _INLINE_CODE.finditer(line)):
            continue
        lines[index] = line[:start] + correction.right.encode() + line[end:]
        count += 1
    return b"\n".join(lines), count


def _code_lines(lines: list[bytes]) -> list[bool]:
    fence = b""
    inside: list[bool] = []
    for line in lines:
        match = _FENCE.match(line)
        if fence:
            inside.append(True)
            closes = match is not None and match[1].startswith(fence) and not line.strip().strip(fence[:1])
            fence = b"" if closes else fence
        else:
            inside.append(match is not None)
            fence = match[1] if match else b""
    return inside


def _program() -> str:
    beside = Path(sys.executable).with_name("typos")
    program = str(beside) if beside.is_file() else shutil.which("typos")
    if program is None:
        raise EditError("the spelling program `typos` is not installed: pip install typos")
    return program
