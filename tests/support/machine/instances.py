"""What an instance does step by step, and what can happen to it."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.machine.machine import Machine


class Instances(Machine):
    """Rules by which instances work, hang, die and restart."""

    @rule(
        at=st.integers(0, 1),
        loop=st.sampled_from(
            ["request_preparer", "outbox", "file_uploader", "request_sender", "job_poller", "pull_request_poller"]
        ),
        limit=st.sampled_from([1, 100]),
    )
    def takes(self, at: int, loop: str, limit: int) -> None:
        process = self.processes[at]
        self.in_process(at, process.take(getattr(process, loop), limit))

    @precondition(lambda self: any(process.in_hand for process in self.processes))
    @rule(at=st.integers(0, 1), which=st.integers(0, 9))
    def works(self, at: int, which: int) -> None:
        if self.processes[at].in_hand:
            self.in_process(at, self.processes[at].work(which))

    @precondition(lambda self: any(process.pauses for process in self.processes))
    @rule(at=st.integers(0, 1), which=st.integers(0, 9))
    def goes_on(self, at: int, which: int) -> None:
        if self.processes[at].pauses:
            self.in_process(at, self.processes[at].resume(which))

    @rule(at=st.integers(0, 1))
    def does_all_there_is(self, at: int) -> None:
        self.in_process(at, self.processes[at].settle())

    @rule(at=st.integers(0, 1), seconds=st.sampled_from([2.0, 31.0]))
    def works_for_a_while(self, at: int, seconds: float) -> None:
        self.advance(seconds)
        self.in_process(at, self.processes[at].settle())

    @rule(at=st.integers(0, 1), gracefully=st.booleans())
    def is_restarted(self, *, at: int, gracefully: bool) -> None:
        process = self.processes[at]
        self.dies(at)
        if gracefully:
            self.read(lambda tx: tx.claims.release(process.owner))
            self.outside.reads.clear()  # what it was reading is read again at once
        self.processes[at] = self.born()
