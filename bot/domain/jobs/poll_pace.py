"""How often a job is polled: all of it is here. Pure.

- A job at work, or one that a follow-up went out to: every quarter of the time since its last change.
- A job that finished without a link, which may still come: every half of the time since then, and half as often at
  first, till the grace is over. The longer it has none, the less likely one is; and there may be a thousand such jobs.
- A job that has ended, and whose server goes on trying to open its pull request: slower still after that, for a month.
- A job that has ended otherwise: no more.

Always within `fastest` and `slowest`, and 20% sooner or later by chance, so that what began together drifts apart.
"""

from dataclasses import dataclass, replace

from bot.domain.jobs.details import PullRequestState
from bot.domain.jobs.job import COMPLETED, FAILED, Problem
from bot.domain.projects import PostMode
from bot.domain.threads.thread import ThreadState

HOLD_BACK = 5.0
"""Seconds that a line about what a job begins waits for the job's end."""
PENDING_SLOWEST = 600.0
"""Seconds between polls, at most, of a job that has ended and whose pull request is still to be opened."""
PENDING_FOR = 30 * 24 * 3600.0
"""Seconds after which nobody hopes for it any more."""


@dataclass(frozen=True)
class Polling:
    """How often to poll, in seconds: `fastest` after a change, slowing down to `slowest`.

    `grace`: how much longer to poll after the end, for a link that comes late. `patience`: how long an outage may last
    before the thread is told. `card_every`: how often at most a card is edited because the agent got further.

    `posts` is what is told in the channel, where it is known. There a line about what a job begins is held back for
    `hold_back`, and left out if its end comes meanwhile; without these lines, a job that shows nothing new for
    `silence` is told of.
    """

    fastest: float = 2.0
    slowest: float = 30.0
    grace: float = 180.0
    patience: float = 300.0
    card_every: float = 4.0
    posts: PostMode = PostMode.ALL
    hold_back: float = HOLD_BACK
    silence: float = 600.0

    def for_posts(self, posts: PostMode) -> "Polling":
        """Returns the same for a channel that wants to be told this."""
        return self if posts is self.posts else replace(self, posts=posts)


@dataclass(frozen=True, slots=True)
class PollPace:
    """What decides how often a job is polled while nothing changes. Times are seconds on the store's clock.

    Attributes:
        changed_at: Its last change.
        until: When polling ends, or slows down where a pull request is pending; None: not before something changes.
        waits_for_link: It has finished, and only a link may still come.
        is_pending: It has ended, and its server still tries to open a pull request.
    """

    changed_at: float
    until: float | None
    waits_for_link: bool
    is_pending: bool

    def next_poll_in(self, now: float, polling: Polling, *, jitter: float) -> float | None:
        """Seconds till the next poll; None: poll no more."""
        late = self.until is not None and now >= self.until
        if late and not (self.is_pending and now - self.changed_at < PENDING_FOR):
            return None
        slowest = max(polling.slowest, PENDING_SLOWEST) if late else polling.slowest
        soonest, share = (2 * polling.fastest, 2) if self.waits_for_link else (polling.fastest, 4)
        interval = min(max((now - self.changed_at) / share, soonest), slowest)
        return max(interval * (0.8 + 0.4 * jitter), polling.fastest)


def pace_of(state: ThreadState) -> PollPace | None:
    """Returns how a job is polled while nothing changes; None: no more."""
    job = state.job
    if state.failure.problem is Problem.GONE:
        return None
    # The end of an outage that was announced is announced, too.
    ended = job is None or (job.ended and not (state.failure.outage_announced or state.work.unseen))
    waits_for_link = (
        job is not None and job.ended and not job.pr_link and state.work.changed_at <= state.work.work_ended_at
    )
    return PollPace(state.work.changed_at, state.work.poll_until if ended else None, waits_for_link, _is_pending(state))


def _is_pending(state: ThreadState) -> bool:
    hopes = state.job is not None and state.job.status in {COMPLETED, FAILED}
    return hopes and state.work.progress.pull_request is PullRequestState.PENDING


def next_poll_in(state: ThreadState, now: float, polling: Polling, *, jitter: float) -> float | None:
    """Seconds till the next poll; None: poll no more. `jitter` is a random number from 0 to 1."""
    if state.told.unexplained:
        return polling.fastest
    pace = pace_of(state)
    return None if pace is None else pace.next_poll_in(now, polling, jitter=jitter)
