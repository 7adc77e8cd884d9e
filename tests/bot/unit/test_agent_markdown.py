"""Text by agents, and the answers made of it, notify nobody and hide no address; everything else is unchanged."""

import cProfile
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.domain.jobs.job import JobReport, QuestionField
from bot.domain.threads.thread import Thread
from bot.jobapi.models import FieldKind
from bot.notices.job import JobFinished, QuestionAsked
from bot.notices.notice import Notice, NoticeContent
from bot.runtime.text import displayable
from bot.slack.rendering.agent_markdown import defused, markdown_pieces
from bot.slack.rendering.blocks import CHOOSE_ANSWER, FILL_IN_ANSWER, MAX_OPTION_VALUE, MAX_VALUE, SEND_ANSWERS
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import ModalPlace, answer_choices, answer_modal, decoded_fields, encoded_fields
from bot.slack.rendering.notices import messages
from bot.slack.rendering.text import BREAK, link, looks_like_an_address, safe_url, width
from bot.workspace.wire.views import checked_view

LIVE_MENTION = re.compile(r"<[!@#][A-Za-z^]|@(here|channel|everyone|group)\b", re.IGNORECASE)
LABELLED_LINK = re.compile(r"<https?:[^<>|\n]*\|")
SOME = st.lists(
    st.sampled_from(
        [
            *"[]()!`\n ._\u200b\u2024a<>|",
            "<!channel>",
            "<@U0ANA>",
            "<#C1|general>",
            "@here",
            "<https://evil.example|good.example>",
            "https://good.example",
            "https://evil.example",
            "](",
            "```",
            "[1]:",
            "[1]",
            "good.example",
            "good",
            r"\.",
            "&#46;",
            "**",
            "&#8203;",
            "> ",
            "- ",
            BREAK,
        ]
    ),
    max_size=30,
).map("".join)


@dataclass(frozen=True)
class Shown:
    """A link as a reader of the Markdown sees it."""

    label: str
    address: str


def links_in(text: str) -> list[Shown]:
    """Returns the links that another parser finds: markdown-it's default, with HTML tags as text."""
    found = []
    for block in MarkdownIt("commonmark", {"html": False}).parse(text):
        children = block.children or []
        for at, token in enumerate(children):
            if token.type == "link_open":
                end = next(index for index in range(at, len(children)) if children[index].type == "link_close")
                label = "".join(child.content for child in children[at:end])
                found.append(Shown(label, str(token.attrs["href"])))
            elif token.type == "image":
                found.append(Shown(token.content, str(token.attrs["src"])))
    return found


@pytest.mark.parametrize(
    "text",
    ["<!channel> hi", "<@U0ANA>", "<#C012|general>", "@here", "`<!here>`", "```\n@channel\n```", "<!subteam^S1>"],
)
def test_agent_text_mentions_nobody(text: str) -> None:
    assert not LIVE_MENTION.search(defused(text))
    assert defused(text).replace(BREAK, "") == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[the guide](https://docs.example/guide)", "[the guide](https://docs.example/guide)"),
        ("[https://good.example](https://evil.example)", "https://good.example (https://evil.example)"),
        ("[good.example](https://good.example.evil.example)", "good.example (https://good.example.evil.example)"),
        ("[click](javascript:alert(1))", "click"),
        ("[open](slack://channel?id=C1)", "open"),
        ("<slack://open>", f"<{BREAK}slack://open>"),
        ("[the page](../guide.md)", "the page"),
        ("[x](https://good.example@evil.example)", "x"),
        ("![logo](https://img.example/a.png)", "[logo](https://img.example/a.png)"),
        ("![](https://img.example/a.png)", "https://img.example/a.png"),
        (
            "[https://good.example [x]](https://evil.example)",
            "https://good.example [x] (https://evil.example)",
        ),
        ("[good.example]: https://evil.example", f"[good.example]{BREAK}: https://evil.example"),
        ("<https://evil.example|https://good.example>", f"<{BREAK}https://evil.example|https://good.example>"),
        # bare addresses
        (
            "see https://docs.example/a, **https://docs.example**.",
            "see https://docs.example/a, **https://docs.example**.",
        ),
        ("at https://g\u0456thub.com.", "at https://xn--gthub-n2e.com."),
        ("https://github.com@evil.example", f"https:{BREAK}//github.com@evil.example"),
        ("https://github.com&#64;evil.example", f"https:{BREAK}//github.com&#64;evil.example"),
        ("[https://github.com](x)@evil.example", f"https:{BREAK}//github.com@evil.example"),
        ("\u89c1https://docs.example\u3002\u8c22\u8c22", "\u89c1https://docs.example \u3002\u8c22\u8c22"),
        ("`git clone https://me@docs.example/a`", "`git clone https://me@docs.example/a`"),
        ("```\ngit clone https://me@docs.example/a\n```", "```\ngit clone https://me@docs.example/a\n```"),
        # what is hidden, or not closed
        ("a\u202eb\u200bc\x07", "abc"),
        ("```sh\npip install …", "```sh\npip install …\n```"),
    ],
)
def test_a_link_shows_its_target(text: str, shown: str) -> None:
    assert defused(text) == shown


HIDDEN = [
    r"good\.example",
    "good&#46;example",
    "good**.**example",
    "`good.example`",
    "good.&#8203;example",
    "good.\u200bexample",
    "good\u2024example",
    "good\u3002example",
    "good.\u0336example",
    "g\u043eod.example",
    "good .example",
    "good\\*.\\*example",
    "good&amp;#46;example",
    r"http\://good.example",
    "https:\uff0f\uff0fgood.example",
    "![good.example](https://img.example)",
    "[good.example]",
    "good.example/guide",
    "user@good.example",
    "go to good.example now",
]
FORMS = [
    "[{}](https://evil.example/a)",
    "![{}](<https://evil.example/a> 'https://good.example')",
    "[{}][1]\n\n[1]: https://evil.example/a",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_label_that_names_another_host_is_not_a_link(form: str) -> None:
    """However the host in the label is written."""
    for label in HIDDEN:
        shown = defused(form.format(label))
        assert [each for each in links_in(shown) if "evil" in each.address] == [], label
        assert "https://evil.example/a" in shown, label


@pytest.mark.parametrize("use", ["[guide]", "[guide][]", "[ **guide** ][Guide]"])
def test_a_reference_becomes_a_link_and_its_definition_is_shown(use: str) -> None:
    definition = "[guide]: https://docs.example 'Title'"
    shown = f"[guide](https://docs.example)\n\n{definition.replace(']:', f']{BREAK}:')}"
    assert defused(f"{use}\n\n{definition}") == shown


def test_references_do_not_inflate_a_text() -> None:
    """A long address with many references is written out only a few times."""
    text = f"{'[a] ' * 1_000}\n\n[a]: https://docs.example/{'b' * 900}"
    assert len(defused(text)) < len(text) + 3_000


HOSTS = [
    ("https://g\u0456thub.com/a", "https://xn--gthub-n2e.com/a"),
    ("https://b\u00fccher.example:8080/", "https://xn--bcher-kva.example:8080/"),
    ("https://\u4f8b\u3048.example", "https://xn--r8jz45g.example"),
    ("https://\uff47ithub.com", "https://github.com"),
    ("https://github.com\u3002evil.example/", "https://github.com.evil.example/"),
    ("http://127.0.0.1:3000/a", "http://127.0.0.1:3000/a"),
    ("http://[::1]:3000/a", "http://[::1]:3000/a"),
    ("https://github.com@evil.example", None),
    ("https://github.com\\@evil.example", None),
    ("https://github.com%2eevil.example", None),
    ("https://github.com\u2044evil.example", None),
    ("https://github.com&evil.example", None),
    ("http://2130706433/", None),
    ("http://0x7f.1/", None),
    ("http://[::1%25eth0]/", None),
    ("https://a..b", None),
    (f"https://{'a.' * 200}com", None),
]


@pytest.mark.parametrize(("url", "shown"), HOSTS)
def test_a_host_is_shown_in_ascii_or_not_linked(url: str, shown: str | None) -> None:
    """In an answer, on a button and in a message's own links."""
    assert safe_url(url) == shown
    if shown is not None:
        assert defused(f"[the guide](<{url}>) <{url}>") == f"[the guide]({shown}) <{shown}>"
        assert link(url) == f"<{shown}>"
    else:
        assert not links_in(defused(f"[the guide](<{url}>) <{url}>"))


@pytest.mark.parametrize(
    "text",
    [
        "# Title\n\n- one\n- **two** `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "```mdx\n<Card title='x'>\n```",
        "a < b && c > d",
        "```python\nif a[i]:\n    return {b[0]: c}\n```",
        "- [ ] one\n- [x] two [three] and [four][five]",
        "Use `std::vector<int>`, ~~not~~ *this*, \\*that\\* &amp; 1. that's it",
    ],
)
def test_everything_else_stays_as_the_agent_wrote_it(text: str) -> None:
    assert defused(text) == text


@pytest.mark.timeout(10)
def test_many_accents_are_searched_for_an_address_in_linear_time() -> None:
    many = "\u0345\u0301\u0323\u0321\u05b0" * 20_000
    assert looks_like_an_address(f"good.{many}example")
    assert not looks_like_an_address(many)


@given(SOME)
def test_any_combination_is_harmless(text: str) -> None:
    shown = defused(text)
    assert not LIVE_MENTION.search(shown)
    assert not LABELLED_LINK.search(shown)
    for each in links_in(shown):
        assert "good.example" not in each.label.replace(BREAK, "") or each.address.startswith("https://good.example")
        assert each.address.startswith("https://")


WORST = ["[](", "`", "> ", "https://a@", "[a](<b", "[a][b]", "|", "[a]: b\n"]


def test_a_link_exposed_by_breaking_another_is_broken_too() -> None:
    shown = defused("> - 8<https:/z:/le`> h`le!\nx/<htts:/le> `h`l<ht")
    assert [
        child for block in MarkdownIt().parse(shown) for child in block.children or () if "href" in child.attrs
    ] == []


@pytest.mark.first(unit=3)
@pytest.mark.parametrize("unit", WORST)
def test_the_worst_text_is_processed_in_linear_time(unit: str) -> None:
    """Twice the text takes about twice the calls."""
    short, long = (calls_of(defused, (unit * size)[:size]) for size in (1_500, 3_000))
    assert long < 3 * short + 5_000


def calls_of(function: Callable[[str], str], text: str) -> int:
    """Returns how many function calls a call takes: unlike seconds, the same each time."""
    profile = cProfile.Profile()
    profile.runcall(function, text)
    return sum(entry.callcount for entry in profile.getstats())


@given(st.text(st.sampled_from("ab \n`~"), max_size=300), st.integers(20, 80))
def test_pieces_keep_all_lines_within_the_limit(text: str, limit: int) -> None:
    pieces = markdown_pieces(text, limit)
    words = [word for piece in pieces for word in re.findall("[ab]", piece)]
    assert words == re.findall("[ab]", text)
    assert all(len(piece) <= 2 * limit + 300 for piece in pieces)


THREAD = Thread("th1", "T1", "C1", "U0ANA", "Do it", "p", 0.0, ts="1.1")
CHARACTERS = st.characters(exclude_categories=("C", "Z")) | st.just("😀")
LABELS = st.text(CHARACTERS, min_size=1, max_size=75).filter(lambda label: displayable(label) == label)
"""Labels that the reader of a job's details accepts: they are visible text."""


def choice(*labels: str) -> QuestionField:
    return QuestionField("Which page?", FieldKind.CHOICE, labels)


@st.composite
def fields(draw: st.DrawFn) -> QuestionField:
    kind = draw(st.sampled_from(FieldKind))
    several = kind in {FieldKind.CHOICE, FieldKind.CHOICES}
    most = draw(st.sampled_from([1, 5, 6, 100]))
    options = draw(st.lists(LABELS, min_size=1, max_size=most, unique=True)) if several else []
    own_words, required = draw(st.booleans()), draw(st.booleans())
    return QuestionField(draw(LABELS), kind, tuple(options), own_words=several and own_words, required=required)


def shown(message: NoticeContent) -> list[dict[str, Any]]:
    (made,) = messages(THREAD, Notice(1, "k", "th1", message, created_at=0.0), MessageContext())
    return [element for block in made.blocks if block["type"] == "actions" for element in block["elements"]]


def test_a_few_choices_become_buttons() -> None:
    made = shown(QuestionAsked("Which page?", (choice("Install", "Set up"),)))
    assert [(each["text"]["text"], each["action_id"], each["value"]) for each in made] == [
        ("Install", SEND_ANSWERS[0], "th1/Install"),
        ("Set up", SEND_ANSWERS[1], "th1/Set up"),
    ]


def test_a_yes_no_question_becomes_buttons() -> None:
    made = answer_choices(THREAD, [QuestionField("Sure?", FieldKind.YES_OR_NO)])
    assert [each["value"] for each in made] == ["th1/Yes", "th1/No"]


def test_many_choices_become_a_list() -> None:
    (made,) = answer_choices(THREAD, [choice(*(f"Page {number}" for number in range(100)))])
    assert (made["action_id"], len(made["options"])) == (CHOOSE_ANSWER, 100)
    assert made["options"][99]["value"] == "th1/Page 99"


def test_several_fields_or_choices_are_filled_in_in_a_modal() -> None:
    asked = (choice("A", "B"), QuestionField("Why?", FieldKind.TEXT))
    for each in (asked, (QuestionField("Pages", FieldKind.CHOICES, ("A", "B")),)):
        (made,) = answer_choices(THREAD, each)
        assert made["action_id"] == FILL_IN_ANSWER
        assert decoded_fields(made["value"].partition("/")[2]) == each


def test_a_question_for_words_or_a_number_has_no_button() -> None:
    for kind in (FieldKind.TEXT, FieldKind.NUMBER):
        assert answer_choices(THREAD, [QuestionField("Why?", kind)]) == []
    assert shown(QuestionAsked("Why?")) == []


def test_questions_that_do_not_fit_are_answered_in_text() -> None:
    """Labels with the maximum width of a button, of characters that count twice; more fields than a button holds."""
    assert answer_choices(THREAD, [choice("😀" * 75)]) == []
    assert answer_choices(THREAD, [choice(*(f"{number:075}" for number in range(100)))]) == []
    assert answer_choices(THREAD, [QuestionField("x" * 200, FieldKind.TEXT)] * 10) == []


def test_an_end_with_a_question_has_the_choices_first() -> None:
    report = JobReport(question="Which?", question_fields=(choice("A"),), examples=("Fix it",))
    assert [each["value"] for each in shown(JobFinished(report=report))][:2] == ["th1/A", "th1/Fix it"]
    old = JobReport(question_fields=(choice("A"),))
    assert shown(JobFinished(report=old)) == []


@given(st.lists(fields(), max_size=10))
def test_any_answer_form_is_accepted_by_slack(asked: list[QuestionField]) -> None:
    made = answer_choices(THREAD, asked)
    for element in made:
        assert width(element.get("value", "")) <= MAX_VALUE
        assert all(width(option["value"]) <= MAX_OPTION_VALUE for option in element.get("options", ()))
    if made and made[0]["action_id"] == FILL_IN_ANSWER:
        checked_view(answer_modal(ModalPlace("C1", thread_id="th1"), asked), "modal")
        assert decoded_fields(encoded_fields(asked)) == tuple(asked)


@given(st.text(max_size=50) | st.sampled_from(['[["t","colour",[],false,false]]', '[["t"]]', "[[]]", '{"t":1}']))
def test_a_foreign_value_has_no_fields(text: str) -> None:
    assert decoded_fields(text) == ()
