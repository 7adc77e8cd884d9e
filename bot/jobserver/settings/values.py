"""The types that several settings have: durations, lists of words and of names, identities."""

import json
import re
import shlex
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

PREFIX = "PAGEHAND_JOBSERVER_"
_IDENTITY = re.compile(r"^[^<>\n\0]*[^<>\n\0\s][^<>\n\0]*<[^<>\s\0]+>\Z")


def split_words(text: str) -> list[str]:
    """Returns a JSON list's words, or words as a shell would split them; split once, here, and never seen by a shell.

    Raises:
        ValueError: for other JSON, or a quotation without an end.
    """
    try:
        words = json.loads(text) if text.lstrip().startswith("[") else shlex.split(text)
    except ValueError:
        words = [None]
    if not all(isinstance(word, str) for word in words):
        raise ValueError("must be a JSON list of words, or words in shell quoting")
    return list(words)


def _words(value: object) -> object:
    return split_words(value) if isinstance(value, str) else value


def _absolute(value: tuple[Path, ...]) -> tuple[Path, ...]:
    folders = tuple(folder.expanduser() for folder in value)
    if not all(folder.is_absolute() for folder in folders):
        raise ValueError("must name folders from the root on, such as /srv/agents")
    return folders


def _names(value: object) -> object:
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _identity(value: str) -> str:
    if not _IDENTITY.match(value):
        raise ValueError("must look like Name <address@example.com>")
    return value


def _seconds(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}(?:\.\d+)?", value):
        return float(value)
    return value


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("must be more than nothing")
    return value


Duration = Annotated[timedelta, BeforeValidator(_seconds), AfterValidator(_positive)]
Identity = Annotated[str, AfterValidator(_identity)]
Folders = Annotated[tuple[Path, ...], BeforeValidator(_words), AfterValidator(_absolute)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
