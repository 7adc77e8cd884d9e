"""Who may review, merge and close, and read private pages: reviewers, by name and key over HTTP Basic (RFC 7617)."""

import base64
import hmac
from hashlib import sha256
from urllib.parse import quote

from aiohttp import web

from bot.jobserver.middleware import is_same_origin
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.server import NEW_KEY, Reviewer

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_WHO = "This is for reviewers: your browser asks for your name and your key."
_NOBODY = (
    f"This is for reviewers, and there are none yet: whoever runs this job server can name some with {PREFIX}REVIEWERS."
)
_SHORT_KEY = f"Your key is too short to decide with. Ask whoever runs this job server for {NEW_KEY}."


class Gate:
    """Tells reviewers from others. For demos, `everybody` is a name that all viewers have without a key."""

    def __init__(self, settings: JobServerSettings, *, public_url: str, everybody: str = "") -> None:
        if everybody and settings.host not in _LOOPBACK:
            raise ValueError("only on a loopback address everybody may merge")
        if everybody and settings.runs_programs:
            raise ValueError("everybody may merge only where no agent runs, which might reach the pages")
        self._public_url = public_url
        self._is_private = bool(settings.private_pages)
        self._reviewers = settings.reviewers
        self._everybody = everybody
        # Of each project another: browsers send a name and key to the whole realm for which they were given.
        self._realm = f"Pagehand reviewers of {quote(settings.project_id)}"

    def viewer(self, request: web.Request) -> str:
        """Returns the name of a request's sender; empty if it is not known."""
        reviewer = self._sender(request)
        return self._everybody or (reviewer.name if reviewer else "")

    @property
    def somebody_may_decide(self) -> bool:
        return bool(self._everybody or self._reviewers.current)

    def may_read(self, request: web.Request) -> bool:
        return not self._is_private or bool(self.viewer(request))

    def check_may_read(self, request: web.Request) -> None:
        """Raises web.HTTPError if reading needs a key, and the request has none."""
        if not self.may_read(request):
            raise self._refusal()

    def check_may_decide(self, request: web.Request) -> str:
        """Returns the name of the reviewer who pressed a button on one of our pages. Raises web.HTTPError.

        Browsers send keys along with other sites' forms, too, so their origin is checked.
        """
        if not is_same_origin(request.headers.get("Origin"), request.host, self._public_url):
            raise web.HTTPForbidden(reason="This button works only on the pull request's own page.")
        if self._everybody:
            return self._everybody
        reviewer = self._sender(request)
        if reviewer is None:
            raise self._refusal()
        if not reviewer.may_decide:
            raise web.HTTPForbidden(reason=_SHORT_KEY)
        return reviewer.name

    def _refusal(self) -> web.HTTPError:
        return refusal(self._realm, has_reviewers=self.somebody_may_decide)

    def _sender(self, request: web.Request) -> Reviewer | None:
        """Takes the same time for every key."""
        sent = _digest(_credentials(request.headers.get("Authorization", "")))
        found = [
            one for one in self._reviewers.current
            if hmac.compare_digest(_digest(f"{one.name}:{one.key.get_secret_value()}"), sent)
        ]  # fmt: skip
        return found[0] if found else None


def refusal(realm: str, *, has_reviewers: bool) -> web.HTTPError:
    """Has the browser ask for name and key, which it sends wherever the realm is the same; not where nobody has one."""
    if not has_reviewers:
        return web.HTTPForbidden(reason=_NOBODY)
    return web.HTTPUnauthorized(reason=_WHO, headers={"WWW-Authenticate": f'Basic realm="{realm}", charset="UTF-8"'})


def _credentials(header: str) -> str:
    """Returns the name and the key of a header, with a colon between them; empty if it has none."""
    scheme, _, encoded = header.partition(" ")
    try:
        return base64.b64decode(encoded, validate=True).decode() if scheme.lower() == "basic" else ""
    except ValueError:
        return ""


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
