"""The words of Pagehand as values. All are frozen; times are seconds since the epoch on the store's clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

ACTIVE, COMPLETED, ARCHIVED, FAILED = "active", "completed", "archived", "failed"
TERMINAL = frozenset({COMPLETED, ARCHIVED, FAILED})
"""The statuses that end polling (specification, part 3). Any other one, known or not, is work in progress."""


@dataclass(frozen=True)
class Job:
    """The remote Agent job, as last seen (specification, part 2). All but id and status can be missing."""

    id: str
    status: str
    pr_link: str | None = None
    repository: str | None = None
    ref: str | None = None
    model: str | None = None
    created_at: str | None = None
    archived_at: str | None = None

    @property
    def ended(self) -> bool:
        """Whether polling may stop."""
        return self.status in TERMINAL


class Trouble(StrEnum):
    """What stands between a thread and its job, for the card; None when nothing does."""

    OUT_OF_REACH = "out_of_reach"
    NOT_ALLOWED = "not_allowed"
    REFUSED = "refused"
    UNSURE = "unsure"
    GONE = "gone"
    CANNOT_POST = "cannot_post"


@dataclass(frozen=True)
class Known:
    """All that is known of a thread's job, and what its people have been told.

    `round` counts how often a follow-up went out; a fact is said once a round. `said` holds the facts said in this
    round, `links` each link announced so far. `misses` counts answers of 404 in a row. `out_since` is the first failed
    call of an outage, `out_said` whether the thread knows of it, `outages` how many it was told of. `changed_at` is the
    last change (polling slows down from there); polling goes on till `watch_until` even though the job has ended, since
    a link or the work on a follow-up can come late.
    """

    job: Job | None = None
    round: int = 0
    said: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    trouble: Trouble | None = None
    trouble_words: str = ""
    misses: int = 0
    out_since: float | None = None
    out_said: bool = False
    outages: int = 0
    changed_at: float = 0.0
    watch_until: float = 0.0


@dataclass(frozen=True)
class Person:
    """Whoever did something in Slack."""

    id: str
    team_id: str


@dataclass(frozen=True)
class Thread:
    """The Slack thread of a job. `ts` is None till its card is posted; `revision` rises with each change of `known`."""

    id: str
    team_id: str
    channel_id: str
    asker_id: str
    prompt: str
    project_id: str
    created_at: float
    ts: str | None = None
    known: Known = field(default_factory=Known)
    revision: int = 0


@dataclass(frozen=True)
class Reply:
    """A reply in a thread, as words. `message_ts` is its own `ts`."""

    person: Person
    channel_id: str
    thread_ts: str
    message_ts: str
    text: str


class RequestKind(StrEnum):
    """What a person asked for."""

    START = "start"
    FOLLOW_UP = "follow_up"


class RequestState(StrEnum):
    """Where a request stands: the first two are open, the others ends (an unsure one can be sent again by a person)."""

    WAITING = "waiting"
    SENDING = "sending"
    TAKEN = "taken"
    REFUSED = "refused"
    UNSURE = "unsure"


@dataclass(frozen=True)
class Request:
    """What a person asked for; a row from the moment it is acknowledged.

    `source_key` is made of Slack's own ids, so that a redelivery is refused. `written_at` is the reply's `ts` (equal in
    length, so that it sorts as text), which is also the message that carries the marks; empty for a slash command.
    `attempts` counts calls; `first_tried_at` is when the first of them began.
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


class NoticeKind(StrEnum):
    """How a notice reaches people."""

    CARD = "card"
    """The thread's first message: posted once, then kept at the newest state."""
    POST = "post"
    """A message in the thread."""
    MARK = "mark"
    """The one reaction on a reply that tells where it stands."""
    TELL = "tell"
    """Words for one person only (`facts["person"]`), in the thread's channel."""


class What(StrEnum):
    """What a notice says; `facts` of the notice holds what its words need, all of it text."""

    CARD = "card"
    MARK = "mark"
    """facts: message_ts, mark (a Mark)."""
    STARTED = "started"
    """facts: job, repository, ref, model."""
    ACTIVE_AGAIN = "active_again"
    FINISHED = "finished"
    """facts: link (empty when there is none), again ("yes" where a follow-up added to one)."""
    FAILED = "failed"
    ARCHIVED = "archived"
    LINK = "link"
    """A pull request's link that came late or changed. facts: link, changed ("yes" when there was another)."""
    GONE = "gone"
    DAMAGED = "damaged"
    """What is known of the job can't be read any more."""
    OUT_OF_REACH = "out_of_reach"
    """facts: reason (words), request ("yes" when a request waits for it)."""
    NOT_ALLOWED = "not_allowed"
    """facts: status ("401" or "403")."""
    BACK = "back"
    REFUSED = "refused"
    """facts: person, request, kind, words (the job API's own), reason: api | project | gone | archived | not_started |
    too_old | unreadable."""
    UNSURE = "unsure"
    """It is not known whether a request arrived; has a button to send it again. facts: person, request, kind."""
    CANNOT_POST = "cannot_post"
    """facts: person, reason (Slack's error code)."""
    WHOLE_PROMPT = "whole_prompt"
    """facts: person, text."""
    ANSWER = "answer"
    """The answer to a button. facts: person, answer: sent_again | already_taken | not_yours | external."""


class Mark(StrEnum):
    """The reaction on a reply."""

    RECORDED = "eyes"
    TAKEN = "white_check_mark"
    PROBLEM = "warning"


@dataclass(frozen=True)
class Saying:
    """Something to say in a thread. `key` is unique within the thread: the same fact has the same key."""

    key: str
    what: What
    facts: Mapping[str, str] = field(default_factory=dict)
    kind: NoticeKind = NoticeKind.POST


@dataclass(frozen=True)
class Notice:
    """Something Pagehand owes a thread, as a row.

    `key` is unique in the database and goes with the message as metadata. A notice of a lasting kind (card, mark) is
    one row that opens again whenever there is something newer to show; `revision` counts that. `uncertain`: an earlier
    try may have arrived, so look for the key before posting. `plain`: Slack refused it with blocks, try words only.
    """

    id: int
    key: str
    thread_id: str
    kind: NoticeKind
    what: What
    facts: Mapping[str, str]
    created_at: float
    attempts: int = 0
    uncertain: bool = False
    plain: bool = False
    revision: int = 0
