"""Reads pull requests at Pagehand's own job server, which tells those of its jobs, wherever they are."""

import hashlib
from collections.abc import Awaitable, Callable

from bot.codehosts.pull_request import Found, NotModified, PullRequest, Reason, Unreadable
from bot.errors import JobApiBusy, JobApiError, JobApiNotAllowed, JobApiUncertain, JobApiUnreachable, JobGone
from bot.jobapi.models import Hide
from bot.jobapi.wire import json_in


class JobServer:
    """Implements `CodeHost` for one job, whose pull request `read_body` reads. It raises JobApiError's classes; `hide`
    masks secrets in texts.
    """

    def __init__(self, read_body: Callable[[], Awaitable[bytes]], hide: Hide) -> None:
        self._read_body = read_body
        self._hide = hide

    async def read(self, link: str, known: Found | None = None) -> Found | NotModified | Unreadable:
        """See `CodeHost`."""
        try:
            body = await self._read_body()
        except JobApiError as error:
            return _unreadable(error)
        etags = {"": hashlib.sha256(body).hexdigest()[:32]}
        if known is not None and known.etags == etags:
            return NotModified()
        try:
            pull = PullRequest.model_validate(json_in(body), context=self._hide)
        except ValueError:
            return Unreadable(Reason.NONSENSE)
        return Found(pull, etags) if pull.link == link else Unreadable(Reason.MOVED)


def _unreadable(error: JobApiError) -> Unreadable:
    match error:
        case JobGone():
            return Unreadable(Reason.NOT_FOUND)
        case JobApiBusy(retry_after=wait):
            return Unreadable(Reason.RATE_LIMITED, wait or 0.0)
        case JobApiNotAllowed():
            return Unreadable(Reason.NOT_ALLOWED)
        case JobApiUnreachable() | JobApiUncertain():
            return Unreadable(Reason.OUT_OF_REACH)
        case _:
            return Unreadable(Reason.NONSENSE)
