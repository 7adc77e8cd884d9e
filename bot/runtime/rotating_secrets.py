"""Secrets that can be replaced without a restart: two values are valid meanwhile, and files are read again."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from pydantic import PlainValidator, SecretStr

logger = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between looks at a file."""
_MOST = 2
"""The new value, and the one that it replaces."""
_LARGEST = 100_000
"""Characters; a longer file holds no secrets."""

Value = TypeVar("Value")
_Fingerprint = tuple[int, int, int, int]


@dataclass(frozen=True)
class SecretFile:
    """A file with secrets, and the name of the setting that names it."""

    path: Path
    setting: str


class FileText(str):
    """The text of a setting that was read from a file."""

    __slots__ = ("file",)
    file: SecretFile

    def __new__(cls, text: str, file: SecretFile) -> Self:
        made = super().__new__(cls, text)
        made.file = file
        return made


class Rotating(Generic[Value]):
    """Secrets in a setting. If they come from a file, it is read again when it changes.

    A file that can no longer be read, or is empty or malformed, changes nothing: the last good values stay valid, the
    log says so once, and `warning` says so as long as it lasts. With `nobody`, an empty file is valid.

    Attributes:
        file: The file, if there is one.

    Args:
        text: The setting's text; a `FileText` if it comes from a file.
        parse: Reads a text. Raises ValueError, whose message does not quote it.
        secrets_in: Returns the secrets in what `parse` returns, for masking.
        nobody: The log's words about an empty file, if that is valid; otherwise empty.
        monotonic: A clock, in seconds.

    Raises:
        ValueError: The text is malformed.
    """

    def __init__(
        self,
        text: str,
        parse: Callable[[str], Value],
        secrets_in: Callable[[Value], Iterable[str]],
        *,
        nobody: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parse = parse
        self._secrets_in = secrets_in
        self._nobody = nobody
        self._monotonic = monotonic
        self.file = text.file if isinstance(text, FileText) else None
        self._looked_at = monotonic() - LOOK_EVERY
        self._seen: _Fingerprint | None = None
        self._fault = ""
        self._held: dict[str, None] = {}
        self._current = self._take(text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(**********)"

    @property
    def current(self) -> Value:
        """What is valid now."""
        self._look()
        return self._current

    @property
    def ever_held(self) -> Collection[str]:
        """Every secret that was valid since the start. A replaced one is still a secret."""
        return self._held.keys()

    def warning(self) -> str:
        """Returns what is wrong with the file, for the health report; empty if nothing is."""
        self._look()
        return self._fault

    def _take(self, text: str) -> Value:
        value = self._parse(text)
        self._held |= dict.fromkeys(self._secrets_in(value))
        return value

    def _look(self) -> None:
        """Reads the file if it has changed, but looks at it at most once a second."""
        now = self._monotonic()
        if self.file is None or now - self._looked_at < LOOK_EVERY:
            return
        self._looked_at = now
        try:
            seen = _fingerprint(self.file.path)
            # After a fault, it is read even if it looks unchanged: its permissions may have been corrected.
            if seen == self._seen and not self._fault:
                return
            text = _text(self.file.path)
            if text or self._nobody:
                before, self._current = self._current, self._take(text)
                self._note_read(text, changed=before != self._current)
            else:
                self._keep("is empty")
            self._seen = seen  # from before the reading, so that a later change is noticed
        except OSError as error:
            self._keep(f"cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            self._keep("cannot be read: it is not text")
        except ValueError as error:
            self._keep(f"is malformed: its value {error}")

    def _keep(self, why: str) -> None:
        setting = self.file.setting if self.file else ""
        fault = f"The file that {setting} names {why}. The values that were in it before stay valid until a restart."
        if fault != self._fault:
            logger.error("%s", fault)
        self._fault = fault

    def _note_read(self, text: str, *, changed: bool) -> None:
        setting = self.file.setting if self.file else ""
        if changed and not text:
            logger.warning("The file that %s names is empty now: %s.", setting, self._nobody)
        elif changed:
            logger.info("The file that %s names has changed: its new content is in use.", setting)
        elif self._fault:
            logger.info("The file that %s names can be read again.", setting)
        self._fault = ""


class RotatingSecret(Rotating[tuple[str, ...]]):
    """A secret with one value or, while it is being replaced, two: the newest first."""

    def __init__(
        self,
        text: str,
        parse: Callable[[str], tuple[str, ...]] = lambda text: (text,),
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(text, parse, lambda values: values, monotonic=monotonic)

    @property
    def values(self) -> tuple[str, ...]:
        """Every value that is valid now, the newest first."""
        return self.current

    @property
    def newest(self) -> str:
        """The value to use where only one can be."""
        return self.current[0]


class KnownSecrets(Collection[str]):
    """Every secret that must be masked. It grows when a file with a new one is read."""

    def __init__(self, fixed: Iterable[str] = (), rotating: Iterable[Rotating[Any]] = ()) -> None:
        self._fixed: dict[str, None] = {}
        self._rotating: dict[Rotating[Any], None] = {}
        self.add(fixed, rotating)

    def add(self, fixed: Iterable[str], rotating: Iterable[Rotating[Any]]) -> None:
        """Takes in more."""
        self._fixed |= dict.fromkeys(fixed)
        self._rotating |= dict.fromkeys(rotating)

    def __iter__(self) -> Iterator[str]:
        # Copies, since a thread may add meanwhile.
        yield from tuple(self._fixed)
        for each in tuple(self._rotating):
            yield from tuple(each.ever_held)

    def __len__(self) -> int:
        return len(self._fixed) + sum(len(each.ever_held) for each in self._rotating)

    def __contains__(self, value: object) -> bool:
        return any(value == each for each in self)

    def __repr__(self) -> str:
        return f"KnownSecrets({len(self)})"


def rotating_secret(
    check: Callable[[str], object], *, split: Callable[[str], Sequence[str]] = str.split, most: int = _MOST
) -> PlainValidator:
    """Returns the validator of a setting that holds a RotatingSecret.

    Args:
        check: Raises ValueError for a malformed value, without quoting it.
        split: Separates the values.
        most: How many values there may be; with one, the text is not split.
    """

    def parse(text: str) -> tuple[str, ...]:
        values = tuple(dict.fromkeys(split(text))) if most > 1 else (text.strip(),)
        if not values or not all(values):
            raise ValueError("is empty")
        for value in values:
            check(value)
        if len(values) > most:
            raise ValueError(f"must not have more than {most} values: the new one, and the one that it replaces")
        return values

    def validate(value: object) -> RotatingSecret:
        if isinstance(value, RotatingSecret):
            return value
        return RotatingSecret(secret_text(value), parse)

    return PlainValidator(validate)


def secret_text(value: object) -> str:
    """Returns the text of a setting's value. Raises ValueError if it is none."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str):
        raise ValueError("must be text")  # noqa: TRY004 - pydantic lets a TypeError through
    return text


def _fingerprint(path: Path) -> _Fingerprint:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _text(path: Path) -> str:
    with path.open(encoding="utf-8-sig") as file:
        return file.read(_LARGEST).strip()
