"""When nobody listened, what of Slack's history is read because of that, and what of it is late. Pure.

Times are seconds since the epoch on the store's clock, from which Slack's may differ a little.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.domain.requests.request import Arrival


@dataclass(frozen=True)
class PastMessage:
    """A message as it is now; `raw` is Slack's whole description of it, which only its readers look into.

    `edited_at` is when its author last edited it, `latest_reply` the `ts` of the newest reply to it (each empty: none);
    `stops` are the people whose reaction asks for a stop.
    """

    ts: str
    author_id: str = ""
    text: str = ""
    edited_at: str = ""
    latest_reply: str = ""
    stops: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


BEAT = 5.0
"""Seconds between two notes of a process that it still listens."""
CLOCK_DIFFERENCE = 60.0
"""Seconds by which Slack's clock, the source of every `ts`, may differ from ours."""
LIVE_SECONDS = 15 * 60.0
"""What is younger counts as if it had just arrived."""
EDITED_BEFORE = 3_600.0
"""Seconds before a gap from which on messages are read, since they may have been edited in it."""
DAY = 86_400.0
WEEK = 7 * DAY


@dataclass(frozen=True)
class Listening:
    """From when until when a process has certainly heard everything, without interruption; before the store's time is
    added, as seconds before now, which are negative.

    `repeated_for`: for how many seconds Slack repeats what nobody acknowledges. A shorter time is no gap.
    """

    since: float
    until: float
    repeated_for: float = 0.0

    def at(self, now: float) -> "Listening":
        """Returns the same on the store's clock."""
        return replace(self, since=now + self.since, until=now + self.until)


ALL_CHANNELS = "*"
"""In place of a channel's id: all channels that Pagehand is in, which only Slack knows."""


@dataclass(frozen=True)
class Gap:
    """A time in which a conversation's messages may have been missed.

    It is about a thread, by its first message (`thread_ts`), or about what is outside threads in a channel or a direct
    message, and which of its threads have new replies. Without a channel it is about all conversations, and replaced by
    a row for each that the database knows and one for ALL_CHANNELS, which is replaced by a row for each.

    `asks`: nothing in it is done without asking, because the database was restored. `first`: it is from the first start
    that knows gaps, so reactions are only noted.
    """

    channel_id: str
    thread_ts: str
    since: float
    until: float
    asks: bool = False
    first: bool = False

    @property
    def reach(self) -> float:
        """For how many seconds back it is read."""
        return WEEK if self.thread_ts or self.channel_id.startswith("D") else DAY

    def since_readable(self, now: float) -> float:
        """Returns from when on its messages are read: not from longer ago than is worth reading."""
        return max(self.since, now - self.reach) - CLOCK_DIFFERENCE

    def is_cut(self, now: float) -> bool:
        """Returns whether it began before what is read."""
        return self.since < now - self.reach

    def oldest(self, now: float) -> str:
        """Returns the `ts` after which messages are read: in a channel also older ones, whose threads may go on."""
        since = self.since_readable(now)
        earlier = since - EDITED_BEFORE if self.thread_ts else min(since, now - WEEK)
        return f"{max(earlier, 0.0):.6f}"


def resumed_at(known: Listening | None, now: Listening) -> float | None:
    """Returns since when a process listens that noted `known` before; None if it did all the time."""
    if known is None or now.since > known.until:
        return now.since
    return now.until if now.until - known.until > max(now.repeated_for, 3 * BEAT) else None


@dataclass(frozen=True)
class Missed:
    """What Slack would have sent about a message: that it was written, that it was edited, or both."""

    message: PastMessage
    written: bool
    edited: bool
    arrival: Arrival


MOST_PAGES = 25
"""Pages of Slack's history that are read of a conversation."""
MOST_MISSED = 500
"""Messages of a conversation that are handled."""


def missed(messages: Iterable[PastMessage], gap: Gap, now: float, *, bot_user_id: str) -> Iterator[Missed]:
    """Yields what is to be handled as if it had just happened. Outside threads of channels, only mentions are."""
    since, until = gap.since_readable(now), gap.until + CLOCK_DIFFERENCE
    for message in messages:
        written, edited = (since <= float(at or 0.0) <= until for at in (message.ts, message.edited_at))
        mentions_us = f"<@{bot_user_id}" in message.text
        to_us = bool(gap.thread_ts) or gap.channel_id.startswith("D") or mentions_us
        if (written or edited) and to_us and message.author_id != bot_user_id:
            late = gap.asks or now - float(message.edited_at or message.ts) > LIVE_SECONDS
            yield Missed(message, written, edited, Arrival.LATE if late else Arrival.LIVE)


def threads_with_news(messages: Iterable[PastMessage], gap: Gap, now: float) -> list[str]:
    """Returns the first messages of threads in a channel that were replied to in a gap."""
    since = gap.since_readable(now)
    return [message.ts for message in messages if float(message.latest_reply or 0.0) >= since]
