"""Usage as reported in models' answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.egress.model_answer import ModelAnswer
from bot.jobserver.usage import Spent

ANSWERS = {
    "anthropic's events": (
        b'event: x\ndata: {"message": {"usage": {"input_tokens": 7}}}\n\ndata: {"usage": {"output_tokens": 9}}\n\n',
        Spent(7, 9),
    ),
    "responses": (b'data: {"response": {"usage": {"input_tokens": 5, "output_tokens": 6}}}\r\n\r\n', Spent(5, 6)),
    "chat completions": (
        b'data: {"usage": null}\n\ndata: {"usage": {"prompt_tokens": 5, "completion_tokens": 6}}\n\ndata: [DONE]\n',
        Spent(5, 6),
    ),
    "gemini": (
        b'data: {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}}',
        Spent(5, 6),
    ),
    "with a cache": (b'{"usage": {"input_tokens": 3, "cache_read_input_tokens": 4}}', Spent(7, 0)),
    "in one piece": (json.dumps({"usage": {"input_tokens": 5, "output_tokens": 6}}).encode(), Spent(5, 6)),
    "no numbers": (b'{"usage": {"input_tokens": "5", "output_tokens": -1, "prompt_tokens": true}}', Spent()),
    "no json": (b'data: {"usage"\n\ndata: usage\n' + b"[" * 5000 + b"usage\n", Spent()),
    "a line that is too long": (b'{"usage": {"input_tokens": 5}, "x": "' + b"x" * (1 << 20) + b'"}\n', Spent()),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "tokens"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("size", [1, 7, 10**9])
def test_tokens_are_counted_however_the_answer_is_split(answer: bytes, tokens: Spent, size: int) -> None:
    if size == 1 and len(answer) > 10_000:
        size = 1000
    usage = ModelAnswer()
    for at in range(0, len(answer), size):
        usage.feed(answer[at : at + size])
    usage.finish(has_events=True)
    assert usage.tokens == tokens


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_no_bytes_disturb_the_count(pieces: list[bytes]) -> None:
    usage = ModelAnswer()
    for piece in pieces:
        usage.feed(piece)
    usage.finish(has_events=True)
    assert usage.tokens.sent >= 0


SAYS = b'data: {"text": "It says \\"finish_reason\\": \\"stop\\" and \\"error\\": {"}\n\n'
NULL = b'data: {"choices": [{"finish_reason": null}], "error": null}\n\n'
CUT, FAILED = "its model's answer was cut off", "its model's answer ended in an error: Overloaded"
ENDS = {
    "anthropic": (SAYS + b'event: message_stop\ndata: {"type": "message_stop"}\n\n', None),
    "responses": (SAYS + b'data: {"type":"response.completed","response":{"error":null}}\n\n', None),
    "responses at their limit": (SAYS + b'data: {"type":"response.incomplete","response":{}}\n\n', None),
    "chat": (NULL + b'data: {"choices": [{"finish_reason": "stop"}]}\n\n', None),
    "chat without a reason": (NULL + b"data: [DONE]\n\n", None),
    "gemini": (b'data: {"candidates": [{"finishReason": "STOP"}]}', None),
    "too long to be read": (b"data: " + b"x" * (1 << 20) + b"\n\n", None),
    "nothing": (b"", CUT),
    "words only": (SAYS + NULL, CUT),
    "begun": (b'data: {"type":"response.created","response":{"error":null}}\n\n' + SAYS, CUT),
    "anthropic's error": (SAYS + b'data: {"type": "error", "error": {"message": "Overloaded"}}\n\n', FAILED),
    "responses' error": (b'data: {"type":"response.failed","response":{"error":{"message":"Overloaded"}}}\n\n', FAILED),
    "an error as an event": (b'data: {"type":"error","message":"Overloaded"}\n\n', FAILED),
    "an error and an end": (b'data: {"error": {"message": "Overloaded"}}\n\ndata: [DONE]\n\n', FAILED),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "fault"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("size", [1, 50, 10**9])
def test_how_an_answer_ended_is_known_however_it_is_split(answer: bytes, fault: str | None, size: int) -> None:
    if size == 1 and len(answer) > 10_000:
        size = 1000
    seen = ModelAnswer()
    for at in range(0, len(answer), size):
        seen.feed(answer[at : at + size])
    seen.finish(has_events=True)
    assert seen.fault == fault
