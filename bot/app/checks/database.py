"""Checks the database: its connection, schema, and free space."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bot.app.checks.slack import arrival_findings, signature_finding
from bot.domain.findings import Finding
from bot.errors import ConfigError, StoreError
from bot.queue.engine import sqlite_path
from bot.queue.migration import WORDS, SchemaState
from bot.store.condition import database_condition

DATABASE, ROOM = "database", "database.room"
_WHY = "Nothing that people ask for can be recorded, so nothing is acknowledged."
_LITTLE_ROOM, _NO_ROOM = 1 << 30, 100 << 20
"""Bytes."""


async def check_database(url: str, *, command: str, by_socket: bool, now: Callable[[], float]) -> Sequence[Finding]:
    """Checks a database, and what it shows about arrivals from Slack. It creates and changes nothing."""
    file = _file(url)
    if file is not None and not await asyncio.to_thread(file.exists):
        return [*_no_file_yet(file), *arrival_findings({}, now(), command=command)]
    try:
        condition = await database_condition(url)
    except (ConfigError, StoreError) as error:
        fix = "Check DATABASE_URL, and that the database runs and lets this machine in."
        found = f"The database cannot be used: {str(error).rstrip('.')}."
        return [Finding.error(DATABASE, found, why=_WHY, fix=fix, passing=True)]
    findings = [_schema(condition.schema, is_file=file is not None)]
    findings += [_room(file)] if file is not None else []
    if condition.schema.usable:
        time = now() if condition.clock is None else condition.clock
        findings.append(signature_finding(condition.last, time, by_socket=by_socket))
        findings += arrival_findings(condition.last, time, command=command)
    return findings


def _file(url: str) -> Path | None:
    path = sqlite_path(url)
    return None if path is None else Path(path).absolute()


def _no_file_yet(file: Path) -> Iterator[Finding]:
    if os.access(file.parent, os.W_OK):
        yield Finding.ok(DATABASE, f"There is no database yet: `pagehand run` makes {file}.")
        yield _room(file)
    else:
        fix = f"Make the directory {file.parent} writable for the user that runs Pagehand, or set DATABASE_URL."
        yield Finding.error(DATABASE, f"The database {file} cannot be made.", why=_WHY, fix=fix)


def _schema(state: SchemaState, *, is_file: bool) -> Finding:
    match state:
        case SchemaState.CURRENT:
            return Finding.ok(DATABASE, "The database can be reached, and has the tables of this version.")
        case SchemaState.COMPATIBLE:
            return Finding.ok(DATABASE, WORDS[state])
        case SchemaState.EMPTY:
            return Finding.ok(DATABASE, "The database is empty: `pagehand run` makes its tables.")
        case SchemaState.OLDER if is_file:
            found = "The database is of an older version: `pagehand run` brings it up to date."
            why = "With many jobs that takes minutes, in which nothing is acknowledged."
            fix = "Run `pagehand backup FILE` before, and `pagehand migrate` when it suits."
            return Finding.warning(DATABASE, found, why=why, fix=fix)
        case _:
            what, _, fix = WORDS[state].partition(". ")
            return Finding.error(DATABASE, f"{what}.", why="Pagehand does not start.", fix=fix)


def _room(file: Path) -> Finding:
    try:
        return room_finding(file.parent, shutil.disk_usage(file.parent).free)
    except OSError as error:
        return Finding.not_checked(ROOM, f"The room at {file.parent} is not known: {error.strerror}.")


def room_finding(directory: Path, free: int) -> Finding:
    """Reports whether the free space where a database is, in bytes, lasts for a while."""
    words = f"There are {free / (1 << 20):,.0f} MB free at {directory}."
    if free >= _LITTLE_ROOM:
        return Finding.ok(ROOM, words)
    kind = Finding.error if free < _NO_ROOM else Finding.warning
    fix = "Free some room on that disk, or move the database and set DATABASE_URL."
    return kind(ROOM, words, why="When the disk is full, nothing can be recorded any more.", fix=fix)
