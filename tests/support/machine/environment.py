"""Events outside the bot: calls fail, jobs change, channels are archived, time passes."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from support.machine.machine import LINKS, Machine
from support.oracles.promises import check, posted_too_often
from support.worlds.fault_traps import TRAPS
from support.worlds.fault_world import Trap

from bot.jobapi.models import JobDetails, Mode, PartialWork, PlanStep, StepStatus
from bot.notices.notice import Delivery
from bot.store.schema.tables import NoticeState

DETAILS = (
    None,
    None,
    JobDetails(plan=(PlanStep(title="Read", status=StepStatus.IN_PROGRESS),), activity="Reading"),
    JobDetails(plan=(PlanStep(title="Read", status=StepStatus.COMPLETED), PlanStep(title="Write")), activity="Writing"),
    JobDetails(summary="Done.", revision="a1"),
    JobDetails(mode=Mode.ASK, summary="Because.", revision="a1", pages_read=("a.md",)),
    JobDetails(summary="It was short already.", reason="It was short already.", revision="a1"),
    JobDetails(reason="out of credit", revision="a1", partial_work=PartialWork(files=2)),
    JobDetails(question="Which guide?"),
    JobDetails(summary="Which guide?", question="Which guide?", revision="b2"),
)


class Traps(Machine):
    """Rules by which calls fail."""

    @rule(trap=st.sampled_from(TRAPS))
    def something_will_go_wrong(self, trap: Trap) -> None:
        if len(self.outside.traps) < 3:
            self.outside.traps.append(trap)


class Environment(Machine):
    """Rules by which jobs, channels and time change."""

    @precondition(lambda self: self.outside.job_api.jobs)
    @rule(
        which=st.integers(0, 9),
        status=st.sampled_from(["active", "completed", "failed", "archived", "queued"]),
        link=st.sampled_from([None, *LINKS]),
        details=st.sampled_from(DETAILS),
    )
    def job_changes(self, *, which: int, status: str, link: str | None, details: JobDetails | None) -> None:
        self.outside.job_api.show(self.job(which), status, link, details)

    @precondition(lambda self: self.outside.job_api.jobs)
    @rule(which=st.integers(0, 9))
    def job_vanishes_or_is_back(self, which: int) -> None:
        self.outside.job_api.hidden ^= {self.job(which)}

    @rule(channel=st.sampled_from(["C1", "C2"]))
    def channel_is_archived_or_back(self, channel: str) -> None:
        self.outside.chat.archived ^= {channel}

    @rule(seconds=st.sampled_from([0.5, 2.0, 2.0, 9.0, 31.0, 31.0, 100.0, 400.0, 300_000.0]))
    def time_passes(self, seconds: float) -> None:
        self.advance(seconds)

    @invariant()
    def nothing_is_said_twice(self) -> None:
        check(posted_too_often(message.key for message in self.outside.chat.messages))

    @invariant()
    def there_is_no_job_before_its_card_unless_it_can_be_stopped(self) -> None:
        """Nor one that replaces another, or that lacks the thread to which it should be linked."""
        threads, waiting = {row["id"]: row for row in self.rows("threads")}, self.uncarded()
        for start in (row["id"] for row in self.rows("requests") if row["kind"] == "start"):
            if start in self.outside.job_api.effects and start in waiting:  # a start has the id of its thread
                assert self.outside.job_api.cancels
                assert not threads[start]["follows"]
                assert threads[start]["root_ts"] or not self.outside.links

    @invariant()
    def a_job_whose_card_was_given_up_is_stopped(self) -> None:
        given_up = {row["thread_id"] for row in self.rows("notices") if _is_a_lost_card(row)}
        stopped = {row["thread_id"] for row in self.rows("requests") if row["kind"] == "stop"}
        for row in self.rows("threads") if given_up else ():
            at_work = self.outside.job_api.at_work.get(row["job_id"], [])
            if row["id"] in given_up and row["card_ts"] is None and at_work and all(works for _, works in at_work):
                assert row["id"] in stopped, dict(row)


def _is_a_lost_card(row: Mapping[str, Any]) -> bool:
    return bool(row["delivery"] == Delivery.CARD and row["state"] == NoticeState.GIVEN_UP)
