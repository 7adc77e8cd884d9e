"""All kinds of notices: the card, reactions, posts in the thread, and messages for one person.

As in `bot.domain.notices.posts`, renaming or changing a message needs a migration.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.notices import keys
from bot.domain.notices.content import Delivery, NoticeContent
from bot.domain.notices.keys import NoticeKey
from bot.domain.notices.posts import Post
from bot.domain.notices.questions import (
    HeldQuestion,
    HelpRequested,
    ProjectAsked,
    RequestRefused,
    StopAsked,
    ToPerson,
)


class Reaction(StrEnum):
    """The reaction on a reply."""

    RECORDED = "eyes"
    ACCEPTED = "white_check_mark"
    PROBLEM = "warning"
    WELCOME = "heart"
    """The reply only says thanks, and is not sent."""


class EarlierWords(StrEnum):
    """Whether a reply's words were sent before it was edited."""

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
class CardChanged(NoticeContent):
    """The card is out of date."""

    delivery: ClassVar = Delivery.CARD
    kind: Literal["card_changed"] = field(default="card_changed", kw_only=True)


@dataclass(frozen=True)
class ReactionChanged(NoticeContent):
    """A reply should have this reaction, or none."""

    delivery: ClassVar = Delivery.REACTION
    message_ts: str
    reaction: Reaction | None
    kind: Literal["reaction_changed"] = field(default="reaction_changed", kw_only=True)


@dataclass(frozen=True)
class PostNotDelivered(ToPerson):
    """A post could not be delivered, so one person gets it. `may_be_posted`: it may be in the thread nevertheless."""

    quotes: ClassVar = ("post",)
    post: Post
    may_be_posted: bool
    kind: Literal["post_not_delivered"] = field(default="post_not_delivered", kw_only=True)


@dataclass(frozen=True)
class CardNotPosted(ToPerson):
    """The card could not be posted, so no job was started, or the one that was is stopped (`may_have_job`). `reason`
    is Slack's error code.
    """

    reason: str
    missing_scopes: tuple[str, ...] = ()
    may_be_posted: bool = False
    may_have_job: bool = False
    kind: Literal["card_not_posted"] = field(default="card_not_posted", kw_only=True)


@dataclass(frozen=True)
class ReplyEdited(ToPerson):
    """A reply was edited after it was sent; its writer can send the new words, too. `text` is their beginning."""

    quotes: ClassVar = ("text",)
    request_id: str
    text: str
    earlier: EarlierWords
    kind: Literal["reply_edited"] = field(default="reply_edited", kw_only=True)


class WordsBefore(StrEnum):
    """What became of a message's words from before an edit."""

    NOT_SENT = "not_sent"
    SENT = "sent"
    IN_DOUBT = "in_doubt"


@dataclass(frozen=True)
class EditWithoutEffect(ToPerson):
    """A message was edited into a `word` for Pagehand or, if None, from one into words for the agent, which does
    nothing. `text` is the beginning of the new words; `before`: what became of earlier words for the agent, if any.
    """

    quotes: ClassVar = ("text",)
    word: ThreadWord | None
    text: str = ""
    before: WordsBefore | None = None
    kind: Literal["edit_without_effect"] = field(default="edit_without_effect", kw_only=True)


@dataclass(frozen=True)
class PromptRequested(ToPerson):
    """Somebody wants to see a whole request, which the card shortens."""

    quotes: ClassVar = ("prompt",)
    prompt: str
    kind: Literal["prompt_requested"] = field(default="prompt_requested", kw_only=True)


class AnswerMissing(StrEnum):
    """Why an agent's whole answer cannot be shown."""

    NEWER = "newer"
    """The job API keeps only the newest answer, which is another one."""
    GONE = "gone"
    """The job API no longer knows the job, or reports no answer."""
    NOT_NOW = "not_now"
    """The job API does not answer."""


@dataclass(frozen=True)
class AnswerRequested(ToPerson):
    """Somebody wants to see an agent's whole answer, which the thread shortens. `answer_id` is its digest.

    `text`, or why it is `missing`, is fetched when the notice is delivered, and never stored.
    """

    answer_id: str
    text: str = ""
    missing: AnswerMissing | None = None
    kind: Literal["answer_requested"] = field(default="answer_requested", kw_only=True)


@dataclass(frozen=True)
class StatusRequested(ToPerson):
    """Somebody wants to know the job's state, as of the delivery of the notice."""

    kind: Literal["status_requested"] = field(default="status_requested", kw_only=True)


@dataclass(frozen=True)
class ActionAnswered(ToPerson):
    """The answer to a click, or to a reply that is not sent. `text` is the beginning of the reply in question, if
    any.
    """

    quotes: ClassVar = ("text",)
    answer: ActionAnswer
    text: str = ""
    kind: Literal["action_answered"] = field(default="action_answered", kw_only=True)


@dataclass(frozen=True)
class JobIdRequested(ToPerson):
    """Somebody wants the job's id, to look it up elsewhere."""

    kind: Literal["job_id_requested"] = field(default="job_id_requested", kw_only=True)


PersonalMessage = (
    CardNotPosted
    | ReplyEdited
    | EditWithoutEffect
    | PromptRequested
    | AnswerRequested
    | StatusRequested
    | JobIdRequested
    | HelpRequested
    | ActionAnswered
    | RequestRefused
    | HeldQuestion
    | ProjectAsked
    | StopAsked
)
"""A message for one person only, except for a post that one person gets instead."""
NoticeMessage = CardChanged | ReactionChanged | Post | PostNotDelivered | PersonalMessage


@dataclass(frozen=True)
class NewNotice:
    """A notice to record, due in `due_in` seconds. `only_progress`: the card's state is the same."""

    key: NoticeKey
    message: NoticeMessage
    due_in: float = 0.0
    only_progress: bool = False


CARD_CHANGED = NewNotice(keys.CARD, CardChanged())
CARD_PROGRESSED = NewNotice(keys.CARD, CardChanged(), only_progress=True)


@dataclass(frozen=True)
class Notice:
    """Something Pagehand owes a thread, as a row.

    `key` is unique in the database, and the message carries it as metadata. The notice of a card or reaction is a
    single row, which is reopened whenever there is something newer to show; `revision` counts that. `attempts` includes
    the current one, and for an ephemeral message in doubt counts those since the doubt. `uncertain`: an
    earlier attempt may have arrived, so look for the key before posting. `without_blocks`: Slack refused the blocks, so
    send text only. `reactions_shown`: the reactions that the reply may have (None: any). `reaction_added`: it has the
    new one.
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
        """How it is delivered."""
        return self.message.delivery
