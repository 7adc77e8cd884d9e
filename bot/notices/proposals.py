"""Posts about a plan that the agent proposes before it changes anything, and answers to presses that come too late."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from bot.domain.jobs.job import Answer, digest
from bot.domain.threads.thread import ProposalEnd
from bot.jobapi.models import ProposedPage
from bot.notices.notice import Addressed, NoticeContent, NoticeKey, ToPerson
from bot.notices.said import NOTHING, Button, ButtonId, Markup, Renderer, Said, joined

if TYPE_CHECKING:
    from bot.domain.threads.thread import Thread  # whose state contains a notice

_MAX_PAGE, _MAX_REASON = 120, 200


@dataclass(frozen=True)
class ProposalMade(Addressed, kind="proposal_made"):
    """The agent has made a plan. The post shows what became of it, as the thread's state has it; `page_count` counts
    all pages. `person_id` is who asked for it; empty: the requester.
    """

    ends_work: ClassVar = True
    words_by_end: ClassVar[Mapping[ProposalEnd, str]] = {
        ProposalEnd.STARTED: "Started by {who}.",
        ProposalEnd.DROPPED: "Dropped by {who}. {reply} for another plan.",
        ProposalEnd.STOPPED: "Stopped by {who}. {reply} for another plan.",
        ProposalEnd.REVISED: "{who} replied, so this plan no longer counts.",
        ProposalEnd.OUTDATED: "A newer plan replaces this one.",
        ProposalEnd.OVER: "This plan can't be started any more. Ask again with {slash}.",
    }
    proposal_id: str
    text: Answer | None
    pages: tuple[ProposedPage, ...] = ()
    page_count: int = 0
    person_id: str = field(default="", kw_only=True)

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        planning = thread.state.planning
        end: ProposalEnd | None = ProposalEnd.OUTDATED
        if planning.proposal_id == self.proposal_id:
            end = None if planning.proposal_asked else planning.proposal_end
        if end is not None:
            who = show.person(planning.proposal_end_by) or show("somebody")
            return Said(show(self.words_by_end[end], who=who))
        words = "{who} Here's the plan: nothing is changed until somebody presses *Start*. {reply} for another one."
        value = f"{thread.id}/{self.proposal_id}"
        buttons = Button("Start", ButtonId.ACCEPT_PROPOSAL, value), Button("Drop it", ButtonId.DROP_PROPOSAL, value)
        return Said(show(words, who=show.person(self.person_id or thread.requester_id)), buttons)

    def shown_pages(self, show: Renderer) -> Markup:
        """Returns the pages that would change, and why, a line each; empty if none is named."""
        lines = [_page(show, page) for page in self.pages]
        left = self.page_count - len(lines)
        more = [show("• and {count} more", count=left)] if left > 0 else []
        return joined([show("Pages that it would change:"), *lines, *more], "\n") if lines else NOTHING

    @staticmethod
    def key(proposal_id: str) -> NoticeKey:
        """Told once for each plan."""
        return NoticeKey(f"plan/{digest(proposal_id)}")


def _page(show: Renderer, page: ProposedPage) -> Markup:
    words = "• {path}: {reason}" if page.reason else "• {path}"
    return show(words, path=show.line(page.path, _MAX_PAGE), reason=show.line(page.reason or "", _MAX_REASON))


@dataclass(frozen=True)
class _Waited(NoticeContent):
    """About a plan that was made then, in seconds since the epoch."""

    proposed_at: float

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        return Said(show(self.words, time=show.day_and_time(self.proposed_at)))


@dataclass(frozen=True)
class ProposalWaits(_Waited, kind="proposal_waits"):
    """A plan still waits."""

    words: ClassVar = "The plan from {time} still waits: press *Start* or *Drop it* below it. {reply} for another one."

    @staticmethod
    def key(proposal_id: str, nth: int) -> NoticeKey:
        """Told twice for each plan."""
        return NoticeKey(f"plan/{digest(proposal_id)}/waits/{nth}")


@dataclass(frozen=True)
class ProposalOver(_Waited, kind="proposal_over"):
    """A plan has waited for too long."""

    words: ClassVar = "The plan from {time} can't be started any more: nobody did for too long. Ask again with {slash}."

    @staticmethod
    def key(proposal_id: str) -> NoticeKey:
        """Told once for each plan."""
        return NoticeKey(f"plan/{digest(proposal_id)}/over")


@dataclass(frozen=True)
class ProposalPressed(ToPerson, kind="proposal_pressed"):
    """A press about a plan does nothing, because of what became of it. `newer_ts`: the post of a newer plan."""

    words_by_end: ClassVar[Mapping[ProposalEnd, str]] = {
        ProposalEnd.STARTED: "No need: {who} started this plan.",
        ProposalEnd.DROPPED: "Nothing was done: {who} dropped this plan. {reply} for another one.",
        ProposalEnd.STOPPED: "Nothing was done: {who} stopped this job. {reply} for another plan.",
        ProposalEnd.REVISED: (
            "Nothing was done: somebody replied before you pressed, so a new plan follows. Press *Start* below it."
        ),
        ProposalEnd.OUTDATED: "Nothing was done: there is a newer plan. Press *Start* below that one.",
        ProposalEnd.OVER: "Nothing was done: this plan can't be started any more. Ask again with {slash}.",
    }
    end: ProposalEnd
    newer_ts: str = ""

    @property
    def leads_to(self) -> str:
        """See ToPerson."""
        return self.newer_ts

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        who = show.person(thread.state.planning.proposal_end_by) or show("somebody")
        return Said(show(self.words_by_end[self.end], who=who))
