"""Reads the projects file, and reports everything that is wrong with it at once, with its place in the file."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bot.app.settings.projects.tables import ChannelTable, FileContext, ProjectsFile, ProjectTable
from bot.domain.projects import normal_words
from bot.errors import ConfigError
from bot.runtime.json_fields import objects_at, text_at
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
    """Reads the file that PAGEHAND_PROJECTS names; None if it names none. Raises ConfigError."""
    named = read_variable(VARIABLE, environ)
    if not named:
        return None
    path = Path(named)
    data, found = _parsed(path), None
    try:
        found = ProjectsFile.model_validate(data, context=FileContext(path.parent, environ))
        faults = list(_conflicts(found, environ))
    except ValidationError as error:
        faults = [_sentence(fault) for fault in error.errors(include_input=False, include_url=False)]
    if faults:
        raise ConfigError([f"{VARIABLE}: {fault}" for fault in dict.fromkeys(faults)])
    return found


def key_variables(environ: Mapping[str, str]) -> frozenset[str]:
    """Returns the variables that the file names for the projects' keys; none if it cannot be read."""
    try:
        named = read_variable(VARIABLE, environ)
        data = _parsed(Path(named)) if named else {}
    except ConfigError:
        return frozenset()
    return frozenset(text_at(table, "key_variable") for table in objects_at(data, "projects"))


def _conflicts(file: ProjectsFile, environ: Mapping[str, str]) -> Iterator[str]:
    """Yields a sentence for each pair of entries that contradict each other, and for each missing URL or key."""
    projects, channels = list(enumerate(file.projects, start=1)), list(enumerate(file.channels, start=1))
    numbers = {table.name.casefold(): number for number, table in projects}
    assigned = [(number, channel) for number, table in projects for channel in table.channels]
    for number, table in projects:
        yield from (f"project {number}: {fault}" for fault in _incomplete(table, environ))
    for number, channel in channels:
        if channel.project is not None:
            project = numbers.get(channel.project.casefold())
            if project is None:
                yield f"channel {number}, project: no project has this name"
            else:
                assigned.append((project, channel.id))
    yield from _repeated("name", ((number, table.name.casefold()) for number, table in projects))
    addresses = ((number, f"{table.url} {table.project}") for number, table in projects)
    yield from _repeated("project (at the same url)", addresses)
    yield from _repeated("word", ((number, normal_words(word)) for number, table in projects for word in table.words))
    yield from _repeated("id", ((number, channel.id) for number, channel in channels), table="channel")
    yield from _repeated("channel", assigned)


def _incomplete(table: ProjectTable, environ: Mapping[str, str]) -> Iterator[str]:
    if table.key_file and table.key_variable:
        yield "it has both key_file and key_variable: remove one of them"
    url = _given("JOB_API_URL", environ)
    if table.url is None and not url:
        yield "it has no url, and JOB_API_URL is not set"
    if table.key:
        return
    if table.url is not None and table.url != url.rstrip("/"):
        yield "it has a url of its own, so it needs key_file or key_variable: JOB_API_KEY is not sent elsewhere"
    elif not _given("JOB_API_KEY", environ):
        yield "it has neither key_file nor key_variable, and JOB_API_KEY is not set"


def _given(name: str, environ: Mapping[str, str]) -> str:
    """Returns a variable's value. An unreadable file counts as set, because loading the settings reports it."""
    try:
        return read_variable(name, environ)
    except ConfigError:
        return "unreadable"


def _repeated(what: str, found: Iterable[tuple[int, str]], *, table: str = "project") -> Iterator[str]:
    first: dict[str, int] = {}
    for number, value in found:
        if first.setdefault(value, number) != number:
            yield f"{table}s {first[value]} and {number} have the same {what}"


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
    # Raised outside of the except clause, because the original error contains the file's text.
    raise ConfigError([f"{VARIABLE} {what}"])


def _sentence(fault: ErrorDetails) -> str:
    place = list(fault["loc"])
    if fault["type"] == "extra_forbidden":
        name, around = str(place[-1]), place[:-1]
        entry = f"an entry {name} that" if _PLAIN.fullmatch(name) else "an entry that"
        return f"{_place(around)}it has {entry} is unknown; the known ones are {_known(around)}"
    what = _WORDS.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")
    return _place(place) + re.sub("^(Input|String|Tuple|Value) should", "must", what)


def _known(place: list[int | str]) -> str:
    table = _TABLES.get(str(place[0])) if place else None
    return ", ".join(table.model_fields) if table else ", ".join(f"[[{name}]]" for name in _TABLES)


def _place(place: list[int | str]) -> str:
    """Returns the place of a fault in the file, such as `project 2, words, entry 3: `."""
    match place:
        case [str() as table, int() as index, *rest]:
            inside = (f"entry {part + 1}" if isinstance(part, int) else part for part in rest)
            return ", ".join([f"{table.removesuffix('s')} {index + 1}", *inside]) + ": "
        case [str() as table]:
            return f"[[{table}]]: "
        case _:
            return ""
