"""Keeps a workspace in a directory, so that it is found again. One row for each person, channel and message."""

import json
import sqlite3
from dataclasses import asdict
from pathlib import Path

from bot.workspace.models import Change, Channel, Json, Message, Person
from bot.workspace.state import State

FILE_NAME = "workspace.sqlite"
_SCHEMA = "CREATE TABLE IF NOT EXISTS kept (kind TEXT, id TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, id))"
_UPSERT = "INSERT INTO kept VALUES (?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body"


class Persistence:
    """Writes each change down as it happens. What only one person sees is not kept.

    Args:
        directory: Where the file is, or will be; made if it is not there.
        state: The workspace to keep.
    """

    def __init__(self, directory: Path, state: State) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._state = state
        self._database = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(_SCHEMA)

    def load(self) -> bool:
        """Take up what was kept. False when there was nothing."""
        people = [Person(**body) for body in self._all("person")]
        channels = [Channel(**body) for body in self._all("channel")]
        messages = [Message(**body) for body in self._all("message")]
        self._state.restore(people, channels, messages)
        return bool(people)

    def save_people(self) -> None:
        for person in self._state.people.values():
            self._put("person", person.id, person)

    def record(self, change: Change) -> None:
        """Write down what a change has touched."""
        if change.kind.startswith("ephemeral"):
            return
        if change.message is None:
            self._put("channel", change.channel, self._state.channels[change.channel])
        elif change.kind == "message_deleted":
            row = ("message", f"{change.channel} {change.message.ts}")
            self._database.execute("DELETE FROM kept WHERE kind = ? AND id = ?", row)
        else:
            self._put("message", f"{change.channel} {change.message.ts}", change.message)

    def close(self) -> None:
        self._database.close()

    def _all(self, kind: str) -> list[Json]:
        rows = self._database.execute("SELECT body FROM kept WHERE kind = ? ORDER BY rowid", (kind,))
        return [json.loads(body) for (body,) in rows]

    def _put(self, kind: str, key: str, thing: Person | Channel | Message) -> None:
        row = (kind, key, json.dumps(asdict(thing)))
        self._database.execute(_UPSERT, row)
