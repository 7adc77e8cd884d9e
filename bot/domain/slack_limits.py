"""Slack's rate limits, and when the next call of a method may be made. Pure.

Slack limits each method separately, per app and workspace: a number of calls per minute that depends on the method's
tier, with occasional bursts. In addition, posts are limited to about one per second in each channel. The calls made so
far are stored as one number, the theoretical arrival time (`tat`) of the generic cell rate algorithm: the time by which
all calls would have been made at an even pace. Each call moves it by one interval; a burst lets it run ahead of the
clock.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

MINUTE = 60.0
_ROUNDING = 1e-6
"""Fraction of a call. Times are seconds since the epoch, which a double stores to less than a microsecond."""


class SlackMethod(StrEnum):
    """The methods that the outbox calls."""

    POST_EPHEMERAL = "chat.postEphemeral"
    POST_MESSAGE = "chat.postMessage"
    UPDATE = "chat.update"
    ADD_REACTION = "reactions.add"
    REMOVE_REACTION = "reactions.remove"


@dataclass(frozen=True)
class Limit:
    """A number of calls per minute at an even pace, and up to `burst` at once after a pause."""

    per_minute: float
    burst: int

    @property
    def interval(self) -> float:
        """Seconds between calls at an even pace."""
        return MINUTE / self.per_minute

    def calls(self, tat: float, now: float, *, reserve: int = 0) -> int:
        """Returns how many calls may be made now, leaving `reserve` calls to more important kinds."""
        ahead = max(tat - now, 0.0) / self.interval
        return max(math.floor(self.burst - reserve - ahead + _ROUNDING), 0)

    def wait(self, tat: float, now: float, *, reserve: int = 0) -> float:
        """Returns the seconds until the next call may be made, leaving `reserve` calls to others."""
        return max(tat - now - (self.burst - 1 - reserve) * self.interval, 0.0)

    def after_refusal(self, now: float, retry_after: float) -> float:
        """Returns the minimum `tat` after a 429: one call at the time Slack gives, then others at an even pace."""
        return now + retry_after + (self.burst - 1) * self.interval


TIER_2, TIER_3, TIER_4 = Limit(20, 20), Limit(50, 50), Limit(100, 100)
WORKSPACE_POSTS = Limit(300, 60)
"""For all channels together, Slack only says "several hundred" per minute."""
CHANNEL_POSTS = Limit(55, 1)
"""A little less than one per second, because posts sent a second apart can arrive closer together."""


@dataclass(frozen=True)
class SlackLimits:
    """The limits by method name: `methods` for the whole workspace, `channel` additionally for each channel."""

    methods: Mapping[str, Limit]
    channel: Mapping[str, Limit]

    def is_channel_bound(self, method: str) -> bool:
        """Returns whether a 429 of the method counts as one channel's, because that limit is much lower."""
        return method in self.channel

    def of(self, method: str, channel_id: str = "") -> Limit | None:
        """Returns a method's limit in a channel, or in the workspace if no channel is given; None if unknown."""
        return self.channel.get(method) if channel_id else self.methods.get(method)


_METHODS: Mapping[str, Limit] = {
    SlackMethod.POST_EPHEMERAL: TIER_4,
    SlackMethod.POST_MESSAGE: WORKSPACE_POSTS,
    SlackMethod.UPDATE: TIER_3,
    SlackMethod.ADD_REACTION: TIER_3,
    SlackMethod.REMOVE_REACTION: TIER_2,
    "conversations.history": TIER_3,
    "conversations.info": TIER_3,
    "conversations.join": TIER_3,
    "conversations.replies": TIER_3,
    "files.info": TIER_4,
    "usergroups.users.list": TIER_2,
    "users.conversations": TIER_3,
    "users.info": TIER_4,
    "views.publish": TIER_4,
}
"""The methods that workers call. Calls that answer a person within three seconds never wait, so the methods that only
listeners call are not included."""
SLACK_LIMITS = SlackLimits(
    _METHODS, {SlackMethod.POST_EPHEMERAL: CHANNEL_POSTS, SlackMethod.POST_MESSAGE: CHANNEL_POSTS}
)


class CallKind(StrEnum):
    """What a call of Slack is for, in order of priority for the budget."""

    EPHEMERAL = "ephemeral"
    FIRST_CARD = "first_card"
    """Before posts, so that no job waits for what others are told."""
    POST = "post"
    CARD = "card"
    """The card shows a new state."""
    CARD_PROGRESS = "card_progress"
    """The card shows the agent's progress: may use half of the limit."""
    ADD_REACTION = "add_reaction"
    REMOVE_REACTION = "remove_reaction"

    @property
    def method(self) -> SlackMethod:
        """The method to call."""
        return _METHOD_OF[self]

    def reserve(self, limit: Limit) -> int:
        """Returns how many calls it leaves to kinds of higher priority."""
        return limit.burst // 2 if self is CallKind.CARD_PROGRESS else 0


_METHOD_OF = {
    CallKind.EPHEMERAL: SlackMethod.POST_EPHEMERAL,
    CallKind.FIRST_CARD: SlackMethod.POST_MESSAGE,
    CallKind.POST: SlackMethod.POST_MESSAGE,
    CallKind.CARD: SlackMethod.UPDATE,
    CallKind.CARD_PROGRESS: SlackMethod.UPDATE,
    CallKind.ADD_REACTION: SlackMethod.ADD_REACTION,
    CallKind.REMOVE_REACTION: SlackMethod.REMOVE_REACTION,
}


@dataclass(frozen=True)
class Grant:
    """The number of calls that may be made now; if it is 0, the next may be made in `wait` seconds."""

    calls: int
    wait: float = 0.0


class Budget:
    """The calls that may be made now: the stored state, less the calls spent since it was read.

    Args:
        limits: Slack's limits.
        now: The time on the store's clock.
        tats: By method and channel (empty: the workspace). Those not included were not called recently.
    """

    def __init__(self, limits: SlackLimits, now: float, tats: Mapping[tuple[str, str], float]) -> None:
        self._limits = limits
        self._now = now
        self._tats = dict(tats)
        self._spent: Counter[tuple[str, str]] = Counter()

    def calls(self, kind: CallKind) -> int:
        """Returns how many calls of a kind may be made, in all channels together."""
        limit = self._limits.methods[kind.method]
        return limit.calls(self._tat(kind.method, "", limit), self._now, reserve=kind.reserve(limit))

    def held_channels(self, kind: CallKind) -> list[str]:
        """Returns the channels in which no call of a kind may be made now."""
        channels = {channel_id for method, channel_id in self._tats if channel_id and method == kind.method}
        return sorted(channel_id for channel_id in channels if not self._takes(kind.method, channel_id))

    def spend(self, kind: CallKind, channel_id: str) -> bool:
        """Uses up a call of a kind in a channel. Returns False if none may be made."""
        if not (self.calls(kind) and self._takes(kind.method, channel_id)):
            return False
        self._spent[kind.method, ""] += 1
        if self._limits.is_channel_bound(kind.method):
            self._spent[kind.method, channel_id] += 1
        return True

    def take(self, method: str, wanted: int, *, yields: bool = False) -> Grant:
        """Takes at most so many calls of a method that is called in no thread. `yields`: nobody waits for them, so half
        of the limit is left to others.
        """
        limit = self._limits.methods[method]
        reserve = limit.burst // 2 if yields else 0
        tat = self._tat(method, "", limit)
        calls = min(limit.calls(tat, self._now, reserve=reserve), wanted)
        self._spent[method, ""] += calls
        return Grant(calls, 0.0 if calls else limit.wait(tat, self._now, reserve=reserve))

    def costs(self) -> Mapping[tuple[str, str], float]:
        """Returns by how many seconds each number moves on by what was spent."""
        return {at: calls * self._limit(*at).interval for at, calls in self._spent.items() if calls}

    def _takes(self, method: str, channel_id: str) -> bool:
        limit = self._limits.channel.get(method)
        return limit is None or limit.calls(self._tat(method, channel_id, limit), self._now) > 0

    def _tat(self, method: str, channel_id: str, limit: Limit) -> float:
        at = (method, channel_id)
        return max(self._tats.get(at, 0.0), self._now) + self._spent[at] * limit.interval

    def _limit(self, method: str, channel_id: str) -> Limit:
        return self._limits.channel[method] if channel_id else self._limits.methods[method]
