"""Vale, the style checker for prose, where the repository has its settings (https://vale.sh, JSON output)."""

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.jobserver.checks.program import CheckCouldNotRunError, CheckProgram

NAME = "Vale"
SETTINGS = (".vale.ini", "_vale.ini", "vale.ini")
_FILES_A_RUN = 500
_RUNTIME_ERROR = 2
_WORDS = re.compile(r'"Text":\s?"((?:[^"\\]|\\.){1,500})')


class Alert(BaseModel):
    """One finding of Vale; `suggestion` is the mildest severity, and is not told."""

    model_config = ConfigDict(frozen=True)

    check: str = Field(alias="Check", max_length=200)
    line: int = Field(alias="Line")
    message: str = Field(alias="Message")
    severity: Literal["suggestion", "warning", "error"] = Field(alias="Severity")


_REPORT = TypeAdapter(dict[str, list[Alert]])


def has_settings(copy: Path) -> bool:
    return any((copy / name).is_file() for name in SETTINGS)


def is_installed() -> bool:
    return shutil.which("vale") is not None


async def style_problems(
    program: CheckProgram, copy: Path, new_lines: Mapping[PurePosixPath, Collection[int]]
) -> list[str]:
    """Returns Vale's warnings and errors about the new lines of these files.

    Raises:
        CheckCouldNotRunError: Vale did not run to its end.
    """
    problems: list[str] = []
    paths = list(new_lines)
    for start in range(0, len(paths), _FILES_A_RUN):
        some = {f"./{path}": path for path in paths[start : start + _FILES_A_RUN]}
        done = await program.run(("vale", "--no-exit", "--output=JSON", *some), copy)
        if done.exit_code:
            raise CheckCouldNotRunError(_words(done.output, done.exit_code))
        problems += _problems(done.output, some, new_lines)
    return problems


def parse_report(output: str) -> Mapping[str, Sequence[Alert]]:
    """Reads Vale's JSON: by file, its alerts.

    Raises:
        CheckCouldNotRunError: it is not what Vale documents.
    """
    try:
        return _REPORT.validate_json(output)
    except ValidationError:
        raise CheckCouldNotRunError("its report cannot be read") from None


def _problems(
    output: str, named: Mapping[str, PurePosixPath], new_lines: Mapping[PurePosixPath, Collection[int]]
) -> list[str]:
    report = parse_report(output)
    found = ((named.get(name) or PurePosixPath(name), alert) for name, alerts in report.items() for alert in alerts)
    return [
        f"{path}:{alert.line}: {alert.message} ({alert.check})"
        for path, alert in found
        if alert.severity != "suggestion" and alert.line in new_lines.get(path, ())
    ]


def _words(output: str, exit_code: int) -> str:
    found = _WORDS.search(output)
    words = found[1] if found else " ".join(output.split())[-300:]
    kind = "it could not be run" if exit_code == _RUNTIME_ERROR else f"it ended with exit code {exit_code}"
    return f"{kind}: {words}" if words else kind
