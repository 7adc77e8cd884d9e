"""Which follow-ups are merged into one message, and its text."""

from dataclasses import replace

import pytest

from bot.domain.requests.merging import MOST_CHARACTERS, MOST_MERGED, as_one, merged_with
from bot.domain.requests.request import Request, RequestContext, RequestKind, RequestState
from bot.jobapi.models import PromptFile

FILE = PromptFile("f1", "a.png", "image/png")


def said(text: str, at: float, person: str = "UANA") -> Request:
    """A waiting follow-up."""
    return Request(
        id=text,
        thread_id="t",
        kind=RequestKind.FOLLOW_UP,
        source_key=text,
        person_id=person,
        text=text,
        written_at=f"{at:.6f}",
        recorded_at=at + 0.1,
        state=RequestState.WAITING,
    )


FIRST = said("first", 100.0)


def names(*following: Request, stopped_at: tuple[float, ...] = (), seconds: float = 3.0) -> list[str]:
    return [request.text for request in merged_with(FIRST, following, stopped_at, seconds)]


def test_replies_in_quick_succession_are_merged() -> None:
    """The time counts from the previous one, not from the first."""
    assert names(said("a", 103.0), said("b", 105.9), said("c", 109.0)) == ["a", "b"]


def test_nothing_is_merged_when_disabled() -> None:
    """With 0 seconds, even simultaneous replies are separate."""
    assert names(said("a", 100.0), seconds=0) == []


@pytest.mark.parametrize(
    "between",
    [
        said("x", 101.5, "UBEN"),
        replace(said("x", 101.5), state=RequestState.PREPARING),
        replace(said("x", 101.5), uncertain=True),
        replace(said("x", 101.5), merged_into="other"),
    ],
    ids=["another person's", "not prepared yet", "may have arrived", "of another message"],
)
def test_anything_in_between_ends_the_merge(between: Request) -> None:
    """The order is kept: later replies are not sent before it."""
    assert names(said("a", 101.0), between, said("b", 102.0)) == ["a"]


def test_a_merged_message_is_bounded() -> None:
    """Neither in requests nor in characters: the rest is sent next."""
    many = [said(f"m{n}", 100.0 + n) for n in range(2 * MOST_MERGED)]
    assert len(merged_with(FIRST, many, (), 3.0)) == MOST_MERGED - 1
    assert names(said("a" * (MOST_CHARACTERS - 5), 101.0), said("b", 102.0)) == ["a" * (MOST_CHARACTERS - 5)]


def test_merged_words_and_contexts_are_in_order() -> None:
    """Under the first one's id, which is the key; a duplicate file is sent once."""
    first = replace(FIRST, context=RequestContext("earlier", (FILE,)))
    others = [said("a", 101.0), replace(said("b", 102.0), context=RequestContext("later", (FILE,)))]
    one = as_one(first, others)
    assert (one.id, one.text) == ("first", "first\n\na\n\nb")
    assert one.context == RequestContext("earlier\n\nlater", (FILE,))
    assert as_one(FIRST, []) is FIRST
    assert as_one(FIRST, [said("a", 101.0)]).context is None
