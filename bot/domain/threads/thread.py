"""A job's thread in Slack, and its state."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from bot.domain.jobs.details import EndMark, Progress
from bot.domain.jobs.job import Job, Problem
from bot.domain.notices.keys import NoticeKey, tells_of_a_finish
from bot.domain.notices.posts import RequestRejected
from bot.domain.projects import ProjectReason
from bot.domain.requests.request import WayIn

MAX_PARTICIPANTS = 50
"""People who steered a job and are remembered for it: told of its end, and heard where only participants are."""


class ThreadOrigin(StrEnum):
    """With what a Slack thread began, which tells whose replies are meant for the job."""

    CARD = "card"
    """With the job's card."""
    REQUEST = "request"
    """With the message that asked for the job: a mention, a direct message."""
    CONVERSATION = "conversation"
    """As somebody else's conversation: only what mentions Pagehand is for the job."""


@dataclass(frozen=True)
class ThreadOptions:
    """What was settled when a job was asked for.

    Attributes:
        way_in: How it was asked for.
        quiet: Nobody is mentioned at its end.
        project_said: The project that was named, as it was written; empty: none.
        project_reason: Why the job is for its project; None while that is not decided.
        context_chosen: Its person has chosen what goes along of the Slack thread, which may be nothing.
    """

    way_in: WayIn = WayIn.COMMAND
    quiet: bool = False
    project_said: str = ""
    project_reason: ProjectReason | None = None
    context_chosen: bool = False


@dataclass(frozen=True)
class UnexplainedRejection:
    """A follow-up that the job API rejected, whose reason the next poll of the job tells."""

    key: NoticeKey
    message: RequestRejected


@dataclass(frozen=True)
class Failure:
    """What is wrong with a job, or keeps us from asking the job API about it.

    Attributes:
        problem: What the card shows; None: nothing is wrong.
        problem_text: The job API's own words about it.
        problem_until: Before this time, in seconds since the epoch, the job API asked not to be asked again.
        not_found_count: Answers of 404 in a row.
        outage_since: The first failed call of an outage; None: there is none.
        outage_announced: The thread was told of this outage.
        outage_count: Of how many outages the thread was told.
    """

    problem: Problem | None = None
    problem_text: str = ""
    problem_until: int | None = None
    not_found_count: int = 0
    outage_since: float | None = None
    outage_announced: bool = False
    outage_count: int = 0

    def with_problem(self, problem: Problem | None, text: str = "", until: int | None = None) -> "Failure":
        """With this problem, and nothing of one before."""
        return replace(self, problem=problem, problem_text=text, problem_until=until)


@dataclass(frozen=True)
class Announcements:
    """What the thread was told.

    Attributes:
        announced: The keys of this round's announcements.
        links: Each link announced so far.
        finished_before: In an earlier round it was told that the job finished.
        last_end: By what the last end that was told is known again.
        unexplained: Rejections that wait for the next poll.
        restored: It comes from a backup, and nothing new was sent since that was restored: what is news now may have
            been told before.
    """

    announced: frozenset[NoticeKey] = frozenset()
    links: tuple[str, ...] = ()
    finished_before: bool = False
    last_end: EndMark = field(default_factory=EndMark)
    unexplained: tuple[UnexplainedRejection, ...] = ()
    restored: bool = False

    def in_next_round(self) -> "Announcements":
        """As a follow-up goes out: whatever the job does from now on is news."""
        finished = self.finished_before or any(map(tells_of_a_finish, self.announced))
        return replace(self, announced=frozenset(), finished_before=finished)


@dataclass(frozen=True)
class Work:
    """How the agent was last seen at work.

    Attributes:
        progress: What the card shows of it, as far as the job API tells that.
        progress_at: When that came.
        question: The digest of the agent's question that waits for an answer; empty: none does.
        answered: That of the one to which a follow-up went out.
        changed_at: The last change: polling slows down from there.
        poll_until: Till then polling goes on even though the job has ended, since a link or the work on a follow-up
            can come late.
        unseen: A follow-up went out, and nobody could look at the job since.
        work_began_at: When it was first seen at its newest work; 0: it was not seen.
        work_ended_at: When that was seen to have ended; 0: it has not.
    """

    progress: Progress = field(default_factory=Progress)
    progress_at: float = 0.0
    question: str = ""
    answered: str = ""
    changed_at: float = 0.0
    poll_until: float = 0.0
    unseen: bool = False
    work_began_at: float = 0.0
    work_ended_at: float = 0.0

    def in_next_round(self, now: float, poll_until: float) -> "Work":
        """As a follow-up goes out: it answers the agent's question, and what was kept of a failure goes on with it."""
        return replace(
            self,
            progress=replace(self.progress, partial_files=0),
            question="",
            answered=self.question or self.answered,
            changed_at=now,
            poll_until=max(self.poll_until, poll_until),
            unseen=True,
        )


@dataclass(frozen=True)
class Participation:
    """Who takes part in a job, by their ids.

    Attributes:
        asker_id: Who wrote this round's follow-up, till its end is told; empty: the thread's requester.
        stopped_by: Who had this round's work cancelled, from before the job API is asked to; empty: nobody did.
        muted_by: Who muted the job: then replies are not sent, and only failures and pull requests are told; empty:
            nobody did.
        participants: Those who steered it, but for the requester, the newest last.
        let_through: Those of whom only single replies were sent, when they said so.
    """

    asker_id: str = ""
    stopped_by: str = ""
    muted_by: str = ""
    participants: tuple[str, ...] = ()
    let_through: tuple[str, ...] = ()


@dataclass(frozen=True)
class ThreadState:
    """Where a thread's job stands, and what its people have been told. Times are seconds on the store's clock.

    Databases hold the fields of all parts beside each other, so that a field's name is unique among them.

    Attributes:
        job: As it was last seen.
        round: The follow-ups that went out; what a job does is announced once a round.
        read_until: The `ts` of the last message of the Slack thread up to which what others said there has gone to the
            agent, with requests that the job API accepted.
        replaced_by: The thread of the job that was started instead, by a retry or a switch; empty: none was.
    """

    job: Job | None = None
    round: int = 0
    read_until: str = ""
    replaced_by: str = ""
    failure: Failure = field(default_factory=Failure)
    told: Announcements = field(default_factory=Announcements)
    work: Work = field(default_factory=Work)
    people: Participation = field(default_factory=Participation)


def shows_another_state(before: ThreadState, after: ThreadState) -> bool:
    """Whether the card shows more than how far the agent is."""
    return _state_shown(before) != _state_shown(after)


def _state_shown(state: ThreadState) -> tuple[object, ...]:
    job = None if state.job is None else (state.job.id, state.job.status, state.job.pr_link)
    return (job, state.failure.problem, state.failure.problem_text, state.failure.problem_until, state.work.question)


@dataclass(frozen=True)
class FollowUpCounts:
    """How many follow-ups the job API took, and how many wait to be sent."""

    sent: int = 0
    waiting: int = 0


NO_FOLLOW_UPS = FollowUpCounts()


@dataclass(frozen=True)
class Thread:
    """The Slack thread of a job, and the job's card in it. In `prompt` mentions are marked.

    Attributes:
        id: Ours.
        team_id: The workspace.
        channel_id: The channel.
        requester_id: Who asked for the job.
        prompt: What was asked for.
        project: The project's name; until `options.project_reason` is known, that of the Slack thread's earlier job,
            or empty.
        created_at: When it was recorded, in seconds since the epoch.
        ts: The thread's first message; None while there is none, or where the job never came to have a card.
        card_ts: The card, which is the first message or a reply; None till it is posted.
        number: Which job of its Slack thread this is, from 0: replies go to the newest.
        root_ts: The first message of the Slack thread that it was asked for in; empty: its card begins one. Where
            another job is alive in that thread, this one has no `ts` until it has passed its checks.
        follows: The thread of the job that it comes after, or instead of; empty: none.
        origin: With what the Slack thread began.
        options: What was settled when the job was asked for.
        state: Where the job stands.
        revision: Rises with each change of `state`.
        has_replies: Something stands in the Slack thread below its first message; known of what is told privately only.
    """

    id: str
    team_id: str
    channel_id: str
    requester_id: str
    prompt: str
    project: str
    created_at: float
    ts: str | None = None
    card_ts: str | None = None
    number: int = 0
    root_ts: str = ""
    follows: str = ""
    origin: ThreadOrigin = ThreadOrigin.CARD
    options: ThreadOptions = field(default_factory=ThreadOptions)
    state: ThreadState = field(default_factory=ThreadState)
    revision: int = 0
    has_replies: bool = False


_HOME = "home/"


class Surface(StrEnum):
    """Where somebody pressed or wrote. Databases hold these words."""

    CONVERSATION = "conversation"
    HOME = "home"
    TOP_LEVEL = "top_level"
    """In a conversation, outside its threads."""


def home_key(click: str) -> str:
    """The source key of a press on Home."""
    return f"{_HOME}{click}"


def surface_of(source_key: str) -> Surface:
    """Where what has this source key was asked for; a retry is asked for where its button is."""
    return Surface.HOME if source_key.removeprefix("retry/").startswith(_HOME) else Surface.CONVERSATION
