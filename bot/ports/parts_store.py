"""The small port of the store for what goes along with requests: parts that are kept till all are there, and files that
are uploaded before their request is sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.context.fetched_parts import FetchedParts, FileOutcome, SettledFile
from bot.domain.context.slack_files import SlackFile
from bot.domain.requests.request import RequestContext
from bot.domain.threads.thread import Thread


@dataclass(frozen=True)
class ClaimedFile:
    """A file to upload for a request, with the thread as it was when claimed. `attempts` counts the tries, this one
    included.
    """

    request_id: str
    position: int
    file: SlackFile
    thread: Thread
    attempts: int


class RequestParts(Protocol):
    """What goes along with requests."""

    async def fetched(self, request_id: str) -> FetchedParts:
        """The parts that are kept of a request that is being prepared."""

    async def keep_fetched(self, request_id: str, parts: FetchedParts) -> None:
        """Keeps the parts that are there, till the request is in another state."""

    async def to_upload(self, request_id: str, files: Sequence[SlackFile]) -> None:
        """Has a request that waits, and is held, wait till these files are uploaded; no others any more."""

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedFile]:
        """Takes files that are due of requests that wait, and counts the attempt. Those of requests that do not wait
        any more are dropped; of one that was handed back they are due again with it.
        """

    async def is_claimed_by(self, claimed: ClaimedFile, owner: str) -> bool:
        """Whether `owner` still has the claim. The file is locked."""

    async def postpone(self, claimed: ClaimedFile, *, due_in: float) -> None:
        """Makes a claimed file due again in that many seconds."""

    async def fails(self, claimed: ClaimedFile) -> float:
        """Records that Slack does not give a claimed file; returns since when (on the store's clock)."""

    async def settle(self, claimed: ClaimedFile, outcome: FileOutcome) -> None:
        """Records what became of a claimed file."""

    async def settled(self, request_id: str) -> Sequence[SettledFile] | None:
        """All files of a request, in their order; None while one is still to be uploaded."""

    async def tried(self, request_id: str) -> None:
        """Records that sending a request began, if it had not: with its first file."""

    async def complete(self, request_id: str, context: RequestContext) -> None:
        """Has a request sent, with this: its files are settled."""
