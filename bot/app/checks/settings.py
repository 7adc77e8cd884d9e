"""Checks the settings and who may read their files; returns what is usable for the other checks."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.app.settings.config import Config, load, setting_names
from bot.domain.findings import Finding
from bot.errors import ConfigError
from bot.runtime.private_files import everybody_may_read
from bot.runtime.settings import variable_names

SETTINGS = "settings"
FILES = "files"
_NAME = re.compile(r"([A-Z][A-Z0-9_]+?)(?:_FILE)?\b")
_STAND_INS = {
    "SLACK_BOT_TOKEN": "xoxb-not-usable",
    "SLACK_APP_TOKEN": "xapp-not-usable",
    "JOB_API_URL": "http://127.0.0.1:1",
    "JOB_API_KEY": "not-usable",
    "JOB_API_PROJECT": "not-usable",
}
_JOB_API = frozenset({"JOB_API_URL", "JOB_API_KEY", "JOB_API_PROJECT", "PAGEHAND_PROJECTS"})
_UNKNOWN = "bot/docs/settings.md lists the settings."
_FIX = "Set it in the environment, or in a file that its name with _FILE at the end names."


@dataclass(frozen=True)
class ReadSettings:
    """The settings as far as they can be read. `config` is None if they cannot be; for `unusable` variables it has
    placeholders or defaults.
    """

    config: Config | None
    findings: Sequence[Finding]
    unusable: frozenset[str] = frozenset()


def check_settings(environ: Mapping[str, str], further: Iterable[str] = ()) -> ReadSettings:
    """Reads the settings. `further`: sentences about other faults, each beginning with a variable's name."""
    further, names = list(further), setting_names(environ)
    without_effect = [
        Finding.warning(f"{SETTINGS}.{_name(words)}", words, why="What it is meant for is left out.", fix=_UNKNOWN)
        for words in names.warnings(environ)
    ]
    try:
        config = load(environ, further)
    except ConfigError as error:
        misspelt = names.misspelt(environ)
        faults = [
            Finding.error(
                f"{SETTINGS}.{_name(each)}",
                f"{each.rstrip('.')}.",
                why="Pagehand does not start.",
                fix=_UNKNOWN if each in misspelt else _FIX,
            )
            for each in error.faults
        ]
        unusable = frozenset(map(_name, error.faults))
        return ReadSettings(_usable_settings(environ, unusable), [*faults, *without_effect], unusable)
    why = "What is written, and the secrets, can be read by others on the way."
    warnings = [
        Finding.warning(f"{SETTINGS}.{_name(words)}", words, why=why, fix="Give an address that begins with https://.")
        for words in config.warnings
    ]
    return ReadSettings(config, [Finding.ok(SETTINGS, "All settings can be read."), *warnings, *without_effect])


def _name(sentence: str) -> str:
    """Returns the variable with which a sentence begins."""
    found = _NAME.match(sentence)
    return found[1] if found else "environment"


def _usable_settings(environ: Mapping[str, str], unusable: frozenset[str]) -> Config | None:
    """Returns the settings with placeholders for wrong ones, so that everything else can be checked."""
    kept = {name: value for name, value in environ.items() if name.removesuffix("_FILE") not in unusable}
    if "PAGEHAND_PROJECTS" in unusable:
        unusable |= _JOB_API
    try:
        return load(kept | {name: value for name, value in _STAND_INS.items() if name in unusable})
    except ConfigError:
        return None


def file_findings(environ: Mapping[str, str], config: Config | None, env_files: Iterable[Path]) -> Iterator[Finding]:
    """Looks at the files that variables name, the projects' key files, and `env_files`, which variables came from."""
    secrets = config.rotating_secrets if config is not None else ()
    key_files = [secret.file.path for secret in secrets if secret.file is not None]
    files = dict.fromkeys([*env_files, *_named_by_variables(environ), *key_files])
    exposed = [file for file in files if everybody_may_read(file)]
    if files:
        private = len(files) - len(exposed)
        yield Finding.ok(FILES, f"{private} of {len(files)} files with settings and secrets are private.")
    else:
        yield Finding.ok(FILES, "No settings or secrets come from files.")
    for file in exposed:
        yield Finding.warning(
            f"{FILES}.{file}",
            f"Everybody on this machine may read {file}.",
            why="Whoever reads a token or a key in it can act as Pagehand.",
            fix=f"Run `chmod o-r {file}`. If others use this machine, replace the secrets as well: they may be known.",
        )


def _named_by_variables(environ: Mapping[str, str]) -> Iterator[Path]:
    names = variable_names(Config)
    for variable, file in environ.items():
        name = variable.removesuffix("_FILE")
        if file and name != variable and (name in names or name.startswith("PAGEHAND_")):
            yield Path(file)
