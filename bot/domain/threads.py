"""A job's thread in Slack, and its state."""

from dataclasses import dataclass, field

from bot.domain.job_details import EndMark, Progress
from bot.domain.jobs import Job, Problem
from bot.domain.notices.keys import NoticeKey
from bot.domain.notices.posts import RequestRejected


@dataclass(frozen=True)
class UnexplainedRejection:
    """A follow-up that the job API rejected, whose reason the next poll of the job tells."""

    key: NoticeKey
    message: RequestRejected


@dataclass(frozen=True)
class ThreadState:
    """Where a thread's job stands, and what its people have been told. Times are seconds on the store's clock.

    `round` counts the follow-ups that went out; what a job does is announced once a round. `announced` holds the keys
    of this round's announcements, `links` each link announced so far. `finished_before`: in an earlier round the thread
    was told that the job finished.

    `problem` with its text (the job API's own) is what the card shows; before `problem_until` the job API asked not to
    be asked again. `not_found_count` counts answers of 404 in a row. `outage_since` is the first failed call of an
    outage, `outage_announced` whether the thread was told of it, `outage_count` of how many it was told.

    `changed_at` is the last change (polling slows down from there); polling goes on till `poll_until` even though the
    job has ended, since a link or the work on a follow-up can come late. `unexplained` are rejections that wait for the
    next poll.

    Of what a job API tells beyond its specification: `progress` is what the card shows, and came at `progress_at`;
    `last_end` is by what the last end that was told is known again. `question` is the digest of the agent's question
    that waits for an answer, `answered` that of the one to which a follow-up went out. `asker_id` is who wrote this
    round's follow-up, till its end is told; empty: the thread's requester.
    """

    job: Job | None = None
    round: int = 0
    announced: frozenset[NoticeKey] = frozenset()
    links: tuple[str, ...] = ()
    problem: Problem | None = None
    problem_text: str = ""
    problem_until: int | None = None
    not_found_count: int = 0
    outage_since: float | None = None
    outage_announced: bool = False
    outage_count: int = 0
    changed_at: float = 0.0
    poll_until: float = 0.0
    finished_before: bool = False
    unexplained: tuple[UnexplainedRejection, ...] = ()
    progress: Progress = field(default_factory=Progress)
    progress_at: float = 0.0
    last_end: EndMark = field(default_factory=EndMark)
    question: str = ""
    answered: str = ""
    asker_id: str = ""


@dataclass(frozen=True)
class Thread:
    """The Slack thread of a job. `ts` is None till its card is posted; `revision` rises with each change of `state`. In
    `prompt` mentions are marked.
    """

    id: str
    team_id: str
    channel_id: str
    requester_id: str
    prompt: str
    project_id: str
    created_at: float
    ts: str | None = None
    state: ThreadState = field(default_factory=ThreadState)
    revision: int = 0
