"""Decides what to tell about the pull request of a job, and when it is read again. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from bot.codehosts.pull_request import CheckOutcome, Found, NotModified, PullRequest, Reason, Unreadable, Verdict
from bot.domain.jobs.job import digest
from bot.domain.projects import PostMode
from bot.jobapi.models import PullRequestState
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey
from bot.notices.pull_requests import (
    ChangesRequested,
    ChecksFailed,
    FollowUpAfterEnd,
    PullRequestClosed,
    PullRequestMerged,
)

SETTLED_AFTER = 600.0
"""Seconds after which checks that are still running no longer delay news of those that failed."""
YOUNG_FOR, WARM_FOR = 3_600.0, 24 * 3_600.0
"""Seconds since its last change for which a pull request is read each minute, and then every ten minutes."""
EACH_MINUTE, AT_REST, STALE = 60.0, 600.0, 3_600.0
FOLLOWED_AFTER_END = 7 * 24 * 3_600.0
_PASSING = frozenset({Reason.OUT_OF_REACH, Reason.RATE_LIMITED})
"""Reasons that go by themselves: the card only gets older."""


@dataclass(frozen=True)
class FollowedPullRequest:
    """A job's pull request as it was last read. Times are seconds on the store's clock.

    Attributes:
        found: What was read, with the ETags; None: it could not be read yet.
        read_at: When it was last read, changed or not.
        changed_at: When a reading last showed something new; before the first one, when it was first tried.
        head_since: When its newest commit was first seen.
        unreadable: Why it cannot be read, if that does not pass by itself.
        told: The keys of what was announced.
        adopted: Its thread existed before pull requests were followed, so the first reading announces nothing.
        ended: It is no longer followed.
    """

    found: Found | None = None
    read_at: float = 0.0
    changed_at: float = 0.0
    head_since: float = 0.0
    unreadable: Reason | None = None
    told: frozenset[NoticeKey] = frozenset()
    adopted: bool = False
    ended: bool = False


@dataclass(frozen=True)
class Telling:
    """What may be announced: `posts` is the channel's setting; the job may be `muted`, or a newer one in the thread may
    tell of the same link (`elsewhere`). `keep` is for how many seconds an unchanged pull request is followed; one
    that moves is read every `pace` seconds.
    """

    posts: PostMode = PostMode.ALL
    muted: bool = False
    elsewhere: bool = False
    keep: float = 90 * 24 * 3_600.0
    pace: float = EACH_MINUTE


@dataclass(frozen=True)
class Decision:
    """The result of reading a pull request. `outdated` are the keys of news that no longer hold; `next_read_in` is None
    if following ends.
    """

    state: FollowedPullRequest
    notices: Sequence[NewNotice] = ()
    outdated: frozenset[NoticeKey] = field(default_factory=frozenset)
    next_read_in: float | None = None


def decide(
    known: FollowedPullRequest, seen: Found | NotModified | Unreadable, now: float, telling: Telling, *, jitter: float
) -> Decision:
    """Returns what follows from reading a pull request. `jitter` is a random number from 0 to 1."""
    state = _observed(replace(known, changed_at=known.changed_at or now), seen, now)
    pull = state.found.pull_request if state.found else None
    news = dict(_news(pull, settled=_is_settled(pull, now - state.head_since))) if pull else {}
    new = {key: notice for key, notice in news.items() if key not in known.told}
    if pull and known.found is None and known.adopted:
        new = {}
    if not telling.elsewhere:
        state = replace(state, told=known.told | frozenset(news))
    wait = _next_read_in(state, now, telling)
    state = replace(state, ended=wait is None)
    notices = [] if telling.muted or telling.elsewhere else [NewNotice(key, notice) for key, notice in new.items()]
    if telling.posts is PostMode.ENDS:
        ends = (PullRequestMerged, PullRequestClosed)
        notices = [notice for notice in notices if isinstance(notice.message, ends)]
    if _shown(state) != _shown(known):
        notices.append(CARD_CHANGED)
    outdated = known.told - frozenset(news) if isinstance(seen, Found) else frozenset()
    spread = None if wait is None else max(wait * (0.8 + 0.4 * jitter), seen.wait)
    return Decision(state, notices, outdated, spread)


def _observed(known: FollowedPullRequest, seen: Found | NotModified | Unreadable, now: float) -> FollowedPullRequest:
    match seen:
        case Found(pull_request=pull):
            # What people write on lines is not told, so it is not kept.
            kept = replace(seen, pull_request=pull.model_copy(update={"comments": ()}), wait=0.0)
            before = known.found.pull_request if known.found else None
            return replace(
                known,
                found=kept,
                read_at=now,
                changed_at=known.changed_at if kept.pull_request == before else now,
                head_since=known.head_since if before and before.head == pull.head else now,
                unreadable=None,
            )
        case NotModified():
            return replace(known, read_at=now, unreadable=None)
        case Unreadable(reason=reason):
            return known if reason in _PASSING else replace(known, unreadable=reason)
        case _:
            assert_never(seen)


def _is_settled(pull: PullRequest | None, head_age: float) -> bool:
    running = pull is not None and any(check.outcome is CheckOutcome.RUNNING for check in pull.checks)
    return not running or head_age >= SETTLED_AFTER


def _news(
    pull: PullRequest, *, settled: bool
) -> Iterator[tuple[NoticeKey, PullRequestMerged | PullRequestClosed | ChecksFailed | ChangesRequested]]:
    """Yields all that is true now and worth a post, by its key: whatever was told before is told once."""
    of_link = f"pull_request/{digest(pull.link)}"
    match pull.state:
        case PullRequestState.MERGED:
            yield NoticeKey(f"{of_link}/merged"), PullRequestMerged(pull.link, pull.ended_by or "")
        case PullRequestState.CLOSED:
            key = NoticeKey(f"{of_link}/closed/{digest(pull.head)}")
            yield key, PullRequestClosed(pull.link, pull.ended_by or "")
        case PullRequestState.OPEN:
            failed = tuple(failed_checks(pull))
            if failed and settled:
                yield NoticeKey(f"{of_link}/failed/{digest(pull.head)}"), ChecksFailed(pull.link, failed)
            for review in pull.reviews:
                if review.verdict is Verdict.CHANGES_REQUESTED:
                    mark = digest(f"{review.author}/{review.head or pull.head}")
                    asked = ChangesRequested(review.link or pull.link, review.author, review.comments)
                    yield NoticeKey(f"{of_link}/changes/{mark}"), asked


def failed_checks(pull: PullRequest) -> Iterator[str]:
    """Yields the names of the checks that the change fails, and not its base."""
    for check in pull.checks:
        if check.outcome is CheckOutcome.FAILED and not check.fails_on_base:
            yield check.name


def is_over(pull: PullRequest) -> bool:
    """Returns whether a pull request is merged or closed."""
    return pull.state in {PullRequestState.MERGED, PullRequestState.CLOSED}


def after_end(followed: FollowedPullRequest, *, opens_another: bool) -> NewNotice | None:
    """Returns what a follow-up will do after its pull request has ended, once for each; None before that.
    `opens_another`: the job API then makes another one.
    """
    pull = followed.found.pull_request if followed.found else None
    if pull is None or not is_over(pull):
        return None
    message = FollowUpAfterEnd(merged=pull.state is PullRequestState.MERGED, opens_another=opens_another)
    return NewNotice(FollowUpAfterEnd.key(digest(pull.link)), message)


def _next_read_in(state: FollowedPullRequest, now: float, telling: Telling) -> float | None:
    pull, keep, unchanged = state.found.pull_request if state.found else None, telling.keep, now - state.changed_at
    if state.unreadable is Reason.UNKNOWN_HOST:  # until the job has news: there can be a million of these
        return None
    if unchanged >= (min(FOLLOWED_AFTER_END, keep) if pull and is_over(pull) else keep):
        return None
    if pull and is_over(pull):
        return STALE
    if state.unreadable is not None:
        return AT_REST if unchanged < WARM_FOR else STALE
    moves = pull is not None and (pull.queued or any(check.outcome is CheckOutcome.RUNNING for check in pull.checks))
    if unchanged < YOUNG_FOR or (moves and unchanged < WARM_FOR):
        return telling.pace
    return AT_REST if unchanged < WARM_FOR else STALE


def _shown(state: FollowedPullRequest) -> tuple[object, ...]:
    """Returns what the card shows of it; the time is not worth an edit."""
    pull = state.found.pull_request if state.found else None
    unreadable = None if state.unreadable is Reason.UNKNOWN_HOST else state.unreadable
    told = pull and pull.model_copy(update={"mergeable": None, "updated_at": None})
    return told, unreadable, state.ended and pull is not None
