"""Runs the `typos` program, which finds misspellings offline with a dictionary."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.jobserver.errors import EditError

_TIME_LIMIT_S = 60.0
_OUTPUT_LIMIT = 50_000_000
_FOUND, _NOTHING_FOUND = 2, 0
# Valid words that the program would correct. Found by running it on all words of SCOWL up to size 80 with variants.
ACCEPTED = frozenset((
    "algebraical", "astroid", "auxiliar", "browseable", "brusk", "caesarian", "cancelation", "cancelations",
    "clearstories", "clearstory", "colinear", "collapsable", "combatted", "combatting", "commandoes",
    "comminutes", "commutated", "commutating", "compactible", "constructer", "constructers", "conveyer",
    "conveyers", "cornel", "cornels", "debateable", "demographical", "didactical", "discernable", "discernably",
    "discontentment", "disfunction", "disfunctional", "driveable", "embargos", "enflamed", "equipments",
    "excluder", "excluders", "expresso", "extendible", "extraversion", "floatation", "focussed", "focusses",
    "focussing", "forbad", "formant", "formants", "funguses", "geometrician", "geometricians", "guestimate",
    "guestimates", "highjack", "highjacked", "highjacker", "highjackers", "highjacking", "highjacks",
    "humoural", "identic", "indiscernable", "intrusted", "invokable", "larvas", "leary", "lexigraphic",
    "milage", "milages", "momento", "monicker", "monickers", "nonsignificant", "objet", "objets", "octohedron",
    "operants", "perturbate", "perturbates", "pollenate", "precess", "precessed", "precesses", "precessing",
    "preprepared", "quitted", "rarified", "reenforce", "reenforced", "reenforcement", "reenforcing",
    "refocussed", "refocusses", "refocussing", "rememberable", "removeable", "responser", "restauranteur",
    "restauranteurs", "reuseable", "revaluated", "scaleable", "sematic", "sideral", "surprize", "surprized",
    "surprizes", "surprizing", "surviver", "survivers", "symmetral", "technic", "technics", "tieing",
    "tormenters", "torpedos", "transferrable", "transferrin", "unapplicable", "uncatalogued", "undiscernable",
    "uninvokable", "unmistakeable", "unmistakeably", "unparented", "unparseable", "vermillion", "vertexes",
    "writeable",
))  # fmt: skip


@dataclass(frozen=True)
class Misspelling:
    """A misspelt word; `line` is numbered from 1, `offset` is in bytes from the line's start."""

    line: int
    offset: int
    wrong: str
    corrections: tuple[str, ...]


def find_misspellings(root: Path, paths: Iterable[PurePosixPath]) -> dict[PurePosixPath, list[Misspelling]]:
    """Returns the misspellings in these files, including code.

    Raises:
        EditError: the program is missing or failed.
    """
    listed = [path for path in paths if not set("\r\n") & set(str(path))]
    if not listed:
        return {}
    with tempfile.TemporaryFile() as output:
        exit_code = _run(_command(), root, listed, output.fileno())
        output.seek(0)
        report = output.read(_OUTPUT_LIMIT)
    if exit_code not in {_FOUND, _NOTHING_FOUND}:
        raise EditError(f"the spelling check ended with exit code {exit_code}")
    return parse_report(report)


def _command() -> Sequence[str]:
    return (
        _program(), "--isolated", "--no-ignore", "--hidden", "--no-check-filenames", "--format", "json",
        "--file-list", "-",
    )  # fmt: skip


def _run(command: Sequence[str], root: Path, paths: Iterable[PurePosixPath], output: int) -> int:
    listed = "".join(f"./{path}\n" for path in paths).encode(errors="surrogateescape")
    try:
        return subprocess.run(
            command, cwd=root, input=listed, stdout=output, stderr=subprocess.DEVNULL, timeout=_TIME_LIMIT_S,
            env={"PATH": "", "LC_ALL": "C.UTF-8"}, check=False,
        ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        raise EditError("the spelling check took too long") from None


def parse_report(report: bytes) -> dict[PurePosixPath, list[Misspelling]]:
    """Parses the program's JSON lines; skips a last line that is cut off."""
    found: dict[PurePosixPath, list[Misspelling]] = {}
    for line in report.splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        misspelling = _misspelling(entry)
        if misspelling is not None:
            found.setdefault(PurePosixPath(entry["path"]), []).append(misspelling)
    return found


def _misspelling(entry: Mapping[str, object]) -> Misspelling | None:
    match entry:
        case {"type": "typo", "path": str(), "line_num": int(line), "byte_offset": int(offset),
              "typo": str(wrong), "corrections": list(corrections)}:  # fmt: skip
            return Misspelling(line, offset, wrong, tuple(str(correction) for correction in corrections))
    return None


def _program() -> str:
    beside = Path(sys.executable).with_name("typos")
    program = str(beside) if beside.is_file() else shutil.which("typos")
    if program is None:
        raise EditError("the spelling program `typos` is not installed: pip install typos")
    return program
