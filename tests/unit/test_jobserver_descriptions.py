"""How changes are described, whatever the prompt is."""

from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.executor.descriptions import commit_message, pull_request_description, subject
from bot.jobserver.store.jobs import Instruction


@given(st.text())
def test_a_commit_message_ends_with_our_trailer_whatever_the_prompt(prompt: str) -> None:
    message = commit_message(Instruction(7, "abc", "pagehand/abc", prompt))
    first, rest = message.split("\n", 1)
    assert 0 < len(first) <= 72
    assert first.isprintable()
    assert rest.startswith("\n")
    assert message.endswith("\n\nPagehand-Instruction: abc/7\n")
    assert "\0" not in message


def test_titles_and_descriptions() -> None:
    assert subject("  a\n b\t") == "a b"
    assert subject("\u200b\n") == "Change the documentation"
    assert pull_request_description("a\nb", "Done.") == "> a\n> b\n\nDone."
    assert pull_request_description("a", "") == "> a"
