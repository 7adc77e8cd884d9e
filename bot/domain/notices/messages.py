"""All that a notice can be: the card, a reaction, a post in the thread, or a message for one person.

As in `bot.domain.notices.posts`, what is renamed or changed here needs a migration.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal

from bot.domain.notices import keys
from bot.domain.notices.keys import NoticeKey
from bot.domain.notices.posts import Delivery, Post


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
    OTHER_WORKSPACE = "other_workspace"
    UNKNOWN_WORKSPACE = "unknown_workspace"
    WITHDRAWN = "withdrawn"
    NEW_WORDS_SENT = "new_words_sent"
    NOTHING_NEW = "nothing_new"
    SEE_THREAD = "see_thread"
    NOTHING_TO_STOP = "nothing_to_stop"


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
class ActionAnswered(_ToPerson):
    """A click, or a reply that is not sent, has its answer."""

    answer: ActionAnswer
    kind: Literal["action_answered"] = field(default="action_answered", kw_only=True)


@dataclass(frozen=True)
class JobIdRequested(_ToPerson):
    """Somebody wants the job's id, to look it up elsewhere."""

    kind: Literal["job_id_requested"] = field(default="job_id_requested", kw_only=True)


@dataclass(frozen=True)
class StatusRequested(_ToPerson):
    """Somebody wants to know where the job stands: as of when they are told."""

    kind: Literal["status_requested"] = field(default="status_requested", kw_only=True)


PersonalMessage = (
    PostNotDelivered
    | CardNotPosted
    | ReplyEdited
    | PromptRequested
    | AnswerRequested
    | ActionAnswered
    | JobIdRequested
    | StatusRequested
)
"""A message for one person only."""
NoticeMessage = CardChanged | ReactionChanged | Post | PersonalMessage


@dataclass(frozen=True)
class NewNotice:
    """A notice to record."""

    key: NoticeKey
    message: NoticeMessage


CARD_CHANGED = NewNotice(keys.CARD, CardChanged())


@dataclass(frozen=True)
class Notice:
    """Something Pagehand owes a thread, as a row.

    `key` is unique in the database and goes with the message as metadata. The notice of a card or a reaction is one row
    that opens again whenever there is something newer to show; `revision` counts that. `uncertain`: an earlier try may
    have arrived, so look for the key before posting. `without_blocks`: Slack refused it with blocks, try text only.
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

    @property
    def delivery(self) -> Delivery:
        """How it reaches people."""
        return self.message.delivery
