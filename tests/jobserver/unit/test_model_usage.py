"""Usage as reported in models' answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.egress.model_relay import AnswerUsage
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
    usage = AnswerUsage()
    for at in range(0, len(answer), size):
        usage.feed(answer[at : at + size])
    usage.finish()
    assert usage.tokens == tokens


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_no_bytes_disturb_the_count(pieces: list[bytes]) -> None:
    usage = AnswerUsage()
    for piece in pieces:
        usage.feed(piece)
    usage.finish()
    assert usage.tokens.sent >= 0
