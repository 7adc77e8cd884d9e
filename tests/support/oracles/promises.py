"""Pagehand's promises, compared with what happened: one oracle for every world that tests put it in.

A world records what people asked for, what the job API saw, and what is in Slack (a `History`), once nothing is in
progress; `broken` returns the promises that this breaks. The state machine, the bot under faults and the bot as
processes that are killed are each a world.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import permutations
from math import inf

from bot.domain.requests.request import RequestState


class Promise(StrEnum):
    """The kinds of promises that `broken` reports."""

    NOTHING_LOST = "lost"
    DONE_ONCE = "done too often"
    SAID_ONCE = "said too often"
    IN_ORDER = "out of order"
    UP_TO_DATE = "out of date"
    ONE_OWNER = "two at the same job"


@dataclass(frozen=True)
class Broken:
    """A broken promise with the details."""

    promise: Promise
    how: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.how}"


@dataclass(frozen=True)
class Turn:
    """When a follow-up was written (as text that sorts), and the position at which the job API first took it.

    `recorded` and `sent` are when it was known and when it was sent, in any unit: a follow-up that became known after a
    later one was sent was rightly overtaken.
    """

    thread: str
    written: str
    taken: int
    recorded: float = 0.0
    sent: float = inf


@dataclass(frozen=True)
class AskedFor:
    """A command or a reply: whether Slack was told that it was recorded, and its outcome.

    `taken` is how often the job API carried it out, `sent_again` how often a person had that done, `explained` whether
    people were told that it was not taken, or may not have been. `state` is what the bot believes, if it can be asked.
    Without a `turn` it may be overtaken.
    """

    name: str
    acknowledged: bool
    taken: int
    sent_again: int = 0
    explained: bool = False
    state: RequestState | None = None
    turn: Turn | None = None


@dataclass(frozen=True)
class Said:
    """The notice keys of a thread: the visible ones below its card, in order; the expected ones, in order; and those
    that the bot believes to be delivered.
    """

    thread: str
    seen: Sequence[str]
    meant: Sequence[str]
    delivered: Collection[str] = ()


@dataclass(frozen=True)
class Shown:
    """A card, or the reaction on a reply: what is visible, and every right value."""

    name: str
    shown: object
    right: Collection[object]


@dataclass
class Poll:
    """A poll of a job, in seconds; `ended` is None while it is in progress."""

    job_id: str
    started: float
    ended: float | None = None


@dataclass(frozen=True)
class History:
    """What happened in a world. `posts` names every message that may exist only once."""

    requests: Sequence[AskedFor] = ()
    posts: Iterable[str] = ()
    threads: Sequence[Said] = ()
    shown: Sequence[Shown] = field(default=())
    polls: Sequence[Poll] = ()


def broken(history: History) -> list[Broken]:
    """Returns all broken promises; empty is right."""
    return [
        *lost(history.requests),
        *undelivered(history.threads),
        *done_too_often(history.requests),
        *posted_too_often(history.posts),
        *posted_out_of_order(history.threads),
        *taken_out_of_order(history.requests),
        *out_of_date(history.shown),
        *polled_twice(history.polls),
    ]


def check(found: Iterable[Broken]) -> None:
    """Fails with all broken promises."""
    words = [str(one) for one in found]
    assert not words, "\n".join(words)


def lost(requests: Iterable[AskedFor]) -> Iterator[Broken]:
    """Everything acknowledged is done or explained, and what the bot believes is true."""
    for request in requests:
        if request.acknowledged and not (request.taken or request.explained or _taken_back(request)):
            yield Broken(Promise.NOTHING_LOST, f"{request.name} was acknowledged, not taken, and nothing was said")
        if request.state is RequestState.ACCEPTED and not request.taken:
            yield Broken(Promise.NOTHING_LOST, f"{request.name} is said to be taken, and was not")
        if request.state not in {None, RequestState.ACCEPTED, RequestState.WITHDRAWN} and not request.explained:
            yield Broken(Promise.NOTHING_LOST, f"{request.name} is {request.state}, and nothing was said")


def undelivered(threads: Iterable[Said]) -> Iterator[Broken]:
    """Every notice that the bot believes delivered is there."""
    for thread in threads:
        for key in thread.delivered:
            if key not in thread.seen:
                yield Broken(Promise.NOTHING_LOST, f"{key} is said to be in {thread.thread}, and is not")


def done_too_often(requests: Iterable[AskedFor]) -> Iterator[Broken]:
    """Nothing is carried out more often than people asked for; refused or withdrawn requests never."""
    for request in requests:
        once = request.state is not RequestState.REJECTED
        most = 0 if _taken_back(request) else once + request.sent_again
        if request.taken > most:
            yield Broken(Promise.DONE_ONCE, f"{request.name} was taken {request.taken} times, and not at most {most}")


def posted_too_often(posts: Iterable[str]) -> Iterator[Broken]:
    """Nothing is posted twice."""
    for name, times in Counter(posts).items():
        if times > 1:
            yield Broken(Promise.SAID_ONCE, f"{name} was posted {times} times")


def posted_out_of_order(threads: Iterable[Said]) -> Iterator[Broken]:
    """Notices are in the order in which things happened, without others between."""
    for thread in threads:
        places = {key: place for place, key in enumerate(thread.meant)}
        seen = list(dict.fromkeys(thread.seen))
        yield from (
            Broken(Promise.SAID_ONCE, f"{key} stands in {thread.thread}, and was never to be said")
            for key in seen
            if key not in places
        )
        known = [key for key in seen if key in places]
        if known != sorted(known, key=lambda key: places[key]):
            yield Broken(Promise.IN_ORDER, f"{thread.thread} says {known}")


def taken_out_of_order(requests: Iterable[AskedFor]) -> Iterator[Broken]:
    """A follow-up overtakes an earlier one only if that became known, or was sent again, later."""
    with_turns = [(request, request.turn) for request in requests if request.turn is not None]
    for (early, before), (late, after) in permutations(with_turns, 2):
        overtaken = before.thread == after.thread and before.written < after.written and after.taken < before.taken
        if overtaken and not early.sent_again and before.recorded < after.sent:
            yield Broken(Promise.IN_ORDER, f"{late.name} overtook {early.name}")


def out_of_date(shown: Iterable[Shown]) -> Iterator[Broken]:
    """Cards and reactions are up to date."""
    for one in shown:
        if one.shown not in one.right:
            yield Broken(Promise.UP_TO_DATE, f"{one.name} shows {one.shown!r}, not {list(one.right)!r}")


def polled_twice(polls: Iterable[Poll]) -> Iterator[Broken]:
    """No job is polled by two processes at the same time."""
    latest: dict[str, Poll] = {}
    for poll in sorted(polls, key=lambda poll: poll.started):
        before = latest.get(poll.job_id)
        if before is not None and _ended(before) > poll.started:
            more = "is still under way" if before.ended is None else f"ended {before.ended - poll.started:.2f} s later"
            yield Broken(Promise.ONE_OWNER, f"{poll.job_id} was polled while another poll, which {more}, was under way")
        if before is None or _ended(poll) > _ended(before):
            latest[poll.job_id] = poll


def _taken_back(request: AskedFor) -> bool:
    return request.state is RequestState.WITHDRAWN


def _ended(poll: Poll) -> float:
    return inf if poll.ended is None else poll.ended
