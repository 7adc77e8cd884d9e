"""The oracle detects each broken promise, and finds none if all are kept."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.oracles.promises import AskedFor, History, Poll, Promise, Said, Shown, Turn, broken

from bot.domain.requests.request import RequestState

pytestmark = pytest.mark.promise("oracles")

KEPT = AskedFor("a", acknowledged=True, taken=1, state=RequestState.ACCEPTED)
FIRST, SECOND = (
    replace(KEPT, name=name, turn=Turn("t1", name, taken)) for name, taken in (("first", 0), ("second", 1))
)
TOLD = Said("t1", seen=["started", "finished"], meant=["started", "finished"], delivered=["started", "finished"])


def overtaken(*, recorded: float = 0.0, sent_again: int = 0) -> list[AskedFor]:
    """The second was sent at 5 and taken first."""
    early, late = Turn("t1", "first", 2, recorded), Turn("t1", "second", 1, sent=5.0)
    return [replace(FIRST, taken=1 + sent_again, sent_again=sent_again, turn=early), replace(SECOND, turn=late)]


@pytest.mark.parametrize(
    "history",
    [
        History(),
        History(requests=[KEPT]),
        History(requests=[replace(KEPT, taken=2, sent_again=1)]),
        History(requests=[AskedFor("a", acknowledged=False, taken=0)]),
        History(requests=[AskedFor("a", acknowledged=True, taken=0, explained=True, state=RequestState.REJECTED)]),
        History(requests=[AskedFor("a", acknowledged=True, taken=1, explained=True, state=RequestState.UNCERTAIN)]),
        History(requests=[AskedFor("a", acknowledged=True, taken=0, state=RequestState.WITHDRAWN)]),
        History(requests=[FIRST, SECOND]),
        History(requests=overtaken(recorded=6.0)),
        History(requests=overtaken(sent_again=1)),
        History(posts=["a", "b"]),
        History(threads=[TOLD]),
        History(threads=[replace(TOLD, seen=["started"], delivered=["started"])]),
        History(shown=[Shown("card", "finished", {"finished"})]),
        History(polls=[Poll("j", 0.0, 1.0), Poll("j", 1.0, 2.0), Poll("k", 1.5)]),
    ],
)
def test_kept_promises_pass(history: History) -> None:
    assert broken(history) == []


@pytest.mark.parametrize(
    ("promise", "histories"),
    [
        (
            Promise.NOTHING_LOST,
            [
                History(requests=[AskedFor("a", acknowledged=True, taken=0)]),
                History(requests=[replace(KEPT, acknowledged=False, taken=0)]),
                History(requests=[replace(KEPT, state=RequestState.UNCERTAIN)]),
                History(requests=[AskedFor("a", acknowledged=False, taken=0, state=RequestState.WAITING)]),
                History(threads=[replace(TOLD, seen=["started"])]),
            ],
        ),
        (
            Promise.DONE_ONCE,
            [
                History(requests=[replace(KEPT, taken=2)]),
                History(requests=[replace(KEPT, state=RequestState.REJECTED, explained=True)]),
                History(requests=[replace(KEPT, state=RequestState.WITHDRAWN)]),
            ],
        ),
        (
            Promise.SAID_ONCE,
            [
                History(posts=["a", "a"]),
                History(threads=[replace(TOLD, meant=["started"], delivered=())]),
            ],
        ),
        (
            Promise.IN_ORDER,
            [History(threads=[replace(TOLD, seen=["finished", "started"])]), History(requests=overtaken())],
        ),
        (Promise.UP_TO_DATE, [History(shown=[Shown("card", "started", {"finished"})])]),
        (
            Promise.ONE_OWNER,
            [
                History(polls=[Poll("j", 0.0, 2.0), Poll("j", 1.0, 1.5)]),
                History(polls=[Poll("j", 0.0), Poll("j", 9.0)]),
            ],
        ),
    ],
)
def test_a_broken_promise_is_detected(promise: Promise, histories: Sequence[History]) -> None:
    for history in histories:
        assert [found.promise for found in broken(history)] == [promise], history
