"""Reads each followed pull request when it is due, and records what is new with its notices."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from bot.codehosts.pull_request import Reason, Unreadable
from bot.domain.delivery import PostModes, everything
from bot.domain.pull_requests import EACH_MINUTE, Telling, decide
from bot.ports.code_hosts import CodeHosts
from bot.runtime.logging import LogContext
from bot.scheduler.worker import DueWork, Worker, WorkerSettings, about
from bot.store.pull_requests import ClaimedPullRequest
from bot.store.store import Store, Transaction

logger = logging.getLogger(__name__)

AT_LEAST = 15.0
"""Seconds between two readings of a pull request, whatever makes the next one due."""
CLAIM_EVERY = 5.0
"""Seconds. An empty claim is a transaction, and no pull request is read more often than once a minute."""


class PullRequestPoller(Worker[ClaimedPullRequest]):
    """Polls pull requests. `posts` returns which posts a channel wants."""

    name = "pull request poller"

    def __init__(
        self, store: Store, code_hosts: CodeHosts, settings: WorkerSettings, *, posts: PostModes = everything
    ) -> None:
        super().__init__(store, settings, concurrency=8)
        self._code_hosts = code_hosts
        self._posts = posts

    async def claim(self, limit: int) -> Sequence[ClaimedPullRequest]:
        """Claims pull requests that are due."""
        lease = self._lease
        return await self._store.transact(lambda tx: tx.pull_requests.claim(self._owner, lease=lease, limit=limit))

    def claim_interval(self, claimed: int) -> float:  # noqa: ARG002 - others look at it
        """See Worker."""
        return CLAIM_EVERY

    def subject(self, item: ClaimedPullRequest) -> LogContext:
        """See Worker."""
        return about(item.thread)

    async def process(self, item: ClaimedPullRequest, claimed_at: float) -> None:
        """Reads one pull request, unless others may have claimed it meanwhile."""
        if not self.lease_covers_call(claimed_at):
            return
        seen = await self._code_hosts.read(item.thread, item.link, item.followed.found)
        known = {item.followed.unreadable, Reason.UNKNOWN_HOST}
        if isinstance(seen, Unreadable) and seen.reason not in known:
            logger.info("the pull request cannot be read: %s", seen.reason)

        async def save(tx: Transaction) -> None:
            now = await tx.pull_requests.held(item, self._owner)
            if now is None:
                return
            posts, muted = self._posts(now.thread.channel_id), bool(now.thread.state.people.muted_by)
            keep = self._settings.variables.keep_days * 24 * 3_600.0
            pace = min(EACH_MINUTE, 2 * self._settings.variables.poll_slowest)
            telling = Telling(posts, muted=muted, elsewhere=now.is_told_elsewhere, keep=keep, pace=pace)
            decision = decide(now.followed, seen, tx.now, telling, jitter=self._random())
            thread_id = now.thread.id
            withdrawn = await tx.pull_requests.withdraw(thread_id, decision.outdated)
            followed = replace(decision.state, told=decision.state.told - withdrawn)
            await tx.pull_requests.save(
                thread_id, followed, next_read_in=decision.next_read_in, rests_for=max(AT_LEAST, seen.wait)
            )
            for notice in decision.notices:
                await tx.notices.add(thread_id, notice)

        await self.record(save, leaves=frozenset({DueWork.DELIVER}))
