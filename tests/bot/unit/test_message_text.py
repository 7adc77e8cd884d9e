"""A message's words: with their formatting, from what Slack's composer makes; otherwise from its flat text."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.any_json import any_json
from support.fakes.slack_payloads import command, edit, event
from support.worlds.listening_world import listening

from bot.domain.commands import NO_OPTIONS, split_options
from bot.domain.messages import (
    BLANKS,
    PRIVATE_CHANNEL,
    FileContent,
    ForwardedMessage,
    LinkPreview,
    SlackFile,
    keeping_names,
    mention,
    mentioned,
    quoted,
    same_words,
    unescape,
    unescape_keeping_mentions,
    with_names,
)
from bot.jobserver.pages.diff import visible_line
from bot.jobserver.pages.handlers import render_page
from bot.runtime.text import displayable, printable_line, without_misleading
from bot.slack.message_parts.contents import files_of, forwarded_of, previews_of, read_file, thread_message
from bot.slack.message_parts.slack_message import MAX_PARTS, MessageFile, SlackMessage
from bot.slack.message_parts.written_words import MAX_CHARACTERS, message_text, written_words
from bot.slack.rendering import text

FLAT = "the flat text"


def words(text: str, **style: bool) -> dict[str, Any]:
    return {"type": "text", "text": text} | ({"style": style} if style else {})


def section(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": list(elements)}


def bullets(*items: str, style: str = "bullet", **fields: Any) -> dict[str, Any]:
    return {"type": "rich_text_list", "style": style, "elements": [section(words(item)) for item in items]} | fields


def code(*elements: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "rich_text_preformatted", "elements": list(elements)} | fields


def quotation(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text_quote", "elements": list(elements)}


def message(*parts: Any, text: str = FLAT) -> dict[str, Any]:
    return {"text": text, "blocks": [{"type": "rich_text", "block_id": "b", "elements": list(parts)}]}


@pytest.mark.promise("what people see")
@pytest.mark.parametrize(
    ("parts", "markdown"),
    [
        ([section(words("Fix a < b & c"))], "Fix a < b & c"),
        (
            [section(words("Do:\n")), bullets("first", "second", indent=0, border=0), section(words("\nThanks"))],
            "Do:\n\n- first\n- second\n\nThanks",
        ),
        (
            [
                bullets("one", "two", style="ordered", indent=0),
                bullets("inside", indent=1),
                bullets("three\nstill three", style="ordered", indent=0, offset=2),
            ],
            "1. one\n2. two\n    - inside\n3. three\n   still three",
        ),
        ([section(words("Run\n")), code(words("if a:\n    b()\n"))], "Run\n\n```\nif a:\n    b()\n```"),
        ([code(words("```\nfence\n```"))], "````\n```\nfence\n```\n````"),
        ([code({"type": "link", "url": "http://x.md", "text": "x.md"}, words(" <b>"))], "```\nx.md <b>\n```"),
        ([quotation(words("one\ntwo")), section(words("so?"))], "> one\n> two\n\nso?"),
        ([bullets("quoted", border=1)], "> - quoted"),
        ([section(words("be "), words("bold ", bold=True), words("now"))], "be **bold** now"),
        ([section(words("a", bold=True, italic=True), words("b", strike=True), words(" "))], "**_a_**~~b~~"),
        ([section(words("x = `y`", code=True), words(" and "), words("z", code=True))], "`` x = `y` `` and `z`"),
        (
            [section({"type": "link", "url": "https://x.example/a?b&c", "text": "the page"})],
            "the page (https://x.example/a?b&c)",
        ),
        ([section({"type": "link", "url": "http://README.md", "text": "README.md"})], "README.md"),
        ([section({"type": "link", "url": "mailto:a@x.example", "text": "a@x.example"})], "a@x.example"),
        ([section({"type": "user", "user_id": "U1"}, words(" wrote it"))], "@U1 wrote it"),
        ([section({"type": "emoji", "name": "wave::skin-tone-2", "unicode": "1f44b-1f3fb"})], ":wave::skin-tone-2:"),
        ([section({"type": "date", "timestamp": 1, "format": "{date}", "fallback": "1 Jan"})], "1 Jan"),
        ([section(words("typed <@U1> \x02@U2\x03"))], "typed <@U1> @U2"),
    ],
    ids=str,
)
def test_words_are_read_with_their_formatting(parts: list[dict[str, Any]], markdown: str) -> None:
    assert unescape(message_text(SlackMessage.read(message(*parts)))) == markdown


@pytest.mark.promise("what people see")
def test_channels_and_groups_keep_the_names_in_the_text() -> None:
    parts = section(
        {"type": "channel", "channel_id": "C1"}, words(" "), {"type": "usergroup", "usergroup_id": "S1"}, words("!")
    )
    flat = "<#C1|docs> <!subteam^S1|@writers>!"
    assert unescape(message_text(SlackMessage.read(message(parts, text=flat)))) == "#docs @writers!"
    assert unescape(message_text(SlackMessage.read(message(parts)))) == "#C1 @S1!"


@pytest.mark.promise("what people see")
@pytest.mark.parametrize(
    "payload",
    [
        {"text": FLAT},
        {"text": FLAT, "blocks": [{"type": "divider"}]},
        message(),
        message(section(words(" \n"))),
        message(section(words("a")), {"type": "rich_text_table"}),
        message(section(words("a"), {"type": "canvas"})),
        message(section({"type": "user", "user_id": "<!channel>"})),
        message(section({"type": "link", "url": "https://x.example|<!channel>"})),
        message({"type": "rich_text_list", "elements": [bullets("inside")]}),
        message(section(*[words("a")] * (MAX_PARTS + 1))),
        message(section(words("a" * (MAX_CHARACTERS + 1)))),
    ],
    ids=lambda payload: str(payload)[:80],
)
def test_unknown_or_oversized_blocks_fall_back_to_the_flat_text(payload: dict[str, Any]) -> None:
    assert message_text(SlackMessage.read(payload)) == FLAT


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text", "elements": [section(*elements)]}


def table(*rows: Any, kind: str = "table", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "rows": list(rows)} | fields


def pasted(*blocks: Any) -> dict[str, Any]:
    """An attachment as Slack makes one of pasted cells, seen in several public reports."""
    return {"id": 1, "blocks": list(blocks), "fallback": "[no preview available]"}


PORTS = table(
    [{"type": "raw_text", "text": "Service"}, rich(words("Port", bold=True))],
    [rich(words("a|b\nand c")), {"type": "raw_number", "value": 8080, "text": "8,080"}],
    [rich({"type": "link", "url": "https://x.example", "text": "the d|b"}), {"type": "raw_number", "value": 5432.5}],
    [rich({"type": "user", "user_id": "U1"}), None, {"type": "raw_text", "text": "<more>"}],
)
WRITTEN_PORTS = """\
| Service | **Port** |  |
| --- | --- | --- |
| a\\|b<br>and c | 8,080 |  |
| the d\\|b (https://x.example) | 5432.5 |  |
| @U1 |  | <more> |"""


@pytest.mark.promise("what people see")
@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (message(section(words("Fix it"))) | {"attachments": [pasted(PORTS)]}, f"Fix it\n\n{WRITTEN_PORTS}"),
        ({"text": "", "attachments": [pasted(PORTS)]}, WRITTEN_PORTS),
        ({"text": "Fix it", "blocks": [PORTS]}, WRITTEN_PORTS),
        (
            {"text": FLAT, "blocks": [rich(words("Fix ", bold=True)), PORTS, rich(words("now"))]},
            f"**Fix** \n\n{WRITTEN_PORTS}\n\nnow",
        ),
        ({"text": FLAT, "blocks": [rich({"type": "canvas"}), PORTS]}, f"{FLAT}\n\n{WRITTEN_PORTS}"),
        (
            {"blocks": [table([{"type": "raw_text", "text": "a"}], kind="data_table", caption="Prices")]},
            "Prices\n\n| a |\n| --- |",
        ),
        (
            {
                "blocks": [
                    {
                        "type": "container",
                        "title": {"type": "plain_text", "text": "A <title>"},
                        "child_blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "see <@U1>"}}],
                    },
                    {"type": "plan", "title": "Steps", "tasks": [{"type": "task_card", "title": "one"}]},
                    {"type": "image", "image_url": "https://x.example/a.gif", "alt_text": "a cat"},
                    {"type": "divider"},
                ]
            },
            "A <title>\nsee @U1\n\nSteps\none\n\na cat",
        ),
        ({"text": "x", "attachments": [{"text": "a tool's &lt;note&gt;", "color": "red"}]}, "x\n\na tool's <note>"),
    ],
)
def test_what_is_pasted_is_read_with_the_text(sent: dict[str, Any], read: str) -> None:
    assert unescape(message_text(SlackMessage.read(sent))) == read
    assert written_words(SlackMessage.read(sent)).missing == ()


@pytest.mark.promise("what people see")
@pytest.mark.parametrize(
    "origin",
    [
        {"is_share": True},
        {"is_msg_unfurl": True},
        {"from_url": "https://x.example"},
        {"author_id": "U1"},
        {"bot_id": "B1"},
    ],
)
def test_what_comes_from_elsewhere_is_not_the_writers(origin: dict[str, Any]) -> None:
    assert message_text(SlackMessage.read({"text": "see", "attachments": [pasted(PORTS) | origin]})) == "see"


MANY = [[{"type": "raw_text", "text": "x"}] * 20] * 500


@pytest.mark.promise("what people see")
@pytest.mark.parametrize(
    ("sent", "read", "missing"),
    [
        ({"text": "a", "attachments": [pasted({"type": "call"})]}, "a", ("call",)),
        ({"text": "", "blocks": [{"type": "call"}, {"type": "divider"}]}, "", ("call",)),
        ({"text": "", "blocks": [rich(words("a "), {"type": "canvas"})]}, "a ", ("rich_text",)),
        ({"text": "a", "attachments": [pasted(table())]}, "a", ("table",)),
        (
            {"text": "a", "attachments": [pasted(table("odd", [None, 5], [{}], [{"type": "raw_text"}]))]},
            "a",
            ("table",),
        ),
        ({"text": "a", "attachments": [pasted(table(*MANY, *MANY))]}, "a", ("table",)),
        (
            {"text": "a", "attachments": [pasted(table([{"type": "raw_text", "text": "x" * 90_000}]))]},
            "a",
            ("too long",),
        ),
        (
            {"text": "a", "attachments": [pasted(table([{"type": "raw_text", "text": "x" * 50_000}]))] * 2},
            None,
            ("too long",),
        ),
    ],
)
def test_what_cannot_be_read_is_named(sent: dict[str, Any], read: str | None, missing: tuple[str, ...]) -> None:
    found = written_words(SlackMessage.read(sent))
    assert found.missing == missing
    assert read in {None, found.text}


@pytest.mark.promise("what people see")
def test_ten_thousand_cells_are_read() -> None:
    written = message_text(SlackMessage.read({"text": "a", "attachments": [pasted(table(*MANY))]}))
    assert written.count("x") == 10_000


@pytest.mark.promise("what people see")
def test_nested_tables_are_read_to_a_limited_depth() -> None:
    deep: dict[str, Any] = {"type": "raw_text", "text": "found"}
    for _ in range(5_000):
        deep = table([deep])
    assert written_words(SlackMessage.read({"text": "", "blocks": [deep]})).missing == ("table",)
    shallow = table([table([{"type": "raw_text", "text": "found"}])])
    assert "found" in message_text(SlackMessage.read({"text": "", "blocks": [shallow]}))


ANYTHING = any_json(st.sampled_from(["type", "elements", "text", "style", "indent", "offset", "url"]))
KINDS = [
    "table",
    "rich_text",
    "rich_text_section",
    "rich_text_list",
    "rich_text_quote",
    "rich_text_preformatted",
    "text",
    "link",
    "emoji",
]
ELEMENTS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(KINDS)},
        optional={"text": ANYTHING, "style": ANYTHING, "url": ANYTHING, "rows": ANYTHING, "value": ANYTHING},
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(KINDS), "elements": st.lists(inner, max_size=4) | ANYTHING},
        optional={"indent": ANYTHING, "offset": ANYTHING, "border": ANYTHING, "style": ANYTHING},
    ),
    max_leaves=12,
)


@pytest.mark.promise("what people see")
@given(st.lists(ELEMENTS, max_size=4), ANYTHING)
def test_any_block_is_read_or_ignored(parts: list[dict[str, Any]], odd: Any) -> None:
    assert isinstance(message_text(SlackMessage.read(message(*parts))), str)
    assert isinstance(message_text(SlackMessage.read({"text": FLAT, "blocks": odd})), str)
    assert isinstance(message_text(SlackMessage.read(odd)), str)
    assert isinstance(message_text(SlackMessage.read({"attachments": [pasted(table(parts, [odd]), *parts)]})), str)


@pytest.mark.promise("what people see")
@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=200))
def test_unstyled_text_is_read_as_typed(typed: str) -> None:
    assert unescape(message_text(SlackMessage.read(message(section(words(typed)))))) == unescape(
        typed.translate({38: "&amp;", 60: "&lt;", 62: "&gt;"})
    )


DECEPTIVE = [
    *map(
        chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x200B, 0xFEFF, 0x3164, 0xE0041)
    ),
    *map(chr, (0x00AD, 0x034F, 0x206A, 0xFFF0, 0x1D173, 0x1BCA0, 0xE0080, 0xE0100, 0xE01EF, 0xE0FFF)),
]
ALONE = [*map(chr, (0x200C, 0x200D, 0xFE00, 0xFE0E, 0xFE0F, 0x180B, 0x180E, 0x180F))]
"""Characters that only some scripts and emoji need."""


@pytest.mark.parametrize("sign", DECEPTIVE)
def test_misleading_characters_are_removed_from_displayed_text(sign: str) -> None:
    said = f"invoice{sign}fdp.exe"
    for shown in (
        text.escape,
        text.quote,
        lambda words: text.one_line(words, 99),
        lambda words: printable_line(words, 99),
    ):
        assert sign not in shown(said)
    assert "".join(text.pieces(said, 99)) == text.opening(said, characters=99, lines=9)[0] == "invoicefdp.exe"
    assert text.safe_url(f"https://example.org/{sign}x") is None
    assert sign not in visible_line(said)
    assert f"[U+{ord(sign):04X}]" in visible_line(said)
    answer = render_page("error.html", message=said, status=400, root="/pulls")
    assert isinstance(answer.body, bytes)
    assert sign not in answer.body.decode()


WRITTEN_SO = [
    "👩‍👩‍👧 ❤️ ❤️‍🔥 🏳️‍🌈 👩🏽‍🚀 🧑🏿‍⚖️ 🐦‍⬛ 🙂‍↔️ 👁️‍🗨️",
    "1️⃣ #️⃣ ©️ ™️ ‼️ \u2139\ufe0f ☎︎ 🫩",
    "שלום עולם",
    "می‌خواهم \u0647\u200d",
    "e\u0301",
    "क्‍ष क्‌ष ක්‍ර ക്‍",
    "ᠬᠠᠭᠠᠨ ᠠ᠋ ᠮᠣᠩᠭᠣᠯ ᠭᠡᠷ᠎ᠡ",
    "က︀ ∩︀",
    "葛飾区 ﷽ \uff41",
]


@pytest.mark.parametrize("words", WRITTEN_SO)
def test_scripts_and_emoji_are_unchanged(words: str) -> None:
    assert text.escape(words) == words == unescape(words)


@pytest.mark.parametrize("sign", ALONE)
def test_joiners_of_scripts_are_removed_elsewhere(sign: str) -> None:
    """For example text hidden in selectors after a letter, or several selectors after one emoji."""
    assert without_misleading(f"a{sign}b 1{sign} {sign}") == "ab 1 "
    assert len(without_misleading(f"❤{sign * 3}")) <= 2
    assert len(without_misleading(f"م{sign * 3}")) <= 2
    assert len(without_misleading(f"ᠠ{sign * 3}")) <= 2
    assert without_misleading("".join(f"a{chr(0xFE00 + number)}" for number in range(16))) == "a" * 16


def test_a_braille_blank_becomes_a_space() -> None:
    """It is drawn as a space, and separates words in braille."""
    assert text.escape("\u2813\u2800\u2815") == "\u2813 \u2815"


SIGNS = st.sampled_from(
    [*DECEPTIVE, *ALONE, *"aא1#मمᠠ❤👩🔥🏽⃣ \n\r\t\x00\x1b<>&|@\u2800\ud83d", "&lt;", "<@U1>", "<https://a.b|"]
)


@given(st.lists(SIGNS | st.characters(), max_size=40).map("".join))
def test_the_agent_receives_the_text_the_card_shows(written: str) -> None:
    """Cleaning is idempotent, in any order."""
    told = unescape(written)
    assert displayable(told) == told
    assert displayable(displayable(written)) == displayable(written)
    assert without_misleading(without_misleading(written)) == without_misleading(written)


HIDDEN = "fix\u202e the\U000e0041\U000e0042 gu\u200bi\U000e0100de\ufe0f\u2063s 👩‍🚀"
SEEN = "fix the guides 👩‍🚀"
MISLEADING = {
    "a command": command(text=HIDDEN),
    "a reply": event(text=HIDDEN),
    "an edit": edit(HIDDEN),
    "a mention": event(type="app_mention", text=f"<@U0BOT> {HIDDEN}", thread_ts=None),
    "a direct message": event(text=HIDDEN, thread_ts=None, channel="D1", channel_type="im"),
}


@pytest.mark.parametrize("way", MISLEADING)
async def test_hidden_text_is_not_recorded(way: str) -> None:
    async with listening() as world:
        await world.both_ways(MISLEADING[way])
        recorded = repr(world.service.calls)
        assert repr(SEEN)[1:-1] in recorded
        assert "\\u202e" not in recorded


async def test_a_hidden_character_does_not_turn_an_aside_into_a_follow_up() -> None:
    async with listening() as world:
        await world.both_ways(event(text="\u2063<@U0BOB> shall we?"))
        assert world.service.calls == []


def test_hidden_text_is_not_sent_as_context() -> None:
    """In a thread, a forwarded message, and a file's name and text."""
    message = {
        "ts": "1700000001.000100",
        "username": HIDDEN,
        "text": HIDDEN,
        "files": [{"id": "F1", "name": HIDDEN}],
        "attachments": [
            {"is_share": True, "author_name": HIDDEN, "text": HIDDEN},
            {"title": HIDDEN, "text": HIDDEN, "from_url": "https://x.example"},
        ],
    }
    read = thread_message(SlackMessage.read(message))
    assert read is not None
    assert (read.author, read.text, read.files[0].name) == (SEEN, SEEN, SEEN)
    assert (read.forwarded[0].author, read.forwarded[0].text) == (SEEN, SEEN)
    assert (read.previews[0].title, read.previews[0].text) == (SEEN, SEEN)
    assert read_file(MessageFile.read({"id": "F1", "name": HIDDEN})).name == SEEN
    assert quoted(SlackFile("F1", "a"), FileContent(HIDDEN.encode(), "text/plain")).text == SEEN


SENT_AND_TOLD = [
    # names that Slack links automatically, with the typed text as the label
    ("see <http://README.md|README.md>", "see README.md"),
    ("see <http://example.com|example.com>", "see example.com"),
    ("see <http://example.com/|example.com>", "see example.com"),
    ("see <http://docs.acme.com/a?x=1&amp;y=2|docs.acme.com/a?x=1&amp;y=2>", "see docs.acme.com/a?x=1&y=2"),
    ("mail <mailto:bob@x.test|bob@x.test>", "mail bob@x.test"),
    ("mail <mailto:bob@x.test>", "mail bob@x.test"),
    ("call <tel:+15551234|+15551234>", "call +15551234"),
    ("call <tel:+15551234>", "call +15551234"),
    # labels that differ from their address
    ("see <https://acme.com/docs/install|install>", "see install (https://acme.com/docs/install)"),
    ("see <http://x.test/A|x.test/a>", "see x.test/a (http://x.test/A)"),
    ("ask <mailto:bob@x.test|Bob>", "ask Bob (bob@x.test)"),
    ("run <slack://open?team=T1|Slack>", "run Slack (slack://open?team=T1)"),
    # bare addresses
    ("see <https://example.org/a?b&amp;c>", "see https://example.org/a?b&c"),
    ("see <https://example.org/a|>", "see https://example.org/a"),
    # people, channels, groups
    ("ask <@U012AB3CD> and <@W012AB3CD>", "ask @U012AB3CD and @W012AB3CD"),
    ("ask <@U012AB3CD|ana>", "ask @ana"),
    ("in <#C012AB3CD|docs>", "in #docs"),
    ("in <#C012AB3CD>", "in #C012AB3CD"),
    ("in <#C012AB3CD|>", "in #C012AB3CD"),
    ("ask <!subteam^S012AB3CD|@writers>", "ask @writers"),
    ("<!here> <!channel> <!everyone> <!here|here> <!channel|@channel>", "@here @channel @everyone @here @channel"),
    ("on <!date^1392734382^{date_num}|2014-02-18>", "on 2014-02-18"),
    ("what <!nobody_knows|this> is, and <!that>", "what @this is, and @that"),
    # the three escaped characters, once
    ("a &lt;b&gt; &amp; c", "a <b> & c"),
    ("&amp;lt;", "&lt;"),
    ("&lt;@U012AB3CD&gt; &lt;http://x.test|x.test&gt;", "<@U012AB3CD> <http://x.test|x.test>"),
    ("a\x00b\x1bc\nd\te", "abc\nd\te"),
    (" two  blanks ", "two  blanks"),  # the last one: it cannot be joined to others
]
UNCHANGED = [
    "README.md",
    "example.com and https://example.org/a",
    "bob@x.test, @ana, #docs, @U012AB3CD, @here",
    "a < b > c, a|b, x <- y, if (a<b && b>c)",
    "<div class='x'>, <br/>, List<String>, <@someone>, <#1>, <not a link|label>",
    "&nbsp; &quot; &#60;",
    "`code` ```block``` *bold* _italic_ > quoted :tada:",
]


@pytest.mark.parametrize(("sent", "told"), [*SENT_AND_TOLD, *((words, words) for words in UNCHANGED)])
def test_slacks_markup_becomes_readable_text(sent: str, told: str) -> None:
    """Text that only resembles it is unchanged."""
    assert unescape(sent) == told


HELP = {"", "help", "?", "-h", "--help", "status", "list", "cancel", "stop"}
PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)
SEGMENTS = st.sampled_from(SENT_AND_TOLD[:-1]) | PRINTABLE.map(lambda text: (escaped(text), text))


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def is_a_prompt(read: str) -> bool:
    """Whether a command with this text, without options, starts a job."""
    return read.lower() not in HELP and split_options(read) == (NO_OPTIONS, read)


def is_aside(sent: str, read: str) -> bool:
    """Whether a reply is between people: it begins with `//` or a mention. Emoji alone can be an answer."""
    mentions = ("<@", "<!subteam", "<!here", "<!channel", "<!every")
    return not read or read.startswith("//") or without_misleading(sent).lstrip(BLANKS + "\x07").startswith(mentions)


@pytest.mark.full
@pytest.mark.promise("any payload")
@given(st.lists(SEGMENTS, min_size=1, max_size=12))
@example([(escaped("a<&>" * 10_000), "a<&>" * 10_000)])
@example([("x", "x"), ("<@U1>" * 8_000, "@U1" * 8_000)])
@example([("\x07<@U1>", "@U1"), ("for you", "for you")])
async def test_messages_are_recorded_as_people_read_them(parts: list[tuple[str, str]]) -> None:
    sent = " ".join(part[0] for part in parts)
    read = without_misleading(" ".join(part[1] for part in parts)).strip(BLANKS)
    async with listening() as world:
        for payload in (command(text=sent), event(text=sent)):
            assert (await world.take(payload)).status == 200
        expected = [read] if is_a_prompt(read) else []
        assert world.service.words == [*expected, *([] if is_aside(sent, read) else [read])]


def test_an_unnamed_person_can_be_named_later() -> None:
    recorded = unescape_keeping_mentions(
        "ask <@U012AB3CD>, <@W9> and <@U012AB3CD>, not @U012AB3CD or &lt;@U012AB3CD&gt;"
    )
    assert mentioned(recorded) == ("U012AB3CD", "W9")
    named = with_names(recorded, {"U012AB3CD": "Ana Silva"})
    assert named == "ask @Ana Silva, @W9 and @Ana Silva, not @U012AB3CD or <@U012AB3CD>"


@pytest.mark.parametrize("typed", ["\x02U012AB3CD\x03", "@U012AB3CD", "&lt;@U012AB3CD&gt;", "<@U1|\x02U2\x03>"])
def test_a_typed_text_cannot_forge_a_person_marker(typed: str) -> None:
    assert mentioned(unescape_keeping_mentions(typed)) == ()


def test_an_unnamed_channel_or_group_can_be_named_later() -> None:
    """By a name, or by a description if it is private; a person's name can be anything."""
    told = unescape_keeping_mentions("see <#C1>, <#C2|> and <#C3|docs>; ask <!subteam^S1> or <@U1>, not #C1 or @S1")
    assert mentioned(told) == ("C1", "C2", "S1", "U1")
    names = {"C1": "general", "C2": PRIVATE_CHANNEL, "S1": "writers", "U1": PRIVATE_CHANNEL}
    read = "see #general, a private channel and #docs; ask @writers or @a private channel, not #C1 or @S1"
    assert with_names(told, names) == with_names(keeping_names(told, names), {}) == read
    assert same_words(keeping_names(told, names), told)


def test_a_row_of_an_older_version_is_read_unchanged() -> None:
    assert with_names("ask @U012AB3CD", {"U012AB3CD": "Ana Silva"}) == "ask @U012AB3CD"


def test_a_marker_never_shows_even_in_a_cut_text() -> None:
    recorded = unescape_keeping_mentions("ask <@U012AB3CD> and <@U2>")
    for end in range(len(recorded)):
        told = with_names(recorded[:end], {})
        assert "\x02" not in told
        assert "\x03" not in told


SIZE = 1_000_000
HOSTILE = ["<", "<a|", "<@U1|", "<http://a|a", "<!date^", "&amp;", " ", "\x02U1"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", HOSTILE, ids=lambda piece: repr(piece[:8]))
def test_a_hostile_text_of_a_megabyte_is_read(piece: str) -> None:
    for words in (piece * (SIZE // len(piece)), "<" + piece * (SIZE // len(piece))):
        recorded = unescape_keeping_mentions(words)
        assert len(with_names(recorded, {})) <= len(words)


@given(st.text(alphabet=st.sampled_from("<>@#!|&;^:/.ab1UCT \n\x02\x03"), max_size=60))
def test_any_text_is_read_and_shows_no_marker(text: str) -> None:
    told = unescape(text)
    assert told == told.strip()
    assert not set(told) & {"\x02", "\x03"}


FILE: dict[str, Any] = {
    "id": "F0123ABC",
    "name": "guide.md",
    "title": "The guide",
    "mimetype": "text/markdown",
    "size": 120,
    "mode": "hosted",
    "url_private": "https://files.slack.com/files-pri/T1-F1/guide.md",
    "url_private_download": "https://files.slack.com/files-pri/T1-F1/download/guide.md",
    "permalink": "https://acme.slack.com/files/U1/F1/guide.md",
}
SHARE: dict[str, Any] = {
    "is_share": True,
    "is_msg_unfurl": True,
    "author_id": "U0BEN",
    "author_name": "Ben",
    "channel_id": "C1",
    "from_url": "https://acme.slack.com/archives/C1/p1700000000000100",
    "text": "Ports &amp; <@U0ANA>",
    "fallback": "[November 14th] Ben: Ports",
    "ts": "1700000000.000100",
    "files": [FILE],
}
READ_FILE = SlackFile(
    "F0123ABC", "guide.md", "text/markdown", 120, FILE["url_private_download"], FILE["permalink"]
)  # fmt: skip
JSON = any_json()
OTHERS = (
    "type",
    "user",
    "subtype",
    "attachments",
    "blocks",
    "fields",
    "value",
    "elements",
    "message",
    "rows",
    "bot_id",
)
KEYS = st.sampled_from((*FILE, *SHARE, *OTHERS, "message_blocks", "username"))
PAYLOADS = st.recursive(
    JSON, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=8), max_leaves=30
)


def test_a_file_is_read_as_slack_describes_it() -> None:
    """Its download address is used."""
    assert files_of(SlackMessage.read({"files": [FILE]})) == (READ_FILE,)


def test_an_external_file_is_a_link_and_a_deleted_one_is_left_out() -> None:
    """Our token is never sent there."""
    elsewhere = {"id": "F1", "name": "Plan", "mode": "external", "url_private": "https://docs.example.com/plan"}
    (read,) = files_of(SlackMessage.read({"files": [elsewhere, {"id": "F2", "mode": "tombstone"}]}))
    assert (read.url, read.permalink, read.may_be_text) == ("", "https://docs.example.com/plan", False)


def test_a_forwarded_message_is_read() -> None:
    """Its author and mentioned people are marked, to be named later."""
    told = ForwardedMessage(mention("U0BEN"), f"Ports & {mention('U0ANA')}", SHARE["from_url"], (READ_FILE,))
    assert forwarded_of(SlackMessage.read({"attachments": [SHARE]})) == (told,)
    assert previews_of(SlackMessage.read({"attachments": [SHARE]})) == ()
    linked = SHARE | {"is_share": None, "author_id": None}
    assert forwarded_of(SlackMessage.read({"attachments": [linked]}))[0].author == "Ben"


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "Ports &amp; more"}}]},
        {
            "text": "",
            "message_blocks": [
                {"message": {"blocks": [{"type": "section", "text": {"type": "plain_text", "text": "Ports & more"}}]}}
            ],
        },
        {"text": None, "fallback": "Ports &amp; more"},
    ],
)
def test_the_text_of_a_forwarded_message_is_found_in_several_fields(changes: dict[str, Any]) -> None:
    """Any field with text counts."""
    assert forwarded_of(SlackMessage.read({"attachments": [SHARE | changes]}))[0].text == "Ports & more"


def test_link_previews_and_app_attachments_are_not_forwarded_messages() -> None:
    """Title, text, fields, address."""
    page = {"from_url": "https://example.com/p", "title": "Ports", "text": "All &lt;of&gt; them", "service_name": "Ex"}
    alert = {"pretext": "Alert", "text": "down", "fields": [{"title": "host", "value": "a1"}, {"value": "b"}, 5]}
    alert |= {"app_id": "A1"}
    assert previews_of(SlackMessage.read({"attachments": [page, alert, {"color": "red"}, None]})) == (
        LinkPreview("Ports", "All <of> them", "https://example.com/p"),
        LinkPreview("", "Alert\ndown\nhost: a1\nb"),
    )


def test_the_parts_of_a_message_are_bounded() -> None:
    """20 files, 10 forwarded messages of 20,000 characters each, 10 previews."""
    message = {
        "files": [FILE] * 50,
        "attachments": [SHARE | {"text": "&amp;" * 100_000}] * 30 + [{"service_name": "t", "text": "x" * 100_000}] * 30,
    }
    assert len(files_of(SlackMessage.read(message))) == 20
    shares, previews = forwarded_of(SlackMessage.read(message)), previews_of(SlackMessage.read(message))
    assert (len(shares), len(previews)) == (10, 10)
    assert all(10_000 < len(share.text) <= 20_000 for share in shares)
    assert all(10_000 < len(preview.text) <= 20_000 for preview in previews)


def test_a_message_of_an_app_is_shown_with_its_name() -> None:
    """The text of its blocks is used if it is longer."""
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "The build of main is broken"}}]
    app = {"user": "U0CI", "bot_id": "B1", "bot_profile": {"name": "CI\nbot"}, "ts": "1700000000.000100"}
    read = thread_message(SlackMessage.read(app | {"text": "Broken", "blocks": blocks}))
    assert read is not None
    assert (read.author, read.text) == ("CI bot", "The build of main is broken")
    longer = thread_message(SlackMessage.read(app | {"text": "Broken since this very morning", "blocks": blocks}))
    assert longer is not None
    assert longer.text == "Broken since this very morning"
    hook = thread_message(
        SlackMessage.read({"subtype": "bot_message", "username": "Hook", "text": "x", "ts": "1700000000.000100"})
    )
    assert hook is not None
    assert hook.author == "Hook"


@pytest.mark.parametrize(
    "changes",
    [
        {"subtype": "channel_join"},
        {"subtype": 5},
        {"ts": None},
        {"ts": "soon"},
        {"text": ""},
        {"text": " \u200b "},
    ],
)
def test_system_messages_are_left_out(changes: dict[str, Any]) -> None:
    """Events, deletions, and messages without content."""
    assert (
        thread_message(SlackMessage.read({"user": "U1", "text": "words", "ts": "1700000000.000100"} | changes)) is None
    )


@given(PAYLOADS)
def test_malformed_parts_are_read_or_left_out(payload: Any) -> None:
    """Nothing raises, and the result can be shown and recorded."""
    message = payload if isinstance(payload, dict) else {"files": payload, "attachments": payload, "blocks": payload}
    read = thread_message(SlackMessage.read(message | {"ts": "1700000000.000100", "subtype": None}))
    files_of(SlackMessage.read(payload))
    if read is not None:
        texts = [read.text, *(share.text for share in read.forwarded), *(file.name for file in read.files)]
        for text in texts:
            assert len(text) <= 20_000
            assert "\x00" not in text
            text.encode()
