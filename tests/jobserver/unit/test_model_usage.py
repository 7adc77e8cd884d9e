"""Usage as reported in models' answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.egress.model_answer import ModelAnswer
from bot.jobserver.egress.model_api import ModelApi
from bot.jobserver.egress.providers import ANTHROPIC, GEMINI, OPENAI
from bot.jobserver.usage import Spent

pytestmark = pytest.mark.promise("broken turns")

ANSWERS = {
    "anthropic's events": (
        ANTHROPIC,
        b'event: x\ndata: {"message": {"usage": {"input_tokens": 7}}}\n\ndata: {"usage": {"output_tokens": 9}}\n\n',
        Spent(7, 9),
    ),
    "responses": (
        OPENAI,
        b'data: {"response": {"usage": {"input_tokens": 5, "output_tokens": 6}}}\r\n\r\n', Spent(5, 6)),
    "chat completions": (
        OPENAI,
        b'data: {"usage": null}\n\ndata: {"usage": {"prompt_tokens": 5, "completion_tokens": 6}}\n\ndata: [DONE]\n',
        Spent(5, 6),
    ),
    "gemini": (
        GEMINI,
        b'data: {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}}',
        Spent(5, 6),
    ),
    "with a cache": (ANTHROPIC, b'{"usage": {"input_tokens": 3, "cache_read_input_tokens": 4}}', Spent(7, 0)),
    "in one piece": (ANTHROPIC, json.dumps({"usage": {"input_tokens": 5, "output_tokens": 6}}).encode(), Spent(5, 6)),
    "no numbers": (ANTHROPIC, b'{"usage": {"input_tokens": "5", "output_tokens": -1, "prompt_tokens": true}}', Spent()),
    "no json": (ANTHROPIC, b'data: {"usage"\n\ndata: usage\n' + b"[" * 5000 + b"usage\n", Spent()),
    "a line that is too long": (
        ANTHROPIC, b'{"usage": {"input_tokens": 5}, "x": "' + b"x" * (1 << 20) + b'"}\n', Spent(),
    ),
}  # fmt: skip


def read(api: ModelApi, answer: bytes, size: int) -> ModelAnswer:
    """Reads an answer in pieces of this size, or of larger ones if there were too many."""
    size = 1000 if size == 1 and len(answer) > 10_000 else size
    seen = ModelAnswer(api)
    for at in range(0, len(answer), size):
        seen.feed(answer[at : at + size])
    seen.finish(has_events=True)
    return seen


@pytest.mark.parametrize(("api", "answer", "tokens"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("size", [1, 7, 10**9])
def test_tokens_are_counted_however_the_answer_is_split(api: ModelApi, answer: bytes, tokens: Spent, size: int) -> None:
    assert read(api, answer, size).tokens == tokens


@given(st.sampled_from([ANTHROPIC, OPENAI, GEMINI]), st.lists(st.binary(max_size=50), max_size=5))
def test_no_bytes_disturb_the_count(api: ModelApi, pieces: list[bytes]) -> None:
    usage = ModelAnswer(api)
    for piece in pieces:
        usage.feed(piece)
    usage.finish(has_events=True)
    assert usage.tokens.sent >= 0


SAYS = b'data: {"text": "It says \\"finish_reason\\": \\"stop\\" and \\"error\\": {"}\n\n'
NULL = b'data: {"choices": [{"finish_reason": null}], "error": null}\n\n'
CUT, FAILED = "its model's answer was cut off", "its model's answer ended in an error: Overloaded"
ENDS = {
    "anthropic": (ANTHROPIC, SAYS + b'event: message_stop\ndata: {"type": "message_stop"}\n\n', None),
    "responses": (OPENAI, SAYS + b'data: {"type":"response.completed","response":{"error":null}}\n\n', None),
    "responses at their limit": (OPENAI, SAYS + b'data: {"type":"response.incomplete","response":{}}\n\n', None),
    "chat": (OPENAI, NULL + b'data: {"choices": [{"finish_reason": "stop"}]}\n\n', None),
    "chat without a reason": (OPENAI, NULL + b"data: [DONE]\n\n", None),
    "gemini": (GEMINI, b'data: {"candidates": [{"finishReason": "STOP"}]}', None),
    "too long to be read": (ANTHROPIC, b"data: " + b"x" * (1 << 20) + b"\n\n", None),
    "nothing": (ANTHROPIC, b"", CUT),
    "words only": (OPENAI, SAYS + NULL, CUT),
    "begun": (OPENAI, b'data: {"type":"response.created","response":{"error":null}}\n\n' + SAYS, CUT),
    "anthropic's error": (ANTHROPIC, SAYS + b'data: {"type": "error", "error": {"message": "Overloaded"}}\n\n', FAILED),
    "responses' error": (
        OPENAI, b'data: {"type":"response.failed","response":{"error":{"message":"Overloaded"}}}\n\n', FAILED,
    ),
    "an error as an event": (OPENAI, b'data: {"type":"error","message":"Overloaded"}\n\n', FAILED),
    "an error and an end": (OPENAI, b'data: {"error": {"message": "Overloaded"}}\n\ndata: [DONE]\n\n', FAILED),
}  # fmt: skip


@pytest.mark.parametrize(("api", "answer", "fault"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("size", [1, 50, 10**9])
def test_how_an_answer_ended_is_known_however_it_is_split(
    api: ModelApi, answer: bytes, fault: str | None, size: int
) -> None:
    assert read(api, answer, size).fault == fault
