"""What people type, parsed: options and prompts, control words, replies, and talk between people."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.store_world import a_follow_up, a_thread

from bot.domain.commands import (
    AgentOptions,
    Aside,
    Blank,
    FollowUp,
    Help,
    NoWords,
    OnlyEmoji,
    Options,
    Start,
    Thanks,
    ThreadWord,
    UnclearWord,
    Word,
    WrongOption,
    is_only_emoji,
    is_only_thanks,
    mentions,
    parse_reply,
    parse_request,
    parse_slash,
    says_new,
    split_options,
    word_in,
)
from bot.domain.jobs.job import Problem
from bot.domain.messages import BLANKS, unescape, with_names
from bot.domain.projects import (
    MOST_PROJECTS,
    Ambiguous,
    ChannelSettings,
    JobApiAbilities,
    Project,
    ProjectReason,
    Projects,
    ReplyMode,
    Route,
    Routed,
    normal_words,
    route,
)
from bot.domain.requests.held import IN_ONE_GO, job_in_hand, lines_with, to_ask_about
from bot.domain.requests.request import Request, RequestState, WayIn
from bot.domain.threads.thread import Failure, Participation, Thread, ThreadState, Work
from bot.jobapi.models import Job, Mode
from bot.notices.notice import Notice
from bot.notices.questions import ProjectAsked
from bot.runtime.text import without_misleading
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages


@pytest.mark.parametrize("word", ["status", "list", "cancel", "stop"])
def test_a_word_tried_as_a_command_asks_for_help(word: str) -> None:
    for text in (word, word.upper(), f"  {word.title()} ", f"\u2060{word} \u200b", f"quiet {word}"):
        assert parse_slash(text) == Help()


@pytest.mark.parametrize("word", ["help", "?", "-h", "--help", "status", "List", "cancel", "STOP"])
@pytest.mark.parametrize("quotes", ['""', "\u201c\u201d", "\u201e\u201c", "''", "\u2018\u2019", "\u00ab\u00bb", "``"])
def test_a_quoted_command_word_is_a_prompt(word: str, quotes: str) -> None:
    quoted = f"{quotes[0]}{word}{quotes[1]}"
    assert parse_slash(quoted) == Start(quoted)


@pytest.mark.parametrize(
    ("text", "project", "quiet"),
    [
        ("project:guides Fix it", "guides", False),
        ("quiet Fix it", "", True),
        ("quiet project:guides Fix it", "guides", True),
        ("project:guides quiet Fix it", "guides", True),
        ("  project:guides\nFix it", "guides", False),
        ('project:"guides" Fix it', "guides", False),
        ("project:\u201cguides\u201d Fix it", "guides", False),
        ("--project guides Fix it", "guides", False),
        ("--project=guides --quiet Fix it", "guides", True),
        ("\u2014project:guides \u2014quiet Fix it", "guides", True),
        ("project:<http://guides.io|guides.io> Fix it", "guides.io", False),
    ],
)
def test_leading_options_may_be_in_any_order(text: str, project: str, *, quiet: bool) -> None:
    assert parse_slash(text) == Start("Fix it", Options(project, quiet=quiet))


PLAN = AgentOptions(Mode.PLAN)


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("mode:plan Fix it", PLAN),
        ("mode=PLAN Fix it", PLAN),
        ("mode: plan Fix it", PLAN),
        ("mode: `plan` Fix it", PLAN),
        ("--mode plan Fix it", PLAN),
        ("\u2014Mode:plan Fix it", PLAN),
        ("plan: Fix it", PLAN),
        ("Mode:plan Fix it", PLAN),
        ("Mode: Plan Fix it", PLAN),
        ("mode:\nplan\nFix it", PLAN),
        ("plan\u00a0: Fix it", PLAN),
        ("*plan:* Fix it", PLAN),
        ("Plan:\nFix it", PLAN),
        ("*plan:*\nFix it", PLAN),
        ("ask: \nFix it", AgentOptions(Mode.ASK)),
        ("*Plan*: Fix it", PLAN),
        ("`plan:` Fix it", PLAN),
        ("--plan Fix it", PLAN),
        ("\u2014Plan: Fix it", PLAN),
        ("--ask Fix it", AgentOptions(Mode.ASK)),
        ("Model:opus-5 Fix it", AgentOptions(None, "opus-5")),
        ("Plan:Fix it", PLAN),
        ("plan\uff1aFix it", PLAN),
        ("ask: Fix it", AgentOptions(Mode.ASK)),
        ("mode:edit Fix it", AgentOptions(Mode.EDIT)),
        ("model:opus-5 effort=high Fix it", AgentOptions(None, "opus-5", "high")),
        ('--model "opus-5" plan: effort:high Fix it', AgentOptions(Mode.PLAN, "opus-5", "high")),
    ],
)
@pytest.mark.parametrize("before", ["", "project:guides quiet "])
def test_options_for_the_agent_stand_in_front_in_any_order(text: str, agent: AgentOptions, before: str) -> None:
    expected = Options("guides", quiet=True, agent=agent) if before else Options(agent=agent)
    assert parse_slash(before + text) == Start("Fix it", expected)


SLASH: dict[Blank | Help | WrongOption, list[str]] = {
    Help(): ["help", "Help", " HELP ", "?", "-h", "-H", "--help", "\u2014help", "\ufeffhelp"],
    Blank(): ["", "   ", "\u200b"],
    Blank(Options("guides", quiet=True)): ["quiet project:guides"],
    Blank(Options(agent=AgentOptions(Mode.PLAN))): ["plan:", "mode:plan", " Plan: "],
    WrongOption(): [
        "project:a project:b Fix it",
        "project: guides Fix it",
        "project:",
        'project:" " Fix it',
        "mode:plan mode:ask Fix it",
        "mode:plan plan: Fix it",
        "plan: ask: Fix it",
        "mode:paln Fix it",
        "mode: paln Fix it",
        "mode: Plan, Fix it",
        "Mode: edits",
        "mode:",
        "Mode:dark is missing",
        "--plan ask: Fix it",
        "--mode Fix it",
        "--model=",
        "model:",
        "quiet effort: ",
        'effort:"" Fix it',
        "model:a model:b Fix it",
    ],
}
PROMPTS_ALONE = [
    "status page",
    "stop!",
    ' Fix "colour" ',
    '"colour"',
    '"',
]
"""Words that are no command."""
PROMPTS_ALONE += [
    "Quiet the warnings",
    "projects: fix them",
    "Fix it quiet project:guides",
    '"quiet" is a word',
    "Plan the migration guide",
    "plan the guide: first the titles",
    "Planning: who does it?",
    "Rename it. ask: who owns it?",
    "Model: the new one",
    "model: the new one is missing",
    "mode: dark is missing",
    "Mode:\ndark is missing",
    "Mode: dark is missing",
    "--planned work",
    "plan  : the guide",
    "`plan` and `ask`: explain them",
    "effort: none",
    "models:x",
    "edit: the guide",
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, said) for said, texts in SLASH.items() for text in texts),
        *((text, Start(text.strip())) for text in PROMPTS_ALONE),
    ],
)
def test_a_command_is_parsed(text: str, said: Blank | Help | Start | WrongOption) -> None:
    """An invalid option starts nothing; options alone are kept for the form; what only resembles one is the prompt."""
    assert parse_slash(text) == said


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Z", "C", "P"], exclude_characters="`"), min_size=1, max_size=20
)
PROMPTS = st.text(max_size=50).map(lambda text: f"Fix {text}".strip(BLANKS))


@given(
    names=st.tuples(NAMES, NAMES, NAMES),
    mode=st.sampled_from(Mode),
    prompt=PROMPTS,
    quiet=st.booleans(),
    order=st.permutations(range(5)),
)
def test_any_name_and_prompt_round_trip(
    names: tuple[str, str, str], mode: Mode, prompt: str, *, quiet: bool, order: list[int]
) -> None:
    project, model, effort = names
    short = f"mode:{mode}" if mode is Mode.EDIT else f"{mode}:"
    written = [f"project:{project}", "quiet" if quiet else "", short, f"model:{model}", f"effort:{effort}"]
    said = split_options(" ".join([*(written[place] for place in order), prompt]))
    assert said == (Options(project, quiet=quiet, agent=AgentOptions(mode, model, effort)), prompt)


@given(st.text(max_size=300))
def test_parsing_options_never_fails_and_only_strips_the_front(text: str) -> None:
    said = split_options(text)
    assert isinstance(said, WrongOption) or text.strip(BLANKS).endswith(said[1])


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
        ("<@UBOT>: shorter", "shorter"),
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
        "<@UBOT> retry this",
        "!list",
        "!spot it",
        "![a picture](a.png)",
        "!!! help",
        "!!!stop",
        "!now, please",
        "!stop using the passive voice and write shorter",
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
        "<!subteam^S1|@writers> please look",
        "<!here> it is done",
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<@UBOT> quiet project:guides Fix it", Start("Fix it", Options("guides", quiet=True))),
        ("<@UBOT>", Blank()),
        ("<@UBOT> project:", WrongOption()),
        *((text, Help()) for text in ("<@UBOT> list", "<@UBOT> ?", "<@UBOT> help", "!help")),
        ("<@U0BEN> wants <@UBOT> to fix it", Start("\x02@U0BEN\x03 wants to fix it")),
        ("!mute", Word(ThreadWord.MUTE)),
        ("!new quiet Fix it", Start("Fix it", Options(quiet=True))),
        ("<@UBOT> new page about hooks", Start("new page about hooks")),
        ("<@UBOT> // is a bot", Aside()),
        ("<@UBOT> thank you :tada:", Thanks()),
    ],
)
def test_a_message_is_parsed_like_the_command(text: str, said: object) -> None:
    """Control words of a thread are no prompts; talk, cheers and thanks alone request nothing."""
    assert parse_request(text, bot_user_id="UBOT") == said


def test_thanks_with_a_file_may_request_something() -> None:
    assert parse_request("Thanks!", bot_user_id="UBOT", has_attachments=True) == Start("Thanks!")


NEW = ("!new Fix it", "! new Fix it", "<@UBOT> !new Fix it", "!NEW\nFix it", "!new quiet Fix it")
NOT_NEW = ("new page about hooks", "<@UBOT> new Fix it", "Fix !new", "!stop", "", "!", "![new](x)")


@pytest.mark.parametrize("text", [*NEW, *NOT_NEW])
def test_a_mark_announces_a_new_job(text: str) -> None:
    """Without it, the word is the beginning of a sentence, which may concern the current job."""
    assert says_new(text, "UBOT") is (text in NEW)


def test_a_mention_is_of_exactly_one_person() -> None:
    assert mentions("hey <@UBOT>", "UBOT")
    assert mentions("hey <@UBOT|pagehand>", "UBOT")
    assert not mentions("hey <@UBOT2> &lt;@UBOT&gt; @UBOT", "UBOT")


@pytest.mark.first(piece=2)
@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["<@UBOT|", " ", ":a", "`!stop`", "!new ", "quiet "])
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
    assert parse_slash(spelled("status")) == Help()
    assert reply(spelled("// only us")) == parse_request(spelled("// us"), bot_user_id="UBOT") == Aside()
    assert reply(f"/\uff0f{TASK}") == Aside()
    assert reply(spelled("!Stop now.")) == Word(ThreadWord.STOP)
    assert reply(spelled("!status\u3002")) == Word(ThreadWord.STATUS)
    assert reply(f"<@UBOT>{spelled(',')} {spelled('retry')}") == Word(ThreadWord.RETRY)
    assert reply(f"<@UBOT>\uff1a{TASK}") == FollowUp(TASK)
    assert reply(spelled("!new") + f"\u3000{TASK}") == Word(ThreadWord.NEW, TASK)
    assert reply(spelled("!stpo")) == UnclearWord(ThreadWord.STOP)
    assert reply(TASK) == FollowUp(TASK)


THANKS = [
    "thanks!", "Thank you", "THX", "great, thanks", "Thanks again :tada: 🎉", "ty <3",
    "thanks a lot for your great work", "Perfect \u2014 thank you all! :)", "That\u2019s great, thanks",
    "Nice job, thx", "merci beaucoup", "Vielen Dank!", "danke schön", "muchas gracias", "Obrigada!", "grazie mille",
    "tusen takk", "Спасибо большое", "ありがとうございます\uff01", "谢谢", "감사합니다", "धन्यवाद", "شكرا",
    "teşekkür ederim",
]  # fmt: skip
ANSWERS = [
    "", "ok", "OK!", "yes", "no", "go ahead", "sure", "great", "perfect", ":tada:", "thanks?", "ok thanks",
    "yes, thanks", "no thanks", "thanks, go ahead", "thanks, but shorter", "Thanks! Also fix the index", "thanks 2",
    "thanks https://a.example", "great job", "please thank the writers", "thanks.md", "add a thank-you page",
    "nein danke", "tak", "thank the team", "thanks, work on it",
]  # fmt: skip


@pytest.mark.parametrize("text", THANKS)
def test_thanks_are_recognized_in_several_languages(text: str) -> None:
    """With praise, emoji and other usual additions."""
    assert is_only_thanks(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_possible_answers_are_not_thanks(text: str) -> None:
    """Neither is praise alone, nor anything that asks for something."""
    assert not is_only_thanks(text)


@given(st.text(max_size=300))
def test_any_text_is_checked_for_thanks(text: str) -> None:
    """Thanks with one more word are not."""
    assert not is_only_thanks(f"thanks {text} headings")
    is_only_thanks(text)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("piece", ["thanks ", "so much ", "\ufdfa", "a'", ":", "thank "])
def test_a_megabyte_is_not_thanks(piece: str) -> None:
    assert not is_only_thanks(piece * (1_000_000 // len(piece)))


NOW = 1_700_000_100.0
AT_WORK, DONE, GONE = (
    Job("j1", "active"),
    Job("j1", "completed", pr_link="https://git.example/1"),
    Job("j1", "archived"),
)


def a_line(at: float, state: RequestState = RequestState.AWAITING_PERSON) -> Request:
    return a_follow_up(f"{at:.6f}", way_in=WayIn.DIRECT_MESSAGE, state=state, person_id="UANA")


def lines(*times: float) -> list[Request]:
    return [a_line(NOW + time) for time in times]


@pytest.mark.parametrize(
    ("state", "in_hand"),
    [
        (ThreadState(), True),
        (ThreadState(AT_WORK), True),
        (ThreadState(DONE), False),
        (ThreadState(DONE, work=Work(question="Which?")), True),
        (ThreadState(GONE), False),
        (ThreadState(GONE, work=Work(question="Which?")), False),
        (ThreadState(AT_WORK, people=Participation(muted_by="UBEN")), False),
        (ThreadState(AT_WORK, replaced_by="t2"), False),
        (ThreadState(AT_WORK, people=Participation(stopped_by="UANA")), True),
        (ThreadState(DONE, round=1, work=Work(unseen=True)), True),
        *((ThreadState(failure=Failure(problem=problem)), False) for problem in Problem),
    ],
)
def test_a_live_job_is_starting_active_or_waiting_for_an_answer(state: ThreadState, *, in_hand: bool) -> None:
    thread = a_thread("t1", ts="1.1", state=state)
    assert (job_in_hand([thread], NOW) is thread) is in_hand


def test_the_newest_live_job_is_the_one_above() -> None:
    threads = [a_thread(name, ts="1.1", state=ThreadState(job)) for name, job in _NEWEST_FIRST]
    found = job_in_hand(threads, NOW)
    assert found is not None
    assert found.id == "t2"
    assert job_in_hand([], NOW) is None


_NEWEST_FIRST = (("t3", DONE), ("t2", AT_WORK), ("t1", AT_WORK))


def test_lines_sent_in_quick_succession_belong_together() -> None:
    """In written order, however they were recorded."""
    first, second, third, later = waiting = lines(0, 4, 8, 20)
    assert lines_with(second, [later, third, second, first]) == [first, second, third]
    assert lines_with(later, waiting) == [later]
    assert lines_with(second, []) == [second]
    assert lines_with(first, [second, later]) == [first, second]
    assert to_ask_about(waiting) == [first, later]


def test_a_deleted_line_leaves_the_rest_of_its_group() -> None:
    first, second = lines(0, 4)
    gone = replace(first, state=RequestState.WITHDRAWN)
    assert lines_with(gone, [second]) == [second]
    assert lines_with(gone, []) == []


def test_a_waiting_thread_reply_is_not_a_line() -> None:
    """It has its own question."""
    line = a_line(NOW)
    reply = replace(a_line(NOW + 1), way_in=WayIn.REPLY)
    assert lines_with(line, [reply, line]) == [line]
    assert to_ask_about([line, reply]) == [line, reply]


@given(st.lists(st.floats(0, 60), max_size=8, unique_by=lambda time: f"{NOW + time:.6f}"))
def test_each_line_belongs_to_one_question(times: list[float]) -> None:
    waiting = lines(*times)
    asked = to_ask_about(waiting)
    answered = [line for question in asked for line in lines_with(question, waiting)]
    assert sorted(line.id for line in answered) == sorted(line.id for line in waiting)
    for line in waiting:
        assert lines_with(line, waiting)[0] in asked


def test_lines_more_than_a_few_seconds_apart_are_separate() -> None:
    first, near, far = lines(0, IN_ONE_GO, 2 * IN_ONE_GO + 0.001)
    assert lines_with(first, [near, far]) == [first, near]


GUIDES = Project("guides", channels=frozenset({"CGUIDES"}), words=("install guide", "tutorial"))
API = Project("api", channels=frozenset({"CAPI"}), words=("endpoint",), abilities=JobApiAbilities(cancel=True))
BLOG = Project("blog", id="prj_blog")
THREE = Projects((GUIDES, API, BLOG), {"CAPI": ChannelSettings(ReplyMode.MENTIONS, broadcast=True)})


def test_each_rule_yields_to_the_previous_one() -> None:
    """The named project, the thread's, the channel's, the keyword's, the person's own: in this order."""
    everything = {
        "said": "BLOG",
        "of_thread": "api",
        "channel_id": "CGUIDES",
        "prompt": "The endpoint is gone",
        "of_person": "blog",
    }
    in_order = (
        ("said", Routed("blog", ProjectReason.SAID)),
        ("of_thread", Routed("api", ProjectReason.THREAD)),
        ("channel_id", Routed("guides", ProjectReason.CHANNEL)),
        ("prompt", Routed("api", ProjectReason.WORDS)),
        ("of_person", Routed("blog", ProjectReason.DEFAULT)),
    )
    for name, expected in in_order:
        assert route(THREE, **everything) == expected
        everything[name] = ""
    assert route(THREE, **everything) == Ambiguous(("guides", "api", "blog"))


ONE, ANY = Projects((BLOG,)), Ambiguous(("guides", "api", "blog"))
GUIDES_BY_WORDS, TWO_OF_THEM = Routed("guides", ProjectReason.WORDS), Ambiguous(("guides", "api"))


@pytest.mark.parametrize(
    ("known", "told", "expected"),
    [
        # a single one needs no question, but a given name is never guessed at
        (ONE, {"prompt": "Fix it"}, Routed("blog", ProjectReason.ONLY_ONE)),
        (ONE, {"prompt": "Fix it", "said": "gudies"}, Ambiguous(("blog",), "gudies")),
        (THREE, {"prompt": "Fix it", "said": "gudies"}, Ambiguous(("guides", "api", "blog"), "gudies")),
        # a thread's or a person's may have left the settings, or be from when a single project's name was its id
        (THREE, {"prompt": "Fix it", "of_thread": "old", "of_person": "old"}, ANY),
        (THREE, {"prompt": "Fix it", "of_thread": "prj_blog"}, Routed("blog", ProjectReason.THREAD)),
        # whole words, in any case and over line breaks, within bounded time
        (THREE, {"prompt": "Shorten the TUTORIAL."}, GUIDES_BY_WORDS),
        (THREE, {"prompt": "the install\n guide's first page"}, GUIDES_BY_WORDS),
        (THREE, {"prompt": "Guide me to install it"}, ANY),
        (THREE, {"prompt": "a " * 20_000 + "tutorial"}, ANY),
        # two matches are asked about, whatever the person's default
        (THREE, {"prompt": "The tutorial on the endpoint"}, TWO_OF_THEM),
        (THREE, {"prompt": "tutorial, endpoint", "of_person": "blog"}, TWO_OF_THEM),
    ],
)
def test_a_project_is_decided_or_asked_about(known: Projects, told: dict[str, str], expected: Route) -> None:
    assert route(known, **told) == expected


@pytest.mark.timeout(10)
def test_many_accents_are_read_in_linear_time() -> None:
    many = "\u0345\u0301\u0323\u0321\u05b0" * 20_000
    first, *_, last = normal_words(f"e\u0301 {many} Tutorial").split()
    assert (first, last) == ("\u00e9", "tutorial")


def test_projects_left_out_of_the_question_are_mentioned() -> None:
    """It says how to choose them; names of usual lengths all fit."""

    def asked(*names: str) -> ChatMessage:
        thread = Thread("t" * 32, "T1", "C1", "U0ANA", "Do it", "", 0.0)
        notice = Notice(1, "k", thread.id, ProjectAsked("U0ANA", thread.id, names, "", "Do it"), 0.0)
        return messages(thread, notice, MessageContext("U0BOT"))[0]

    usual = asked(*(f"project-{number:02}" for number in range(MOST_PROJECTS)))
    assert len(usual.blocks[1]["elements"][0]["options"]) == MOST_PROJECTS
    assert "don't fit" not in usual.text
    long = asked(*(f"{'a' * 56}{number}" for number in range(MOST_PROJECTS)))
    left_out = MOST_PROJECTS - len(long.blocks[1]["elements"][0]["options"])
    assert f"{left_out} more don't fit here. To choose one of them, ask again with `project:NAME`" in long.text
    assert 0 < left_out < MOST_PROJECTS // 2
    assert len(str(long.blocks)) < 20_000
