"""The setup breaks and is fixed; instances check it, and report faults to the administrator."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from support.machine.machine import Machine
from support.oracles.promises import Fault, check, posted_too_often, wrongly_reported
from support.worlds.fault_traps import OPERATOR_TRAPS
from support.worlds.fault_world import SetupOutside, Trap

from bot.domain.last_times import LastTime
from bot.scheduler.fault_reporter import DAY

CHECKS = ("database", "slack.scopes.files:read")


@dataclass(frozen=True)
class Episode:
    """A fault since it was found `at` a time, whether or not it came and went within a day. `is_new`: it was not there
    at the first look.
    """

    name: str
    at: float
    is_new: bool

    @property
    def key(self) -> str:
        """The key of the message about it."""
        return f"{self.name}/{self.at // DAY:.0f}"


class Operating(Machine):
    """The setup changes, whoever checks it and whatever happens to the reports."""

    def __init__(self) -> None:
        super().__init__()
        self.setup = self.outside.setup = SetupOutside()
        self.open: dict[str, Episode] = {}
        """The faults that are recorded as open."""
        self.episodes: dict[str, list[Episode]] = {name: [] for name in CHECKS}
        self.looked_before = False

    @initialize(tells_a_person=st.booleans())
    def has_an_administrator(self, *, tells_a_person: bool) -> None:
        self.setup.tells_a_person = tells_a_person

    @rule(
        name=st.sampled_from(CHECKS),
        seen_by=st.sampled_from([0, 1, 1, None]),
        known=st.sampled_from([False, False, False, True]),
        longest_runs_of=st.sampled_from([0, 1, None]),
        trap=st.sampled_from([None, *OPERATOR_TRAPS]),
    )
    def breaks_or_is_fixed(
        self, *, name: str, seen_by: int | None, known: bool, longest_runs_of: int | None, trap: Trap | None
    ) -> None:
        """An instance checks it at once, or later; `known`: it may be broken at the first check."""
        if not (known or self.looked_before):
            self.looks(0)
        self.setup.broken ^= {name}
        if seen_by is not None:
            self.looks(seen_by)
        if longest_runs_of is not None:
            self._tell(longest_runs_of, trap)

    @rule(at=st.integers(0, 1), trap=st.sampled_from([None, *OPERATOR_TRAPS]))
    def tells(self, at: int, trap: Trap | None) -> None:
        self._tell(at, trap)

    def _tell(self, at: int, trap: Trap | None) -> None:
        """An instance takes up reports that are due, which may fail."""
        if trap is not None and not any(other.edge == "operator" for other in self.outside.traps):
            self.outside.traps.append(trap)
        process = self.processes[at]
        self.in_process(at, process.take(process.fault_reporter))
        if process.in_hand:
            self.in_process(at, process.work(-1))

    @invariant()
    def no_fault_is_told_twice(self) -> None:
        """A person may be, until a process can look it up."""
        if not self.setup.tells_a_person:
            check(posted_too_often(self.setup.told))

    def looks(self, at: int) -> None:
        """An instance runs its checks."""
        self.in_process(at, self.processes[at].look(CHECKS))

    def end_well(self) -> None:
        """Every fault that is still there in the end was reported."""
        super().end_well()
        self.looks(0)
        self.settle_down()
        assert {*self.open} == self.setup.broken
        check(wrongly_reported(self._told(each) for found in self.episodes.values() for each in found))
        known = {each.key for found in self.episodes.values() for each in found}
        assert not (unknown := {*self.setup.told} - known), unknown

    def after_step(self) -> None:
        super().after_step()
        recorded = {row["key"] for row in self.rows("faults") if row["cleared_at"] is None}
        for name in recorded - self.open.keys():
            self.open[name] = self._episode(name)
        for name in self.open.keys() - recorded:
            del self.open[name]
        if not self.looked_before:
            self.looked_before = any(row["kind"] == LastTime.CHECKS for row in self.rows("last_times"))

    def _episode(self, name: str) -> Episode:
        now, found = self.outside.clock.time, self.episodes[name]
        if not found or found[-1].at <= now - DAY:
            found.append(Episode(name, now, is_new=self.looked_before))
        return found[-1]

    def _told(self, episode: Episode) -> Fault:
        owed = self.open.get(episode.name) is episode and episode.key not in self.setup.refused
        return Fault(episode.key, self.setup.told.count(episode.key), episode.is_new, owed)
