"""When an agent goes round in circles: a model that repeats itself would do so until its time is up. Pure."""

from collections import Counter

from bot.jobserver.agents.tool_calls import ToolCall

MOST_REFUSALS = 40
"""Refused calls of one turn, whatever they are: an agent that means well has tried everything by then."""
MOST_SAME_REFUSALS = 5
MOST_SAME_CALLS = 25
"""Calls in a row that are the same in all that the agent told of them."""
_Call = tuple[str, str, str]


class Repetition:
    """Counts the calls of one turn. Both methods return why it should end, or None."""

    def __init__(self) -> None:
        self._refused: Counter[_Call] = Counter()
        self._last: _Call | None = None
        self._in_a_row = 0

    def refused(self, call: ToolCall) -> str | None:
        """Notes a call that was not allowed."""
        key = _key(call)
        self._refused[key] += 1
        if self._refused[key] >= MOST_SAME_REFUSALS:
            return f"it asked {MOST_SAME_REFUSALS} times for the same thing, which is not allowed here"
        if self._refused.total() >= MOST_REFUSALS:
            return f"it asked {MOST_REFUSALS} times for what is not allowed here"
        return None

    def ended(self, call: ToolCall) -> str | None:
        """Notes a call that has ended, well or not. What a call was given has to be known to tell it from another."""
        key = _key(call) if call.digest else None
        self._in_a_row = self._in_a_row + 1 if key is not None and key == self._last else 1
        self._last = key
        if key is not None and self._in_a_row >= MOST_SAME_CALLS:
            return f"it did the same thing {MOST_SAME_CALLS} times in a row"
        return None


def _key(call: ToolCall) -> _Call:
    return call.kind, call.digest or call.title, ",".join(call.paths)
