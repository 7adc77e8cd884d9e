"""Reads the file that has several projects; all that is wrong with it is told at once, with its place."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bot.app.settings.projects.conflicts import conflicts
from bot.app.settings.projects.tables import ChannelTable, ProjectsFile, ProjectTable, Surroundings
from bot.errors import ConfigError
from bot.runtime.settings import read_variable

VARIABLE = "PAGEHAND_PROJECTS"
_LARGEST = 1 << 20
"""Bytes."""
_WORDS = {
    "missing": "is missing",
    "string_type": "must be text, in quotes",
    "bool_type": "must be true or false",
    "float_type": "must be a number",
    "tuple_type": "must be a list, in [ ]",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "too_long": "has too many entries",
    "secret_type": "must be text, in quotes",
}
_TABLES: dict[str, type[BaseModel]] = {"projects": ProjectTable, "channels": ChannelTable}
_PLAIN = re.compile("[A-Za-z_-]{1,30}")


def read_projects(environ: Mapping[str, str]) -> ProjectsFile | None:
    """Returns what the file holds that the environment names; None where it names none. Raises ConfigError."""
    named = read_variable(VARIABLE, environ)
    if not named:
        return None
    path = Path(named)
    data = _parsed(path)
    faults = list(conflicts(data, environ))
    try:
        found = ProjectsFile.model_validate(data, context=Surroundings(path.parent, environ))
    except ValidationError as error:
        faults += [_sentence(fault) for fault in error.errors(include_input=False, include_url=False)]
        raise ConfigError(_told(faults)) from None
    if faults:
        raise ConfigError(_told(faults))
    return found


def _told(faults: list[str]) -> list[str]:
    return [f"{VARIABLE}: {fault}" for fault in dict.fromkeys(faults)]


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.loads(file.read(_LARGEST).decode())
    except OSError as error:
        what = f"names a file that cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        what = "names a file that cannot be read: it is not text"
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at [^)]*\)\Z", str(error))
        what = f"names a file that is not TOML {place[0] if place else ''}".rstrip()
    # Raised out here, since the library's error holds the text.
    raise ConfigError([f"{VARIABLE} {what}"])


def _sentence(fault: ErrorDetails) -> str:
    place = list(fault["loc"])
    if fault["type"] == "extra_forbidden":
        name, around = str(place[-1]), place[:-1]
        entry = f"an entry {name} that" if _PLAIN.fullmatch(name) else "an entry that"
        return f"{_place(around)}it has {entry} is not known here; there are {_known(around)}"
    what = _WORDS.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")
    return _place(place) + re.sub("^(Input|String|Tuple|Value) should", "must", what)


def _known(place: list[int | str]) -> str:
    table = _TABLES.get(str(place[0])) if place else None
    return ", ".join(table.model_fields) if table else ", ".join(f"[[{name}]]" for name in _TABLES)


def _place(place: list[int | str]) -> str:
    """Where in the file something is wrong: `project 2, words, entry 3: `."""
    match place:
        case [str() as table, int() as index, *rest]:
            inside = (f"entry {part + 1}" if isinstance(part, int) else part for part in rest)
            return ", ".join([f"{table.removesuffix('s')} {index + 1}", *inside]) + ": "
        case [str() as table]:
            return f"[[{table}]]: "
        case _:
            return ""
