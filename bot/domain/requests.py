"""What people ask for: to start a job, or to steer one. Times are seconds since the epoch on the store's clock."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Person:
    """Whoever did something in Slack.

    `team_id` is the workspace that they count as one of: ours for all of our organization; empty where Slack does not
    say.
    """

    id: str
    team_id: str


@dataclass(frozen=True)
class Attachments:
    """What a reply holds besides words: names of files (empty where one has none), and somebody's forwarded message."""

    files: tuple[str, ...] = ()
    forwarded: bool = False

    def __bool__(self) -> bool:
        return bool(self.files) or self.forwarded


NO_ATTACHMENTS = Attachments()


@dataclass(frozen=True)
class Reply:
    """A reply in a thread, as words with marked mentions (bot.domain.mentions). `message_ts` is its own `ts`.

    One that was edited or deleted since has the `ts` of that in `edited_at` (equal in length, so that it sorts as
    text). `withdrawn`: deleted, or edited into words that are not for the job. A deleted one may lack all but its
    channel and `message_ts`.
    """

    person: Person
    channel_id: str
    thread_ts: str
    message_ts: str
    text: str
    attachments: Attachments = NO_ATTACHMENTS
    edited_at: str = ""
    withdrawn: bool = False


@dataclass(frozen=True)
class Requester:
    """Who asked, as a job API is told that takes it: a name for people, the Slack user's id, the thread's address
    (left out where it could not be had).
    """

    name: str
    id: str
    url: str | None = None


class RequestKind(StrEnum):
    """What a person asked for."""

    START = "start"
    FOLLOW_UP = "follow_up"


class RequestState(StrEnum):
    """Where a request stands: the first two are open, the others ends (a person can send an uncertain one again)."""

    WAITING = "waiting"
    SENDING = "sending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"
    WITHDRAWN = "withdrawn"
    """Its reply was deleted, or is not for the job any more, before it was sent."""


class RejectionReason(StrEnum):
    """Why a request was not sent, not accepted, or accepted to no purpose."""

    API = "api"
    """The job API answered that it will not have it."""
    ADDRESS = "address"
    """The job API redirects to another address."""
    PROJECT = "project"
    """The job API does not know the project."""
    GONE = "gone"
    """The job API does not know the job, for good."""
    NOT_FOUND = "not_found"
    """The job API answered once that it does not know the job."""
    ARCHIVED = "archived"
    ACCEPTED_WHILE_ARCHIVED = "accepted_while_archived"
    NOT_STARTED = "not_started"
    """The thread's job was never started."""
    TOO_OLD = "too_old"
    """It could not be sent for days."""
    UNREADABLE = "unreadable"
    """Our own record of it is damaged."""
    OTHER = "other"
    """An earlier version knew the reason."""


NO_WORDS = "no_words"
"""The problem of a request whose reply holds nothing that can be sent."""


@dataclass(frozen=True)
class Request:
    """What a person asked for; a row from the moment it is acknowledged. In `text` mentions are marked; sent, named.

    `source_key` is made of Slack's own ids, so that a redelivery is refused. `written_at` is the reply's `ts` (equal in
    length, so that it sorts as text), which is also the message that carries the reactions; empty for a slash command.
    `attempts` counts calls; `first_tried_at` is when the first of them began. `uncertain`: one of them may have
    arrived, so that `text` is fixed; `latest_text` is what the reply says by now where that differs (empty: withdrawn),
    and `edited_at` the `ts` of its last edit or deletion. `problem` is why it was rejected (a RejectionReason,
    NO_WORDS, or Slack's code where there was no room for its card), or why it still waits, for the log.

    `requester` is what goes with the request, once that is known: the same each time it is sent.

    Words that went out after an edit are a request of their own, with the id `<the reply's first request>.<edited_at>`.
    """

    id: str
    thread_id: str
    kind: RequestKind
    source_key: str
    person_id: str
    text: str
    written_at: str
    recorded_at: float
    state: RequestState = RequestState.WAITING
    attempts: int = 0
    first_tried_at: float | None = None
    problem: str = ""
    edited_at: str = ""
    latest_text: str | None = None
    uncertain: bool = False
    requester: Requester | None = None

    @property
    def reply_id(self) -> str:
        """The same for all requests that were made of one reply."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class UploadedFile:
    """A file that the job API keeps: `id` is its own name for it, `name` the person's."""

    id: str
    name: str
    mimetype: str
