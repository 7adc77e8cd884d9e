"""Which links are reported, and which are nobody's fault or the site's business."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.job_ports import FakeSnapshot

from bot.jobserver.checks.change import CheckedChange, new_lines
from bot.jobserver.checks.links import broken_links

pytestmark = pytest.mark.promise("checks")

SITE = {
    "index.mdx": "# Home\n\n[Start](guides/start.mdx)\n",
    "guides/start.mdx": "---\ntitle: Start\n---\n\nText.\n",
    "guides/next.md": "# Next\n\nFirst,\n[back](start.mdx#install-it) and [broken](no.md).\n",
    "guides/my page (1).md": "# Mine\n",
    "images/lamp.png": "png",
    "LICENSE": "MIT\n",
    "docs/en/only.md": "# Only in English\n",
}
NEW = "guides/new.md"
Files = dict[str, str | None]


def found(changes: Files) -> list[str]:
    """Returns what is found if these files are written; None removes one."""
    after = {name: text for name, text in {**SITE, **changes}.items() if text is not None}
    return list(broken_links(CheckedChange(FakeSnapshot(SITE), FakeSnapshot(after), set(map(PurePosixPath, changes)))))


FINE = (
    "[a](start.mdx)", "![a](../images/lamp.png)", "[a](<my page (1).md>)", "[a](my%20page%20%281%29.md)",
    "[a](../LICENSE)", "[a](..)", "[a](#new)", "[a](start.mdx?x=1#y)", "[a](none)", "[a](./none/)", "[a](none.html)",
    "[a](/guides/none.md)",
    "[a](@site/none.md)", "[a](~/none.md)", "[a](https://example.com/none.md)", "[a](mailto:a@b.md)",
    "[a]({{ url }}.md)", "[a](%FAVICON%.md)", "`[a](none.md)`", "```\n[a](none.md)\n```", "<!-- [a](none.md) -->",
    "[a](../../../none.md)", "[a](feed.xml)", "![a](../other/lamp.png)", "<a :href='dep.md'>a</a>",
)  # fmt: skip


@pytest.mark.parametrize("link", FINE)
def test_nothing_is_claimed_where_a_file_is_there_or_the_site_decides(link: str) -> None:
    assert found({NEW: f"# New\n\n{link}\n"}) == []


@pytest.mark.parametrize("target", ["none.md", "../none.mdx", "../images/none.png", "start.md", "no%20ne.md"])
@pytest.mark.parametrize("link", ["[a]({})", "![a]({})", "[a]: {}", "<a href='{}'>a</a>", "[`a`](<{}> 'title')"])
def test_a_new_link_to_no_file_is_reported_with_its_line(link: str, target: str) -> None:
    told = found({NEW: f"# New\n\n```\ncode\n```\n\n{link.format(target)}\n"})
    assert told == [f"{NEW}:7: the link to `{target}` leads to no file"]


BEFORE = SITE["guides/next.md"]
CASES: dict[str, tuple[Files, list[str]]] = {
    "a page that others link to": (
        {"guides/start.mdx": None},
        ["guides/next.md:4: the link to `start.mdx#install-it` leads to no file",
         "index.mdx:3: the link to `guides/start.mdx` leads to no file"],
    ),
    "on a line that was touched": ({"guides/next.md": BEFORE.replace("First", "Once").replace(" and", " or")}, []),
    "on a page that was moved": ({"guides/next.md": None, "guides/later.md": BEFORE}, []),
    "moved to where its links do not work": (
        {"guides/next.md": None, "later.md": BEFORE},
        ["later.md:4: the link to `start.mdx#install-it` leads to no file"]
    ),
    "a page that is shown where its translation is missing": ({"docs/de/new.md": "[a](only.md)\n"}, []),
    "a part of other pages": ({"snippets/new.md": "[a](none.md)\n", "docs/_new.md": "[a](none.md)\n"}, []),
    "a page in another format": ({"new.rst": "[a](none.md)\n"}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_only_faults_of_the_change_are_reported(case: str) -> None:
    changes, told = CASES[case]
    assert found(changes) == told


def test_the_check_ends_at_its_time_limit() -> None:
    late = CheckedChange(FakeSnapshot(SITE), FakeSnapshot(SITE), {PurePosixPath("index.mdx")}, time_is_up=lambda: True)
    with pytest.raises(TimeoutError):
        list(broken_links(late))


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_new_lines_are_those_the_page_had_fewer_of(before: list[str], after: list[str]) -> None:
    new = new_lines("\n".join(before), "\n".join(after))
    for line in "abc":
        numbers = [number for number, text in enumerate(after, start=1) if text == line]
        assert len(new & set(numbers)) == max(0, len(numbers) - before.count(line))
