"""Which part of the bot a process is."""

from enum import Enum


class Role(Enum):
    """What a process does. Any number of each can share one PostgreSQL."""

    RUN = "run"
    """Everything."""
    WEB = "web"
    """Receives Slack's signed requests, records and acknowledges them. Serves the health alone where Slack is reached
    over Socket Mode."""
    WORKER = "worker"
    """Works on what is recorded; holds the connections to Slack where it is reached over Socket Mode."""

    @property
    def schedules(self) -> bool:
        """Whether this process works on what is recorded."""
        return self is not Role.WEB

    def receives(self, *, over_socket_mode: bool) -> bool:
        """Whether Slack's requests come to this process."""
        return self is Role.RUN or (self is Role.WORKER) == over_socket_mode
