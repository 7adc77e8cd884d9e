"""Who is notified of a job's end, and where it is shown. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from bot.domain.notices.messages import NoticeMessage
from bot.domain.notices.posts import (
    JobArchived,
    JobDisappeared,
    JobEnd,
    JobFailed,
    JobFinished,
    JobStopped,
    PullRequestFound,
    RecordDamaged,
)
from bot.domain.notices.questions import ToPerson
from bot.domain.projects import PostMode
from bot.domain.threads.thread import Surface, Thread

PostModes = Callable[[str], PostMode]
"""What of a job is posted in a channel, by its id."""


@dataclass(frozen=True)
class NotificationSettings:
    """How a channel is notified of ends. `mention`: an end mentions people; `broadcast`: one with a pull request is
    shown in the channel, too.
    """

    mention: bool = True
    broadcast: bool = False


@dataclass(frozen=True)
class InConversation:
    """In the channel; with `thread_ts`, in that thread."""

    thread_ts: str = ""


@dataclass(frozen=True)
class Directly:
    """In the direct message with Pagehand."""


PrivatePlace = InConversation | Directly
"""Where one person is told something that nobody else sees."""


def private_place(thread: Thread, message: NoticeMessage) -> PrivatePlace:
    """Where one person is told something about a job: in its thread, where Slack shows that, else in the channel."""
    asked_on = message.asked_on if isinstance(message, ToPerson) else Surface.CONVERSATION
    if asked_on is Surface.HOME:
        return Directly()
    if asked_on is Surface.TOP_LEVEL:
        return InConversation()
    return InConversation((thread.ts or thread.root_ts) if _is_active(thread) else "")


def _is_active(thread: Thread) -> bool:
    """Whether something stands below the first message: in any other thread, Slack shows private words to nobody."""
    root = thread.ts or thread.root_ts
    return bool(root) and (thread.has_replies or (thread.card_ts is not None and thread.card_ts != root))


def everything(_channel_id: str) -> PostMode:
    """Every channel is told all."""
    return PostMode.ALL


def person_told(thread: Thread, message: JobEnd | PullRequestFound, notification: NotificationSettings) -> str:
    """Whom a message mentions, for others follow the thread by having written in it: whoever waits for this end.

    Empty: nobody. A link that comes before or after an end mentions nobody, since the end does.
    """
    if not notification.mention or thread.options.quiet or thread.state.people.muted_by:
        return ""
    match message:
        case JobFinished() | JobFailed():
            return message.person_id or thread.requester_id
        case JobStopped():
            return thread.requester_id
        case PullRequestFound():
            return thread.requester_id if message.alone else ""
        case _:
            assert_never(message)


def overtakes_held(message: NoticeMessage) -> bool:
    """Whether what is held back in its thread is not said any more: the work whose beginning it tells of is over."""
    return isinstance(message, JobEnd | JobArchived)


def shown_in_channel(thread: Thread, message: NoticeMessage, notification: NotificationSettings) -> bool:
    """Whether a message in the thread is shown in its channel, too: an end, the first with its pull request."""
    if not notification.broadcast or thread.options.quiet or thread.state.people.muted_by or _is_direct(thread):
        return False
    return isinstance(message, JobFinished) and bool(message.link) and (message.new or not message.again)


def told_though_muted(message: NoticeMessage) -> bool:
    """Whether a muted thread is told this of its job: failures, pull requests, and the stop that somebody asked for."""
    match message:
        case JobFinished():
            return bool(message.link)
        case JobStopped() | JobFailed() | PullRequestFound() | JobDisappeared() | RecordDamaged():
            return True
        case _:
            return False


def _is_direct(thread: Thread) -> bool:
    """Whether the thread is in a direct message, where there is no channel besides."""
    return thread.channel_id.startswith("D")
