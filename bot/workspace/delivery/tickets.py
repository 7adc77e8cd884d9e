"""The tickets in Socket Mode's addresses."""

import secrets
from collections.abc import Callable


class Tickets:
    """Lets each address be used for one connection, and only for a while.

    Args:
        now: The clock, in seconds.
        lifetime: Seconds that a ticket is good for.
    """

    def __init__(self, now: Callable[[], float], lifetime: float) -> None:
        self._now = now
        self._lifetime = lifetime
        self._expiry: dict[str, float] = {}

    def issue(self) -> str:
        now = self._now()
        self._expiry = {ticket: end for ticket, end in self._expiry.items() if end > now}
        ticket = secrets.token_urlsafe(24)
        self._expiry[ticket] = now + self._lifetime
        return ticket

    def redeem(self, ticket: str) -> bool:
        """Uses a ticket up. Returns whether it was good."""
        return self._expiry.pop(ticket, 0) > self._now()
