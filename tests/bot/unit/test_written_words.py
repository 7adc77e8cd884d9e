"""A message's words with their formatting, from what Slack's composer makes; otherwise from its flat text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.context.message_text import unescape
from bot.slack.message_parts.slack_message import MAX_PARTS, SlackMessage
from bot.slack.message_parts.written_words import MAX_CHARACTERS, message_text, written_words

pytestmark = pytest.mark.promise("what people see")

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


@pytest.mark.parametrize(
    ("parts", "markdown"),
    [
        ([section(words("Fix a < b & c"))], "Fix a < b & c"),
        ([section(words("one\n\ntwo"))], "one\n\ntwo"),
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
        ([section(words("two\nlines", bold=True))], "**two**\n**lines**"),
        (
            [section({"type": "link", "url": "https://x.example/a?b&c", "text": "the page"})],
            "the page (https://x.example/a?b&c)",
        ),
        ([section({"type": "link", "url": "http://README.md", "text": "README.md"})], "README.md"),
        ([section({"type": "link", "url": "https://x.example/a"})], "https://x.example/a"),
        ([section({"type": "link", "url": "mailto:a@x.example", "text": "a@x.example"})], "a@x.example"),
        ([section({"type": "user", "user_id": "U1"}, words(" wrote it"))], "@U1 wrote it"),
        ([section({"type": "broadcast", "range": "here"})], "@here"),
        ([section({"type": "emoji", "name": "wave::skin-tone-2", "unicode": "1f44b-1f3fb"})], ":wave::skin-tone-2:"),
        ([section({"type": "date", "timestamp": 1, "format": "{date}", "fallback": "1 Jan"})], "1 Jan"),
        ([section({"type": "color", "value": "#1f5c4d"})], "#1f5c4d"),
        ([section(words("typed <@U1> \x02@U2\x03"))], "typed <@U1> @U2"),
    ],
    ids=str,
)
def test_words_are_read_with_their_formatting(parts: list[dict[str, Any]], markdown: str) -> None:
    assert unescape(message_text(SlackMessage.read(message(*parts)))) == markdown


def test_channels_and_groups_keep_the_names_in_the_text() -> None:
    parts = section(
        {"type": "channel", "channel_id": "C1"}, words(" "), {"type": "usergroup", "usergroup_id": "S1"}, words("!")
    )
    flat = "<#C1|docs> <!subteam^S1|@writers>!"
    assert unescape(message_text(SlackMessage.read(message(parts, text=flat)))) == "#docs @writers!"
    assert unescape(message_text(SlackMessage.read(message(parts)))) == "#C1 @S1!"


@pytest.mark.parametrize(
    "payload",
    [
        {"text": FLAT},
        {"text": FLAT, "blocks": None},
        {"text": FLAT, "blocks": []},
        {"text": FLAT, "blocks": [{"type": "divider"}]},
        message(),
        message(section()),
        message(section(words(" \n"))),
        message(section(words("a")), {"type": "rich_text_table"}),
        message(section(words("a"), {"type": "canvas"})),
        message(section({"type": "user", "user_id": "<!channel>"})),
        message(section({"type": "link", "url": "https://x.example|<!channel>"})),
        message(section({"type": "link"})),
        message(section({"type": "emoji", "name": "a b"})),
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


@pytest.mark.parametrize(
    "origin",
    [
        {"is_share": True},
        {"is_msg_unfurl": True},
        {"is_app_unfurl": True},
        {"from_url": "https://x.example"},
        {"original_url": "https://x.example"},
        {"app_unfurl_url": "https://x.example"},
        {"title_link": "https://x.example"},
        {"service_name": "X"},
        {"author_name": "Ben"},
        {"author_id": "U1"},
        {"app_id": "A1"},
        {"bot_id": "B1"},
    ],
)
def test_what_comes_from_elsewhere_is_not_the_writers(origin: dict[str, Any]) -> None:
    assert message_text(SlackMessage.read({"text": "see", "attachments": [pasted(PORTS) | origin]})) == "see"


MANY = [[{"type": "raw_text", "text": "x"}] * 20] * 500


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


def test_ten_thousand_cells_are_read() -> None:
    written = message_text(SlackMessage.read({"text": "a", "attachments": [pasted(table(*MANY))]}))
    assert written.count("x") == 10_000


def test_nested_tables_are_read_to_a_limited_depth() -> None:
    deep: dict[str, Any] = {"type": "raw_text", "text": "found"}
    for _ in range(5_000):
        deep = table([deep])
    assert written_words(SlackMessage.read({"text": "", "blocks": [deep]})).missing == ("table",)
    shallow = table([table([{"type": "raw_text", "text": "found"}])])
    assert "found" in message_text(SlackMessage.read({"text": "", "blocks": [shallow]}))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "elements", "text", "style", "indent", "offset", "url"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)
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


@given(st.lists(ELEMENTS, max_size=4), ANYTHING)
def test_any_block_is_read_or_ignored(parts: list[dict[str, Any]], odd: Any) -> None:
    assert isinstance(message_text(SlackMessage.read(message(*parts))), str)
    assert isinstance(message_text(SlackMessage.read({"text": FLAT, "blocks": odd})), str)
    assert isinstance(message_text(SlackMessage.read(odd)), str)
    assert isinstance(message_text(SlackMessage.read({"attachments": [pasted(table(parts, [odd]), *parts)]})), str)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=200))
def test_unstyled_text_is_read_as_typed(typed: str) -> None:
    assert unescape(message_text(SlackMessage.read(message(section(words(typed)))))) == unescape(
        typed.translate({38: "&amp;", 60: "&lt;", 62: "&gt;"})
    )
