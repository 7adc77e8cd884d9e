"""Posts about a request that waits, was refused, may not have arrived, or lacks something; and about outages of the job
API, during which requests wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from bot.domain.jobs.job import Problem
from bot.domain.requests.request import Doubt, RejectionReason, Request, RequestKind
from bot.notices.notice import Addressed, NoticeContent, NoticeKey, Quotes
from bot.notices.said import NOTHING, Button, ButtonId, Confirmation, Markup, Renderer, Said, joined, some

if TYPE_CHECKING:
    from bot.domain.threads.thread import Thread  # whose state contains a notice

_FORBIDDEN = 403
SEND_AGAIN = "Send again"
_SEND_AGAIN = Confirmation(
    "Send it again?", "If it arrived the first time, the agent gets it twice.", SEND_AGAIN, "Leave it"
)


@dataclass(frozen=True)
class RequestSummary(Quotes):
    """The request that a notice is about. `text` is the beginning of a follow-up; kind None: no longer known."""

    quotes: ClassVar = ("text",)
    request_id: str
    person_id: str
    kind: RequestKind | None
    text: str = ""

    def named(self, show: Renderer) -> Markup:
        """Returns what the notice calls it."""
        match self.kind:
            case RequestKind.STOP:
                return show("your request to stop")
            case RequestKind.DISCARD:
                return show("your request to discard")
            case RequestKind.ACCEPT_PROPOSAL:
                return show("your start of the plan")
            case RequestKind.FOLLOW_UP:
                text = show.line(self.text, 60)
                return show('your follow-up ("{text}")', text=text) if text else show("your follow-up")
            case _:
                return show("your request")

    def answered(self, show: Renderer, words: Markup, api_text: str, *, again: bool) -> Said:
        """Returns words to its person, with those of the job API, and `again` with the button to send it again."""
        words = show.addressed(self.person_id, words)
        button = (Button(SEND_AGAIN, ButtonId.SEND_AGAIN, self.request_id, _SEND_AGAIN),) if again else ()
        return Said(_with_its_words(show, words, api_text), button)


def _with_its_words(show: Renderer, words: Markup, api_text: str) -> Markup:
    own = show.quote(api_text, 1_000, 10) if api_text.strip() else NOTHING
    return show("{words}\nThe agent said:\n{text}", words=words, text=own) if own else words


def _capital(text: Markup) -> Markup:
    return Markup(text[0].upper() + text[1:])


@dataclass(frozen=True)
class _AboutRequest(NoticeContent):
    quotes: ClassVar = ("request",)
    request: RequestSummary

    @property
    def about(self) -> str:
        return self.request.person_id

    def addressed_to(self, person_id: str) -> Self:
        return replace(self, request=replace(self.request, person_id=person_id))


@dataclass(frozen=True)
class _Outage(NoticeContent):
    """`waiting`: a request that waits for its end."""

    quotes: ClassVar = ("waiting",)
    waiting: RequestSummary | None = field(default=None, kw_only=True)

    @property
    def about(self) -> str:
        return self.waiting.person_id if self.waiting else ""

    def _waiting(self, show: Renderer) -> Markup:
        """What waits; empty if nothing does."""
        if self.waiting is None:
            return NOTHING
        return self.waiting.named(show) if self.waiting.kind else show("what you asked for")

    @staticmethod
    def key(count: int) -> NoticeKey:
        """`count`: the number of outages announced in the thread, including this one."""
        return NoticeKey(f"out/{count}")

    @staticmethod
    def delay_key(request: Request) -> NoticeKey:
        """Told once for a request that is delayed although its job can be read."""
        return NoticeKey(f"{request.id}/out")


@dataclass(frozen=True)
class OutageStarted(_Outage, kind="outage_started"):
    """The job API is unavailable. `reason` is our text, `problem_text` its own; it asked not to be called before
    `until` (seconds since the epoch).
    """

    words_by_problem: ClassVar[Mapping[Problem, str]] = {
        Problem.OUT_OF_REACH: "I can't reach the agent. {meaning}",
        Problem.FAULTY: "The agent isn't answering properly. {meaning}",
        Problem.RATE_LIMITED: "The agent's limit is used up{until}. {meaning}",
        Problem.BUSY: "The agent is busy{until}. {meaning}",
    }
    problem: Problem
    reason: str = ""
    problem_text: str = ""
    until: int | None = None

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        meaning = show("News of this job follows as soon as that changes; you don't need to do anything.")
        words = self.words_by_problem.get(self.problem, self.words_by_problem[Problem.OUT_OF_REACH])
        if waiting := self._waiting(show):
            later = "{It} goes out by itself as soon as that changes; you don't need to do anything."
            meaning = show(later, It=_capital(waiting))
            if self.problem is Problem.RATE_LIMITED:
                words = "The agent's hourly limit is used up{until}. {meaning}"
        until = NOTHING if self.until is None else show(", at least until {time}", time=show.moment(self.until))
        return Said(_with_its_words(show, show(words, until=until, meaning=meaning), self.problem_text))


@dataclass(frozen=True)
class AccessDenied(_Outage, kind="access_denied"):
    """The job API does not accept our key, with status 401 or 403."""

    status: int

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        words = "The agent doesn't accept my key (401), so {meaning}. Please ask {ask} to fix that."
        if self.status == _FORBIDDEN:
            words = (
                "The agent doesn't let me do this with my key, or from here (403), so {meaning}. Please ask {ask} to "
                "fix that."
            )
        waiting = self._waiting(show)
        meaning = show("{it} waits", it=waiting) if waiting else show("news of this job waits")
        return Said(show(words, meaning=meaning))


@dataclass(frozen=True)
class OutageEnded(NoticeContent, kind="outage_ended"):
    """The job API is available again. `problem`: what was wrong."""

    problem: Problem | None = None

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        if self.problem is Problem.GONE:
            return Said(show("The agent has this job again. Everything goes on from here."))
        if self.problem in {Problem.RATE_LIMITED, Problem.BUSY}:
            return Said(show("The agent takes requests again. Everything goes on from here."))
        return Said(show("The agent is back. Everything goes on from here."))

    @staticmethod
    def key(count: int) -> NoticeKey:
        """`count`: the same as when it started."""
        return NoticeKey(f"back/{count}")


@dataclass(frozen=True)
class RequestRejected(_AboutRequest, kind="request_rejected"):
    """A request was not accepted, or without effect. `api_text` is the job API's text, `status` that of its response;
    `stopped_by` is who stopped the job before it was sent.
    """

    words_by_reason: ClassVar[Mapping[RejectionReason | int, str]] = {
        RejectionReason.API: "{It} was refused. Change it and send it again.",
        RejectionReason.ADDRESS: (
            "{It} wasn't sent: the agent's server redirects to another address. Ask {ask} to look into that, then "
            "send it again."
        ),
        RejectionReason.PROJECT: (
            "{It} wasn't sent: the agent doesn't know this project. Ask {ask} to check the project's id."
        ),
        RejectionReason.GONE: "{It} wasn't sent: the agent no longer has this job. Start a new one with {slash}.",
        RejectionReason.NOT_FOUND: (
            "{It} wasn't sent: the agent says it doesn't know this job. Write it again later, or start a new job with "
            "{slash}."
        ),
        RejectionReason.ARCHIVED: "{It} wasn't sent: this job is archived. Start a new one with {slash}.",
        RejectionReason.ACCEPTED_WHILE_ARCHIVED: (
            "{It} was sent, but may come to nothing: this job is archived. Start a new one with {slash}."
        ),
        RejectionReason.NOT_STARTED: "{It} wasn't sent: nothing came of this job. Start a new one with {slash}.",
        RejectionReason.HANDED_BACK: (
            "{It} wasn't sent: the agent hasn't taken it for days. Send it again if it still matters."
        ),
        RejectionReason.UNREADABLE: "{It} wasn't sent: my record of it is damaged. Please write it again.",
        RejectionReason.NOT_PERMITTED: ("{It} wasn't sent: its writer may not ask for that here, and was told why."),
        RejectionReason.STOPPED: (
            "{It} wasn't sent: {who} stopped the job before. Write it again if it still matters."
        ),
        RejectionReason.REPLACED: "{It} wasn't sent: this job was already started again.",
        RejectionReason.NOTHING_TO_STOP: "There was nothing to stop: this job had already ended.",
        RejectionReason.OTHER: "{It} was refused.",
        402: "{It} wasn't sent: the agent has to be paid for first. Ask {ask} to do that, then send it again.",
        403: (
            "{It} wasn't sent: a firewall in front of the agent refused these words. Change them and send it again; if "
            "that doesn't help, ask {ask}."
        ),
        451: "{It} was refused for legal reasons, for good. Sending it again won't help.",
    }
    """By the reason or, where that says more, the status of the job API's response."""
    reason: RejectionReason
    api_text: str = ""
    stopped_by: str = ""
    status: int | None = None

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        handed_back = self.reason is RejectionReason.HANDED_BACK
        by_status = self.status in self.words_by_reason and (handed_back or self.reason is RejectionReason.API)
        words = show(
            self.words_by_reason[self.status if by_status and self.status else self.reason],
            It=_capital(self.request.named(show)),
            who=show.person(self.stopped_by) or show("somebody"),
        )
        return self.request.answered(show, words, self.api_text, again=handed_back)

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for each attempt."""
        return NoticeKey(f"{request.id}/refused/{request.attempts}")

    @staticmethod
    def unreadable_key(request_id: str) -> NoticeKey:
        """Told once for a request whose record is damaged."""
        return NoticeKey(f"{request_id}/unreadable")


@dataclass(frozen=True)
class RequestUncertain(_AboutRequest, kind="request_uncertain"):
    """Nobody knows whether a request was accepted, for the reason in `doubt`; a person can send it again. `job_ended`:
    the job was not running, so people would see if it starts to work on a follow-up. `api_text` is the job API's text.
    """

    words_of_start: ClassVar = (
        "I can't tell if this started. Look for a new pull request; if there is none, press *Send again*."
    )
    words_after_end: ClassVar = (
        "I can't tell if {it} reached the agent. If nothing happens here in a few minutes, press *Send again*."
    )
    words_at_work: ClassVar = (
        "I can't tell if {it} reached the agent, which is at work. See what it does next; if that isn't it, press "
        "*Send again*."
    )
    job_ended: bool = True
    doubt: Doubt = Doubt.NO_ANSWER
    api_text: str = ""

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        words = self.words_of_start
        if self.request.kind is not RequestKind.START:
            words = self.words_after_end if self.job_ended else self.words_at_work
        told = show(words, it=self.request.named(show))
        if self.doubt is Doubt.SERVER_FAILED:
            told = show("The agent's server failed, so {words}", words=told)
        return self.request.answered(show, told, self.api_text, again=True)

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for each attempt."""
        return NoticeKey(f"{request.id}/unsure/{request.attempts}")


@dataclass(frozen=True)
class ReplyNotFullySent(Addressed, kind="reply_not_fully_sent"):
    """A reply contained more than text, or no text."""

    quotes: ClassVar = ("file_names",)
    person_id: str
    words_sent: bool
    file_count: int = 0
    file_names: tuple[str, ...] = ()
    forwarded: bool = False

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        words = "{who} Nothing was sent: your reply has no words for the agent. Reply with what it should do."
        if self.words_sent:
            words = "{who} Your text goes to the agent, but not what you attached. Reply with what matters as text."
        elif self.file_count or self.forwarded:
            words = "{who} Nothing was sent: I can't pass on what you attached. Reply with what matters as text."
        return Said(Markup(show(words, who=show.person(self.person_id)).strip()))

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for a reply, however it is handled."""
        return NoticeKey(f"{request.reply_id}/not_carried")


@dataclass(frozen=True)
class ContextCut(Addressed, kind="context_cut"):
    """The agent does not get all of a request's context.

    Attributes:
        person_id: Whose request it is.
        link_only: Names of files of which the agent gets only the link.
        cut_files: Names of files that are shortened.
        left_out: Parts of the thread or of forwarded messages are left out.
        masked: The kinds of secrets that were masked.
        name_only: Names of files of which the agent gets only the name.
        thread_unread: The thread could not be read.
    """

    quotes: ClassVar = ("link_only", "cut_files", "name_only")
    person_id: str
    link_only: tuple[str, ...] = ()
    cut_files: tuple[str, ...] = ()
    left_out: bool = False
    masked: tuple[str, ...] = ()
    name_only: tuple[str, ...] = ()
    thread_unread: bool = False

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        kinds = joined([show.line(kind, 40) for kind in self.masked], ", ")
        lines = {
            "• Only a link, not the content: {names}.": self.link_only,
            "• Neither content nor link: {names}. Reply with what matters as text.": self.name_only,
            "• Not the thread: Slack didn't give me its messages. Reply with what matters.": self.thread_unread,
            "• Not the whole of {names}: it's too long.": self.cut_files,
            "• Not all that was said or forwarded: it's too long.": self.left_out,
            "• Hidden, because it looked secret: {kinds}.": self.masked,
        }
        missing = [
            show(
                line,
                kinds=kinds,
                names=some(show, files, "a file") if isinstance(files, tuple) else NOTHING,
            )
            for line, files in lines.items()
            if files
        ]
        words = "{who} Your request goes to the agent, but not all that belongs to it:\n{list}"
        return Said(Markup(show(words, who=show.person(self.person_id), list=joined(missing, "\n")).strip()))

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for a request."""
        return NoticeKey(f"{request.reply_id}/cut")

    @staticmethod
    def files_key(request: Request) -> NoticeKey:
        """Told once for a request whose files could not be uploaded."""
        return NoticeKey(f"{request.reply_id}/files")
