"""The projects of a server: one, whose settings are variables, or those of a TOML file, with variables as defaults.

A table `[projects.docs]` has the project's settings by their names in lower case, written as in a variable. The file is
read again when it changes; one that is not valid changes nothing.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.errors import ConfigError
from bot.jobserver.settings.process import ProcessSettings
from bot.jobserver.settings.server import JobServerSettings
from bot.jobserver.settings.values import PREFIX
from bot.runtime.private_files import warn_of_readers
from bot.runtime.rotating_secrets import KnownSecrets
from bot.runtime.settings import SettingNames, read_variable
from bot.runtime.toml_file import content_of, tables_in

logger = logging.getLogger(__name__)
VARIABLE = f"{PREFIX}CONFIG"
_MOST = 100
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_NAME = re.compile("[A-Za-z_]{1,60}")
_FILE = "_file"
_NO_DEFAULT = ("project_id", "repository", "api_key")
"""What each project has of its own."""
_ELSEWHERE = {name: f"It is the whole server's: set {PREFIX}{name.upper()}." for name in ProcessSettings.model_fields}
_VARIABLES = {f"{PREFIX}{name.upper()}": f"Its name is {name} here." for name in JobServerSettings.model_fields}
_NAMES = SettingNames(
    JobServerSettings.model_fields.keys() - _ELSEWHERE.keys() - {"project_id"},
    prefixes=("",),
    removed=_ELSEWHERE | _VARIABLES | {"project_id": "It is the name of the table."},
)
_Table = Mapping[str, str]
"""A project's own settings, by their names in lower case."""


class Projects:
    """The projects of a server.

    Attributes:
        process: The settings that they share.
        current: The settings of each, by its id. One that has not changed keeps its object.
        fault: Why the file, as it is now, is not in use; empty if it is.
        secrets: What no log may show; it grows.
    """

    def __init__(
        self,
        process: ProcessSettings,
        current: Mapping[str, JobServerSettings],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.process = process
        self.current = current
        self.fault = ""
        self.secrets = KnownSecrets()
        self._environ = dict(environ or {})  # the secrets in it are about to be removed from the process's own
        self._content: bytes | None = None
        self._tables: Mapping[str, _Table] = {}
        self._hide_secrets()

    @classmethod
    def one(cls, settings: JobServerSettings) -> "Projects":
        """Returns the project of a server that has only this one."""
        return cls(settings, {settings.project_id: settings})

    @classmethod
    def read(cls, environ: Mapping[str, str], further: list[str]) -> "Projects":
        """Reads variables, and the file that they name. `further` has other faults of theirs. Raises ConfigError."""
        if not read_variable(VARIABLE, environ):
            return cls.one(JobServerSettings.from_environment(environ, further))
        process = ProcessSettings.from_environment(environ, further)
        warn_of_readers(process.config or Path(), VARIABLE)
        projects = cls(process, {}, environ)
        projects._read()
        return projects

    @property
    def has_file(self) -> bool:
        """Whether there can be several, or others later."""
        return self.process.config is not None

    def look(self) -> bool:
        """Reads the file again if it has changed; returns whether there is something new in `current`. Blocks."""
        fault, is_new = "", False
        try:
            is_new = self._read()
        except ConfigError as error:
            fault = str(error)
        if fault and fault != self.fault:
            logger.error("The projects stay as they were: %s", fault)
        elif is_new or fault != self.fault:
            logger.info("The file of the projects is in use: %s.", ", ".join(self.current))
        self.fault = fault
        return is_new

    def _read(self) -> bool:
        file = self.process.config or Path()
        content = content_of(file, VARIABLE)
        # After a fault, it is read even if it looks unchanged: a file that it names may be there now, or have changed.
        if content == self._content and not self.fault and not any(_repeated_keys(self.current)):
            return False
        tables = _tables(tables_in(content, VARIABLE))
        known = {name: self.current[name] for name, table in tables.items() if self._tables.get(name) == table}
        found, faults = dict[str, JobServerSettings](), list[str]()
        for name, table in tables.items():
            try:
                found[name] = known.get(name) or self._project(file.parent, name, table)
            except ConfigError as error:
                faults += error.faults
        if faults := [*faults, *_repeated_keys(found)]:
            raise ConfigError([f"{VARIABLE}: {fault}" for fault in faults])
        is_new = self._tables != tables
        self._content, self._tables, self.current = content, tables, found
        self._hide_secrets()
        return is_new

    def _project(self, folder: Path, name: str, table: _Table) -> JobServerSettings:
        named = {setting: str(folder / value) for setting, value in table.items() if value and setting.endswith(_FILE)}
        own = {**table, **named}
        replaced = {setting.removesuffix(_FILE) for setting in (*own, *_NO_DEFAULT)}
        variables = {
            variable: value
            for variable, value in self._environ.items()
            if variable.removeprefix(PREFIX).lower().removesuffix(_FILE) not in replaced
        }
        given = {PREFIX + setting.upper(): value for setting, value in {**own, "project_id": name}.items()}
        try:
            # The process's own token, so that it is read again in one place.
            found = JobServerSettings.from_environment(variables | given, (), metrics_token=self.process.metrics_token)
        except ConfigError as error:
            raise ConfigError([f"project {name}: {_as_in_table(fault, replaced)}" for fault in error.faults]) from None
        for secret in found.rotating_secrets:
            if secret.file and (setting := _as_in_table(secret.file.setting, replaced)) != secret.file.setting:
                secret.file = replace(secret.file, setting=f"{setting} of project {name}")
        return found

    def _hide_secrets(self) -> None:
        for settings in self.current.values():
            self.secrets.add(settings.fixed_secrets, settings.rotating_secrets)


def _as_in_table(fault: str, own: set[str]) -> str:
    """Returns a sentence that begins with a variable as one about an entry of the table, if that is where it is set."""
    variable, space, rest = fault.partition(" ")
    setting = variable.removeprefix(PREFIX).lower()
    return f"{setting if setting.removesuffix(_FILE) in own else variable}{space}{rest}"


def _tables(data: Mapping[str, Any]) -> Mapping[str, _Table]:
    """Returns the tables of a file, which name a setting each. Raises ConfigError."""
    tables = data.get("projects")
    if not isinstance(tables, dict) or len(data) > 1 or not 0 < len(tables) <= _MOST:
        raise ConfigError([f"{VARIABLE}: it must have 1 to {_MOST} tables such as [projects.docs], and nothing else"])
    faults = [f"{VARIABLE}: {fault}" for name, table in tables.items() for fault in _faults(name, table)]
    if len({name.casefold() for name in tables}) < len(tables):
        faults.append(f"{VARIABLE}: two projects differ only in upper and lower case")
    if faults:
        raise ConfigError(faults)
    return {name: {key: _text(value) for key, value in table.items()} for name, table in tables.items()}


def _faults(name: str, table: object) -> Iterator[str]:
    if not _ID.fullmatch(name):
        yield "a project's name must be one word of at most 60 letters, digits, dots, hyphens and underscores"
    elif not isinstance(table, dict):
        yield f"project {name}: it must be a table, [projects.{name}]"
    elif not all(map(_NAME.fullmatch, table)):
        yield f"project {name}: it has an entry whose name is no setting's"
    else:
        named = dict.fromkeys((setting.removesuffix(_FILE) for setting in table), "set")
        yield from (f"project {name}: {fault}" for fault in (*_NAMES.misspelt(named), *_NAMES.warnings(named)))
        for setting, value in table.items():
            if not isinstance(value, str | int | float):
                yield f"project {name}: {setting} must be text, a number, true or false, written as in a variable"


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _repeated_keys(projects: Mapping[str, JobServerSettings]) -> Iterator[str]:
    first: dict[str, str] = {}
    for name, settings in projects.items():
        for key in settings.api_key.values:
            if first.setdefault(key, name) != name:
                yield f"projects {first[key]} and {name} have the same api_key"
