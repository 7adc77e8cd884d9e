"""Trigger ids, which come with interactions: each lets the app open one view within seconds."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from bot.workspace.model.errors import SlackError

LIFETIME_SECONDS = 3.0
MAX_REMEMBERED = 10_000


@dataclass(frozen=True)
class Trigger:
    """What a trigger id refers to: who did something, and in which conversation or view.

    ``channel`` and ``view`` are ids; a global shortcut has neither.
    """

    user: str
    channel: str | None = None
    view: str | None = None


class Triggers:
    """Issues trigger ids and accepts each once.

    Args:
        now: The clock, in seconds.
        lifetime: Seconds until a trigger id expires.
    """

    def __init__(self, now: Callable[[], float], lifetime: float = LIFETIME_SECONDS) -> None:
        self.lifetime = lifetime
        self._now = now
        self._issued: dict[str, tuple[Trigger, float]] = {}

    def issue(self, trigger: Trigger) -> str:
        while len(self._issued) >= MAX_REMEMBERED:
            del self._issued[next(iter(self._issued))]
        now = self._now()
        trigger_id = f"{int(now)}.{secrets.randbelow(10**10)}.{secrets.token_hex(16)}"
        self._issued[trigger_id] = trigger, now + self.lifetime
        return trigger_id

    def check(self, trigger_id: str) -> Trigger:
        """Returns what a trigger id refers to, without using it up.

        Raises:
            SlackError: ``invalid_trigger_id`` or ``expired_trigger_id``.
        """
        trigger, expires = self._issued.get(trigger_id, (None, 0.0))
        if trigger is None:
            raise SlackError("invalid_trigger_id")
        if expires < self._now():
            raise SlackError("expired_trigger_id")
        return trigger

    def use_up(self, trigger_id: str) -> None:
        del self._issued[trigger_id]
