"""Checks the settings; returns what is usable for the other checks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.app.settings.config import Config, load, setting_names
from bot.domain.findings import Finding
from bot.errors import ConfigError

SETTINGS = "settings"
_NAME = re.compile(r"([A-Z][A-Z0-9_]+?)(?:_FILE)?\b")
_STAND_INS = {
    "SLACK_BOT_TOKEN": "xoxb-not-usable",
    "SLACK_APP_TOKEN": "xapp-not-usable",
    "JOB_API_URL": "http://127.0.0.1:1",
    "JOB_API_KEY": "not-usable",
    "JOB_API_PROJECT": "not-usable",
}
_JOB_API = frozenset({"JOB_API_URL", "JOB_API_KEY", "JOB_API_PROJECT", "PAGEHAND_PROJECTS"})
_LISTED = "bot/docs/settings.md lists the settings."
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
    without_effect = [_without_effect(words) for words in setting_names(environ).warnings(environ)]
    try:
        config = load(environ, further)
    except ConfigError as error:
        why = "Pagehand does not start."
        faults = [
            Finding.error(f"{SETTINGS}.{_name(each)}", f"{each.rstrip('.')}.", why=why, fix=f"{_FIX} {_LISTED}")
            for each in error.faults
        ]
        unusable = frozenset(map(_name, error.faults))
        return ReadSettings(_usable_settings(environ, unusable), [*faults, *without_effect], unusable)
    why = "What is written, and the secrets, can be read by others on the way."
    warnings = [
        Finding.warning(f"{SETTINGS}.{_name(words)}", words, why=why, fix="Give an address that begins with https://.")
        for words in config.warnings
    ]
    without_effect += map(_without_effect, config.without_effect)
    return ReadSettings(config, [Finding.ok(SETTINGS, "All settings can be read."), *warnings, *without_effect])


def _without_effect(words: str) -> Finding:
    return Finding.warning(f"{SETTINGS}.{_name(words)}", words, why="What it is meant for is left out.", fix=_LISTED)


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
