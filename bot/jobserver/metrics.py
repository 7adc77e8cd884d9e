"""What the job server counts as it works."""

from enum import StrEnum


class RunEnd(StrEnum):
    """How a run of an instruction ended."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    CRASHED = "crashed"
    """By a fault of the job server's own."""


class RunCounts:
    """Takes note of runs. This class counts nothing, which is all there is where no metrics are served."""

    def ended(self, end: RunEnd) -> None:
        """A run has ended."""

    def refused(self, times: int) -> None:
        """A run was refused other hosts, or requests to its model, so many times."""

    def took(self, tokens: int) -> None:
        """A model was sent, or answered, so many tokens."""
