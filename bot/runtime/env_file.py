"""Files of settings such as `.env`, with a line NAME=value for each: reading, and writing for the owner alone."""

import logging
import os
import re
import tempfile
from collections.abc import Mapping, MutableMapping
from io import StringIO
from pathlib import Path

from dotenv.parser import Binding, parse_stream

from bot.errors import ConfigError
from bot.runtime.private_files import everybody_may_read

logger = logging.getLogger(__name__)

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=~-]*")


def read_env_file(file: Path) -> dict[str, str]:
    """Returns the variables of a file. Nothing in a value is expanded, so that a password may have a `$` in it.

    Raises ConfigError if a line is neither a variable nor a comment, or the file is not text, OSError if it cannot be
    read.
    """
    return {each.key: each.value for each in _bindings(file) if each.key and each.value is not None}


def add_env_file(environ: MutableMapping[str, str], file: Path) -> None:
    """Adds the variables of a file that an environment does not have. Logs a warning if everybody may read the file.

    Raises ConfigError, OSError.
    """
    found = read_env_file(file)
    if everybody_may_read(file):
        logger.warning("Everybody on this machine may read %s, which may hold secrets: chmod 600 %s", file, file)
    for name, value in found.items():
        environ.setdefault(name, value)


def write_env_file(file: Path, values: Mapping[str, str]) -> None:
    """Sets variables in a file, which is created if necessary, and keeps its other lines. Only the owner can read the
    result, and an interruption leaves the old file. Raises ConfigError, OSError.
    """
    text = _updated(_bindings(file) if file.exists() else [], values)
    descriptor, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as temporary:
            temporary.write(text)
            temporary.flush()
            os.fsync(temporary.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def env_line(name: str, value: str) -> str:
    """Returns a line for a file or a shell. Plain values have no quotes, which `docker run --env-file` would keep."""
    if _PLAIN.fullmatch(value):
        return f"{name}={value}"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{name}='{escaped}'"


def _updated(bindings: list[Binding], values: Mapping[str, str]) -> str:
    """Returns a file's text with new values in the place of old ones, and at the end what it did not have."""
    rest = dict(values)
    parts: list[str] = []
    for binding in bindings:
        if binding.key not in values:
            parts.append(binding.original.string)
        elif binding.key in rest:
            parts.append(_blank_lines(binding))
            parts.append(f"{env_line(binding.key, rest.pop(binding.key))}\n")
    if parts and not parts[-1].endswith("\n"):
        parts.append("\n")
    return "".join(parts) + "".join(f"{env_line(name, value)}\n" for name, value in rest.items())


def _bindings(file: Path) -> list[Binding]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError([f"{file} is not text in UTF-8"]) from None
    bindings = list(parse_stream(StringIO(text)))
    for each in bindings:
        if each.error or (each.key and each.value is None):
            line = each.original.line + _blank_lines(each).count("\n")
            raise ConfigError([f"{file}: line {line} is not NAME=value"])
    return bindings


def _blank_lines(binding: Binding) -> str:
    """Returns the blank lines before a variable, which the parser counts among its own."""
    text = binding.original.string
    return text[: len(text) - len(text.lstrip("\r\n"))]
