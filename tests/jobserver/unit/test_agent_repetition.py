"""An agent that goes in circles is stopped, and one that works hard is not."""

from bot.jobserver.agents.progress import MOST_REFUSALS, MOST_SAME_CALLS, MOST_SAME_REFUSALS, Repetition, ToolCall


def call(name: str, kind: str = "execute") -> ToolCall:
    return ToolCall(title="Run", kind=kind, input=name, digest=name)


def test_repeating_a_refused_call_stops_the_agent_soon() -> None:
    """Other calls in between do not help."""
    seen = Repetition()
    for number in range(MOST_SAME_REFUSALS - 1):
        assert seen.refused(call("npm test")) is None
        assert seen.refused(call(f"other {number}")) is None
    assert "the same thing" in (seen.refused(call("npm test")) or "")


def test_refused_calls_of_any_kind_are_bounded() -> None:
    """A model may try something new each time."""
    seen = Repetition()
    reasons = [seen.refused(call(f"try {number}")) for number in range(MOST_REFUSALS)]
    assert reasons[:-1] == [None] * (MOST_REFUSALS - 1)
    assert reasons[-1] is not None


def test_consecutive_repetitions_are_bounded_and_another_call_resets_them() -> None:
    """Reading a page several times is work."""
    seen = Repetition()
    for _ in range(5):
        assert all(seen.ended(call("a.md", "read")) is None for _ in range(MOST_SAME_CALLS - 1))
        assert seen.ended(call("b.md", "read")) is None
    reasons = [seen.ended(call("a.md", "read")) for _ in range(MOST_SAME_CALLS)]
    assert "in a row" in (reasons[-1] or "")


def test_calls_without_details_are_not_considered_equal() -> None:
    """Some agents report only a title."""
    seen = Repetition()
    assert {seen.ended(ToolCall(title="Edit", kind="edit", paths=("a.md",))) for _ in range(200)} == {None}
