"""Posts about a job: its changes of status, its ends, its pull requests. Only ends mention somebody."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from bot.domain.jobs.job import ACTIVE, SHOWN_CHECKS, SHOWN_FILES, SHOWN_PROBLEMS, FailedCheck, JobReport, QuestionField
from bot.domain.requests.request import Request
from bot.jobapi.models import ChangeKind, Changes, FileChange, Mode
from bot.notices.notice import Addressed, NoticeContent, NoticeKey
from bot.notices.said import NOTHING, Button, ButtonId, Confirmation, Markup, Renderer, Said, joined, open_button, some

if TYPE_CHECKING:
    from bot.domain.threads.thread import Thread  # whose state contains a notice

_FINISHED, _FAILED, _STOPPED = "/completed", "/failed", "/stopped"
_WHO_STOPPED = re.compile(r"\Astopped by [^,]*+(?:, )?")
"""What our job server says of a stop, whose person the message names already."""


def tells_of_a_finish(key: NoticeKey) -> bool:
    """Returns whether this is the key of a `JobFinished` of any round."""
    return key.endswith(_FINISHED)


def tells_of_an_end(key: NoticeKey) -> bool:
    """Returns whether this is the key of any end."""
    return key.endswith((_FINISHED, _FAILED, _STOPPED))


def _in_round(round_: int, nth: int, fact: str) -> NoticeKey:
    """The key of what can happen `nth` times in a round."""
    return NoticeKey(f"r{round_}{fact}" if nth == 1 else f"r{round_}/{nth}{fact}")


class _InRound:
    """What can happen several times in a round."""

    fact: ClassVar[str]

    @classmethod
    def key(cls, round_: int, nth: int = 1) -> NoticeKey:
        """Told once each time."""
        return _in_round(round_, nth, cls.fact)


@dataclass(frozen=True)
class JobStarted(NoticeContent, kind="job_started"):
    """The agent has started. Fields that the job API did not report are empty."""

    words: ClassVar = "Started."
    KEY: ClassVar = NoticeKey("started")
    job_id: str
    repository: str = ""
    ref: str = ""
    model: str = ""


@dataclass(frozen=True)
class JobActiveAgain(_InRound, NoticeContent, kind="job_active_again"):
    """A job that had ended is running again, after a follow-up."""

    fact: ClassVar = "/active"
    words: ClassVar = "At work again."


@dataclass(frozen=True)
class JobStatusChanged(NoticeContent, kind="job_status_changed"):
    """A running job has another status, one that the specification doesn't have or, after such a one, `active`."""

    words: ClassVar = "The agent reports a status that I don't know: {status}. I'll go on watching the job."
    status: str

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        return Said(show("At work.") if self.status == ACTIVE else show(self.words, status=show.line(self.status)))

    @staticmethod
    def key(round_: int, status_digest: str, nth: int = 1) -> NoticeKey:
        """Told once each time, for a status that is no end."""
        return _in_round(round_, nth, f"/status/{status_digest}")


@dataclass(frozen=True)
class JobSilent(NoticeContent, kind="job_silent"):
    """The agent is working, but nothing has changed for a long time."""

    words: ClassVar = "Still at work: nothing new for ten minutes."

    @staticmethod
    def key(round_: int) -> NoticeKey:
        """Told once a round."""
        return NoticeKey(f"r{round_}/silent")


@dataclass(frozen=True)
class HistoryUnread(NoticeContent, kind="history_unread"):
    """Not all of what was written here could be read, while nobody listened `since` then `until` then, in seconds since
    the epoch.
    """

    words: ClassVar = (
        "I was away from {since} to {until}, and could not read all that was written here. If something was for me and "
        "has no reaction, edit it or write it again."
    )
    since: float
    until: float

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        return Said(show(self.words, since=show.day_and_time(self.since), until=show.day_and_time(self.until)))

    @staticmethod
    def key(until: float) -> NoticeKey:
        """Told once per time in which nobody listened."""
        return NoticeKey(f"unread/{until:.0f}")


DISCARD = "Discard"
MAKE_CHANGE = "Make it a change"
_DISCARD = Confirmation(
    "Discard this work?",
    "What the agent changed before it failed is thrown away. The pull request stays as it is.",
    "Discard it",
    "Keep it",
)


def discard_button(thread_id: str) -> Button:
    """Returns the button that discards the work of a failed job."""
    return Button(DISCARD, ButtonId.DISCARD_WORK, thread_id, _DISCARD)


def _found(show: Renderer, link: str, *, changed: bool) -> Markup:
    words = "Here's a new pull request: {link}" if changed else "Here's the pull request: {link}"
    return show(words, link=show.link(link))


def _unwanted(show: Renderer, thread: "Thread") -> list[Markup]:
    """Returns a line for below a new pull request of a job whose plan nobody has seen: its job API ignores modes."""
    if thread.mode is not Mode.PLAN or thread.state.planning.proposal_id:
        return []
    words = "Only a plan was asked for, but pages were changed: this project's agent can't show a plan first."
    return [show(f"{words} Please tell whoever installed Pagehand.")]


def _because(show: Renderer, words: Markup, report: JobReport, *, otherwise: Markup) -> list[Markup]:
    """Returns words that end in a colon with the reason, without what it repeats of them; other words if it says
    nothing more.
    """
    reason = report.reason.strip()
    for sentence in words.rstrip(":").split(". "):
        repeated = re.match(rf"{re.escape(sentence)}\s*(?:[.:;,!-]+\s*|\Z)", reason, re.IGNORECASE)
        reason = reason[repeated.end() :] if repeated else reason
    return [words, _reason(show, reason)] if reason else [otherwise]


def _answer(show: Renderer, report: JobReport) -> list[Markup]:
    """Returns what stands above an answer: whether there is one, and which pages it is based on."""
    told = [show("Here's the answer.")]
    if report.answer is None:
        otherwise = show("The agent has no answer.")
        told = _because(show, show("The agent has no answer:"), report, otherwise=otherwise)
    pages = show("Pages read: {pages}", pages=some(show, report.pages_read))
    return [*told, *([pages] if report.pages_read else [])]


def _reason(show: Renderer, reason: str) -> Markup:
    return show.quote(reason, 700, 100, 700)


@dataclass(frozen=True)
class JobEnd(_InRound, Addressed):
    """How a round ended. It includes the pull request, if there is one.

    `link` is empty if there is no pull request; `new`: it was not announced before; `changed`: another one was.
    `report` has the job's details, if any. `person_id` is who wrote the request that the agent worked on; empty: the
    requester.
    """

    ends_work: ClassVar = True
    told_though_muted: ClassVar = True
    """One that finished without a pull request is not (bot.domain.delivery)."""
    person_id: str = field(default="", kw_only=True)
    link: str = ""
    new: bool = False
    changed: bool = False
    report: JobReport | None = None

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """Says the outcome, the pull request, and the size of the change."""
        report, told = self.report or JobReport(), show.mentioned
        first, *more = [*self._outcome(show, report), *(_unwanted(show, thread) if self.new else [])]
        if not (isinstance(self, JobStopped) and told == self.person_id):
            first = show.addressed(told, first)
        size = _size(show, report.changes) if self.link else NOTHING
        discard = (discard_button(thread.id),) if report.partial_files else ()
        is_answer = isinstance(self, JobFinished) and report.mode is Mode.ASK
        change = (Button(MAKE_CHANGE, ButtonId.MAKE_CHANGE, thread.id),) if is_answer else ()
        buttons = (*open_button(self.link), *discard, *change)
        return Said(joined([first, *more, *([size] if size else [])], "\n"), buttons)

    def _outcome(self, show: Renderer, report: JobReport) -> list[Markup]:
        """The lines, without whom they are for."""
        raise NotImplementedError

    def _so_far(self, show: Renderer) -> list[Markup]:
        if not self.link:
            return []
        if self.new:
            return [_found(show, self.link, changed=self.changed)]
        return [show("What was done so far: {link}", link=show.link(self.link))]


@dataclass(frozen=True)
class JobFinished(JobEnd, kind="job_finished"):
    """A job has finished. `again`: it had finished before."""

    fact: ClassVar = _FINISHED
    again: bool = False

    def _outcome(self, show: Renderer, report: JobReport) -> list[Markup]:
        link = show.link(self.link)
        if report.mode is Mode.ASK:
            return _answer(show, report)
        if report.unchanged:
            because = show("Done. Nothing was changed:")
            lines = _because(show, because, report, otherwise=show("Done. Nothing was changed."))
            return [*lines, *([show("The pull request is as it was: {link}", link=link)] if self.link else [])]
        if not self.link:
            late = show("Done, without a pull request. If one turns up in the next minutes, I'll post it here.")
            return _because(show, show("Done, without a pull request:"), report, otherwise=late)
        if self.new and self.changed:
            words = "Done. Here's a new pull request: {link}"
        elif self.new or (report.unchanged is None and not self.again):
            words = "Done. Here's the pull request: {link}"
        elif report.unchanged is False:
            words = "Done. The pull request was updated: {link}"
        else:
            words = "Done. Check the pull request: {link}"
        return [show(words, link=link), *([_reason(show, report.reason)] if report.reason else [])]


@dataclass(frozen=True)
class JobFailed(JobEnd, kind="job_failed"):
    """A job has failed. The specification has no reason for it."""

    fact: ClassVar = _FAILED

    def _outcome(self, show: Renderer, report: JobReport) -> list[Markup]:
        unexplained = show("The job failed without giving a reason.")
        words = "{reply} to try again, or start over with {slash}."
        if report.partial_files:
            words = "What it changed in {count} files is kept. {reply} to go on from there, or write `!discard`."
        if report.partial_files == 1:
            words = "What it changed in 1 file is kept. {reply} to go on from there, or write `!discard`."
        told = _because(show, show("The job failed:"), report, otherwise=unexplained)
        return [*told, show(words, count=report.partial_files), *self._so_far(show)]


@dataclass(frozen=True)
class JobStopped(JobEnd, kind="job_stopped"):
    """A job that `person_id` had stopped has ended. It is told instead of the end that the stop causes."""

    fact: ClassVar = _STOPPED
    person_id: str

    def _outcome(self, show: Renderer, report: JobReport) -> list[Markup]:
        who = show.person(self.person_id)
        plain, because = show("Stopped by {who}.", who=who), show("Stopped by {who}:", who=who)
        if show.mentioned and show.mentioned != self.person_id:  # the one mention is for somebody else
            plain = show("Your job was stopped; the card says by whom.")
            because = show("Your job was stopped; the card says by whom:")
        rest = self._so_far(show) if self.link else [show("There's no pull request. {reply} to go on.")]
        more = replace(report, reason=_WHO_STOPPED.sub("", report.reason))
        return [*_because(show, because, more, otherwise=plain), *rest]


@dataclass(frozen=True)
class _StopReported(Addressed):
    """What became of a stop by `person_id` that the job's end does not announce."""

    person_id: str

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        return Said(show(self.words, who=show.person(self.person_id)))

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Sent once for a stop."""
        return NoticeKey(f"{request.id}/stop")


@dataclass(frozen=True)
class JobStillStopping(_StopReported, kind="job_still_stopping"):
    """The job API accepted the stop, but the job has not ended."""

    words: ClassVar = "{who} Your stop was accepted, but the agent is still at work. I'll say when it ends."


@dataclass(frozen=True)
class AgentAskedToStop(_StopReported, kind="agent_asked_to_stop"):
    """The job API cannot stop a job, so the agent was asked to stop."""

    words: ClassVar = (
        "{who} I can't stop this job from here, so I told the agent to stop and change nothing more. Whether it does "
        "is up to the agent."
    )


def asked(show: Renderer, question: str, *, choices: bool) -> Markup:
    """Returns the agent's question; `choices`: it can be answered by buttons, too."""
    words = "The agent asks:\n{question}\n{reply} to answer, or choose:"
    if not choices:
        words = "The agent asks:\n{question}\n{reply} to answer."
    return show(words, question=show.quote(question, 1_500, 100))


@dataclass(frozen=True)
class QuestionAsked(Addressed, kind="question_asked"):
    """The agent asks a question that no message about an end contains. `person_id` is whom it asks; empty: the
    requester. `fields` is a form for the answer.
    """

    question: str
    fields: tuple[QuestionField, ...] = ()
    person_id: str = field(default="", kw_only=True)

    @staticmethod
    def key(round_: int, asked: str) -> NoticeKey:
        """Told once per round for each question that the agent asks while it works, by its digest."""
        return NoticeKey(f"r{round_}/question/{asked}")


@dataclass(frozen=True)
class JobArchived(_InRound, NoticeContent, kind="job_archived"):
    """The job no longer accepts follow-ups."""

    fact: ClassVar = "/archived"
    words: ClassVar = "This job is archived and takes no more follow-ups. Start a new one with {slash}."
    ends_work: ClassVar = True


@dataclass(frozen=True)
class JobDisappeared(NoticeContent, kind="job_disappeared"):
    """The job API no longer knows the job."""

    words: ClassVar = "The agent no longer has this job, so there's no more news of it. Start a new one with {slash}."
    told_though_muted: ClassVar = True

    @staticmethod
    def key(count: int) -> NoticeKey:
        """`count`: the number of outages announced in the thread, of which this is the newest."""
        return NoticeKey("gone" if count == 1 else f"gone/{count}")


@dataclass(frozen=True)
class PullRequestFound(NoticeContent, kind="pull_request_found"):
    """A link that came before the end, or late, or instead of an announced one (`changed`).

    `alone`: no end was announced for the work that it belongs to.
    """

    told_though_muted: ClassVar = True
    link: str
    changed: bool = False
    alone: bool = False

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        found = _found(show, self.link, changed=self.changed)
        found = show.addressed(show.mentioned, found)
        return Said(joined([found, *_unwanted(show, thread)], "\n"), open_button(self.link))

    @staticmethod
    def key(link_digest: str) -> NoticeKey:
        """Told once for each link."""
        return NoticeKey(f"link/{link_digest}")


@dataclass(frozen=True)
class RecordDamaged(NoticeContent, kind="record_damaged"):
    """The thread's state can no longer be read."""

    words: ClassVar = (
        "My record of this job is damaged, so I can't tell you more or send replies; the agent isn't affected. Start a "
        "new job with {slash}."
    )
    told_though_muted: ClassVar = True
    KEY: ClassVar = NoticeKey("damaged")


# The details about the end of a round, and on the card. All of it is untrusted.

YES, NO = "Yes", "No"
ANSWER = "Answer…"
CHOOSE_ANSWER = "Choose an answer"
SHOW_ALL = "Show all"
KINDS_OF_CHANGE: Mapping[ChangeKind, str] = {
    ChangeKind.ADDED: ", new",
    ChangeKind.RENAMED: ", renamed",
    ChangeKind.DELETED: ", deleted",
}
_MAX_NAME = 120


def _lines(added: int | None, removed: int | None) -> Markup:
    counts = [f"+{added}"] * bool(added) + [f"\N{MINUS SIGN}{removed}"] * bool(removed)
    return Markup(f" ({' '.join(counts)})") if counts else NOTHING


def _size(show: Renderer, changes: Changes | None) -> Markup:
    """Returns the size of the change; empty if unknown. The card lists the files."""
    if changes is None or changes.file_count == 0:
        return NOTHING
    words = "1 file changed{lines}." if changes.file_count == 1 else "{count} files changed{lines}."
    return show(words, count=changes.file_count, lines=_lines(changes.added, changes.removed))


def changed_pages(show: Renderer, changes: Changes | None) -> Markup:
    """Returns the changes of the pull request, a line per file; empty if unknown."""
    if changes is None or changes.file_count == 0:
        return NOTHING
    listed = [_file(show, file) for file in changes.files[:SHOWN_FILES]]
    words = "The pull request changes {count} files{lines}{end}"
    if changes.file_count == 1:
        words = "The pull request changes 1 file{lines}{end}"
    end = show(":") if listed else show(".")
    title = show(words, count=changes.file_count, lines=_lines(changes.added, changes.removed), end=end)
    return joined([title, *listed, *_more(show, "• and {count} more", changes.file_count, listed)], "\n")


def _file(show: Renderer, file: FileChange) -> Markup:
    kind = show(KINDS_OF_CHANGE.get(file.kind, ""))
    name, lines = show.line(file.title or file.path, _MAX_NAME), _lines(file.added, file.removed)
    return show("• {name}{kind}{lines}", name=name, kind=kind, lines=lines)


def _more(show: Renderer, words: str, count: int, listed: list[Markup]) -> list[Markup]:
    left = count - len(listed)
    return [show(words, count=left)] if left > 0 and listed else []


def failed_checks(show: Renderer, checks: tuple[FailedCheck, ...]) -> Markup:
    """Returns the checks that failed, with their first problems; empty if there are none."""
    shown = [_check(show, each) for each in checks[:SHOWN_CHECKS]]
    return joined([show("Checks that failed:"), *shown], "\n") if shown else NOTHING


def _check(show: Renderer, check: FailedCheck) -> Markup:
    listed = [show("    {problem}", problem=show.line(each, _MAX_NAME)) for each in check.problems[:SHOWN_PROBLEMS]]
    name = show(":warning: {name}", name=show.line(check.name, _MAX_NAME))
    return joined([name, *listed, *_more(show, "    and {count} more", check.problem_count, listed)], "\n")
