"""Stores a workspace in a directory for later runs: one row per user, channel, message and file."""

import base64
import json
import sqlite3
from dataclasses import asdict
from pathlib import Path

from bot.workspace.model.entities import Change, Channel, File, Json, Message, User
from bot.workspace.model.state import State

FILE_NAME = "workspace.sqlite"
_USER = "person"
"""The kind of a user's row."""
_SCHEMA = "CREATE TABLE IF NOT EXISTS kept (kind TEXT, id TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, id))"
_UPSERT = "INSERT INTO kept VALUES (?, ?, ?) ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body"


class Persistence:
    """Stores each change, except what only one person sees.

    Args:
        directory: Where the database is; created if it does not exist.
        state: The workspace to store.
    """

    def __init__(self, directory: Path, state: State) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._state = state
        self._database = sqlite3.connect(directory / FILE_NAME, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(_SCHEMA)

    def load(self) -> bool:
        """Loads what was stored into the state. Returns False if there was nothing."""
        users = [User(**body) for body in self._all(_USER)]
        channels = [Channel(**body) for body in self._all("channel")]
        messages = [_message(body) for body in self._all("message")]
        self._state.restore(users, channels, messages)
        for body in self._all("file"):
            content = base64.b64decode(body.pop("content"))
            self._state.files.restore(File(**body), content)
        return bool(users)

    def save_users_and_channels(self) -> None:
        for user in self._state.users.values():
            self._put(_USER, user.id, user)
        for channel in self._state.channels.values():
            self._put("channel", channel.id, channel)

    def record(self, change: Change) -> None:
        """Stores what a change has affected."""
        if change.kind.startswith("ephemeral"):
            return
        for file in change.message.files or () if change.message else ():
            self._put_file(self._state.files.get(file.id) or file)
        if change.message is None:
            self._put("channel", change.channel, self._state.channels[change.channel])
        elif change.kind == "message_deleted":
            row = ("message", f"{change.channel} {change.message.ts}")
            self._database.execute("DELETE FROM kept WHERE kind = ? AND id = ?", row)
        else:
            self._put("message", f"{change.channel} {change.message.ts}", change.message)

    def _put_file(self, file: File) -> None:
        content = self._state.files.content(file.id) or b""
        body = asdict(file) | {"content": base64.b64encode(content).decode()}
        self._database.execute(_UPSERT, ("file", file.id, json.dumps(body)))

    def close(self) -> None:
        self._database.close()

    def _all(self, kind: str) -> list[Json]:
        rows = self._database.execute("SELECT body FROM kept WHERE kind = ? ORDER BY rowid", (kind,))
        return [json.loads(body) for (body,) in rows]

    def _put(self, kind: str, key: str, thing: User | Channel | Message) -> None:
        row = (kind, key, json.dumps(asdict(thing)))
        self._database.execute(_UPSERT, row)


def _message(body: Json) -> Message:
    files = body.pop("files")
    return Message(**body, files=None if files is None else [File(**file) for file in files])
