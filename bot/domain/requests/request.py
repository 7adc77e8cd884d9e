"""What people ask for: to start a job, or to steer one. Times are seconds since the epoch on the store's clock."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.commands.options import Options
from bot.domain.commands.thread_words import ThreadWord
from bot.domain.context.slack_files import ForwardedMessage, SlackFile


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
    """What a message holds besides words: files, messages that were forwarded, previews of links."""

    files: tuple[SlackFile, ...] = ()
    forwarded: tuple[ForwardedMessage, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files) or bool(self.forwarded)


NO_ATTACHMENTS = Attachments()


@dataclass(frozen=True)
class MessageVersion:
    """One version of a message: as it was written, or of when it was edited or deleted (`edited_at`, see Reply)."""

    channel_id: str
    message_ts: str
    person_id: str
    edited_at: str


@dataclass(frozen=True)
class Reply:
    """A reply in a thread, as words with marked mentions (bot.domain.context.message_text). `message_ts` is its `ts`.

    One that was edited or deleted since has the `ts` of that in `edited_at` (equal in length, so that it sorts as
    text). `withdrawn`: deleted, or edited into words that are not for the job. A deleted one may lack all but its
    channel and `message_ts`. `word`: it is a word for Pagehand itself (with NEW, `text` is the prompt; with
    HELP, the word that was probably meant, if any). `options` are
    those that stood in front of `text`, where its listener has read them; None: they are part of it.
    `mentioned_us_before`: what it said before the edit or the deletion mentions Pagehand.
    """

    person: Person
    channel_id: str
    thread_ts: str
    message_ts: str
    text: str
    attachments: Attachments = NO_ATTACHMENTS
    edited_at: str = ""
    withdrawn: bool = False
    mentions_us: bool = False
    word: ThreadWord | None = None
    in_direct_message: bool = False
    options: Options | None = None
    mentioned_us_before: bool = False

    @property
    def version(self) -> MessageVersion:
        """Which version of the message this is."""
        return MessageVersion(self.channel_id, self.message_ts, self.person.id, self.edited_at)


@dataclass(frozen=True)
class UploadedFile:
    """A file that the job API has; `id` is the SHA-256 of its bytes, in hexadecimal."""

    id: str
    name: str
    mimetype: str


@dataclass(frozen=True)
class RequestContext:
    """What goes to the agent beside the person's own words: others' words, quoted, and files that the job API has.

    `given` is what of the text its person chose to go along; None: the text is that, and nothing else was gathered yet.
    `files_of` is the project whose job API has the files; empty: it is not known, or there are none.
    Of the Slack thread, what was said after `read_after` and before `read_until` (each a `ts`) goes along; without
    `read_until`, nothing that counts as read.
    """

    text: str = ""
    files: tuple[UploadedFile, ...] = ()
    given: str | None = None
    read_after: str = ""
    read_until: str = ""
    files_of: str = ""


@dataclass(frozen=True)
class Requester:
    """Who asked, as a job API is told that takes it: a name for people, the Slack user's id, the thread's address
    (left out where it could not be had).
    """

    name: str
    id: str
    url: str | None = None


class WayIn(StrEnum):
    """How somebody asks for a job, or does something about one. Databases hold these words."""

    COMMAND = "command"
    MODAL = "modal"
    SHORTCUT = "shortcut"
    """The message shortcut: the job answers in that message's thread."""
    MENTION = "mention"
    DIRECT_MESSAGE = "direct_message"
    REPLY = "reply"
    """A message in a job's thread: a follow-up, or, with `!new`, another job."""
    WORD = "word"
    """A word for Pagehand in a job's thread, such as `!stop`."""
    BUTTON = "button"
    """A button of the card, of a message or on Home."""
    REACTION = "reaction"
    RETRY = "retry"
    SWITCH = "switch"
    """The same as an earlier job, for another project."""


class RequestKind(StrEnum):
    """What a person asked for. Some of it goes to the job API (SENT_KINDS), Pagehand carries out the others itself."""

    START = "start"
    FOLLOW_UP = "follow_up"
    STOP = "stop"
    RETRY = "retry"
    """The same job once more, since this one failed or changed nothing."""
    DISCARD = "discard"
    """What the agent got done before it failed."""
    MUTE = "mute"
    UNMUTE = "unmute"
    SHOW_STATUS = "show_status"
    SHOW_PROMPT = "show_prompt"
    """The whole request, where the card shortens it."""
    SHOW_ANSWER = "show_answer"
    """An agent's whole answer, where the thread shortens it. The text is the answer's id."""
    SHOW_JOB_ID = "show_job_id"
    SEND_AGAIN = "send_again"
    """Of the request whose id is the text, it is not known whether it arrived."""
    SEND_NEW_WORDS = "send_new_words"
    """The words that a reply has since it was edited. The text is the id of the request that was edited."""
    SEND_HELD = "send_held"
    """A reply whose person was asked whether it is for the agent of this job. The text is the id of its request."""
    SEND_ALL_HELD = "send_all_held"
    """The same, and all that this person writes in the thread."""
    DISCARD_HELD = "discard_held"
    """It is not for that agent; what was written in a direct message, outside its threads, is a job of its own."""
    CHOOSE_PROJECT = "choose_project"
    """The project of a job that waits for this choice. The text is the project's name."""


SENT_KINDS = frozenset({RequestKind.START, RequestKind.FOLLOW_UP, RequestKind.STOP, RequestKind.DISCARD})
"""What goes to the job API."""


class RequestState(StrEnum):
    """Where a request stands: the first four are open, the others ends (a person can send an uncertain one again)."""

    RECEIVED = "received"
    """Recorded; it is not known yet whether its person may, for which project it is, and what goes with it."""
    PREPARING = "preparing"
    """That is being found out."""
    WAITING = "waiting"
    SENDING = "sending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"
    WITHDRAWN = "withdrawn"
    """Its reply was deleted, or is not for the job any more, before it was sent."""
    AWAITING_PERSON = "awaiting_person"
    """Its person was asked something first: whether it is for the agent, or for which project."""


NOT_SENT_YET = frozenset({RequestState.RECEIVED, RequestState.PREPARING, RequestState.WAITING})


class Doubt(StrEnum):
    """Why it is not known whether the job API took a request."""

    NO_ANSWER = "no_answer"
    """None came, or none that tells."""
    SERVER_FAILED = "server_failed"
    """It answered that it failed, which it may have done before or after."""


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
    NOT_PERMITTED = "not_permitted"
    """Its person may not ask for it; they were told why."""
    NOTHING_TO_STOP = "nothing_to_stop"
    """It is a stop of a job that had ended."""
    STOPPED = "stopped"
    """The job was stopped before it was sent."""
    REPLACED = "replaced"
    """It was to replace a job that another one had replaced by then."""
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

    `team_id` is the person's workspace, as far as Slack said. `attachments` are what the message holds besides words,
    and `context` what was made of those, and of the thread, when the request was prepared: the same each time it goes
    out. `merged_into` is the request with which it goes out as one message; empty: it goes by itself.

    `requester` is what goes with the request, once that is known: the same each time it is sent.
    `way_in` is how the request came.

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
    state: RequestState = RequestState.RECEIVED
    attempts: int = 0
    first_tried_at: float | None = None
    problem: str = ""
    edited_at: str = ""
    latest_text: str | None = None
    uncertain: bool = False
    requester: Requester | None = None
    team_id: str = ""
    attachments: Attachments = NO_ATTACHMENTS
    context: RequestContext | None = None
    merged_into: str = ""
    way_in: WayIn = WayIn.REPLY

    @property
    def person(self) -> Person:
        """Who asked."""
        return Person(self.person_id, self.team_id)

    @property
    def restored(self) -> bool:
        """It was open in a backup that was restored since, and was not tried after that: it may have gone out before,
        with others or with other words. Anything else is tried before it can be uncertain.
        """
        return self.uncertain and self.attempts <= 1

    @property
    def reply_id(self) -> str:
        """The same for all requests that were made of one reply."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Action:
    """What somebody wants done. The job is named by its thread's id, or by where its card is.

    Attributes:
        person: Who wants it.
        kind: What: any kind but a start and a follow-up.
        source_key: Made of Slack's own ids, so that a redelivery is refused.
        channel_id: Where it was done; empty in a modal or Home.
        thread_id: The thread of the job; empty: `card_ts` names it.
        card_ts: The card that somebody reacted to.
        argument: What the kind needs: a request's id, a project's name.
        message_ts: The message that carries the mark; empty: none does.
        way_in: How it was done.
    """

    person: Person
    kind: RequestKind
    source_key: str
    channel_id: str = ""
    thread_id: str = ""
    card_ts: str = ""
    argument: str = ""
    message_ts: str = ""
    way_in: WayIn = WayIn.BUTTON
