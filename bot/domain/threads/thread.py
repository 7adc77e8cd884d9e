"""A job's thread in Slack, and its state."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from bot.domain.commands import AgentOptions
from bot.domain.jobs.job import ACTIVE, ARCHIVED, COMPLETED, FAILED, EndMark, Problem, Progress
from bot.domain.projects import ProjectReason
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.requests.request import WayIn
from bot.jobapi.models import Job, Mode
from bot.notices.job import tells_of_a_finish
from bot.notices.notice import NoticeKey
from bot.notices.requests import RequestRejected

MAX_PARTICIPANTS = 50
"""How many people who steered a job are remembered as participants."""


class ThreadOrigin(StrEnum):
    """What a Slack thread began with, which determines whose replies are for the job."""

    CARD = "card"
    """The job's card."""
    REQUEST = "request"
    """The message that requested the job: a mention, a direct message."""
    CONVERSATION = "conversation"
    """Somebody else's conversation: only mentions of Pagehand are for the job."""


@dataclass(frozen=True)
class ThreadOptions:
    """The options of a job from its request.

    Attributes:
        way_in: How it was requested.
        quiet: Whether its end mentions nobody.
        project_said: The project as the request named it; empty: none.
        project_reason: Why the job is for its project; None until that is decided.
        context_chosen: Whether the person chose the context from the Slack thread, possibly none.
        agent: How the agent is to work, as far as the request says so.
        mode: The mode in which the job starts: as the request says, or the default of its channel or project.
    """

    way_in: WayIn = WayIn.COMMAND
    quiet: bool = False
    project_said: str = ""
    project_reason: ProjectReason | None = None
    context_chosen: bool = False
    agent: AgentOptions = field(default_factory=AgentOptions)
    mode: Mode = Mode.EDIT


@dataclass(frozen=True)
class UnexplainedRejection:
    """A rejected follow-up whose reason the next poll of the job shows."""

    key: NoticeKey
    message: RequestRejected


@dataclass(frozen=True)
class Failure:
    """What is wrong with a job, or with the job API.

    Attributes:
        problem: What the card shows; None: nothing is wrong.
        problem_text: The job API's own words about it.
        problem_until: The time before which the job API asked not to be called, in seconds since the epoch.
        not_found_count: Number of consecutive 404 responses of the job API itself.
        not_found_since: The first of them.
        outage_since: The first failed call of an outage; None: there is none.
        outage_announced: Whether this outage was announced.
        outage_count: Number of announced outages.
    """

    problem: Problem | None = None
    problem_text: str = ""
    problem_until: int | None = None
    not_found_count: int = 0
    not_found_since: float | None = None
    outage_since: float | None = None
    outage_announced: bool = False
    outage_count: int = 0


@dataclass(frozen=True)
class Announcements:
    """What was announced in the thread.

    Attributes:
        announced: The keys of this round's announcements.
        links: All links announced so far.
        pictures: The digests of the newest pictures announced so far.
        finished_before: Whether the job finished in an earlier round.
        last_status: The status of which the thread was told last. None: unknown (recorded by 1.0.0); empty: a follow-up
            was accepted, and no status was announced since.
        last_end: The mark of the last announced end.
        unexplained: Rejections that wait for the next poll.
        restored: Whether the thread comes from a restored backup and nothing was sent since, so that news may have been
            announced before.
    """

    announced: frozenset[NoticeKey] = frozenset()
    links: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    finished_before: bool = False
    last_status: str | None = None
    last_end: EndMark = field(default_factory=EndMark)
    unexplained: tuple[UnexplainedRejection, ...] = ()
    restored: bool = False

    def in_next_round(self) -> "Announcements":
        """Returns a copy for a new round, in which every change of the job is news."""
        finished = self.finished_before or any(map(tells_of_a_finish, self.announced))
        return replace(self, announced=frozenset(), finished_before=finished)


@dataclass(frozen=True)
class Work:
    """The agent's work as last observed.

    Attributes:
        progress: The progress that the card shows, if the job API reports it.
        progress_at: When it was observed.
        question: The digest of the agent's open question; empty: none.
        question_untold: Whether the open question was not posted, because the job was muted.
        answered: The digest of the question that a follow-up answered.
        changed_at: The last change, from which polling slows down.
        poll_until: Polling continues until then although the job has ended, because a link, or the work on a follow-up,
            can come late.
        unseen: Whether a follow-up was sent and the job could not be polled since.
        work_began_at: When the newest work was first observed; 0: never.
        work_ended_at: When its end was observed; 0: it has not ended.
    """

    progress: Progress = field(default_factory=Progress)
    progress_at: float = 0.0
    question: str = ""
    question_untold: bool = False
    answered: str = ""
    changed_at: float = 0.0
    poll_until: float = 0.0
    unseen: bool = False
    work_began_at: float = 0.0
    work_ended_at: float = 0.0

    def in_next_round(self, now: float, poll_until: float) -> "Work":
        """Returns a copy for a new round: a follow-up answers the agent's question, and continues kept work."""
        return replace(
            self,
            progress=replace(self.progress, partial_files=0),
            question="",
            question_untold=False,
            answered=self.question or self.answered,
            changed_at=now,
            poll_until=max(self.poll_until, poll_until),
            unseen=True,
        )


class ProposalEnd(StrEnum):
    """What became of a plan that the agent proposed."""

    STARTED = "started"
    DROPPED = "dropped"
    STOPPED = "stopped"
    REVISED = "revised"
    """A reply asked for another one."""
    OUTDATED = "outdated"
    """There is a newer one."""
    OVER = "over"
    """It waited for too long, or its job was replaced or takes no more messages."""


@dataclass(frozen=True)
class Planning:
    """The newest plan that the agent proposed.

    Attributes:
        proposal_id: Its id at the job API; empty: none was proposed.
        proposed_at: When it was first seen.
        proposal_end: What became of it; None: it waits.
        proposal_end_by: Who did that; empty: nobody, or unknown.
        proposal_asked: Whether the request that ends it is still being sent.
        proposal_untold: Whether it was not posted, because the job was muted.
        reminders: How many lines have told that it still waits.
    """

    proposal_id: str = ""
    proposed_at: float = 0.0
    proposal_end: ProposalEnd | None = None
    proposal_end_by: str = ""
    proposal_asked: bool = False
    proposal_untold: bool = False
    reminders: int = 0


@dataclass(frozen=True)
class Participation:
    """Who takes part in a job, by their ids.

    Attributes:
        asker_id: Who wrote this round's follow-up, until its end is announced; empty: the thread's requester.
        stopped_by: Who cancelled this round's work, set before the job API is called; empty: nobody.
        muted_by: Who muted the job, so that replies are not sent and only failures and pull requests are announced;
            empty: nobody.
        participants: Those who steered it, except the requester, the newest last.
    """

    asker_id: str = ""
    stopped_by: str = ""
    muted_by: str = ""
    participants: tuple[str, ...] = ()


@dataclass(frozen=True)
class ThreadState:
    """The state of a thread's job, and what was announced. Times are seconds on the store's clock.

    The database stores the fields of all parts side by side, so a field's name must be unique among all parts.

    Attributes:
        job: The job as last observed.
        round: The number of follow-ups sent; each change of a job is announced once per round.
        read_until: The `ts` up to which the agent has got the messages of the Slack thread, with requests that the job
            API accepted.
        replaced_by: The thread of the job that replaced it by a retry or switch; empty: none.
        edits_now: Whether the job started in another mode than `edit`, and went on in this one: its plan was accepted,
            or its answer made a change.
    """

    job: Job | None = None
    round: int = 0
    read_until: str = ""
    replaced_by: str = ""
    edits_now: bool = False
    failure: Failure = field(default_factory=Failure)
    announcements: Announcements = field(default_factory=Announcements)
    work: Work = field(default_factory=Work)
    people: Participation = field(default_factory=Participation)
    planning: Planning = field(default_factory=Planning)

    def with_problem(self, problem: Problem | None, text: str = "", until: int | None = None) -> "ThreadState":
        """Returns a copy with this problem instead of any previous one."""
        failure = replace(self.failure, problem=problem, problem_text=text, problem_until=until)
        return replace(self, failure=failure)


def owes_status(state: ThreadState) -> bool:
    """Returns whether the thread was told of another status last than the job's."""
    return state.announcements.last_status not in {None, state.job.status if state.job else None}


def owes_question(state: ThreadState) -> bool:
    """Returns whether the agent's open question has to be posted, which the job being muted prevented."""
    return state.work.question_untold and not state.people.muted_by


def waits_for_start(state: ThreadState) -> bool:
    """Returns whether a proposed plan waits for somebody to start it."""
    return bool(state.planning.proposal_id) and state.planning.proposal_end is None


def owes_proposal(state: ThreadState) -> bool:
    """Returns whether a proposed plan has to be posted, which the job being muted prevented."""
    return state.planning.proposal_untold and not state.people.muted_by


def shows_another_state(before: ThreadState, after: ThreadState) -> bool:
    """Returns whether the card has to show more than new progress."""
    return _state_shown(before) != _state_shown(after)


def _state_shown(state: ThreadState) -> tuple[object, ...]:
    job = None if state.job is None else (state.job.id, state.job.status, state.job.pr_link)
    failure, planning = state.failure, state.planning
    problem = failure.problem, failure.problem_text, failure.problem_until
    return (job, *problem, state.work.question, planning.proposal_id, planning.proposal_end)


@dataclass(frozen=True)
class FollowUpCounts:
    """How many follow-ups the job API accepted, and how many wait to be sent."""

    sent: int = 0
    waiting: int = 0


NO_FOLLOW_UPS = FollowUpCounts()


@dataclass(frozen=True)
class Thread:
    """The Slack thread of a job, and the job's card in it. In `prompt` mentions are marked.

    Attributes:
        id: Our id.
        team_id: The workspace.
        channel_id: The channel.
        requester_id: Who requested the job; empty: it stands for a channel, where Pagehand owes its introduction.
        prompt: The task.
        project: The project's name. Until `options.project_reason` is known, that of the Slack thread's earlier job, or
            empty.
        created_at: When it was recorded, in seconds since the epoch.
        ts: The thread's first message; None if there is none yet, or if the job never got a card.
        card_ts: The card, which is the first message or a reply; None until it is posted.
        number: The number of the job in its Slack thread, from 0. Replies go to the newest job.
        root_ts: The first message of the Slack thread in which it was requested; empty: its card starts one. If another
            job is alive in that thread, this one has no `ts` until it has passed its checks.
        follows: The thread of the job that it follows or replaces; empty: none.
        origin: What the Slack thread began with.
        options: The options of the request.
        state: The job's state.
        revision: Increases with each change of `state`.
        has_replies: Whether the Slack thread has replies. Only set for ephemeral messages.
        pull_request: The job's pull request. Only set where it is shown.
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
    pull_request: FollowedPullRequest | None = None

    @property
    def mode(self) -> Mode:
        """The mode of what is sent to the job next."""
        return Mode.EDIT if self.state.edits_now else self.options.mode


def shown_state(thread: Thread) -> ThreadState:
    """Returns the job's state with its pull request's, which counts more than what the job API once told of it."""
    found = thread.pull_request.found if thread.pull_request else None
    if found is None or found.pull_request.state is None:
        return thread.state
    work = thread.state.work
    progress = replace(work.progress, pull_request=found.pull_request.state)
    return replace(thread.state, work=replace(work, progress=progress))


OVER = frozenset(
    {
        Problem.REJECTED,
        Problem.UNCERTAIN,
        Problem.GONE,
        Problem.CANNOT_POST,
        Problem.STOPPED,
        Problem.WITHDRAWN,
    }
)
"""Problems after which there is nothing to stop."""


def waits_for_person(thread: Thread) -> bool:
    """Returns whether the agent has asked something that nobody has answered."""
    job = thread.state.job
    return job is not None and bool(thread.state.work.question) and job.status in {ACTIVE, COMPLETED, FAILED}


def can_only_be_stopped_here(thread: Thread) -> bool:
    """Returns whether a job that has not ended has no card yet, which has the button otherwise."""
    job = thread.state.job
    ended = thread.state.failure.problem in OVER or (job is not None and job.ended)
    return thread.card_ts is None and not ended


def can_be_retried(thread: Thread) -> bool:
    """Returns whether a retry makes sense: the job failed, had no result, or may not have arrived. Its task has to be
    known, which is deleted earlier than the thread of a pull request that is still followed.
    """
    job, problem = thread.state.job, thread.state.failure.problem
    if thread.state.replaced_by or not thread.prompt:
        return False
    if job is None:
        return problem in {Problem.UNCERTAIN, Problem.REJECTED, Problem.CANNOT_POST, Problem.STOPPED}
    return job.status == FAILED or (job.status in {COMPLETED, ARCHIVED} and not job.pr_link)
