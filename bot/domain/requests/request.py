"""Requests: to start a job, or to steer one. Times are seconds since the epoch on the store's clock."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.commands import Options, ThreadWord
from bot.domain.messages import ForwardedMessage, SlackFile
from bot.jobapi.models import Mode, PromptFile, Requester


@dataclass(frozen=True)
class Person:
    """Somebody who did something in Slack.

    `team_id` is the workspace that they belong to: ours for everybody in our organization, empty if Slack does not say.
    """

    id: str
    team_id: str


@dataclass(frozen=True)
class Attachments:
    """What a message contains besides text: files, forwarded messages, previews of links."""

    files: tuple[SlackFile, ...] = ()
    forwarded: tuple[ForwardedMessage, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files) or bool(self.forwarded)


NO_ATTACHMENTS = Attachments()


class Arrival(StrEnum):
    """How what somebody did in Slack reached Pagehand. The database may store these values."""

    LIVE = "live"
    """When they did it, or so soon after that it counts as that."""
    LATE = "late"
    """It was found in Slack's history much later: nothing is done about it before they are asked."""


@dataclass(frozen=True)
class MessageVersion:
    """A version of a message: the original, or after an edit or deletion (`edited_at`, see Reply)."""

    channel_id: str
    message_ts: str
    person_id: str
    edited_at: str


@dataclass(frozen=True)
class Reply:
    """A reply in a thread, as words with marked mentions (bot.domain.messages). `message_ts` is its `ts`.

    One that was edited or deleted since has the `ts` of that in `edited_at` (equal in length, so that it sorts as
    text). `withdrawn`: deleted, or edited into words that are not for the job. A deleted one may lack all but its
    channel and `message_ts`. `word`: it is a word for Pagehand itself (with NEW, `text` is the prompt; with
    HELP, the word that was probably meant, if any); with `withdrawn`, it was edited into that word, or one that was
    probably meant. `options` are those that stood in front of `text`, where its listener has read them; None: they are
    part of it.
    `mentioned_us_before`: what it said before the edit or the deletion mentions Pagehand. `answers_us`: the thread's
    first message is ours; known of one that was just written.
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
    answers_us: bool = False
    arrival: Arrival = Arrival.LIVE

    @property
    def is_to_us(self) -> bool:
        """Whether it is written to Pagehand."""
        return self.mentions_us or self.in_direct_message

    @property
    def version(self) -> MessageVersion:
        """The version of the message."""
        return MessageVersion(self.channel_id, self.message_ts, self.person.id, self.edited_at)


@dataclass(frozen=True)
class RequestContext:
    """What the agent gets besides the person's own words: quoted words of others, and uploaded files.

    `given` is the part of the text that the person chose; None: all of it is, and nothing was gathered yet. `files_of`
    is the project whose job API has the files; empty: unknown, or no files. The messages of the Slack thread after
    `read_after` and before `read_until` (each a `ts`) are included; without `read_until`, none that count as read.
    """

    text: str = ""
    files: tuple[PromptFile, ...] = ()
    given: str | None = None
    read_after: str = ""
    read_until: str = ""
    files_of: str = ""


class WayIn(StrEnum):
    """How somebody starts a job, or does something about one. The database stores these values."""

    COMMAND = "command"
    MODAL = "modal"
    SHORTCUT = "shortcut"
    """The message shortcut: the job is in that message's thread."""
    MENTION = "mention"
    DIRECT_MESSAGE = "direct_message"
    REPLY = "reply"
    """A message in a job's thread: a follow-up, or, with `!new`, another job."""
    WORD = "word"
    """A word for Pagehand in a job's thread, such as `!stop`."""
    BUTTON = "button"
    """A button on the card, in a message or on Home."""
    REACTION = "reaction"
    RETRY = "retry"
    SWITCH = "switch"
    """The same as an earlier job, for another project."""


class RequestKind(StrEnum):
    """What a person asked for. SENT_KINDS are sent to the job API; Pagehand carries out the others itself."""

    START = "start"
    FOLLOW_UP = "follow_up"
    STOP = "stop"
    RETRY = "retry"
    """The same job again, because this one failed or changed nothing."""
    DISCARD = "discard"
    """Discard the work that the agent had done before it failed."""
    MUTE = "mute"
    UNMUTE = "unmute"
    SHOW_STATUS = "show_status"
    SHOW_PROMPT = "show_prompt"
    """Show the whole request, which the card shortens."""
    SHOW_ANSWER = "show_answer"
    """Show an agent's whole answer, which the thread shortens. The text is the answer's id."""
    SHOW_JOB_ID = "show_job_id"
    SEND_AGAIN = "send_again"
    """Send an uncertain request again. The text is its id."""
    SEND_NEW_WORDS = "send_new_words"
    """Send a reply's new text after an edit. The text is the id of the edited request."""
    SEND_HELD = "send_held"
    """Send a held reply to the agent of this job. The text is the id of its request."""
    SEND_ALL_HELD = "send_all_held"
    """The same, and everything else that this person writes in the thread."""
    DISCARD_HELD = "discard_held"
    """Do not send a held reply; one written in a direct message, outside its threads, becomes a new job."""
    CHOOSE_PROJECT = "choose_project"
    """Choose the project of a job that waits for it. The text is the project's name."""
    ACCEPT_PROPOSAL = "accept_proposal"
    """Have the agent carry out the plan that it proposed. The text is the plan's id, as for the next."""
    DROP_PROPOSAL = "drop_proposal"


SENT_KINDS = frozenset(
    {
        RequestKind.START,
        RequestKind.FOLLOW_UP,
        RequestKind.STOP,
        RequestKind.DISCARD,
        RequestKind.ACCEPT_PROPOSAL,
    }
)
"""The kinds that are sent to the job API."""


class RequestState(StrEnum):
    """The state of a request. The first four are open, the others final (a person can send an uncertain one again)."""

    RECEIVED = "received"
    """Recorded; its permission, project and context are not determined yet."""
    PREPARING = "preparing"
    """They are being determined."""
    WAITING = "waiting"
    SENDING = "sending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"
    WITHDRAWN = "withdrawn"
    """Its reply was deleted, or turned out not to be for the job, before it was sent."""
    AWAITING_PERSON = "awaiting_person"
    """Its person was asked whether it is for the agent, for which project it is, or as HeldBecause says."""


NOT_SENT_YET = frozenset({RequestState.RECEIVED, RequestState.PREPARING, RequestState.WAITING})


class Doubt(StrEnum):
    """Why nobody knows whether the job API accepted a request."""

    NO_ANSWER = "no_answer"
    """There was no response, or an inconclusive one."""
    SERVER_FAILED = "server_failed"
    """It answered that it failed, which may have been before or after it accepted the request."""


class RejectionReason(StrEnum):
    """Why a request was not sent, not accepted, or accepted without effect. 1.0.0 cannot read any other value."""

    API = "api"
    """The job API refused it."""
    ADDRESS = "address"
    """The job API redirects to another address."""
    PROJECT = "project"
    """The job API does not know the project."""
    GONE = "gone"
    """The job API permanently does not know the job."""
    NOT_FOUND = "not_found"
    """The job API answered once that it does not know the job, which may be temporary."""
    ARCHIVED = "archived"
    ACCEPTED_WHILE_ARCHIVED = "accepted_while_archived"
    NOT_STARTED = "not_started"
    """The thread's job was never started, or is stopped because it has no card."""
    HANDED_BACK = "too_old"
    """It could not be sent for days, or somebody has to pay first; its person can send it again."""
    UNREADABLE = "unreadable"
    """Our own record of it is damaged."""
    NOT_PERMITTED = "not_permitted"
    """It is not permitted; the person was told why."""
    NOTHING_TO_STOP = "nothing_to_stop"
    """It is a stop of a job that had ended."""
    STOPPED = "stopped"
    """The job was stopped before it was sent."""
    REPLACED = "replaced"
    """It should have replaced a job that had already been replaced."""
    OTHER = "other"
    """An earlier version knew the reason."""


class HeldBecause(StrEnum):
    """Why a request waits for its person although it was clear what they wanted. It is the request's problem."""

    LATE = "late"
    """It was written while Pagehand was away."""
    STOPPED = "stopped"
    """The job was stopped after it was written, and before it was sent."""


NO_WORDS = "no_words"
"""The problem of a request whose reply contains nothing that can be sent."""


@dataclass(frozen=True)
class Request:
    """What a person asked for, recorded before it is acknowledged.

    In `text` mentions are marked; once it is sent, they have names. New text that is sent after an edit is a separate
    request, with the id `<the reply's first request>.<edited_at>`.

    `source_key` consists of Slack's own ids, so that a redelivery is recognized. `written_at` is the reply's `ts` (of
    fixed length, so that it sorts as text), or that of a press or reaction; empty for a slash command, and if Slack
    does not give it. `recorded_at` is when it was recorded or, if it waited for its person, when they had it done.
    `attempts` counts calls; `first_tried_at` is when the first one began. `uncertain`: one of them may have arrived, so
    `text` is fixed. `latest_text` is the reply's current text if it differs (empty: withdrawn), and `edited_at` the
    `ts` of its last edit or deletion. `problem` is why it was rejected (a RejectionReason, NO_WORDS, or Slack's error
    code if its card could not be posted), or why it still waits (a HeldBecause, or words for the log).

    `team_id` is the person's workspace, if Slack gave it. `attachments` are what the message contains besides text.
    `context` was made of them, and of the thread, when the request was prepared; `context` and `requester` are the same
    for each attempt. `merged_into` is the request with which it is sent as one message; empty: it is sent separately.
    `mode` is set when a follow-up is first sent in another mode than `edit`, or if it turns the job to that; None: as
    the thread's.
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
    mode: Mode | None = None

    @property
    def person(self) -> Person:
        """The person who asked."""
        return Person(self.person_id, self.team_id)

    @property
    def asked_at(self) -> str:
        """When it was asked for, as a `ts`: that of its message, press or reaction, or when it was recorded."""
        return self.written_at or f"{self.recorded_at:.6f}"

    @property
    def message_ts(self) -> str:
        """The message that gets the reactions; empty: none."""
        from_message = self.kind is RequestKind.FOLLOW_UP or self.way_in is WayIn.WORD
        return self.written_at if from_message else ""

    @property
    def held_because(self) -> HeldBecause | None:
        """Why it waits for its person although it was clear what they wanted; None: it does not."""
        held = self.state is RequestState.AWAITING_PERSON and self.problem in set(HeldBecause)
        return HeldBecause(self.problem) if held else None

    @property
    def may_be_job(self) -> bool:
        """Whether it is a line of a direct message outside its threads, and its writer has not decided yet if it is a
        job of its own.
        """
        line = self.kind is RequestKind.FOLLOW_UP and self.way_in is WayIn.DIRECT_MESSAGE
        return line and self.state in {RequestState.AWAITING_PERSON, RequestState.WITHDRAWN}

    @property
    def restored(self) -> bool:
        """Whether it was open in a restored backup and not tried since, so it may have been sent before, perhaps merged
        or with other text. Any other request is tried before it can be uncertain.
        """
        return self.uncertain and self.attempts <= 1

    @property
    def log_id(self) -> str:
        """The id in logs, ours and the job API's. It is derived from `id`, which is also an Idempotency-Key."""
        return log_id(self.id)

    @property
    def reply_id(self) -> str:
        """The id that all requests of one reply share."""
        return self.id.partition(".")[0]


def log_id(request_id: str) -> str:
    """See Request.log_id."""
    return hashlib.sha256(f"log {request_id}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Action:
    """A request other than a start or a follow-up. It refers to the job by its thread's id, or by its card.

    Attributes:
        person: The person.
        kind: Any kind except START and FOLLOW_UP.
        source_key: Consists of Slack's own ids, so that a redelivery is recognized.
        channel_id: The channel; empty in a modal or on Home.
        thread_id: The job's thread; empty: `card_ts` identifies it.
        card_ts: The card that somebody reacted to.
        argument: Depends on the kind: a request's id, a project's name.
        at: When they did it, as Slack's `ts`; empty: Slack does not say.
        way_in: How it was made.
    """

    person: Person
    kind: RequestKind
    source_key: str
    channel_id: str = ""
    thread_id: str = ""
    card_ts: str = ""
    argument: str = ""
    at: str = ""
    way_in: WayIn = WayIn.BUTTON


_HOME = "home/"


class Surface(StrEnum):
    """Where somebody pressed a button or wrote. The database stores these values."""

    CONVERSATION = "conversation"
    HOME = "home"
    TOP_LEVEL = "top_level"
    """In a conversation, outside its threads."""


def home_key(click: str) -> str:
    """Returns the source key of a press on Home."""
    return f"{_HOME}{click}"


def surface_of(source_key: str) -> Surface:
    """Returns where the request with this source key was made. A retry is made where its button is."""
    return Surface.HOME if source_key.removeprefix("retry/").startswith(_HOME) else Surface.CONVERSATION
