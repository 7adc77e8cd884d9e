"""Posts about a pull request after its link: in the thread only, each once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.codehosts.pull_request import CheckOutcome, PullRequest, Reason, Verdict
from bot.jobapi.models import PullRequestState
from bot.notices.notice import NoticeContent, NoticeKey
from bot.notices.said import NOTHING, Markup, Renderer, Said, joined, open_button, some

if TYPE_CHECKING:
    from bot.domain.pull_requests import FollowedPullRequest  # which decides on these notices
    from bot.domain.threads.thread import Thread  # whose state contains a notice

_SHOWN_NAMES = 5


def state_words(state: PullRequestState | None, pull: PullRequest | None) -> str:
    """Returns the state of a pull request, which may not have been read, in brackets, with `{by}` for whoever ended it;
    empty if nobody knows it.
    """
    by = " by {by}" if pull and pull.ended_by else ""
    match state:
        case PullRequestState.MERGED:
            return f" (merged{by})"
        case PullRequestState.CLOSED:
            return f" (closed{by})"
        case PullRequestState.OPEN if pull:
            return " (in the merge queue)" if pull.queued else " (draft)" if pull.draft else " (open)"
        case _:
            return ""


_UNREADABLE: Mapping[Reason, str] = {
    Reason.NOT_FOUND: "I can't find it there any more, or may not see it",
    Reason.MOVED: "its address has changed",
    Reason.NOT_ALLOWED: "I'm not allowed to read it",
    Reason.NONSENSE: "its host's answer makes no sense",
}


def known_facts(show: Renderer, followed: "FollowedPullRequest") -> list[Markup]:
    """Returns what the card tells of a pull request, each a short text; nothing is claimed of what was not read."""
    facts, found = [], followed.found
    if found is not None:
        pull = found.pull_request
        facts += [*checks_and_reviews(show, pull), *_previews(show, pull)]
        if pull.unread:
            names = joined([show.line(name) for name in pull.unread], ", ")
            facts.append(show("I'm not allowed to read: {names}", names=names))
    why = _UNREADABLE.get(followed.unreadable) if followed.unreadable else None
    if why is not None:
        facts.append(show(f"I can't read this pull request: {why}. Please ask {{ask}}"))
    if found is not None:
        as_of = "Last read: {time}; I no longer follow it" if followed.ended else "As of: {time}"
        facts.append(show(as_of, time=show.day_and_time(followed.read_at)))
    return [fact for fact in facts if fact]


def checks_and_reviews(show: Renderer, pull: PullRequest) -> list[Markup]:
    """Returns those of the facts that say whether it can be merged."""
    return [fact for fact in (_checks(show, pull), _reviews(show, pull)) if fact]


def _checks(show: Renderer, pull: PullRequest) -> Markup:
    by_outcome = {outcome: [check for check in pull.checks if check.outcome is outcome] for outcome in CheckOutcome}
    failed, running = by_outcome[CheckOutcome.FAILED], len(by_outcome[CheckOutcome.RUNNING])
    passed = len(by_outcome[CheckOutcome.PASSED])
    told = [show("failed: {names}", names=some(show, [check.name for check in failed]))] if failed else []
    told += [show("{count} running", count=running)] if running else []
    told += [show("{count} passed", count=passed)] if passed else []
    return show("Checks: {told}", told=joined(told, ", ")) if told else NOTHING


_VERDICTS: Mapping[Verdict, str] = {
    Verdict.APPROVED: "{by} approved",
    Verdict.CHANGES_REQUESTED: "{by} asked for changes",
}


def _reviews(show: Renderer, pull: PullRequest) -> Markup:
    told = [
        show(_VERDICTS[each.verdict], by=show.line(each.author)) for each in pull.reviews if each.verdict in _VERDICTS
    ]
    return show("Reviews: {told}", told=joined(told[:_SHOWN_NAMES], ", ")) if told else NOTHING


def _previews(show: Renderer, pull: PullRequest) -> list[Markup]:
    return [
        show("Preview: {link} ({name})", link=show.link(each.link, 500), name=show.line(each.name))
        for each in pull.previews[:2]
    ]


@dataclass(frozen=True)
class PullRequestNews(NoticeContent):
    """News of a pull request. It mentions whoever asked for the job, unless they or the channel want no mentions."""

    link: str

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        return Said(show.addressed(show.mentioned, self.told(show)), open_button(self.link))

    def told(self, show: Renderer) -> Markup:
        """Returns the news, without whom it is for."""
        raise NotImplementedError


@dataclass(frozen=True)
class PullRequestMerged(PullRequestNews, kind="pull_request_merged"):
    """It was merged; `by` whom, if that is known."""

    by: str = ""

    def told(self, show: Renderer) -> Markup:
        """See PullRequestNews."""
        return show("Merged by {by}." if self.by else "Merged.", by=show.line(self.by))


@dataclass(frozen=True)
class PullRequestClosed(PullRequestNews, kind="pull_request_closed"):
    """It was closed without being merged."""

    by: str = ""

    def told(self, show: Renderer) -> Markup:
        """See PullRequestNews."""
        by = show(" by {by}", by=show.line(self.by)) if self.by else NOTHING
        return show("The pull request was closed{by} without being merged.", by=by)


@dataclass(frozen=True)
class ChecksFailed(PullRequestNews, kind="checks_failed"):
    """Checks fail that the base branch passes, by their names."""

    checks: tuple[str, ...]

    def told(self, show: Renderer) -> Markup:
        """See PullRequestNews."""
        words = "A check failed: {names}." if len(self.checks) == 1 else "{count} checks failed: {names}."
        return show(f"{words} {{reply}} to have it fixed.", count=len(self.checks), names=some(show, self.checks))


@dataclass(frozen=True)
class ChangesRequested(PullRequestNews, kind="changes_requested"):
    """A reviewer asks for changes, with this many comments on lines."""

    by: str
    comments: int = 0

    def told(self, show: Renderer) -> Markup:
        """See PullRequestNews."""
        words = "{by} asked for changes, with {count} comments."
        if self.comments < 2:  # noqa: PLR2004 - the singular
            words = "{by} asked for changes, with 1 comment." if self.comments else "{by} asked for changes."
        return show(
            f"{words} {{reply}} to pass on what the agent should change.", by=show.line(self.by), count=self.comments
        )


@dataclass(frozen=True)
class FollowUpAfterEnd(NoticeContent, kind="follow_up_after_end"):
    """A follow-up was sent although the pull request is merged or closed. `opens_another`: the job server then makes a
    new branch and pull request.
    """

    merged: bool
    opens_another: bool

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """See NoticeContent."""
        state = show("merged" if self.merged else "closed")
        words = "The pull request is {state}; what the agent does with this is up to its server."
        if self.opens_another:
            words = "The pull request is {state}, so this goes to a new branch and a new pull request."
        return Said(show(words, state=state))

    @staticmethod
    def key(link_digest: str) -> NoticeKey:
        """Told once for each pull request."""
        return NoticeKey(f"pull_request/{link_digest}/follow_up")
