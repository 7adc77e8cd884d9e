"""What the built-in editor reads out of a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.editors.builtin.edits import (
    AddPage,
    AddSection,
    Edit,
    FixSpelling,
    Rename,
    RenamePage,
    Replace,
)
from bot.jobserver.editors.builtin.prompt_parser import parse

UNDERSTOOD: list[tuple[str, list[Edit]]] = [
    ('Replace "colour" with "color"', [Replace("colour", "color")]),
    ("replace “colour” with “color” in the guides.", [Replace("colour", "color", "guides")]),
    ("Change 'a b' to 'c' in docs/start.md!", [Replace("a b", "c", "docs/start.md")]),
    ("Replace 'don't' by `do not` everywhere", [Replace("don't", "do not")]),
    ('Please replace every "x" with "" in all pages', [Replace("x", "")]),
    ('replace "x" with "y" in the docs/guides folder', [Replace("x", "y", "docs/guides")]),
    ('replace "x" with "y" in the getting started page', [Replace("x", "y", "getting started")]),
    ("Fix the spelling", [FixSpelling()]),
    ("correct all typos in README.md", [FixSpelling("README.md")]),
    ("Check and fix the spelling mistakes of the guides", [FixSpelling("guides")]),
    ("Fix spelling and typos.", [FixSpelling()]),
    ("Also add a page called FAQ with the text: Ask us anything.", [AddPage("FAQ", "Ask us anything.")]),
    ('Add a new page "How to go" in guides with the text: a "b" c', [AddPage("How to go", 'a "b" c', "guides")]),
    ("Create a page titled T with the following content:\n\n1.\n\n2 and 3", [AddPage("T", "1.\n\n2 and 3")]),
    ("Add a section called Limits to Getting started with the text: At most 5.",
     [AddSection("Limits", "Getting started", "At most 5.")]),
    ("add a section named How to install to guides/a.md with this text: x",
     [AddSection("How to install", "guides/a.md", "x")]),
    ('Replace "a" with "b" and fix the typos in the guides', [Replace("a", "b"), FixSpelling("guides")]),
    ('1. Replace "a" with "b"\n2. Fix typos\n', [Replace("a", "b"), FixSpelling()]),
    ('- replace "a" with "b" in x.md, then replace "c" with "d"', [Replace("a", "b", "x.md"), Replace("c", "d")]),
    ('Add a page called P with the text: "Hi. And bye." Also fix typos', [AddPage("P", "Hi. And bye."), FixSpelling()]),
    ('Add a page called P with the text: "Hi" and "bye"', [AddPage("P", '"Hi" and "bye"')]),
    ('Add a page called P with the text: "He said "hi" to me"', [AddPage("P", 'He said "hi" to me')]),
    ("Add a page called P with the text: replace “a” with “b”", [AddPage("P", "replace “a” with “b”")]),
    ('Update "2.0" to "2.1"', [Replace("2.0", "2.1")]),
    ('Rename "a" to "b" everywhere', [Replace("a", "b")]),
    ("Rename “Old page” to 'New page'.", [Rename("Old page", "New page")]),
    ("Rename the getting started page to Quickstart", [RenamePage("getting started", "Quickstart")]),
    ('rename the page called Foo to "A and b", then fix typos', [RenamePage("Foo", "A and b"), FixSpelling()]),
    ("Rename docs/a.md to b.md and fix the typos", [RenamePage("docs/a.md", "b.md"), FixSpelling()]),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "instructions"), UNDERSTOOD, ids=lambda value: str(value)[:50])
def test_prompts_are_understood(prompt: str, instructions: list[Edit]) -> None:
    assert list(parse(prompt)) == instructions


@pytest.mark.parametrize(
    "prompt",
    [
        "", "  \n", "and", "Make it nicer", "Replace colour with color", 'Replace "" with "x"', 'Replace "a" with "a"',
        'Replace "a" with "b" and make it nicer', 'Make it nicer and replace "a" with "b"', "Add a page called FAQ",
        "Add a page called FAQ with the text:", "Do not fix the spelling", 'Replacement "a" with "b"',
        'Never replace "a" with "b"', "Fix the spellings checker", 'Replace "a" with "b"" x',
        'Replace "a" with "b" ' * 51, "Rename a to b and link it", "Rename a to b in docs", "Rename a to " + "b" * 101,
        'Rename "a" to "a"', 'Rename "a" to ""', "Rename a to", "Update the version to 2.1",
    ],
)  # fmt: skip
def test_other_prompts_are_not_understood(prompt: str) -> None:
    assert parse(prompt) == ()


PLAIN = st.text(st.characters(exclude_characters='"“”„\n\r', exclude_categories=["C", "Z"]), min_size=1, max_size=30)
TITLE = st.from_regex(r"[A-Z][a-z]{1,8}( [a-z]{3,8}){0,2}", fullmatch=True).filter(lambda t: " with" not in t)


@given(old=PLAIN, new=PLAIN, quotes=st.sampled_from(['""', "“”", "„“"]))
def test_quoted_text_is_taken_literally(old: str, new: str, quotes: str) -> None:
    expected = (Replace(old, new),) if old != new else ()
    assert parse(f"Replace {quotes[0]}{old}{quotes[1]} with {quotes[0]}{new}{quotes[1]}") == expected


@given(title=TITLE, text=st.text(min_size=1).map(str.strip).filter(bool))
def test_text_extends_to_the_end_of_the_prompt(title: str, text: str) -> None:
    found = parse(f'Add a page called "{title}" with the text: {text}')
    if text[0] not in '"“”„‘`':  # noqa: RUF001 (quotation marks people type)
        assert found == (AddPage(title, text),)


@given(st.text() | st.text(alphabet=" \"'“”`.,:\nadefghinoprtwx"))
def test_any_text_is_parsed_to_a_tuple(prompt: str) -> None:
    assert isinstance(parse(prompt), tuple)


@given(
    st.lists(st.sampled_from(UNDERSTOOD[:4] + UNDERSTOOD[7:10]), min_size=1, max_size=8),
    st.sampled_from([" and ", ". ", "\n", ", then ", " also "]),
)
def test_instructions_can_be_joined(parts: list[tuple[str, list[Edit]]], joint: str) -> None:
    prompt = joint.join(part.rstrip(".!") for part, _ in parts)
    assert list(parse(prompt)) == [instruction for _, found in parts for instruction in found]
