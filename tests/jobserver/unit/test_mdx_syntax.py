"""Pages in MDX that no longer compile, in agreement with MDX's own compiler
(jobserver/contract/test_mdx_compiler.py).
"""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.fake_snapshot import FakeSnapshot
from support.oracles.mdx_pages import BAD, GOOD

from bot.jobserver.checks.change import CheckedChange
from bot.jobserver.checks.page_syntax import applies_to, broken_mdx, mdx_fault
from bot.jobserver.documents.parsing import MAX_CHARACTERS


def changed(before: str | None, after: str, name: str = "docs/page.mdx") -> CheckedChange:
    was = {} if before is None else {name: before}
    return CheckedChange(FakeSnapshot(was), FakeSnapshot({name: after}), {PurePosixPath(name)})


@pytest.mark.parametrize("text", GOOD)
def test_valid_mdx_has_no_fault(text: str) -> None:
    assert mdx_fault(text) is None
    assert mdx_fault(f"---\ntitle: a {1} <b\n---\n\n{text}") is None


@pytest.mark.parametrize("text", BAD)
def test_invalid_mdx_is_reported_with_line_and_column(text: str) -> None:
    assert list(broken_mdx(changed(None, text))) == [f"docs/page.mdx:{BAD[text]}"]
    assert list(broken_mdx(changed("Good.\n", text))) == [f"docs/page.mdx:{BAD[text]}"]


def test_earlier_faults_and_markdown_pages_are_ignored() -> None:
    text = "<Card>\n"
    assert list(broken_mdx(changed("a { b\n", text))) == []
    markdown = changed(None, text, "docs/page.md")
    assert not applies_to(markdown)
    assert list(broken_mdx(markdown)) == []
    assert applies_to(changed(None, text))


PARTS = ("<a>", "</a>", "<", "{", "{'", "`", "<!--", "<a b={", "<a b='", "}", "{`${", "//", "/*")


@pytest.mark.parametrize(
    "part", [PARTS[0], *(pytest.param(part, marks=pytest.mark.full) for part in PARTS[1:])], ids=PARTS
)
def test_the_worst_mdx_takes_linear_time(part: str) -> None:
    """A search that restarts at each character would not."""
    mdx_fault(part * (MAX_CHARACTERS // len(part)))


@given(st.lists(st.sampled_from("<>{}/`'\"\\= \nabA:.!-")).map("".join))
def test_any_text_has_its_first_fault_within_it(text: str) -> None:
    fault = mdx_fault(text)
    assert fault is None or 0 <= fault.position < len(text)
