"""All that a notice can be: the card, a reaction, a post in the thread, or a message for one person.

As in `bot.domain.notices.posts`, what is renamed or changed here needs a migration.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal

from bot.domain.notices import keys
from bot.domain.notices.keys import NoticeKey
from bot.domain.notices.posts import Delivery, Post
from bot.domain.permissions import Refusal
from bot.domain.requests import RequestKind
from bot.domain.thread_words import ThreadWord


class Reaction(StrEnum):
    """The reaction on a reply."""

    RECORDED = "eyes"
    ACCEPTED = "white_check_mark"
    PROBLEM = "warning"


class EarlierWords(StrEnum):
    """What became of a reply's words before it was edited."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"


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
    """The first of replies that went out as one message was deleted."""
    NEW_WORDS_SENT = "new_words_sent"
    NOTHING_NEW = "nothing_new"
    SEE_THREAD = "see_thread"
    MUTED = "muted"
    UNMUTED = "unmuted"
    NOT_MUTED = "not_muted"
    REPLY_NOT_SENT_MUTED = "reply_not_sent_muted"
    """The job is muted, so a reply is not sent."""
    EDITED_TOO_LATE = "edited_too_late"
    """A message came to ask for another job by an edit long after it was written."""
    NO_JOB_THERE = "no_job_there"
    """A word for Pagehand was written in another thread of the channel, where there is no job."""
    STOPPED_UNSENT = "stopped_unsent"
    """The job was not sent yet, and will not be."""
    NOTHING_TO_STOP = "nothing_to_stop"
    STOP_UNCERTAIN = "stop_uncertain"
    """It is not known whether the job was started, so that there is nothing that could be stopped."""
    STARTED_AGAIN = "started_again"
    NOT_TO_BE_RETRIED = "not_to_be_retried"
    """The job did not fail, or it was tried again already."""
    HELD_SENT = "held_sent"
    HELD_ALL_SENT = "held_all_sent"
    SENT_FOR_ITS_PROJECT = "sent_for_its_project"
    """An edit names another project for a job that was sent."""
    SENT_BEFORE_DELETED = "sent_before_deleted"
    """Words were deleted that the agent has."""
    HELD_EXPIRED = "held_expired"
    """Nobody answered for days whether a reply is for the agent."""
    HELD_DISCARDED = "held_discarded"
    PROJECT_CHOSEN = "project_chosen"
    PROJECT_SWITCHED = "project_switched"
    """The job was sent already, so it begins anew for another project."""
    PROJECT_SETTLED = "project_settled"
    """It is too late to choose another project."""
    START_ENDED = "start_ended"
    """The project is chosen for a request that has ended, and has no thread."""
    NOT_FOR_YOU = "not_for_you"
    """Somebody else was asked."""
    RESTORED = "restored"
    """It was open in a backup that was restored, so that it is not known whether it was done."""
    SLACK_AWAY = "slack_away"
    """Slack could not be asked who somebody is, or what the channel is, for so long that it was given up."""


@dataclass(frozen=True)
class CardChanged:
    """There is something newer to show on the card."""

    delivery: ClassVar = Delivery.CARD
    kind: Literal["card_changed"] = field(default="card_changed", kw_only=True)


@dataclass(frozen=True)
class ReactionChanged:
    """A reply is to carry this reaction, or none any more."""

    delivery: ClassVar = Delivery.REACTION
    message_ts: str
    reaction: Reaction | None
    kind: Literal["reaction_changed"] = field(default="reaction_changed", kw_only=True)


@dataclass(frozen=True)
class _ToPerson:
    delivery: ClassVar = Delivery.EPHEMERAL
    person_id: str


@dataclass(frozen=True)
class PostNotDelivered(_ToPerson):
    """A post could not be delivered, so it goes to one person. `may_be_posted`: it may be in the thread after all."""

    post: Post
    may_be_posted: bool
    kind: Literal["post_not_delivered"] = field(default="post_not_delivered", kw_only=True)


@dataclass(frozen=True)
class CardNotPosted(_ToPerson):
    """There was no room for the card, so no job was started. `reason` is Slack's code."""

    reason: str
    missing_scopes: tuple[str, ...] = ()
    may_be_posted: bool = False
    kind: Literal["card_not_posted"] = field(default="card_not_posted", kw_only=True)


@dataclass(frozen=True)
class ReplyEdited(_ToPerson):
    """A reply says something else since it was sent; its person can send that, too. `text` is how it begins."""

    request_id: str
    text: str
    earlier: EarlierWords
    kind: Literal["reply_edited"] = field(default="reply_edited", kw_only=True)


@dataclass(frozen=True)
class PromptRequested(_ToPerson):
    """Somebody wants to see the whole of a request that the card shortens."""

    prompt: str
    kind: Literal["prompt_requested"] = field(default="prompt_requested", kw_only=True)


class AnswerMissing(StrEnum):
    """Why the whole of an agent's answer cannot be shown."""

    NEWER = "newer"
    """The job API keeps the newest answer only, and that is another one."""
    GONE = "gone"
    """The job API does not know the job any more, or tells no answer."""
    NOT_NOW = "not_now"
    """The job API does not answer."""


@dataclass(frozen=True)
class AnswerRequested(_ToPerson):
    """Somebody wants to see the whole of an agent's answer that the thread shortens. `answer_id` is its digest.

    It is not kept: `text`, or why it is `missing`, is found when the notice is delivered, and never recorded.
    """

    answer_id: str
    text: str = ""
    missing: AnswerMissing | None = None
    kind: Literal["answer_requested"] = field(default="answer_requested", kw_only=True)


@dataclass(frozen=True)
class RequestRefused(_ToPerson):
    """Somebody may not ask for something. `text` is how that begins; `limit` is how much one may ask for in an hour,
    and `free_at` when they may ask for something again, in seconds since the epoch.
    """

    refusal: Refusal
    wanted: RequestKind
    text: str = ""
    limit: int = 0
    free_at: int | None = None
    kind: Literal["request_refused"] = field(default="request_refused", kw_only=True)


@dataclass(frozen=True)
class ReplyHeld(_ToPerson):
    """Somebody who does not take part has written in a job's thread: is it for the agent? `text` is how it begins."""

    request_id: str
    text: str
    kind: Literal["reply_held"] = field(default="reply_held", kw_only=True)


@dataclass(frozen=True)
class ProjectAsked(_ToPerson):
    """A job waits for the choice of its project. `said` is the name that was given and is none; `text` is how the
    request begins.
    """

    thread_id: str
    projects: tuple[str, ...]
    said: str
    text: str
    kind: Literal["project_asked"] = field(default="project_asked", kw_only=True)


@dataclass(frozen=True)
class StopAsked(_ToPerson):
    """Somebody who has no part in a job put the reaction for a stop on its card: do they mean it?"""

    kind: Literal["stop_asked"] = field(default="stop_asked", kw_only=True)


@dataclass(frozen=True)
class StatusRequested(_ToPerson):
    """Somebody wants to know how the job is: told as it is when the notice is delivered."""

    kind: Literal["status_requested"] = field(default="status_requested", kw_only=True)


@dataclass(frozen=True)
class HelpRequested(_ToPerson):
    """Somebody wants to know what can be done in a job's thread, or probably `meant` this word for Pagehand."""

    meant: ThreadWord | None = None
    kind: Literal["help_requested"] = field(default="help_requested", kw_only=True)


@dataclass(frozen=True)
class ActionAnswered(_ToPerson):
    """A click, or a reply that is not sent, has its answer."""

    answer: ActionAnswer
    kind: Literal["action_answered"] = field(default="action_answered", kw_only=True)


@dataclass(frozen=True)
class JobIdRequested(_ToPerson):
    """Somebody wants the job's id, to look it up elsewhere."""

    kind: Literal["job_id_requested"] = field(default="job_id_requested", kw_only=True)


Question = RequestRefused | ReplyHeld | ProjectAsked | StopAsked | HelpRequested
"""What somebody is told or asked before a request of theirs goes to the agent, or in place of that."""
PersonalMessage = (
    PostNotDelivered
    | CardNotPosted
    | ReplyEdited
    | PromptRequested
    | AnswerRequested
    | ActionAnswered
    | JobIdRequested
    | StatusRequested
    | Question
)
"""A message for one person only."""
NoticeMessage = CardChanged | ReactionChanged | Post | PersonalMessage


@dataclass(frozen=True)
class NewNotice:
    """A notice to record, due in so many seconds."""

    key: NoticeKey
    message: NoticeMessage
    due_in: float = 0.0


CARD_CHANGED = NewNotice(keys.CARD, CardChanged())


@dataclass(frozen=True)
class Notice:
    """Something Pagehand owes a thread, as a row.

    `key` is unique in the database and goes with the message as metadata. The notice of a card or a reaction is one row
    that opens again whenever there is something newer to show; `revision` counts that. `uncertain`: an earlier try may
    have arrived, so look for the key before posting. `without_blocks`: Slack refused it with blocks, try text only.
    `reactions_shown`: those that the reply may carry by now (None: any); `reaction_added`: the new one is there.
    """

    id: int
    key: str
    thread_id: str
    message: NoticeMessage
    created_at: float
    attempts: int = 0
    uncertain: bool = False
    without_blocks: bool = False
    revision: int = 0
    reactions_shown: tuple[Reaction, ...] | None = None
    reaction_added: bool = False

    @property
    def delivery(self) -> Delivery:
        """How it reaches people."""
        return self.message.delivery
