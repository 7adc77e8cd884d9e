"""Slack's rate limits, when the next call of a method may be made, and for how long Slack is waited for. Pure.

Slack limits each method separately, per app and workspace: a number of calls in any minute that depends on the method's
tier. In addition, posts are limited to about one per second in each channel. A call counts for as long as its limit's
window. Each is remembered by the time at which it ceases to count, so that the next may be made as soon as there is
room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

MARGIN = 1.0
"""Seconds for which a call counts longer, because calls can reach Slack closer together than they were made."""
MINUTE = 60.0 + MARGIN


class SlackMethod(StrEnum):
    """The methods that the outbox calls."""

    POST_EPHEMERAL = "chat.postEphemeral"
    POST_MESSAGE = "chat.postMessage"
    UPDATE = "chat.update"
    ADD_REACTION = "reactions.add"
    REMOVE_REACTION = "reactions.remove"


@dataclass(frozen=True)
class Limit:
    """At most this many calls in any window of so many seconds. `made`: when each call made ceases to count."""

    calls: int
    seconds: float = MINUTE

    def left(self, made: Sequence[float], now: float, *, reserve: int = 0) -> int:
        """Returns how many calls may be made now, leaving `reserve` calls to more important kinds."""
        return max(self.calls - reserve - len(counted(made, now)), 0)

    def wait(self, made: Sequence[float], now: float, *, reserve: int = 0) -> float:
        """Returns the seconds until the next call may be made, leaving `reserve` calls to others."""
        ends = sorted(counted(made, now))
        over = len(ends) - (self.calls - reserve)
        return ends[over] - now if over >= 0 else 0.0

    def after_refusal(self, made: Sequence[float], now: float, retry_after: float) -> list[float]:
        """Returns the calls after a 429: none may be made before the time that Slack gives. From then on, those
        made cease to count as before, and what else fills the window (calls of others, or a limit that is lower than
        documented) does so at an even pace.
        """
        until = now + retry_after
        ours = [max(end, until) for end in counted(made, now)]
        return ours + [until + n * self.seconds / self.calls for n in range(self.calls - len(ours))]


def counted(made: Sequence[float], now: float) -> list[float]:
    """Returns those of the calls that still count."""
    return [end for end in made if end > now]


TIER_2, TIER_3, TIER_4 = Limit(20), Limit(50), Limit(100)
WORKSPACE_POSTS = Limit(30, 6.0)
"""For all channels together, Slack only says "several hundred" per minute. In a short window, new cards, which come
first, never wait for long."""
CHANNEL_POSTS = Limit(1, 60 / 55)
"""A little less than one per second, because posts sent a second apart can arrive closer together."""


@dataclass(frozen=True)
class SlackLimits:
    """The limits by method name: `methods` for the whole workspace, `channel` additionally for each channel."""

    methods: Mapping[str, Limit]
    channel: Mapping[str, Limit]


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
    "files.completeUploadExternal": TIER_4,
    "files.getUploadURLExternal": TIER_4,
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


class CallKind(Enum):
    """What a call of Slack is for, in order of priority for the budget, with the method to call."""

    EPHEMERAL = "ephemeral", SlackMethod.POST_EPHEMERAL
    FIRST_CARD = "first_card", SlackMethod.POST_MESSAGE
    """Before posts, so that no job waits for what others are told."""
    POST = "post", SlackMethod.POST_MESSAGE
    CARD = "card", SlackMethod.UPDATE
    """The card shows a new state."""
    CARD_PROGRESS = "card_progress", SlackMethod.UPDATE
    """The card shows the agent's progress: may use half of the limit."""
    ADD_REACTION = "add_reaction", SlackMethod.ADD_REACTION
    ADD_LATE_REACTION = "add_late_reaction", SlackMethod.ADD_REACTION
    """One that waited for too long yields to those that are still in time, or all would be late."""
    REMOVE_REACTION = "remove_reaction", SlackMethod.REMOVE_REACTION

    @property
    def method(self) -> SlackMethod:
        """The method to call."""
        return self.value[1]

    def reserve(self, limit: Limit) -> int:
        """Returns how many calls it leaves to kinds of higher priority."""
        return limit.calls // 2 if self is CallKind.CARD_PROGRESS else 0


@dataclass(frozen=True)
class Grant:
    """The number of calls that may be made now; if it is 0, the next may be made in `wait` seconds."""

    calls: int
    wait: float = 0.0


class Budget:
    """The calls that may be made now: the stored state, and what was spent or refused since it was read.

    Args:
        limits: Slack's limits.
        now: The time on the store's clock.
        made: When each call ceases to count, by method and channel (empty: the workspace).
    """

    def __init__(self, limits: SlackLimits, now: float, made: Mapping[tuple[str, str], Sequence[float]]) -> None:
        self._limits = limits
        self._now = now
        self._made = {at: counted(calls, now) for at, calls in made.items()}
        self._changed: set[tuple[str, str]] = set()

    def calls(self, kind: CallKind) -> int:
        """Returns how many calls of a kind may be made, in all channels together."""
        limit = self._limits.methods[kind.method]
        return limit.left(self._of(kind.method), self._now, reserve=kind.reserve(limit))

    def held_channels(self, kind: CallKind) -> list[str]:
        """Returns the channels in which no call of a kind may be made now."""
        channels = {channel_id for method, channel_id in self._made if channel_id and method == kind.method}
        return sorted(channel_id for channel_id in channels if not self._takes(kind.method, channel_id))

    def spend(self, kind: CallKind, channel_id: str) -> bool:
        """Uses up a call of a kind in a channel. Returns False if none may be made."""
        if not (self.calls(kind) and self._takes(kind.method, channel_id)):
            return False
        self._add(kind.method)
        if kind.method in self._limits.channel:
            self._add(kind.method, channel_id)
        return True

    def take(self, method: str, wanted: int, *, yields: bool = False) -> Grant:
        """Takes at most so many calls of a method that is called in no thread. `yields`: nobody waits for them, so half
        of the limit is left to others.
        """
        limit, made = self._limits.methods[method], self._of(method)
        reserve = limit.calls // 2 if yields else 0
        calls = min(limit.left(made, self._now, reserve=reserve), wanted)
        if not calls:
            return Grant(0, limit.wait(made, self._now, reserve=reserve))
        self._add(method, calls=calls)
        return Grant(calls)

    def refuse(self, method: str, retry_after: float, channel_id: str = "") -> Grant:
        """Takes a 429 into account, which asks to wait for so many seconds: of the channel if the method's limit is per
        channel, because that one is much lower.
        """
        channel_id = channel_id if method in self._limits.channel else ""
        limit, made = self._limit(method, channel_id), self._of(method, channel_id)
        self._set(method, channel_id, limit.after_refusal(made, self._now, retry_after))
        return Grant(0, retry_after)

    def changed(self) -> Mapping[tuple[str, str], tuple[float, Sequence[float]]]:
        """Returns what has changed: when the next call may be made, and when each of the calls ceases to count."""
        return {
            at: (self._now + self._limit(*at).wait(self._made[at], self._now), self._made[at]) for at in self._changed
        }

    def _takes(self, method: str, channel_id: str) -> bool:
        limit = self._limits.channel.get(method)
        return limit is None or limit.left(self._of(method, channel_id), self._now) > 0

    def _add(self, method: str, channel_id: str = "", *, calls: int = 1) -> None:
        end = self._now + self._limit(method, channel_id).seconds
        self._set(method, channel_id, [*self._of(method, channel_id), *[end] * calls])

    def _set(self, method: str, channel_id: str, made: Sequence[float]) -> None:
        self._made[method, channel_id] = list(made)
        self._changed.add((method, channel_id))

    def _of(self, method: str, channel_id: str = "") -> Sequence[float]:
        return self._made.get((method, channel_id), ())

    def _limit(self, method: str, channel_id: str) -> Limit:
        return self._limits.channel[method] if channel_id else self._limits.methods[method]


PATIENCE, LIMITED_PATIENCE = 180.0, 600.0
"""Seconds for which Slack may fail, or only ask to wait, until a request is sent without the missing parts."""


def failing_since(before: float | None, now: float, *, limited: bool) -> float:
    """Returns since when PATIENCE counts, after a failure; `before`: after the one before. While Slack only asks to
    wait, nothing fails, but nothing may wait for ever: it counts from later, to last for LIMITED_PATIENCE.
    """
    since = now + LIMITED_PATIENCE - PATIENCE if limited else now
    return since if before is None else min(before, since)
