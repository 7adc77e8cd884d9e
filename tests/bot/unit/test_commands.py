"""What people type, parsed: options and prompts, control words, replies, and talk between people."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.commands.commands import (
    Aside,
    Blank,
    FollowUp,
    Help,
    LoneWord,
    NoWords,
    OnlyEmoji,
    Start,
    Thanks,
    mentions,
    parse_reply,
    parse_request,
    parse_slash,
    says_new,
)
from bot.domain.commands.options import OptionFault, OptionName, Options, WrongOption, split_options
from bot.domain.commands.thanks import is_only_emoji
from bot.domain.commands.thread_words import ThreadWord, UnclearWord, Word, word_in
from bot.domain.context.message_text import BLANKS, unescape, with_names
from bot.runtime.text import without_misleading


@pytest.mark.parametrize("text", ["help", "Help", " HELP ", "?", "-h", "-H", "--help", "\u2014help", "\ufeffhelp"])
def test_help_is_parsed_as_help(text: str) -> None:
    assert parse_slash(text) == Help()


@pytest.mark.parametrize("text", ["", "   ", "\u200b"])
def test_the_bare_command_is_empty(text: str) -> None:
    assert parse_slash(text) == Blank()


@pytest.mark.parametrize("word", ["status", "list", "cancel", "stop"])
def test_a_misspelled_command_asks_for_help_with_a_suggestion(word: str) -> None:
    for text in (word, word.upper(), f"  {word.title()} ", f"\u2060{word} \u200b", f"quiet {word}"):
        assert parse_slash(text) == Help(LoneWord(word))


@pytest.mark.parametrize("word", ["help", "?", "-h", "--help", "status", "List", "cancel", "STOP"])
@pytest.mark.parametrize("quotes", ['""', "\u201c\u201d", "\u201e\u201c", "''", "\u2018\u2019", "\u00ab\u00bb", "``"])
def test_a_quoted_command_word_is_a_prompt(word: str, quotes: str) -> None:
    assert parse_slash(f"{quotes[0]}{word}{quotes[1]}") == Start(word)


@pytest.mark.parametrize("text", ["status page", "stop!", "list of pages", '"colour"', '"', '""', "cancelled"])
def test_other_words_are_unchanged_prompts(text: str) -> None:
    assert parse_slash(text) == Start(text)


def test_everything_else_is_a_prompt() -> None:
    assert parse_slash(' Replace "colour" with "color" ') == Start('Replace "colour" with "color"')
    assert parse_slash("help me with the guides") == Start("help me with the guides")


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "project", "quiet"),
    [
        ("project:guides Fix it", "guides", False),
        ("Project:Guides Fix it", "Guides", False),
        ("quiet Fix it", "", True),
        ("quiet project:guides Fix it", "guides", True),
        ("project:guides quiet Fix it", "guides", True),
        ("  project:guides\nFix it", "guides", False),
        ('project:"the guides" Fix it', "the guides", False),
        ("project:\u201cthe guides\u201d Fix it", "the guides", False),
        ("project:\u201ethe guides\u201c quiet Fix it", "the guides", True),
        ("project:'the guides' Fix it", "the guides", False),
        ("project:\u2018the guides\u2019 Fix it", "the guides", False),
        ("--project guides Fix it", "guides", False),
        ("--project=guides --quiet Fix it", "guides", True),
        ("\u2014project:guides \u2014quiet Fix it", "guides", True),
        ('--project "the guides" Fix it', "the guides", False),
        ("project:<http://guides.io|guides.io> Fix it", "guides.io", False),
        ("project:<@U1> Fix it", "@U1", False),
    ],
)
def test_leading_options_may_be_in_any_order(text: str, project: str, *, quiet: bool) -> None:
    assert parse_slash(text) == Start("Fix it", Options(project, quiet=quiet))


@pytest.mark.parametrize(
    "text",
    [
        "Quiet the warnings",
        "quietly fix it",
        "projects: fix them",
        "project guides",
        "Fix it quiet project:guides",
        '"quiet" is a word',
        "- quiet pages",
    ],
)
def test_text_that_only_resembles_an_option_is_part_of_the_prompt(text: str) -> None:
    assert parse_slash(text) == Start(text)


@pytest.mark.parametrize(
    ("text", "name", "fault"),
    [
        ("project:a project:b Fix it", OptionName.PROJECT, OptionFault.TWICE),
        ("quiet project:a --quiet Fix it", OptionName.QUIET, OptionFault.TWICE),
        ("project: guides Fix it", OptionName.PROJECT, OptionFault.EMPTY),
        ("project:", OptionName.PROJECT, OptionFault.EMPTY),
        ("--project", OptionName.PROJECT, OptionFault.EMPTY),
        ('project:"" Fix it', OptionName.PROJECT, OptionFault.EMPTY),
        ('project:" " Fix it', OptionName.PROJECT, OptionFault.EMPTY),
        ('project:"the guides Fix it', OptionName.PROJECT, OptionFault.UNCLOSED),
    ],
)
def test_an_invalid_option_starts_nothing(text: str, name: OptionName, fault: OptionFault) -> None:
    assert parse_slash(text) == WrongOption(name, fault)


def test_options_alone_are_kept_for_the_form() -> None:
    assert parse_slash("quiet project:guides") == Blank(Options("guides", quiet=True))


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C", "P"]), min_size=1, max_size=20)
PROMPTS = st.text(max_size=50).map(lambda text: f"Fix {text}".strip(BLANKS))


@given(name=NAMES, prompt=PROMPTS, quiet=st.booleans(), order=st.permutations([0, 1]))
def test_any_name_and_prompt_round_trip(name: str, prompt: str, *, quiet: bool, order: list[int]) -> None:
    written = [f'project:"{name}"', "quiet" if quiet else ""]
    said = split_options(" ".join([*(written[place] for place in order), prompt]))
    assert said == (Options(name, quiet=quiet), prompt)


@given(st.text(max_size=300))
def test_parsing_options_never_fails_and_only_strips_the_front(text: str) -> None:
    said = split_options(text)
    assert isinstance(said, WrongOption) or text.strip(BLANKS).endswith(said[1])


# -- replies ----------------------------------------------------------------------------------------------------------


def test_a_reply_is_a_follow_up_an_aside_or_empty() -> None:
    assert parse_reply("<@UBOT> shorter, please", bot_user_id="UBOT") == FollowUp("shorter, please")
    assert parse_reply("// what do you think?", bot_user_id="UBOT") == Aside()
    assert parse_reply("<@UBOT> // between us", bot_user_id="UBOT") == Aside()
    assert parse_reply(" <@UBOT|pagehand> ", bot_user_id="UBOT") == NoWords()
    assert parse_reply("", bot_user_id="UBOT") == NoWords()
    assert parse_reply(" \ufeff\u200b", bot_user_id="UBOT") == NoWords()
    assert parse_reply("\u200b <@UBOT> \u200b// between us", bot_user_id="UBOT") == Aside()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("Please <@UBOT> fix it", "Please fix it"),
        ("Please fix it, <@UBOT>", "Please fix it,"),
        ("hey <@UBOT>, shorter", "hey, shorter"),
        ("<@UBOT>: shorter", "shorter"),
        ("<@UBOT>, shorter", "shorter"),
        ("<@UBOT> <@UBOT> shorter", "shorter"),
        ("one\n<@UBOT> two", "one\ntwo"),
        ("<@UBOT>:tada: two  blanks", ":tada: two  blanks"),
        ("a<@UBOT>b", "ab"),
        ("Not <@UBOT2>, somebody else", "Not <@UBOT2>, somebody else"),
    ],
)
def test_removing_a_mention_leaves_the_other_words_unchanged(written: str, told: str) -> None:
    said = parse_reply(written, bot_user_id="UBOT")
    assert isinstance(said, FollowUp)
    assert with_names(said.prompt, {}) == told.replace("<@UBOT2>", "@UBOT2")


@pytest.mark.parametrize("word", [word for word in ThreadWord if word is not ThreadWord.NEW])
def test_a_control_word_alone_is_for_pagehand(word: ThreadWord) -> None:
    for text in (f"!{word}", f" !{word.upper()}\n", f"<@UBOT> !{word}", f"<@UBOT> {word}", f"{word.title()} <@UBOT>"):
        assert parse_reply(text, bot_user_id="UBOT") == Word(word)


@pytest.mark.parametrize(
    "text",
    [
        "stop",
        "please !stop",
        "<@UBOT> stop using the passive",
        "<@UBOT> cancel",
        "<@UBOT> retry this",
        "!list",
        "!soon",
        "!stepwise",
        "!spot it",
        "!important",
        "![a picture](a.png)",
        "!!! note",
        "!!! help",
        "!!!stop",
        "!now, please",
        "!stop using the passive voice and write shorter",
        "new pages, please",
        "<@UBOT> newer pages",
        "<@UBOT> New wording for the index, please",
        "<@UBOT> new: a page",
    ],
)
def test_a_sentence_with_a_control_word_is_a_follow_up(text: str) -> None:
    assert parse_reply(text, bot_user_id="UBOT") == FollowUp(text.removeprefix("<@UBOT> "))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *((text, ThreadWord.STOP) for text in ("!Stop.", "! stop", "!stop now", "!stop that, please", "!please stop")),
        *((text, ThreadWord.DISCARD) for text in ("!discard", "!Discard it.", "! discard this work")),
        *((text, ThreadWord.STOP) for text in ("!cancel", "!Halt!!", "!abort it", "!stopp", "!STOOOP", "!!stop")),
        *(
            (text, ThreadWord.STOP)
            for text in ("`!stop`", "*!stop*", "\uff01stop", "<@UBOT> stop now", "stop. <@UBOT>")
        ),
        ("!status, please", ThreadWord.STATUS),
        ("!retry it", ThreadWord.RETRY),
        ("!Help me", ThreadWord.HELP),
    ],
)
def test_an_unmistakable_control_word_is_understood(text: str, word: ThreadWord) -> None:
    """In any case, with a full stop, a space, a synonym, or a polite addition."""
    assert parse_reply(text, bot_user_id="UBOT") == Word(word)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *((text, ThreadWord.STOP) for text in ("!stpo", "!stop?", "!stop using the passive", "!quit", "!cancle")),
        *((text, ThreadWord.STOP) for text in ("!top", "!staop it", "!step", "!sotp", "!xstop", "!stops please")),
        ("!statsu", ThreadWord.STATUS),
        ("!un-mute", ThreadWord.UNMUTE),
        ("!again", ThreadWord.RETRY),
        ("!news", ThreadWord.NEW),
        ("<@UBOT> !hepl", ThreadWord.HELP),
    ],
)
def test_a_near_miss_of_a_control_word_is_asked_about(text: str, word: ThreadWord) -> None:
    """It is neither sent to the agent nor executed."""
    assert parse_reply(text, bot_user_id="UBOT") == UnclearWord(word)
    assert parse_request(text, bot_user_id="UBOT") == UnclearWord(word)


@pytest.mark.parametrize(
    "text",
    [
        "!new Fix the index",
        "!new: Fix the index",
        "! new Fix the index",
        "!NEW\nFix the index",
        "<@UBOT> new Fix the index",
    ],
)
def test_another_job_is_requested_with_its_prompt(text: str) -> None:
    assert parse_reply(text, bot_user_id="UBOT") == Word(ThreadWord.NEW, "Fix the index")
    assert parse_reply("!new", bot_user_id="UBOT") == Word(ThreadWord.HELP)


@pytest.mark.parametrize(
    "text",
    [
        "<@U0BEN> what do you think?",
        "\u200b <@U0BEN|ben>, see above",
        "<!subteam^S1|@writers> please look",
        "<!here> it is done",
        "<!channel|@channel> it is done",
    ],
)
def test_words_addressed_to_another_person_are_not_for_the_agent(text: str) -> None:
    assert parse_reply(text, bot_user_id="UBOT") == Aside()
    assert isinstance(parse_reply(f"<@UBOT> {text}", bot_user_id="UBOT"), FollowUp)
    assert isinstance(parse_reply(f"{text} <@UBOT>", bot_user_id="UBOT"), FollowUp)
    assert isinstance(parse_reply(text, bot_user_id="UBOT", among_people=False), FollowUp)
    assert isinstance(parse_reply(f"Ask {text}", bot_user_id="UBOT"), FollowUp)


CHEERS = [":tada:", ":+1: :tada:", ":wave::skin-tone-3:", "\U0001f389", "\u2764\ufe0f\n:heart:", "1\ufe0f\u20e3"]
CHEERS += [
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\U0001f44d\U0001f3fd",
    "\U0001f1e9\U0001f1ea",
    "\u2705",
    ":me-2:",
]


@pytest.mark.parametrize("text", CHEERS)
def test_emoji_alone_are_not_words_for_the_agent(text: str) -> None:
    assert parse_reply(text, bot_user_id="UBOT") == OnlyEmoji(text)
    assert parse_reply(f"<@UBOT> {text}", bot_user_id="UBOT") == OnlyEmoji(text)
    assert parse_reply(text, bot_user_id="UBOT", has_attachments=True) == FollowUp(text)
    assert parse_reply(f"{text} thanks", bot_user_id="UBOT") == FollowUp(f"{text} thanks")


@pytest.mark.parametrize("text", ["", " ", "12:30:45", "1", "#", "a", ":", "::", "\u00e9", "\u5b57", "a\u2705"])
def test_text_besides_emoji_counts_as_words(text: str) -> None:
    assert not is_only_emoji(text)


# -- messages that ask for a job --------------------------------------------------------------------------------------


def test_a_message_is_parsed_like_the_command() -> None:
    assert parse_request("<@UBOT> quiet project:guides Fix it", bot_user_id="UBOT") == Start(
        "Fix it", Options("guides", quiet=True)
    )
    assert parse_request("Fix it, <@UBOT>", bot_user_id="UBOT") == Start("Fix it,")
    assert parse_request("<@UBOT>", bot_user_id="UBOT") == Blank()
    assert parse_request("<@UBOT> project:", bot_user_id="UBOT") == WrongOption(OptionName.PROJECT, OptionFault.EMPTY)
    assert parse_request("<@UBOT> list", bot_user_id="UBOT") == Help(LoneWord.LIST)
    assert parse_request("<@UBOT> ?", bot_user_id="UBOT") == Help()
    assert parse_request("<@UBOT> help", bot_user_id="UBOT") == Help()
    assert parse_request("!help", bot_user_id="UBOT") == Help()
    assert parse_request("<@U0BEN> wants <@UBOT> to fix it", bot_user_id="UBOT") == Start(
        "\x02@U0BEN\x03 wants to fix it"
    )


def test_control_words_of_a_thread_are_not_prompts() -> None:
    assert parse_request("<@UBOT> stop", bot_user_id="UBOT") == Word(ThreadWord.STOP)
    assert parse_request("!mute", bot_user_id="UBOT") == Word(ThreadWord.MUTE)
    assert parse_request("!new quiet Fix it", bot_user_id="UBOT") == Start("Fix it", Options(quiet=True))
    assert parse_request("<@UBOT> new page about hooks", bot_user_id="UBOT") == Start("new page about hooks")


def test_talk_and_cheers_request_nothing() -> None:
    assert parse_request("<@UBOT> // is a bot", bot_user_id="UBOT") == Aside()
    assert parse_request(":wave: <@UBOT>", bot_user_id="UBOT") == Aside()


def test_thanks_alone_request_nothing() -> None:
    """With a file they may."""
    assert parse_request("<@UBOT> thank you :tada:", bot_user_id="UBOT") == Thanks()
    assert parse_request("Thanks!", bot_user_id="UBOT", has_attachments=True) == Start("Thanks!")


@pytest.mark.parametrize(
    "text", ["!new Fix it", "! new Fix it", "<@UBOT> !new Fix it", "!NEW\nFix it", "!new quiet Fix it"]
)
def test_wordings_that_announce_a_new_job(text: str) -> None:
    assert says_new(text, "UBOT")


@pytest.mark.parametrize(
    "text", ["new page about hooks", "<@UBOT> new Fix it", "Fix !new", "!stop", "", "!", "![new](x)"]
)
def test_wordings_that_may_concern_the_current_job(text: str) -> None:
    """Without the mark, the word is the beginning of a sentence."""
    assert not says_new(text, "UBOT")


def test_a_mention_is_of_exactly_one_person() -> None:
    assert mentions("hey <@UBOT>", "UBOT")
    assert mentions("hey <@UBOT|pagehand>", "UBOT")
    assert not mentions("hey <@UBOT2> &lt;@UBOT&gt; @UBOT", "UBOT")


@pytest.mark.first(piece=5)
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece",
    [
        "<@UBOT|",
        "<@UBOT> ",
        " ",
        ":a",
        "`!stop`",
        " <@UBOT",
        "\n",
        "<@UBOT>,",
        ":",
        "!new ",
        "quiet ",
        "!",
        "! ",
        "!oooo",
    ],
)
def test_a_hostile_reply_of_a_megabyte_is_read(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    parse_reply(text, bot_user_id="UBOT")
    parse_request(text, bot_user_id="UBOT")
    parse_slash(f"project:{text}")


@given(st.text(max_size=2_000))
def test_any_text_is_read(text: str) -> None:
    read = unescape(text)
    assert read == read.strip()
    assert "\x00" not in read
    assert isinstance(
        parse_reply(text, bot_user_id="UBOT"), Aside | OnlyEmoji | NoWords | Word | UnclearWord | FollowUp
    )


@given(st.sampled_from([word for word in ThreadWord if word is not ThreadWord.NEW]), st.text(max_size=30))
def test_a_short_control_word_with_additions_never_reaches_the_agent(word: ThreadWord, beside: str) -> None:
    """It is that word or asked about, unless additional words make it a sentence."""
    said = parse_reply(f"!{word} {beside}", bot_user_id="UBOT")
    if len(unescape(beside).split()) <= 2:
        assert said in (Word(word), UnclearWord(word))
    assert isinstance(said, Word | UnclearWord | FollowUp)
    assert not isinstance(said, Word) or said == Word(word)


@given(st.text(min_size=61, max_size=200))
def test_a_long_text_is_not_a_control_word(text: str) -> None:
    """However it begins, unless it asks for another job."""
    said = word_in(f"!{text}", addressed=False)
    assert said is None or (isinstance(said, Word) and said.word in {ThreadWord.NEW, ThreadWord.HELP})


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=500))
def test_slacks_escaping_is_undone(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert unescape(escaped) == without_misleading(text).strip(BLANKS)


def full_width(text: str) -> str:
    return "".join(
        chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else "\u3000" if sign == " " else sign for sign in text
    )


TASK = "\u76f4\u3057\u3066\uff1a\uff01\u00a0a\u202f\uff0f\uff0f"
"""Words for the agent, with such signs."""


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u3000", "\u2009"])
@pytest.mark.parametrize(
    "options",
    [
        "project:docs quiet ",
        "\uff30roject\uff1adocs --quiet ",
        "project\uff1d\u300cdocs\u300d quiet ",
        full_width("project:docs quiet "),
    ],
)
def test_options_are_read_in_signs_of_other_keyboards(options: str, space: str) -> None:
    """The task keeps its own."""
    assert parse_slash(options.replace(" ", space) + TASK) == Start(TASK, Options("docs", quiet=True))


@pytest.mark.parametrize("spelled", [str, full_width])
def test_words_for_pagehand_are_read_in_signs_of_other_keyboards(spelled: Callable[[str], str]) -> None:
    reply = partial(parse_reply, bot_user_id="UBOT")
    assert parse_slash(spelled("--help")) == parse_slash(spelled("?")) == Help()
    assert parse_slash(spelled("status")) == Help(LoneWord.STATUS)
    assert parse_slash(spelled('"') + "help" + spelled('"')) == Start("help")
    assert reply(spelled("// only us")) == parse_request(spelled("// us"), bot_user_id="UBOT") == Aside()
    assert reply(f"/\uff0f{TASK}") == Aside()
    assert reply(spelled("!Stop now.")) == Word(ThreadWord.STOP)
    assert reply(spelled("!status\u3002")) == Word(ThreadWord.STATUS)
    assert reply(f"<@UBOT>{spelled(',')} {spelled('retry')}") == Word(ThreadWord.RETRY)
    assert reply(f"<@UBOT>\uff1a{TASK}") == FollowUp(TASK)
    assert reply(spelled("!new") + f"\u3000{TASK}") == Word(ThreadWord.NEW, TASK)
    assert reply(spelled("!stpo")) == UnclearWord(ThreadWord.STOP)
    assert reply(TASK) == FollowUp(TASK)
