"""Types shared by several settings: durations, lists of words and names, identities."""

import json
import re
import shlex
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

PREFIX = "PAGEHAND_JOBSERVER_"
_NO_PATTERN = re.compile(r"^!|[,{}\\\x00-\x1f]")
_IDENTITY = re.compile(r"^[^<>\n\0]*[^<>\n\0\s][^<>\n\0]*<[^<>\s\0]+>\Z")
_PROTOCOLS = {"file": "file", "http": "http", "https": "https", "ssh": "ssh", "git+ssh": "ssh"}
_SCP_LIKE = re.compile(r"^(?:[\w.-]+@)?[\w.-]+:(?!/?/)[^:]", re.ASCII)
_BRANCH = re.compile(r"^(?!-)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+\Z")


def split_words(text: str) -> list[str]:
    """Returns the words of a JSON list, or of a text split as a shell would; no shell ever sees them.

    Raises:
        ValueError: for other JSON, or an unclosed quotation.
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
        raise ValueError("must be absolute paths of folders, such as /srv/agents")
    return folders


def _patterns(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError("must be at least one pattern, such as docs/**")
    return tuple(map(path_pattern, value))


def path_pattern(text: str) -> str:
    """Returns a path pattern in canonical form: a folder with a trailing slash means everything in it.

    Raises:
        ValueError: it is not a valid pattern; the message is for people.
    """
    whole = f"{text}**" if text.endswith("/") else text
    if any(part in {"", ".", ".."} for part in whole.split("/")):
        raise ValueError("must be path patterns from the repository's root, such as docs/** or **/*.md")
    if _NO_PATTERN.search(whole):
        raise ValueError("must be space-separated patterns of names, *, ? and **, such as docs/** README.md")
    return whole


def _allowances(value: tuple[str, ...]) -> tuple[str, ...]:
    """Checks path patterns, each alone or followed by a colon and the name of a rule, which may be gone by now."""
    parted = [entry.partition(":") for entry in value]
    return tuple(f"{path_pattern(pattern)}{colon}{rule}" for pattern, colon, rule in parted)


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


Duration = Annotated[timedelta, BeforeValidator(_seconds), Field(gt=timedelta(0))]
DurationOrNone = Annotated[timedelta, BeforeValidator(_seconds), Field(ge=timedelta(0))]
Identity = Annotated[str, AfterValidator(_identity)]
Folders = Annotated[tuple[Path, ...], BeforeValidator(_words), AfterValidator(_absolute)]
Allowances = Annotated[tuple[str, ...], BeforeValidator(_words), AfterValidator(_allowances)]
Patterns = Annotated[tuple[str, ...], BeforeValidator(_words), AfterValidator(_patterns)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


def is_branch_name(name: str) -> bool:
    """Whether git would accept it as a branch name, and never read it as an option or a revision expression."""
    return bool(_BRANCH.match(name)) and name != "@" and not name.startswith(("/", "."))


def repository_protocol(repository: str) -> str:
    """Returns the only protocol git may use for this repository, as GIT_ALLOW_PROTOCOL names it.

    Raises:
        ValueError: for option-like text and for transports that run programs, such as ext::.
    """
    if not repository or repository.startswith("-") or any(ord(c) < ord(" ") for c in repository):
        raise ValueError("must be a directory or an address")
    scheme, separator, _ = repository.partition("://")
    if separator:
        if scheme.lower() not in _PROTOCOLS:
            raise ValueError("must be a directory, or a file, http, https or ssh address")
        return _PROTOCOLS[scheme.lower()]
    if "::" in repository.split("/", 1)[0]:
        raise ValueError("must not name a remote helper such as ext::")
    return "ssh" if _SCP_LIKE.match(repository) else "file"
