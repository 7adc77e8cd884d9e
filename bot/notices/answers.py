"""Answers that only one person sees: to a button, a `!word` or an edit, and instead of what could not be posted."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.requests.request import Reply, Request
from bot.notices.notice import AnyNotice, NoticeContent, NoticeKey, ToPerson


class ActionAnswer(StrEnum):
    """The answer to a button, or to a reply that is not sent."""

    SENT_AGAIN = "sent_again"
    ALREADY_ACCEPTED = "already_accepted"
    NOT_YOURS = "not_yours"
    """As the next two and NOT_FOR_YOU: earlier versions told it, which say `RequestRefused` now."""
    OTHER_WORKSPACE = "other_workspace"
    UNKNOWN_WORKSPACE = "unknown_workspace"
    WITHDRAWN = "withdrawn"
    FIRST_WITHDRAWN = "first_withdrawn"
    """The first of several replies that were sent as one message was deleted."""
    NEW_WORDS_SENT = "new_words_sent"
    NOTHING_NEW = "nothing_new"
    SEE_THREAD = "see_thread"
    MUTED = "muted"
    UNMUTED = "unmuted"
    NOT_MUTED = "not_muted"
    REPLY_NOT_SENT_MUTED = "reply_not_sent_muted"
    """The job is muted, so a reply is not sent."""
    EDITED_TOO_LATE = "edited_too_late"
    """A message asks for another job only since an edit long after it was written."""
    NO_JOB_THERE = "no_job_there"
    """A word for Pagehand was written in another thread of the channel, where there is no job."""
    STOPPED_UNSENT = "stopped_unsent"
    """The job was not sent yet, and will not be sent."""
    NOTHING_TO_STOP = "nothing_to_stop"
    WAITING_STOPPED = "waiting_stopped"
    """The agent was not working, and what waited to be sent is withdrawn."""
    STOPPED_SINCE = "stopped_since"
    """The job was stopped after the press, so that nothing is sent."""
    STOP_UNCERTAIN = "stop_uncertain"
    """Nobody knows whether the job was started, so there is nothing that could be stopped."""
    DISCARDED = "discarded"
    """The work that the agent had done before it failed is discarded."""
    NOTHING_TO_DISCARD = "nothing_to_discard"
    DISCARD_TOO_LATE = "discard_too_late"
    """The agent is already continuing the work."""
    NOT_DISCARDED = "not_discarded"
    """The job API accepted the call, but still has the work."""
    STARTED_AGAIN = "started_again"
    NOT_TO_BE_RETRIED = "not_to_be_retried"
    """The job did not fail, or was already retried."""
    HELD_SENT = "held_sent"
    HELD_ALL_SENT = "held_all_sent"
    SENT_FOR_ITS_PROJECT = "sent_for_its_project"
    """An edit names another project for a job that was already sent."""
    SENT_BEFORE_DELETED = "sent_before_deleted"
    """A message was deleted that the agent already has."""
    NOT_ADDED = "not_added"
    NOT_ADDED_MUTED = "not_added_muted"
    HELD_EXPIRED = "held_expired"
    """Nobody answered for days whether a reply is for the agent."""
    HELD_DISCARDED = "held_discarded"
    LEFT_UNDONE = "left_undone"
    """Somebody does not want done any more what they asked for while Pagehand was away."""
    PROJECT_CHOSEN = "project_chosen"
    PROJECT_SWITCHED = "project_switched"
    """The job was already sent, so it starts again for another project."""
    PROJECT_SETTLED = "project_settled"
    """It is too late to choose another project."""
    START_ENDED = "start_ended"
    """The project is chosen for a request that has ended, and has no thread."""
    NOT_FOR_YOU = "not_for_you"
    """Somebody else was asked."""
    RESTORED = "restored"
    """It was open in a restored backup, so nobody knows whether it was done."""
    SLACK_AWAY = "slack_away"
    """It was given up, because Slack did not say for a long time who somebody is, or what the channel is."""


@dataclass(frozen=True)
class ActionAnswered(ToPerson, kind="action_answered"):
    """The answer to a click, or to a reply that is not sent. `text` is the beginning of the reply in question, if
    any.
    """

    quotes: ClassVar = ("text",)
    answer: ActionAnswer
    text: str = ""

    @staticmethod
    def key_of_edit(reply: Reply) -> NoticeKey:
        """Told once for an edit that asks for a job too late."""
        return NoticeKey(f"{reply.message_ts}/late/{reply.edited_at}")

    @staticmethod
    def key_of_expiry(person_id: str, at: float) -> NoticeKey:
        """Told at most once a day that what waited for an answer is left undone."""
        return NoticeKey(f"{person_id}/expired/{at // 86_400:.0f}")

    @staticmethod
    def key_of_muted(reply: Reply) -> NoticeKey:
        """Told once for a reply that came while the job was muted."""
        return NoticeKey(f"{reply.message_ts}/muted")

    @staticmethod
    def key_of_needless_stop(request: Request) -> NoticeKey:
        """Sent once for a stop."""
        return NoticeKey(f"{request.id}/nothing")

    @staticmethod
    def key_of_project(request: Request) -> NoticeKey:
        """Told once for an edit that names another project too late."""
        return NoticeKey(f"{request.id}/project/late/{request.edited_at}")

    @staticmethod
    def key_of_deletion(request: Request) -> NoticeKey:
        """Told once for a request whose reply was deleted."""
        return NoticeKey(f"{request.id}/taken_back")


@dataclass(frozen=True)
class PromptRequested(ToPerson, kind="prompt_requested"):
    """Somebody wants to see a whole request, which the card shortens."""

    quotes: ClassVar = ("prompt",)
    prompt: str


class AnswerMissing(StrEnum):
    """Why an agent's whole answer cannot be shown."""

    NEWER = "newer"
    """The job API keeps only the newest answer, which is another one."""
    GONE = "gone"
    """The job API no longer knows the job, or reports no answer."""
    NOT_NOW = "not_now"
    """The job API does not answer."""


@dataclass(frozen=True)
class AnswerRequested(ToPerson, kind="answer_requested"):
    """Somebody wants to see an agent's whole answer, which the thread shortens. `answer_id` is its digest.

    `text`, or why it is `missing`, is fetched when the notice is delivered, and never stored.
    """

    answer_id: str
    text: str = ""
    missing: AnswerMissing | None = None


@dataclass(frozen=True)
class StatusRequested(ToPerson, kind="status_requested"):
    """Somebody wants to know the job's state, as of the delivery of the notice."""


@dataclass(frozen=True)
class JobIdRequested(ToPerson, kind="job_id_requested"):
    """Somebody wants the job's id, to look it up elsewhere."""


@dataclass(frozen=True)
class HelpRequested(ToPerson, kind="help_requested"):
    """Somebody asks for help in a job's thread, or probably `meant` this word for Pagehand."""

    meant: ThreadWord | None = None


@dataclass(frozen=True)
class Introduction(NoticeContent, kind="introduction"):
    """Pagehand was invited to a channel, and says there what it does; or, `to_workflow`, a workflow mentioned it there,
    and it says who can ask. It has no job and no thread.
    """

    KEY: ClassVar = NoticeKey("introduction")
    to_workflow: bool = False


@dataclass(frozen=True)
class CardNotPosted(ToPerson, kind="card_not_posted"):
    """The card could not be posted, so no job was started, or the one that was is stopped (`may_have_job`). `reason`
    is Slack's error code.
    """

    KEY: ClassVar = NoticeKey("cannot_post")
    reason: str
    missing_scopes: tuple[str, ...] = ()
    may_be_posted: bool = False
    may_have_job: bool = False


@dataclass(frozen=True)
class PostNotDelivered(ToPerson, kind="post_not_delivered"):
    """A post could not be delivered, so one person gets it. `may_be_posted`: it may be in the thread nevertheless."""

    quotes: ClassVar = ("post",)
    post: AnyNotice
    may_be_posted: bool

    @staticmethod
    def key(post: NoticeKey) -> NoticeKey:
        """Of a post that was given up, by its own key."""
        return NoticeKey(f"{post}/told")
