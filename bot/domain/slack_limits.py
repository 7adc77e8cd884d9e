"""How often Slack lets its methods be called, and when the next call may go. Pure.

Slack limits each method by itself, for the app in its workspace: so many calls a minute, by the method's tier, with
occasional bursts of more. Posts besides have about one a second in each channel. What was called is kept as one number,
the theoretical arrival time (`tat`) of the generic cell rate algorithm: the time by which all calls so far would have
been made at an even pace. Every call moves it on by one interval; a burst lets it run ahead of the clock.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

MINUTE = 60.0
_ROUNDING = 1e-6
"""Of a call: times are seconds since the epoch, of which a double keeps less than a microsecond."""


class SlackMethod(StrEnum):
    """The methods by which something is said in threads."""

    POST_EPHEMERAL = "chat.postEphemeral"
    POST_MESSAGE = "chat.postMessage"
    UPDATE = "chat.update"
    ADD_REACTION = "reactions.add"
    REMOVE_REACTION = "reactions.remove"


@dataclass(frozen=True)
class Limit:
    """So many calls a minute at an even pace, and `burst` at once where there were none for a while."""

    per_minute: float
    burst: int

    @property
    def interval(self) -> float:
        """Seconds between two calls at an even pace."""
        return MINUTE / self.per_minute

    def calls(self, tat: float, now: float, *, reserve: int = 0) -> int:
        """Returns how many calls may go now. `reserve`: so many are left to whoever comes first."""
        ahead = max(tat - now, 0.0) / self.interval
        return max(math.floor(self.burst - reserve - ahead + _ROUNDING), 0)

    def wait(self, tat: float, now: float) -> float:
        """Returns the seconds till the next call may go."""
        return max(tat - now - (self.burst - 1) * self.interval, 0.0)

    def after_refusal(self, now: float, retry_after: float) -> float:
        """Returns the least `tat` after a 429: one call may go when Slack says, and the others at an even pace."""
        return now + retry_after + (self.burst - 1) * self.interval


TIER_2, TIER_3, TIER_4 = Limit(20, 20), Limit(50, 50), Limit(100, 100)
WORKSPACE_POSTS = Limit(300, 60)
"""Slack names no number for all channels together: several hundred a minute."""
CHANNEL_POSTS = Limit(55, 1)
"""About one a second: what is sent a second apart can arrive closer together than that."""


@dataclass(frozen=True)
class SlackLimits:
    """The limits of methods by their names: for the whole workspace, and in each channel besides."""

    methods: Mapping[str, Limit]
    channel: Mapping[str, Limit]

    def is_channel_bound(self, method: str) -> bool:
        """Whether a 429 of the method is taken for that of one channel: its limit there is by far the lower one."""
        return method in self.channel

    def of(self, method: str, channel_id: str = "") -> Limit | None:
        """Returns a method's limit in a channel, or without one in the workspace; None where none is known."""
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
    "users.info": TIER_4,
    "views.publish": TIER_4,
}
"""Those with a tier that are called by themselves. What answers a person within three seconds waits for nothing, and
what a listener calls then is not among them."""
SLACK_LIMITS = SlackLimits(
    _METHODS, {SlackMethod.POST_EPHEMERAL: CHANNEL_POSTS, SlackMethod.POST_MESSAGE: CHANNEL_POSTS}
)


class CallKind(StrEnum):
    """What calls of Slack's are made for, in the order in which they get what Slack allows."""

    EPHEMERAL = "ephemeral"
    POST = "post"
    FIRST_CARD = "first_card"
    CARD = "card"
    """The card shows another state."""
    CARD_PROGRESS = "card_progress"
    """The card shows how far the agent is: worth half of what Slack allows."""
    ADD_REACTION = "add_reaction"
    REMOVE_REACTION = "remove_reaction"

    @property
    def method(self) -> SlackMethod:
        """The method that it is made by."""
        return _METHOD_OF[self]

    def reserve(self, limit: Limit) -> int:
        """Returns how many calls it leaves to those before it."""
        return limit.burst // 2 if self is CallKind.CARD_PROGRESS else 0


_METHOD_OF = {
    CallKind.EPHEMERAL: SlackMethod.POST_EPHEMERAL,
    CallKind.POST: SlackMethod.POST_MESSAGE,
    CallKind.FIRST_CARD: SlackMethod.POST_MESSAGE,
    CallKind.CARD: SlackMethod.UPDATE,
    CallKind.CARD_PROGRESS: SlackMethod.UPDATE,
    CallKind.ADD_REACTION: SlackMethod.ADD_REACTION,
    CallKind.REMOVE_REACTION: SlackMethod.REMOVE_REACTION,
}


@dataclass(frozen=True)
class Grant:
    """So many calls may go now; or none, and the next in `wait` seconds."""

    calls: int
    wait: float = 0.0


class Budget:
    """What may be called now: the numbers of methods and channels as they were read, less what is spent meanwhile.

    Args:
        limits: Slack's.
        now: The time on the store's clock.
        tats: By method and channel (empty: the workspace); what is not among them was not called for a while.
    """

    def __init__(self, limits: SlackLimits, now: float, tats: Mapping[tuple[str, str], float]) -> None:
        self._limits = limits
        self._now = now
        self._tats = dict(tats)
        self._spent: Counter[tuple[str, str]] = Counter()

    def calls(self, kind: CallKind) -> int:
        """Returns how many calls of a kind may go, in all channels together."""
        limit = self._limits.methods[kind.method]
        return limit.calls(self._tat(kind.method, "", limit), self._now, reserve=kind.reserve(limit))

    def held_channels(self, kind: CallKind) -> list[str]:
        """Returns the channels that take nothing of a kind now."""
        channels = {channel_id for method, channel_id in self._tats if channel_id and method == kind.method}
        return sorted(channel_id for channel_id in channels if not self._takes(kind.method, channel_id))

    def spend(self, kind: CallKind, channel_id: str) -> bool:
        """Takes a call of a kind in a channel; False where none may go."""
        if not (self.calls(kind) and self._takes(kind.method, channel_id)):
            return False
        self._spent[kind.method, ""] += 1
        if self._limits.is_channel_bound(kind.method):
            self._spent[kind.method, channel_id] += 1
        return True

    def take(self, method: str, wanted: int) -> Grant:
        """Takes at most so many calls of a method that is called in no thread."""
        limit = self._limits.methods[method]
        tat = self._tat(method, "", limit)
        calls = min(limit.calls(tat, self._now), wanted)
        self._spent[method, ""] += calls
        return Grant(calls, 0.0 if calls else limit.wait(tat, self._now))

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
