"""Who may merge and close: reviewers with a key each, their sessions, and how often a key may be tried."""

import hmac
import ipaddress
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from bot.jobserver.settings.pages import Reviewer

_MOST_SESSIONS = 1000
_MOST_ADDRESSES = 10_000
TRIES = 10
TRIES_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True)
class Session:
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
        self._sessions: dict[bytes, Session] = {}

    def open(self, name: str) -> str:
        """Returns the new session's cookie. The oldest session ends where there are a thousand."""
        cookie = secrets.token_urlsafe(32)
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[_digest(cookie)] = Session(name, secrets.token_urlsafe(32), self._now() + self._lasting)
        return cookie

    def find(self, cookie: str) -> Session | None:
        session = self._sessions.get(_digest(cookie))
        if session is not None and session.expires_at is not None and session.expires_at <= self._now():
            self.close(cookie)
            return None
        return session

    def close(self, cookie: str) -> None:
        self._sessions.pop(_digest(cookie), None)


class LoginThrottle:
    """Counts wrong keys: after ten within ten minutes an address has to wait, though not those at other addresses."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._failures: dict[str, deque[datetime]] = {}

    def wait(self, address: str) -> timedelta:
        """Returns how long this address has to wait; nothing where it may try."""
        failures = self._failures.get(_network(address), deque())
        if len(failures) < TRIES:
            return timedelta(0)
        return max(timedelta(0), failures[0] + TRIES_WITHIN - self._now())

    def record_failure(self, address: str) -> None:
        network = _network(address)
        failures = self._failures.pop(network, deque(maxlen=TRIES))
        while len(self._failures) >= _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        failures.append(self._now())
        self._failures[network] = failures


def _network(address: str) -> str:
    """Returns an address; of IPv6 its network, as whoever has one address there has all of them."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else address  # noqa: PLR2004


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()
