"""What becomes of the jobs' pull requests at their code host, and that people are told once."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from support.machine.machine import LINKS, Machine

from bot.codehosts.pull_request import Check, CheckOutcome, Reason, Review, Unreadable, Verdict
from bot.notices.pull_requests import PullRequestMerged, PullRequestNews

_TOLD = (
    {"head": "b2"},
    {"head": "a1", "checks": (Check(name="lint", outcome=CheckOutcome.FAILED),)},
    {"checks": (Check(name="lint", outcome=CheckOutcome.RUNNING),)},
    {"reviews": (Review(author="rae", verdict=Verdict.CHANGES_REQUESTED, head="a1"),)},
    {"state": "closed"},
    {"state": "open"},
    {"state": "merged", "ended_by": "rae"},
)
_REFUSALS = (
    None,
    Unreadable(Reason.OUT_OF_REACH),
    Unreadable(Reason.RATE_LIMITED, wait=400.0),
    Unreadable(Reason.NOT_ALLOWED),
)


class PullRequests(Machine):
    """Rules by which pull requests change, and cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        for link in LINKS:
            self.outside.code_hosts.show(link)

    @rule(link=st.sampled_from(LINKS), told=st.sampled_from(_TOLD))
    def pull_request_changes(self, *, link: str, told: dict[str, object]) -> None:
        self.outside.code_hosts.show(link, **told)

    @rule(links=st.lists(st.sampled_from(LINKS), min_size=1, max_size=3))
    def webhooks_arrive(self, links: list[str]) -> None:
        """After a change, late, twice, replayed, or never: whoever sends them, nothing is read more often for it."""
        for link in links:
            self.read(lambda tx, link=link: tx.pull_requests.make_due([link]))  # type: ignore[misc]

    @rule(refusal=st.sampled_from(_REFUSALS))
    def the_code_host_refuses(self, refusal: Unreadable | None) -> None:
        self.outside.code_hosts.refuses = refusal

    @invariant()
    def no_news_of_a_link_is_told_twice_in_a_thread(self) -> None:
        """Whichever of the thread's jobs has it."""
        posted = [each for each in self.outside.chat.messages if isinstance(each.message, PullRequestNews)]
        told = Counter((each.channel_id, each.thread_ts, each.key.partition("/")[2]) for each in posted)
        assert all(count == 1 for count in told.values()), told

    def end_well(self) -> None:
        """In the end all that are still followed are merged, which each thread is told, unless it is muted."""
        self.outside.code_hosts.refuses = None
        super().end_well()
        still = {row["thread_id"] for row in self.rows("pull_requests") if row["due_at"] is not None}
        for link in LINKS:
            self.outside.code_hosts.show(link, state="merged", checks=(), reviews=())
        self.advance(7_300.0)
        self.settle_down()
        threads = self.stored_threads()
        followed = {row["thread_id"]: row["link"] for row in self.rows("pull_requests")}
        told = {
            (each.channel_id, each.thread_ts, each.message.link)
            for each in self.outside.chat.messages
            if isinstance(each.message, PullRequestMerged)
        }
        for thread in threads.values():
            job = thread.state.job
            assert followed.get(thread.id) == (job.pr_link if job else None)
            if job is None or thread.id not in still or thread.ts is None or thread.card_ts is None:
                continue
            if not any(each.state.people.muted_by for each in threads.values() if each.ts == thread.ts):
                assert (thread.channel_id, thread.ts, job.pr_link) in told
            card = self.outside.chat.cards[thread.id].pull_request
            assert card is not None
            assert card.found is not None
            assert card.found.pull_request.state == "merged"
