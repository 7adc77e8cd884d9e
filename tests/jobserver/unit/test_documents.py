"""Parsed pages: which parts are prose, and what the worst text costs."""

import sys
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hypothesis_settings import examples

from bot.jobserver.documents.front_matter import find_front_matter, quick_title
from bot.jobserver.documents.languages import is_english, is_translation
from bot.jobserver.documents.page import LinkKind, ParsedPage, RegionKind, heading_anchor, slug
from bot.jobserver.documents.parsing import MAX_CHARACTERS, decoded, is_page, parse_page
from bot.jobserver.documents.words import words_in

MDX = """---
title: "Quick start"
description: word
---
import { Card } from '/snippets/word.mdx'
export const options = {
  word: "word",

  other: 1
}

# Set *up* `word` {#word}

A yes, [a yes](/docs/word.md "word") and ![yes](img/word.png) <https://a.example/word>.
See [word] and [yes][word] and [yes][word.elsewhere], [[word]], a note[^word].

<Card title="word" href="/word">
  A yes with {props.word} and **yes**
      ```python
      word = "word"
      ```
  1. yes `word
     word` yes
     ```js
     word {
     ```
     yes
</Card>

<code>word x</code> and <b>yes</b>, <Word word={`word`} />yes. Sum $word_1 + word$ {/* word */}

| a yes | `word` |
|---|---|
| yes {word} | [yes](word) |

> yes
> yes <!-- word

word --> yes

[word]: https://x.example/word
"""


def prose(page: ParsedPage) -> list[str]:
    return [page.text[span.start : span.end] for span in page.prose]


def markdown(text: str, name: str = "page.md") -> ParsedPage:
    return parse_page(PurePosixPath(name), text)


def test_prose_is_only_text_for_readers() -> None:
    page = markdown(MDX, "page.mdx")
    joined = " ".join(prose(page))
    assert "word" not in joined
    assert joined.count("yes") == 18
    assert page.not_parsed == ""


def test_each_span_outside_prose_has_a_kind() -> None:
    page = markdown("---\ntitle: a\n---\n`b` [c](d) <e> text\n", "page.mdx")
    found = {page.text[region.span.start : region.span.end]: region.kind for region in page.regions}
    assert found == {
        "---\ntitle: a\n---\n": RegionKind.FRONT_MATTER,
        "`b`": RegionKind.CODE,
        "](d)": RegionKind.LINK,
        "<e>": RegionKind.MARKUP,
    }


NOT_PROSE = [
    "    word\n",
    '=== "Tab"\n\n    ```python\n    word\n\n    word\n    ```\n',
    "- a\n\n      word\n",
    "- ```\n  word\n  ```\n",
    "> ```\n> word\n> ```\n",
    "````md\n```\nword\n```\nword\n````\n",
    "```md\n    ```\n    word\n    ```\n```\n",
    "~~~\nword\n",
    "<pre>\nword\n\nword\n</pre>\n",
    "<script>\nword\n\nword</script>\n",
    "<kbd>word</kbd>\n",
    "$$\nword\n$$\n",
    "::: word.word\n",
    "{{ word }} {% word %} { .word }\n",
    "import Word from 'word'\n",
    '<div class="word">\n</div>\n',
    "[a](<word word>)\n",
    "[a]: word\n'word'\n",
    "[word][]\n",
    "<word@word.example>\n",
    "`` word ` word ``\n",
]


@pytest.mark.parametrize("text", NOT_PROSE)
def test_code_and_addresses_are_not_prose(text: str) -> None:
    assert "word" not in " ".join(prose(markdown(text)))


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_positions_refer_to_the_file(line_end: str) -> None:
    text = "\ufeff" + MDX.replace("\n", line_end)
    page = markdown(text, "page.mdx")
    assert "".join(prose(page)).count("yes") == 18
    assert page.title == "Quick start"
    assert page.text == text


def test_headings_have_githubs_anchors() -> None:
    page = markdown("# A `b` & *c*!\n\n## Same\n\n## Same\n\n## Other {#mine}\n\nTwo\nlines\n---\n\n<a id='old'></a>\n")
    assert [(h.level, h.title, h.anchor, h.line) for h in page.headings] == [
        (1, "A b & c!", "a-b--c", 1),
        (2, "Same", "same", 3),
        (2, "Same", "same-1", 5),
        (2, "Other", "mine", 7),
        (2, "Two lines", "two-lines", 9),
    ]
    assert page.anchors == {"a-b--c", "same", "same-1", "mine", "two-lines", "old"}


def test_links_have_a_position_and_a_target() -> None:
    page = markdown('[a](b.md "t")\n\n- ![c](d.png) [e](#f)\n- <a href="/g">h</a> [i][j]\n\n[j]: https://k.example\n')
    assert [(link.target, link.line, link.kind, link.is_image) for link in page.links] == [
        ("b.md", 1, LinkKind.RELATIVE, False),
        ("d.png", 3, LinkKind.RELATIVE, True),
        ("#f", 3, LinkKind.ANCHOR, False),
        ("/g", 4, LinkKind.RELATIVE, False),
        ("https://k.example", 4, LinkKind.ABSOLUTE, False),
    ]


@pytest.mark.parametrize(
    ("text", "title", "error"),
    [
        ("---\ntitle: A\ndate: 2026-01-01\n---\n# B\n", "A", ""),
        ("+++\ntitle = 'A'\n+++\n", "A", ""),
        ("---\ntitle: [\n---\n# B\n", "B", "expected the node content"),
        ("---\ntitle: !!python/object/apply:os.system ['x']\n---\n", None, ""),
        ("---\na: &a [x]\nb: *a\n---\n", None, "alias"),
        ("---\n" + "[" * 5000 + "\n---\n", None, "nested deeper"),
        ("---\n# B\n", "B", ""),
        ("```\n# No\n```\n# B\n", "B", ""),
        ("A\n===\n\nB\n===\n", "A", ""),
        ("===\n", None, ""),
    ],
)
def test_titles_come_from_the_front_matter_or_the_first_heading(text: str, title: str | None, error: str) -> None:
    page = markdown(text)
    assert (page.title, quick_title(text)) == (title, title)
    front_matter = find_front_matter(text)
    assert error in (front_matter.error if front_matter else "")
    assert bool(error) == bool(front_matter and front_matter.error)


NAMES = (
    "--word $WORD word_word wordWord WORD word/word word.word @word #word word() word=1 v2word `word`s \\word word's"
)


def test_names_are_distinguished_from_words() -> None:
    page = markdown(f'A "word" {NAMES}, _word_ **word**. (word) well-word word\u2014word\n')
    words = [word for span in page.prose for word in words_in(page.text, span) if "word" in word.text.lower()]
    plain = [word.text for word in words if word.name is None]
    assert plain == ["word", "word's", "word", "word", "word", "well-word", "word", "word"]


@pytest.mark.parametrize(
    ("name", "text", "title", "anchors"),
    [
        ("a.rst", "One word\r\n========\r\n\ntext\n\nTwo\n---\nshort\n--\n", "One word", {"one-word", "two"}),
        ("a.adoc", "= One word\n\ntext\n\n== Two\n\n== Two\n", "One word", {"one-word", "two", "two-1"}),
        ("a.html", "<title> One </title><h1 id=x>no</h1><p id='two'>", "One", {"two"}),
        ("a.txt", "= One\n", None, set()),
    ],
)  # fmt: skip
def test_other_formats_have_a_title_and_anchors(
    name: str, text: str, title: str | None, anchors: AbstractSet[str]
) -> None:
    page = markdown(text, name)
    assert (page.title, page.anchors) == (title, anchors)
    assert not page.prose


ENGLISH = "The lamp remembers its last colour, and you can change that with the button. This is how it works."
SPANISH = "La lámpara recuerda su último color y con el botón se puede cambiar. Así es como funciona."
FRENCH = "La lampe se souvient de sa dernière couleur et vous pouvez la changer avec le bouton."


@pytest.mark.parametrize(
    ("path", "text", "english"),
    [
        ("a.md", ENGLISH, True), ("en/a.md", ENGLISH, True), ("es/a.md", ENGLISH, False), ("a.md", SPANISH, False),
        ("a.md", FRENCH, False), ("a.md", f"---\nlang: fr-FR\n---\n{ENGLISH}", False), ("a.fr.md", ENGLISH, False),
        ("README-es.md", ENGLISH, False),
        ("a.md", "ランプは最後の色を覚えています。", False), ("a.md", "", False), ("docs/pt-BR/a.md", ENGLISH, False),
        ("a.md", f"{ENGLISH}\n\n```\n{SPANISH * 5}\n```\n", True),
    ],
)  # fmt: skip
def test_only_certain_english_is_taken_for_english(path: str, text: str, *, english: bool) -> None:
    assert is_english(PurePosixPath(path), parse_page(PurePosixPath(path), text)) is english


def test_a_folder_is_a_language_only_by_its_code() -> None:
    names = ("fr/a.md", "zh-Hans/a.md", "go/a.md", "ai/a.md", "guide-to-it.md")
    assert [is_translation(PurePosixPath(name)) for name in names] == [True, True, False, False, False]


WORST = [
    "[", "`", "*", "<a ", "{", "> ", "- ", "[a](", "<!--", "| a ", "[a]: b\n", "a `b ``c ```d ", "import {\n",
    "_", "<", '<a b="', "<a {", "$", "[[", "![", '[a](b "', "1. ", "\\", "<code>", "`a\n", "```\n", "**a *b ", "\"'",
    "<a '", '{"', "&", "<x@", "](", "[a][", "[^a", "# a {#b}\n", "[a](#b)\n\n", "<code>x\n\n", "{/*", "\r",
]  # fmt: skip


def calls_for(text: str, suffix: str) -> int:
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        markdown(text, f"a{suffix}")
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.first(piece=13)
@pytest.mark.parametrize("piece", WORST)
@pytest.mark.parametrize("suffix", [".md", ".mdx"])
def test_parsing_takes_linear_time(piece: str, suffix: str) -> None:
    few, many = (calls_for(piece * (size // len(piece)), suffix) for size in (400, 1600))
    assert many <= 5 * few + 10_000


@pytest.mark.parametrize(
    "text",
    ["[" * 10_000_000, "`" * 10_000_000, "> " * 60_000, "- " * 100_000 + "a",
     "".join(" " * i + "- a\n" for i in range(400))],
    ids=["brackets", "backticks", "quotations", "levels of one line", "levels of lines"],
)  # fmt: skip
def test_text_beyond_the_limits_is_omitted_and_reported(text: str) -> None:
    page = markdown(text)
    assert page.not_parsed or all("a" in part for part in prose(page))
    assert len(prose(page)) <= 400


def test_an_unclosed_brace_ends_the_parsed_mdx() -> None:
    page = markdown("yes\n\nno {\n\nno\n", "a.mdx")
    assert prose(page)[0] == "yes"
    assert page.not_parsed == "what follows line 3, where a brace is not closed"
    assert markdown("a" * (MAX_CHARACTERS + 1)).not_parsed == "it has more than 600,000 characters"


@settings(max_examples=examples(60))
@given(
    st.text(max_size=150) | st.text(max_size=150, alphabet="ab \n`*_[](){}<>#-|!:$\"'\\/\r\t>1."),
    st.sampled_from([".md", ".mdx", ".rst", ".adoc", ".html", ".txt"]),
)
def test_any_text_is_parsed_with_prose_in_order(text: str, suffix: str) -> None:
    page = markdown(text, f"a{suffix}")
    end = 0
    for span in page.prose:
        assert end <= span.start < span.end <= len(text)
        end = span.end
    assert page.text == text


@given(st.text(max_size=200))
def test_a_slug_is_one_file_name(title: str) -> None:
    name = slug(title)
    assert len(name) <= 60
    assert PurePosixPath(f"{name or 'page'}.md").parts == (f"{name or 'page'}.md",)
    assert not name.startswith((".", "-"))
    assert " " not in heading_anchor(title).strip()


def test_pages_are_recognized_by_name_and_encoding() -> None:
    names = ("a.md", "A.MDX", "b.rst", "requirements-dev.txt", "robots.txt", "notes.txt", "a.py")
    assert [is_page(PurePosixPath(name)) for name in names] == [True, True, True, False, False, True, False]
    assert (decoded("é".encode("latin-1")), decoded(b"a\0"), decoded(b"\xef\xbb\xbfa\r\n")) == (
        None,
        None,
        "\ufeffa\r\n",
    )
