"""Where the pull requests of jobs are read."""

from typing import Protocol

from bot.codehosts.pull_request import Found, NotModified, Unreadable
from bot.domain.threads.thread import Thread


class CodeHosts(Protocol):
    """All code hosts, as the settings list them."""

    async def read(self, thread: Thread, link: str, known: Found | None) -> Found | NotModified | Unreadable:
        """Reads the pull request with this link, of a thread's job. What has not changed since it was `known` is not
        sent again. Never raises, and takes a bounded time.
        """
