"""Decides how often a job is polled. Pure.

- A running job, or one with a new follow-up: at intervals of a quarter of the time since its last change.
- A finished job without a link, which may still come: at intervals of half that time, at least twice `fastest`, until
  the grace period is over. The longer the link is missing, the less likely it is to come, and there may be a thousand
  such jobs.
- A finished job whose server is still trying to open its pull request: after that, even more slowly, for a month.
- One whose plan waits for a person: as slowly, until that is over.
- A job that is gone: as slowly, for a day, because it may come back.
- Any other finished job: never.

Intervals are within `fastest` and `slowest`, with a random variation of 20%, so that jobs which started together drift
apart.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from bot.domain.jobs.job import COMPLETED, FAILED, Problem
from bot.domain.projects import PostMode
from bot.domain.threads.thread import ThreadState, owes_proposal, owes_question, owes_status, waits_for_start
from bot.jobapi.models import PullRequestState

HOLD_BACK = 5.0
"""Seconds for which the line about a job's start is held back, in case the job ends meanwhile."""
PENDING_SLOWEST = 600.0
"""Maximum seconds between polls of a finished job whose pull request is still to be opened."""
PENDING_FOR = 30 * 24 * 3600.0
"""Seconds after which such a job is no longer polled."""
WAITS_FOR = 1e10
"""Seconds that no plan waits."""
GONE_AFTER = 120.0
"""Seconds for which the job API must not know a job until the job is gone. A server that is restarting, or has not
copied its data yet, does not know it for a while.
"""
GONE_FOR = 24 * 3600.0
"""Seconds since its first 404 after which a job that is gone is no longer polled."""


@dataclass(frozen=True)
class Polling:
    """The settings of polling, and of announcements that depend on time. Times are in seconds.

    Attributes:
        fastest: Interval right after a change.
        slowest: Interval when nothing has changed for a long time.
        grace: How long polling continues after the end, in case the link comes late.
        patience: How long an outage may last before it is announced.
        card_every: Minimum time between edits of a card that only show progress.
        posts: Which news is posted in the channel.
        hold_back: How long the line about a job's start is held back; it is dropped if the end comes meanwhile.
        silence: Without such lines, how long a job may show nothing new before that is announced.
        keep_for: How long a proposed plan can be started.
    """

    fastest: float = 2.0
    slowest: float = 30.0
    grace: float = 180.0
    patience: float = 300.0
    card_every: float = 4.0
    posts: PostMode = PostMode.ALL
    hold_back: float = HOLD_BACK
    silence: float = 600.0
    keep_for: float = 90 * 24 * 3600.0

    def for_posts(self, posts: PostMode) -> "Polling":
        """Returns a copy with this setting of a channel."""
        return self if posts is self.posts else replace(self, posts=posts)


class PollPace(NamedTuple):
    """What determines the interval of polls while nothing changes. Times are seconds on the store's clock.

    Attributes:
        changed_at: The job's last change.
        until: When polling ends, or slows down; None: not until something changes.
        waits_for_link: Whether the job has finished, and only a link may still come.
        slow_for: For how long since `changed_at` polling goes on slowly after `until`.
    """

    changed_at: float
    until: float | None
    waits_for_link: bool
    slow_for: float

    def next_poll_in(self, now: float, polling: Polling, *, jitter: float) -> float | None:
        """Returns the seconds until the next poll; None: never."""
        late = self.until is not None and now >= self.until
        if late and now - self.changed_at >= self.slow_for:
            return None
        slowest = max(polling.slowest, PENDING_SLOWEST) if late else polling.slowest
        soonest, share = (2 * polling.fastest, 2) if self.waits_for_link else (polling.fastest, 4)
        interval = min(max((now - self.changed_at) / share, soonest), slowest)
        return max(interval * (0.8 + 0.4 * jitter), polling.fastest)


def pace_of(state: ThreadState) -> PollPace | None:
    """Returns how a job is polled while nothing changes; None: not at all."""
    job = state.job
    if state.failure.problem is Problem.GONE:
        since = state.failure.not_found_since or 0.0
        return PollPace(since, since, waits_for_link=False, slow_for=GONE_FOR)
    # Polling continues until the end of an announced outage, a status, a question or a plan can be announced, too.
    owes = owes_question(state) or owes_status(state) or owes_proposal(state)
    to_tell = state.failure.outage_announced or owes
    ended = job is None or (job.ended and not (to_tell or state.work.unseen))
    waits_for_link = (
        job is not None and job.ended and not job.pr_link and state.work.changed_at <= state.work.work_ended_at
    )
    slow_for = WAITS_FOR if waits_for_start(state) else PENDING_FOR if _is_pending(state) else 0.0
    return PollPace(state.work.changed_at, state.work.poll_until if ended else None, waits_for_link, slow_for)


def _is_pending(state: ThreadState) -> bool:
    hopes = state.job is not None and state.job.status in {COMPLETED, FAILED}
    return hopes and state.work.progress.pull_request is PullRequestState.PENDING


def next_poll_in(state: ThreadState, now: float, polling: Polling, *, jitter: float) -> float | None:
    """Returns the seconds until the next poll; None: never. `jitter` is a random number from 0 to 1."""
    if state.announcements.unexplained:
        return polling.fastest
    pace = pace_of(state)
    return None if pace is None else pace.next_poll_in(now, polling, jitter=jitter)
