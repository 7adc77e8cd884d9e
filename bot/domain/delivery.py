"""Delivering a notice: whom it mentions, where it is shown, whether a failed attempt is repeated or given up, and how
the reaction on a reply is changed, one call of Slack at a time. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from bot.domain.projects import ChannelSettings, PostMode
from bot.domain.requests.request import Surface
from bot.domain.threads.thread import Thread
from bot.notices.job import JobEnd, JobFinished, JobStopped, PullRequestFound
from bot.notices.notice import Delivery, Notice, NoticeContent, Reaction, ReactionChanged, ToPerson
from bot.notices.pull_requests import PullRequestNews
from bot.runtime.backoff import Backoff

PostModes = Callable[[str], PostMode]
"""Returns which news of a job is posted in a channel, by its id."""


@dataclass(frozen=True)
class InConversation:
    """In the channel or, with `thread_ts`, in that thread."""

    thread_ts: str = ""


@dataclass(frozen=True)
class Directly:
    """In the direct message with Pagehand."""


PrivatePlace = InConversation | Directly
"""Where an ephemeral message appears."""


def private_place(thread: Thread, message: NoticeContent) -> PrivatePlace:
    """Returns where one person is told something about a job: in its thread, if Slack shows it there, or the
    channel.
    """
    asked_on = message.asked_on if isinstance(message, ToPerson) else Surface.CONVERSATION
    if asked_on is Surface.HOME:
        return Directly()
    if asked_on is Surface.TOP_LEVEL:
        return InConversation()
    root = thread.ts or thread.root_ts
    has_replies = thread.has_replies or (thread.card_ts is not None and thread.card_ts != root)
    return InConversation(root if has_replies else "")  # in a thread without any, Slack shows them to nobody


def everything(_channel_id: str) -> PostMode:
    """Posts all news in every channel."""
    return PostMode.ALL


def person_mentioned(
    thread: Thread, message: JobEnd | PullRequestFound | PullRequestNews, settings: ChannelSettings
) -> str:
    """Returns whom a message mentions: the person waiting for this end. Others in the thread follow it anyway.

    Empty: nobody. A link before or after an end mentions nobody, because the end does.
    """
    if not settings.mention or thread.options.quiet or thread.state.people.muted_by:
        return ""
    if isinstance(message, PullRequestNews):
        return thread.requester_id
    if isinstance(message, PullRequestFound):
        return thread.requester_id if message.alone else ""
    return thread.requester_id if isinstance(message, JobStopped) else message.person_id or thread.requester_id


def shown_in_channel(thread: Thread, message: NoticeContent, settings: ChannelSettings) -> bool:
    """Returns whether a message in the thread is also shown in its channel: the first end with a pull request."""
    if (
        not settings.broadcast
        or thread.options.quiet
        or thread.state.people.muted_by
        or thread.channel_id.startswith("D")
    ):
        return False
    return isinstance(message, JobFinished) and bool(message.link) and (message.new or not message.again)


def announced_though_muted(message: NoticeContent) -> bool:
    """Returns whether a muted thread gets this news: failures, pull requests, and the outcome of a stop."""
    return bool(message.link) if isinstance(message, JobFinished) else message.told_though_muted


MAX_ATTEMPTS = 1_500
"""About a day of attempts at the slowest pace; then a notice is given up, and the reason is kept."""
MAX_FAULTS = 3
"""Attempts for a notice that causes an internal error; then it is given up, so that later ones in its thread go on."""
MOST_IN_DOUBT = 7
"""Attempts for an ephemeral message once it may have arrived, because it cannot be looked for: about a minute's."""
NOT_ALLOWED_DELAY = 10.0
"""Minimum seconds between attempts while Slack refuses our token."""
BACKOFF = Backoff(first=1.0, longest=60.0, spread=(0.75, 1.25))


class FailureKind(Enum):
    """What is known of a notice after a failed attempt to deliver it."""

    UNREACHABLE = auto()
    """It certainly did not arrive."""
    UNCERTAIN = auto()
    """It may have arrived."""
    NOT_ALLOWED = auto()
    """Slack refuses our token: everything waits for the operator."""
    REJECTED = auto()
    """Slack refuses it."""
    FAULT = auto()
    """An internal error: it is unknown whether it was sent."""


TOO_LONG = frozenset({"msg_blocks_too_long", "msg_too_long"})
"""Slack's error codes for what is wrong with this one message only."""
BLOCKS_REFUSED = TOO_LONG | {"invalid_arguments", "invalid_blocks", "invalid_blocks_format"}
"""Slack's error codes after which the same text may be accepted with plainer blocks, or without any."""


@dataclass(frozen=True)
class DeliveryFailure:
    """Why a notice was not delivered, as far as is known.

    After a rejection of only its blocks (`blocks_refused`), it is sent again, with `plainer` ones if there are any;
    otherwise, retrying does not help. `missing_scopes`: the scopes that the app lacks, if that is the reason.
    """

    kind: FailureKind
    reason: str
    blocks_refused: bool = False
    plainer: bool = False
    missing_scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetryLater:
    """The notice is due again in `due_in` seconds.

    `uncertain`: it may have arrived, so the next attempt looks for it first. `without_blocks`: the next attempt sends
    only text.
    """

    due_in: float
    reason: str
    uncertain: bool = False
    without_blocks: bool = False


@dataclass(frozen=True)
class GiveUp:
    """The notice is not retried. `in_doubt`: it may have arrived nevertheless."""

    reason: str
    in_doubt: bool = False
    missing_scopes: tuple[str, ...] = ()


def after_failure(
    notice: Notice, failure: DeliveryFailure, *, max_attempts: int = MAX_ATTEMPTS, jitter: float = 0.5
) -> RetryLater | GiveUp:
    """Decides whether a notice is retried after a failure.

    Args:
        notice: The notice, whose count of attempts includes this one.
        failure: What happened. A rate limit is none: the notice waits for its turn.
        max_attempts: The attempts after which it is given up.
        jitter: A random number from 0 to 1.
    """
    kind = failure.kind
    attempts_left = notice.attempts < (MAX_FAULTS if kind is FailureKind.FAULT else max_attempts)
    delay = BACKOFF.delay(notice.attempts, jitter=jitter)
    # One that cannot be looked for has been repeated often enough.
    doubted = notice.delivery is Delivery.EPHEMERAL and notice.uncertain and notice.attempts >= MOST_IN_DOUBT
    match kind:
        case FailureKind.UNREACHABLE if attempts_left:
            return RetryLater(delay, failure.reason)
        case FailureKind.NOT_ALLOWED if attempts_left:
            return RetryLater(max(delay, NOT_ALLOWED_DELAY), failure.reason)
        case FailureKind.UNCERTAIN | FailureKind.FAULT if attempts_left and not doubted:
            return RetryLater(delay, failure.reason, uncertain=True)
        case FailureKind.REJECTED if failure.blocks_refused and not notice.without_blocks:
            return RetryLater(0.0, failure.reason, without_blocks=not (failure.plainer and attempts_left))
        case _:
            in_doubt = notice.uncertain or kind is FailureKind.UNCERTAIN
            return GiveUp(failure.reason, in_doubt, failure.missing_scopes)


@dataclass(frozen=True)
class ReactionCall:
    """Adds a reaction to the reply, or `removes` an outdated one."""

    reaction: Reaction
    removes: bool = False


@dataclass(frozen=True)
class ReactionProgress:
    """The reactions that may be on the reply, and whether it has exactly the wanted one (`done`)."""

    shown: tuple[Reaction, ...]
    done: bool


def next_call(notice: Notice, wanted: ReactionChanged) -> ReactionCall | None:
    """Returns the next call for a notice; None if the reply has the wanted reaction.

    The new reaction is added before the old one is removed, so that a reply never looks as if nobody had seen it.
    """
    if wanted.reaction is not None and not notice.reaction_added:
        return ReactionCall(wanted.reaction)
    replaced = _replaced(notice, wanted)
    return ReactionCall(replaced[0], removes=True) if replaced else None


def after_call(notice: Notice, wanted: ReactionChanged, call: ReactionCall | None) -> ReactionProgress:
    """Returns the progress of a notice after a successful call."""
    left = _replaced(notice, wanted)
    if call is not None and not call.removes:
        return ReactionProgress((*left, call.reaction), done=not left)
    kept = () if wanted.reaction is None else (wanted.reaction,)
    return ReactionProgress((*left[1:], *kept), done=not left[1:])


def _replaced(notice: Notice, wanted: ReactionChanged) -> tuple[Reaction, ...]:
    """Returns the other reactions that may be there. Slack limits removals, so none is tried needlessly."""
    may_be_there = tuple(Reaction) if notice.reactions_shown is None else notice.reactions_shown
    return tuple(other for other in may_be_there if other is not wanted.reaction)
