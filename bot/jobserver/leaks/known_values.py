"""The server's own secrets: from its settings, its environment and its agents' logins."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from pydantic import SecretStr

from bot.jobserver.leaks.forms import SHORTEST, OwnSecrets
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.runtime.secrets.assignments import secret_word
from bot.runtime.secrets.masking import find
from bot.runtime.secrets.plausibility import is_code, reads_as_placeholder

_READ_AGAIN_S = 30.0
_MOST_FILES, _LARGEST_FILE = 200, 200_000
_FILE = "_FILE"
_IS_KEY = re.compile(r"(?:KEY|PASSWORD|SECRET|TOKEN)S?$")


class KnownValues:
    """Implements `Masking`. Rereads key files every 30 s, since keys may be rotated while the server runs.

    `environment` is the environment before secrets were removed from it.
    """

    def __init__(
        self,
        settings: JobServerSettings,
        environment: Mapping[str, str],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._environment = {**settings.agent_environment, **environment}
        self._named = {*settings.pass_environment, *settings.checks_pass_environment}
        self._rotating = settings.rotating_secrets
        self._fixed = frozenset(_of_settings(settings)) | frozenset(_of_home(settings.agent_home))
        self._secrets = OwnSecrets(())
        self._read_at = -_READ_AGAIN_S

    def __call__(self) -> OwnSecrets:
        if self._monotonic() - self._read_at >= _READ_AGAIN_S:
            found = self._fixed.union(self._of_environment(), *(each.ever_held for each in self._rotating))
            self._secrets = OwnSecrets(tuple(sorted(filter(_counts, found), key=len, reverse=True)))
            self._read_at = self._monotonic()
        return self._secrets

    def known(self, text: str) -> str:
        return self().known(text)

    def all(self, text: str) -> str:
        return self().all(text)

    def _of_environment(self) -> Iterator[str]:
        for name, value in self._environment.items():
            if name.endswith(_FILE) and _IS_KEY.search(name.removesuffix(_FILE)):
                yield from _key_of_file(Path(value))
            elif name.startswith(PREFIX):
                continue  # `_of_settings` has the secret ones
            elif (_IS_KEY.search(name) or (name in self._named and secret_word(name))) and not is_code(value):
                yield value.strip()
            else:
                yield from (value[finding.start : finding.end] for finding in find(value))


def _counts(value: str) -> bool:
    return len(value) >= SHORTEST and not reads_as_placeholder(value)


def _of_settings(settings: JobServerSettings) -> Iterator[str]:
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            yield value.get_secret_value()


def _of_home(home: Path | None) -> Iterator[str]:
    """Returns what the rules find in files of an agent's home, since its login can be one."""
    if home is None:
        return
    for file in islice((path for path in sorted(home.rglob("*")) if path.is_file()), _MOST_FILES):
        text = _text(file)
        yield from (text[finding.start : finding.end] for finding in find(text))


def _key_of_file(file: Path) -> Iterator[str]:
    """A key file contains only the key, which spans several lines only if it is a private key."""
    text = _text(file).strip()
    if text.count("\n") == 0 or "PRIVATE KEY" in text:
        yield text


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8") if file.stat().st_size <= _LARGEST_FILE else ""
    except (OSError, ValueError):
        return ""
