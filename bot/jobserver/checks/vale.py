"""Vale, the style checker for prose, where the repository has its settings (https://vale.sh, JSON output)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.jobserver.checks.checker import Checker, Finding
from bot.jobserver.checks.program import CheckCouldNotRunError, Finished

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


def _command(pages: Sequence[PurePosixPath]) -> tuple[str, ...]:
    return ("vale", "--no-exit", "--output=JSON", *(f"./{page}" for page in pages))


def parse_report(output: str) -> Mapping[str, Sequence[Alert]]:
    """Reads Vale's JSON: by file, its alerts.

    Raises:
        CheckCouldNotRunError: it is not what Vale documents.
    """
    try:
        return _REPORT.validate_json(output)
    except ValidationError:
        raise CheckCouldNotRunError("its report cannot be read") from None


def _read(done: Finished) -> Iterator[Finding]:
    if done.exit_code:
        raise CheckCouldNotRunError(_words(done.output, done.exit_code))
    for name, alerts in parse_report(done.output).items():
        for alert in alerts:
            if alert.severity != "suggestion":
                yield Finding(PurePosixPath(name), alert.line, f"{alert.message} ({alert.check})")


def _words(output: str, exit_code: int) -> str:
    found = _WORDS.search(output)
    words = found[1] if found else " ".join(output.split())[-300:]
    kind = "it could not be run" if exit_code == _RUNTIME_ERROR else f"it ended with exit code {exit_code}"
    return f"{kind}: {words}" if words else kind


VALE = Checker("Vale", "vale", _command, _read, settings=re.compile(r"\.vale\.ini|_vale\.ini|vale\.ini"))
