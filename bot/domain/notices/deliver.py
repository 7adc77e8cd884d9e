"""Decides how a failed delivery goes on (tried again, or given up), and how the reaction on a reply is changed,
one call of Slack at a time. Pure.
"""

from dataclasses import dataclass
from typing import assert_never

from bot.domain.notices.content import Delivery
from bot.domain.notices.messages import Notice, Reaction, ReactionChanged
from bot.runtime.backoff import Backoff

MAX_ATTEMPTS = 1_500
"""About a day of attempts at the slowest pace; then a notice is given up, with its reason kept."""
MAX_FAULTS = 3
"""Attempts of a notice that trips a fault of ours; then it is given up, so that what follows in its thread is said."""
DOUBT_SECONDS = 60.0
"""How long words for one person are repeated when it is not known whether they arrived: they cannot be looked for."""
MIN_RATE_LIMIT_DELAY = 1.0
NOT_ALLOWED_DELAY = 10.0
"""Seconds at least between attempts while our token is refused: until somebody has fixed that."""
BACKOFF = Backoff(first=1.0, longest=60.0, spread=(0.75, 1.25))


@dataclass(frozen=True)
class RateLimited:
    """Slack asks to wait, `retry_after` seconds where it says so; it certainly did not take the notice. `method`: which
    of Slack's methods was called, where that is known.
    """

    reason: str
    retry_after: float | None = None
    method: str = ""


@dataclass(frozen=True)
class Unreachable:
    """The notice certainly did not arrive. `retry_after` is in seconds, where Slack said so."""

    reason: str
    retry_after: float | None = None


@dataclass(frozen=True)
class DeliveryUncertain:
    """The notice may have arrived."""

    reason: str


@dataclass(frozen=True)
class NotAllowed:
    """Slack refuses our token: everything waits for the operator."""

    reason: str


@dataclass(frozen=True)
class DeliveryRejected:
    """Slack will not take the notice, however often it is tried, or not with its blocks (`blocks_refused`).

    `missing_scopes`: what the app would have to be granted, where Slack says that.
    """

    reason: str
    blocks_refused: bool = False
    missing_scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeliveryFault:
    """A fault of ours: it is not known how far the notice came."""

    reason: str


DeliveryFailure = RateLimited | Unreachable | DeliveryUncertain | NotAllowed | DeliveryRejected | DeliveryFault


@dataclass(frozen=True)
class RetryLater:
    """The notice is due again in `due_in` seconds.

    `uncertain`: it may have arrived, so the next attempt looks for it first. `without_blocks`: the next attempt has
    words only.
    """

    due_in: float
    reason: str
    uncertain: bool = False
    without_blocks: bool = False


@dataclass(frozen=True)
class GiveUp:
    """The notice is not tried again. `in_doubt`: it may have arrived all the same."""

    reason: str
    in_doubt: bool = False
    missing_scopes: tuple[str, ...] = ()


def after_failure(
    notice: Notice, failure: DeliveryFailure, now: float, *, max_attempts: int = MAX_ATTEMPTS, jitter: float = 0.5
) -> RetryLater | GiveUp:
    """Decides what a failure means for a notice, which counts this attempt.

    Args:
        notice: As it was claimed.
        failure: What happened.
        now: The time on the store's clock.
        max_attempts: After so many it is given up, unless Slack only asks to wait.
        jitter: A random number from 0 to 1.
    """
    most = MAX_FAULTS if isinstance(failure, DeliveryFault) else max_attempts
    attempts_left = notice.attempts < most
    match failure:
        case RateLimited():
            return RetryLater(rate_limit_delay(notice, failure, jitter=jitter), failure.reason)
        case Unreachable() | NotAllowed() if attempts_left:
            return RetryLater(_delay(notice, failure, jitter), failure.reason)
        case DeliveryUncertain() | DeliveryFault() if attempts_left and not _in_doubt_too_long(notice, now):
            return RetryLater(BACKOFF.delay(notice.attempts, jitter=jitter), failure.reason, uncertain=True)
        case DeliveryRejected(blocks_refused=True) if not notice.without_blocks:
            return RetryLater(0.0, failure.reason, without_blocks=True)
        case DeliveryRejected():
            return GiveUp(failure.reason, notice.uncertain, failure.missing_scopes)
        case Unreachable() | NotAllowed() | DeliveryUncertain() | DeliveryFault():
            return GiveUp(failure.reason, notice.uncertain or isinstance(failure, DeliveryUncertain))
        case _:
            assert_never(failure)


def rate_limit_delay(notice: Notice, limit: RateLimited, *, jitter: float = 0.5) -> float:
    """Returns the seconds in which Slack wants no call like the notice's."""
    asked = BACKOFF.delay(notice.attempts, jitter=jitter) if limit.retry_after is None else limit.retry_after
    return max(asked, MIN_RATE_LIMIT_DELAY)


def _delay(notice: Notice, failure: Unreachable | NotAllowed, jitter: float) -> float:
    shortest = NOT_ALLOWED_DELAY if isinstance(failure, NotAllowed) else failure.retry_after or 0.0
    return max(BACKOFF.delay(notice.attempts, jitter=jitter), shortest)


def _in_doubt_too_long(notice: Notice, now: float) -> bool:
    """Whether words for one person, which cannot be looked for, were repeated for long enough."""
    return notice.delivery is Delivery.EPHEMERAL and notice.uncertain and now > notice.created_at + DOUBT_SECONDS


@dataclass(frozen=True)
class AddReaction:
    """Puts a reaction on the reply."""

    reaction: Reaction


@dataclass(frozen=True)
class RemoveReaction:
    """Takes one off the reply that was replaced."""

    reaction: Reaction


ReactionCall = AddReaction | RemoveReaction


@dataclass(frozen=True)
class ReactionProgress:
    """How far a notice came: the reactions that may be on the reply, and whether it carries the right one alone."""

    shown: tuple[Reaction, ...]
    done: bool


def next_call(notice: Notice, wanted: ReactionChanged) -> ReactionCall | None:
    """Returns the next call for a notice; None where the reply carries what it should.

    The new reaction comes before the old one goes, so that a reply never looks as though nobody had seen it.
    """
    if wanted.reaction is not None and not notice.reaction_added:
        return AddReaction(wanted.reaction)
    replaced = _replaced(notice, wanted)
    return RemoveReaction(replaced[0]) if replaced else None


def after_call(notice: Notice, wanted: ReactionChanged, call: ReactionCall | None) -> ReactionProgress:
    """Returns how far a notice came by a call that Slack took."""
    left = _replaced(notice, wanted)
    match call:
        case AddReaction():
            return ReactionProgress((*left, call.reaction), done=not left)
        case _:
            kept = () if wanted.reaction is None else (wanted.reaction,)
            return ReactionProgress((*left[1:], *kept), done=not left[1:])


def _replaced(notice: Notice, wanted: ReactionChanged) -> tuple[Reaction, ...]:
    """The others that may be there. Slack limits how often one can be taken away, so none is tried in vain."""
    may_be_there = tuple(Reaction) if notice.reactions_shown is None else notice.reactions_shown
    return tuple(other for other in may_be_there if other is not wanted.reaction)
