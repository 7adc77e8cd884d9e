"""Who may merge and close: reviewers with a key each, and their sessions."""

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from bot.jobserver.settings.pages import Reviewer

_MOST_SESSIONS = 1000


@dataclass(frozen=True)
class ReviewerSession:
    """A person who may merge and close. `token` is in each of their forms, and known to nobody else."""

    name: str
    token: str
    expires_at: datetime | None = None

    def has_token(self, token: str) -> bool:
        return hmac.compare_digest(self.token.encode(), token.encode(errors="replace"))


class Reviewers:
    """Those with a key. Of the keys only digests are held."""

    def __init__(self, reviewers: Sequence[Reviewer]) -> None:
        self._names = [(_digest(reviewer.key.get_secret_value()), reviewer.name) for reviewer in reviewers]

    def __bool__(self) -> bool:
        return bool(self._names)

    def find(self, key: str) -> str | None:
        """Returns the name of whose key this is, in a time that tells nothing of the keys."""
        tried = _digest(key.strip())
        found = [name for digest, name in self._names if hmac.compare_digest(digest, tried)]
        return found[0] if found else None


class Sessions:
    """Logged-in reviewers, in memory: a restart logs everybody out. Cookies are random; only their digests are held."""

    def __init__(self, *, lasting: timedelta, now: Callable[[], datetime]) -> None:
        self._lasting = lasting
        self._now = now
        self._sessions: dict[bytes, ReviewerSession] = {}

    def open(self, name: str) -> str:
        """Returns the new session's cookie. The oldest session ends where there are a thousand."""
        cookie = secrets.token_urlsafe(32)
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[_digest(cookie)] = ReviewerSession(name, secrets.token_urlsafe(32), self._now() + self._lasting)
        return cookie

    def find(self, cookie: str) -> ReviewerSession | None:
        session = self._sessions.get(_digest(cookie))
        if session is not None and session.expires_at is not None and session.expires_at <= self._now():
            self.close(cookie)
            return None
        return session

    def close(self, cookie: str) -> None:
        self._sessions.pop(_digest(cookie), None)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()
