"""Immediate private answers: the help, and why nothing was started."""

import pytest

from bot.domain.commands.commands import LoneWord
from bot.domain.commands.options import OptionFault, OptionName, WrongOption
from bot.domain.commands.thread_words import ThreadWord
from bot.domain.threads.thread import Thread
from bot.notices.answers import CardNotPosted, word_meant
from bot.notices.notice import Notice
from bot.slack.rendering.ephemeral_texts import help_text, task_missing, word_without_job, wrong_option
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages

CONTEXT = MessageContext(command="/pa<g>es", bot_user_id="U0BOT")
MAX_EPHEMERAL = 3_000


def test_the_help_lists_every_way_in_and_control_word() -> None:
    text = help_text(CONTEXT)
    assert len(text) < MAX_EPHEMERAL
    for told in ("`/pa&lt;g&gt;es ", "<@U0BOT>", "direct message", "`project:NAME`", "`quiet`", "`//`", ":x:"):
        assert told in text
    for word in ThreadWord:
        assert f"`!{word}`" in text


@pytest.mark.parametrize("word", LoneWord)
def test_the_help_explains_the_intended_command_first(word: LoneWord) -> None:
    first, *rest = help_text(CONTEXT, word).splitlines()
    assert first.startswith(f"Nothing was started: `/pa&lt;g&gt;es {word}` is not a command.")
    assert f'"{word}"' in rest[-1]


@pytest.mark.parametrize("name", OptionName)
@pytest.mark.parametrize("fault", OptionFault)
def test_an_invalid_option_is_explained_with_the_correct_form(name: OptionName, fault: OptionFault) -> None:
    text = wrong_option(WrongOption(name, fault))
    assert text.startswith("Nothing was started: ")
    assert ("`quiet`" if name is OptionName.QUIET else "`project:NAME`") in text


def test_missing_input_is_named() -> None:
    assert "the task is missing" in task_missing(CONTEXT)
    assert "`!stop`" in word_without_job(ThreadWord.STOP, CONTEXT)
    assert "`!stop`" in word_meant(ThreadWord.STOP)
    assert "`!new and the task`" in word_meant(ThreadWord.NEW)


def test_a_direct_message_between_people_cannot_have_a_job() -> None:
    thread = Thread("th1", "T1", "D0BOTH", "U1", "Fix <it>", "", 0.0)
    text = messages(thread, Notice(1, "k", "th1", CardNotPosted("U1", "channel_not_found"), 0.0), CONTEXT)[0].text
    assert "No job was started: I'm not part of this direct message." in text
    assert "in a channel" in text
    assert "/invite" not in text
    assert ">Fix &lt;it&gt;" in text
