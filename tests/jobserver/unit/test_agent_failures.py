"""When a turn has failed whatever its agent claims, how errors are worded, and what an answer asks."""

from typing import Any

import pytest
from acp import schema
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.agents.turn import (
    TurnEnd,
    codex_failure,
    ends_with_question,
    refusal_reason,
    request_failed,
    result,
)
from bot.jobserver.editors.interface import EditResult
from bot.jobserver.text import one_line
from bot.runtime.untrusted_json import value_at


def end(
    answer: str = "",
    stop: Any = "end_turn",
    *,
    meta: Any = None,
    has_usage: bool = True,
    was_system_error: bool = False,
) -> TurnEnd:
    usage = schema.Usage(input_tokens=1, output_tokens=1, total_tokens=2) if has_usage else None
    response = schema.PromptResponse.model_construct(stop_reason=stop, usage=usage, field_meta=meta)
    return TurnEnd(response, answer, was_system_error)


def failure(severity: str | None, title: str | None = "Too many requests") -> dict[str, Any]:
    told = {"category": "rate_limit", "severity": severity, "title": title}
    return {"jetbrains": {"air": {"sessionFailure": told}}}


@pytest.mark.parametrize(
    ("turn", "failed"),
    [
        (end("Done."), None),
        (end("Done.", meta=failure("error")), "Too many requests"),
        (end("Slow down.", meta=failure("error", None)), "Slow down."),
        (end("Done.", meta=failure("warning")), None),
        (end("Done.", has_usage=False), None),
        (end("Done.", was_system_error=True), None),
        (end("High demand.", has_usage=False, was_system_error=True), "High demand."),
        (end(has_usage=False, was_system_error=True), "a system error"),
        (end("Done.", meta={"jetbrains": ["x"]}), None),
    ],
)
def test_codex_reports_errors_as_its_answer(turn: TurnEnd, failed: str | None) -> None:
    assert codex_failure(turn) == failed


@pytest.mark.parametrize(
    ("code", "message", "data", "said"),
    [
        (-32000, "Log in", None, "not logged in, or its key is not valid (Log in); set K"),
        (401, '{"error": {"message": "the key is wrong", "code": 401}}', None, "valid (the key is wrong); set K"),
        (429, "slow", {"details": "down"}, "no more requests at the moment (slow down)"),
        (-32603, "Internal error", {"details": "on fire"}, "x failed: on fire"),
        (-32603, "Internal error: on fire", {"errorKind": "server"}, "x failed: Internal error: on fire"),
        (-32603, "Error", "on fire", "x failed: Error: on fire"),
        (500, "{not json", None, "x failed: {not json"),
        (-32603, "Internal error: invalid x-api-key", {"errorName": "APIError"}, "key is not valid (Internal"),
        (-32603, "Incorrect API key provided: sk-…", None, "set K"),
        (-32603, "API key not valid. Please pass a valid API key.", None, "set K"),
        (-32603, "Unauthorized", None, "set K"),
        (500, '{"error": ["x"]}', None, 'x failed: {"error": ["x"]}'),
        (500, "two\nlines" + "x" * 5000, None, "x failed: two lines"),
    ],
)  # fmt: skip
def test_a_protocol_error_is_readable(code: int, message: str, data: Any, said: str) -> None:
    words = request_failed("x", code, message, data, login="set K")
    assert said in words
    assert len(words) < 400


@given(st.recursive(st.none() | st.text() | st.integers(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_malformed_foreign_values_cause_no_error_of_ours(value: Any) -> None:
    assert request_failed("x", 1, "m", value, login="")
    value_at(value, "a", "b")
    codex_failure(end(meta=value if isinstance(value, dict) else {}))


@pytest.mark.parametrize(
    ("answer", "asks"),
    [
        ("Which one?", True),
        ("Two fit.\n\n**Which one?**", True),
        ("Which one?\n\n", True),
        ("Which one? I took none.", False),
        ("", False),
        ("哪一个？", True),  # noqa: RUF001 - that is what it is about
    ],
)
def test_a_question_ends_with_a_question_mark(answer: str, asks: bool) -> None:  # noqa: FBT001
    assert ends_with_question(answer) is asks


def test_what_was_refused_is_the_reason_and_bounded() -> None:
    assert refusal_reason(["npm test", "rm `x`"]).endswith(" here: `npm test`, `` rm `x` ``")
    assert refusal_reason([f"{number}{'x' * 1200}" for number in range(20)]).count("`") == 2 * 5
    assert result(end("I would."), ["npm test"]) == EditResult("I would.", reason=refusal_reason(["npm test"]))
    assert result(end(), []) == EditResult()


def test_a_question_in_the_answer_counts_unless_something_was_changed_or_answered() -> None:
    """Whether the agent has forms or not; many end with a polite question."""
    asked = "Two fit.\n\nWhich one?"
    assert result(end(asked), []) == EditResult(asked, closing_question="Which one?")
    assert result(end(asked), [], was_answered=True) == EditResult(asked)


@given(st.text(alphabet="`a ", min_size=1, max_size=20))
def test_no_text_closes_its_code_block(text: str) -> None:
    line = refusal_reason([text]).partition(": ")[2]
    assert text in line
    fence = line[: len(line) - len(line.lstrip("`"))]
    assert line.endswith(fence)
    assert fence not in line[len(fence) : -len(fence)]


@given(st.text(), st.integers(2, 50))
def test_a_line_is_single_and_bounded(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable()


@pytest.mark.parametrize("code", [-32000, 401, 403, -32603])
def test_a_refusal_of_the_model_relay_is_not_blamed_on_the_key(code: int) -> None:
    words = request_failed("x", code, "API Error: 403 Pagehand's model relay refuses this", None, login="set K")
    assert words == "x failed: API Error: 403 Pagehand's model relay refuses this"
