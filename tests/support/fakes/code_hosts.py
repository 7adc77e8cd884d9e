"""Code hosts in memory."""

import hashlib

from bot.codehosts.pull_request import Found, NotModified, PullRequest, Reason, Unreadable
from bot.domain.threads.thread import Thread


class FakeCodeHosts:
    """Every code host. `pulls` are the pull requests by their links; of others it knows nothing. While `refuses` is
    set, nothing can be read. `reads` are the links that were asked for.
    """

    def __init__(self) -> None:
        self.pulls: dict[str, PullRequest] = {}
        self.refuses: Unreadable | None = None
        self.reads: list[str] = []

    def show(self, link: str, **told: object) -> None:
        """Changes what is told of a pull request."""
        known = self.pulls.get(link) or PullRequest(number=1, link=link, head="a1", state="open")
        self.pulls[link] = PullRequest.model_validate(known.model_dump() | told)

    async def read(self, thread: Thread, link: str, known: Found | None) -> Found | NotModified | Unreadable:
        self.reads.append(link)
        if self.refuses is not None:
            return self.refuses
        if link not in self.pulls:
            return Unreadable(Reason.UNKNOWN_HOST)
        pull = self.pulls[link]
        assert known is None or known.pull_request.link == link, "ETags are of one link, and so of one host"
        etags = {"": hashlib.sha256(pull.model_dump_json().encode()).hexdigest()}
        return NotModified() if known and known.etags == etags else Found(pull, etags)
