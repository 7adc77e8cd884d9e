"""Whom a job's end mentions, and where it is shown. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.domain.projects import PostMode
from bot.domain.requests.request import Surface
from bot.domain.threads.thread import Thread
from bot.notices.job import JobEnd, JobFinished, JobStopped, PullRequestFound
from bot.notices.notice import NoticeContent, ToPerson

PostModes = Callable[[str], PostMode]
"""Returns which news of a job is posted in a channel, by its id."""


@dataclass(frozen=True)
class NotificationSettings:
    """A channel's settings about ends. `mention`: an end mentions people; `broadcast`: an end with a pull request is
    also shown in the channel.
    """

    mention: bool = True
    broadcast: bool = False


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
    return InConversation((thread.ts or thread.root_ts) if _is_active(thread) else "")


def _is_active(thread: Thread) -> bool:
    """Returns whether the thread has replies. In a thread without any, Slack shows ephemeral messages to nobody."""
    root = thread.ts or thread.root_ts
    return bool(root) and (thread.has_replies or (thread.card_ts is not None and thread.card_ts != root))


def everything(_channel_id: str) -> PostMode:
    """Posts all news in every channel."""
    return PostMode.ALL


def person_mentioned(thread: Thread, message: JobEnd | PullRequestFound, notification: NotificationSettings) -> str:
    """Returns whom a message mentions: the person waiting for this end. Others in the thread follow it anyway.

    Empty: nobody. A link before or after an end mentions nobody, because the end does.
    """
    if not notification.mention or thread.options.quiet or thread.state.people.muted_by:
        return ""
    if isinstance(message, PullRequestFound):
        return thread.requester_id if message.alone else ""
    return thread.requester_id if isinstance(message, JobStopped) else message.person_id or thread.requester_id


def shown_in_channel(thread: Thread, message: NoticeContent, notification: NotificationSettings) -> bool:
    """Returns whether a message in the thread is also shown in its channel: the first end with a pull request."""
    if not notification.broadcast or thread.options.quiet or thread.state.people.muted_by or _is_direct(thread):
        return False
    return isinstance(message, JobFinished) and bool(message.link) and (message.new or not message.again)


def announced_though_muted(message: NoticeContent) -> bool:
    """Returns whether a muted thread gets this news: failures, pull requests, and the outcome of a stop."""
    return bool(message.link) if isinstance(message, JobFinished) else message.told_though_muted


def _is_direct(thread: Thread) -> bool:
    """Returns whether the thread is in a direct message, which has no channel."""
    return thread.channel_id.startswith("D")
