"""Reviewers, who may merge and close pull requests: their keys, logins and sessions."""

import hmac
import logging
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

from aiohttp import web

from bot.jobserver.middleware import is_same_origin
from bot.jobserver.pages.login_pace import LoginPace, WaitingRoom, client_network
from bot.jobserver.pages.rendering import error_page, form_field, render_page
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.pages import Reviewers
from bot.runtime.logging import ThrottledLogger

logger = logging.getLogger(__name__)
_MOST_SESSIONS = 1000
COOKIE = "pagehand_reviewer"
_NEXT = re.compile(r"/pulls(?:/[1-9]\d{0,8}(?:/rendered)?)?")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_WRONG_KEY = "This is nobody's key."
_NOBODY = f"Nobody can log in here yet: this server needs {PREFIX}REVIEWERS."


@dataclass(frozen=True)
class KeyOwner:
    """A reviewer, with the digest of the key that they logged in with."""

    name: str
    digest: bytes = field(repr=False)


@dataclass(frozen=True)
class ReviewerSession:
    """A logged-in reviewer. `token` protects their forms against forgery."""

    name: str
    token: str
    expires_at: datetime | None = None
    owner: KeyOwner | None = None

    def has_token(self, token: str) -> bool:
        return hmac.compare_digest(self.token.encode(), token.encode(errors="replace"))


class KeyOwners:
    """The people who have a key at the moment: `reviewers` can change while the server runs."""

    def __init__(self, reviewers: Reviewers) -> None:
        self._reviewers = reviewers

    def __bool__(self) -> bool:
        return bool(self._reviewers.current)

    def find(self, key: str) -> KeyOwner | None:
        """Returns the key's owner; takes the same time for every key."""
        tried = _digest(key.strip())
        found = [owner for owner in self._all() if hmac.compare_digest(owner.digest, tried)]
        return found[0] if found else None

    def has(self, owner: KeyOwner) -> bool:
        """Returns whether this person still has this key."""
        return owner in self._all()

    def _all(self) -> list[KeyOwner]:
        return [KeyOwner(one.name, _digest(one.key.get_secret_value())) for one in self._reviewers.current]


class Sessions:
    """Sessions in memory, so that a restart logs everybody out. Only digests of the random cookies are kept.

    A session ends with the key that it was opened with.
    """

    def __init__(self, owners: KeyOwners, *, lasting: timedelta, now: Callable[[], datetime]) -> None:
        self._owners = owners
        self._lasting = lasting
        self._now = now
        self._sessions: dict[bytes, ReviewerSession] = {}

    def open(self, owner: KeyOwner) -> str:
        """Returns the new session's cookie. Ends the oldest session if there are a thousand."""
        cookie = secrets.token_urlsafe(32)
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        expires_at = self._now() + self._lasting
        self._sessions[_digest(cookie)] = ReviewerSession(owner.name, secrets.token_urlsafe(32), expires_at, owner)
        return cookie

    def find(self, cookie: str) -> ReviewerSession | None:
        session = self._sessions.get(_digest(cookie))
        if session is None:
            return None
        expired = session.expires_at is not None and session.expires_at <= self._now()
        if expired or (session.owner is not None and not self._owners.has(session.owner)):
            self.close(cookie)
            return None
        return session

    def close(self, cookie: str) -> None:
        self._sessions.pop(_digest(cookie), None)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()


@dataclass(frozen=True)
class Viewer:
    """The viewer of a page, who may have a session. `can_log_out` is False if no login is needed."""

    session: ReviewerSession | None
    has_reviewers: bool
    can_log_out: bool


class Login:
    """Identifies the sender of a request. For demos, `everybody` is a name that all viewers have without a login."""

    def __init__(
        self, settings: JobServerSettings, *, public_url: str, now: Callable[[], datetime], everybody: str = ""
    ) -> None:
        if everybody and settings.host not in _LOOPBACK:
            raise ValueError("only on a loopback address everybody may merge")
        if everybody and settings.runs_programs:
            raise ValueError("everybody may merge only where no agent runs, which might reach the pages")
        self._public_url = public_url
        self._is_private = bool(settings.private_pages)
        self._lasting = settings.login_lasts
        self._owners = KeyOwners(settings.reviewers)
        self._sessions = Sessions(self._owners, lasting=settings.login_lasts, now=now)
        self._trusted = settings.trusted_proxies
        self._pace = LoginPace(now=now)
        self._waiting_room = WaitingRoom()
        self._log = ThrottledLogger(logger)
        self._everybody = ReviewerSession(everybody, secrets.token_urlsafe(32)) if everybody else None

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/login", self.form)
        app.router.add_post("/login", self.log_in)
        app.router.add_post("/logout", self.log_out)

    def viewer(self, request: web.Request) -> Viewer:
        return Viewer(self.who(request), bool(self._owners), self._everybody is None)

    def who(self, request: web.Request) -> ReviewerSession | None:
        """Returns the session of a request, if its sender is a reviewer."""
        return self._everybody or self._sessions.find(request.cookies.get(COOKIE, ""))

    def check_may_read(self, request: web.Request) -> None:
        """Redirects to the login if reading needs one. Raises HTTPSeeOther."""
        if self._is_private and self.who(request) is None:
            raise web.HTTPSeeOther(f"/login?next={_next(request.path)}")

    async def check_pressed_here(self, request: web.Request) -> ReviewerSession | None:
        """Returns the reviewer who pressed a button on one of our pages; None for any other request."""
        session = self.who(request)
        if session is None or not self._is_own_form(request):
            return None
        return session if session.has_token(await form_field(request, "token")) else None

    async def form(self, request: web.Request) -> web.Response:
        target = _next(request.query.get("next", ""))
        if self.who(request) is not None:
            raise web.HTTPSeeOther(target)
        return self._form(target, "" if self._owners else _NOBODY)

    async def log_in(self, request: web.Request) -> web.Response:
        if not self._is_own_form(request):
            return error_page(request, 403, "Logging in works only on this server's own page.")
        target, owner = _next(await form_field(request, "next")), await self._whose_key(request)
        return self._form(target, _WRONG_KEY, status=403) if owner is None else self._enter(owner, target)

    async def log_out(self, request: web.Request) -> web.Response:
        if await self.check_pressed_here(request) is None:
            return error_page(request, 403, "Logging out works only on this server's own pages.")
        self._sessions.close(request.cookies.get(COOKIE, ""))
        response = _see("/login" if self._is_private else "/pulls")
        response.del_cookie(COOKIE, path="/")
        return response

    async def _whose_key(self, request: web.Request) -> KeyOwner | None:
        """Returns the owner of the key that was sent, after the current delay for logins."""
        network = client_network(request.remote or "", request.headers.getall("X-Forwarded-For", []), self._trusted)
        seconds = self._pace.pause(network)
        owner = self._owners.find(await form_field(request, "key"))
        if owner is None:
            self._pace.record_wrong_key(network)
            self._log.warning("a wrong reviewer's key came from %s", network)
        await self._waiting_room.wait(seconds)
        return owner

    def _enter(self, owner: KeyOwner, target: str) -> web.Response:
        response = _see(target)
        response.set_cookie(
            COOKIE,
            self._sessions.open(owner),
            max_age=int(self._lasting.total_seconds()),
            path="/",
            secure=self._public_url.startswith("https:"),
            httponly=True,
            # Not Strict, which would log out people who follow a link from Slack. Buttons check Origin and token.
            samesite="Lax",
        )
        return response

    def _form(self, target: str, problem: str = "", *, status: int = 200) -> web.Response:
        return render_page("login.html", status=status, target=target, problem=problem)

    def _is_own_form(self, request: web.Request) -> bool:
        return is_same_origin(request.headers.get("Origin"), request.host, self._public_url)


def _see(path: str) -> web.Response:
    return web.Response(status=303, headers={"Location": path, "Cache-Control": "no-store"})


def _next(path: str) -> str:
    return path if _NEXT.fullmatch(path) else "/pulls"
