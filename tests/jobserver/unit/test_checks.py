"""What the checks find in a change, and earlier problems that they ignore."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.fake_snapshot import FakeSnapshot

from bot.jobserver.checks.change import CheckedChange, new_lines
from bot.jobserver.checks.link_targets import LinkTargets
from bot.jobserver.checks.links import broken_links
from bot.jobserver.checks.navigation import navigation_problems
from bot.jobserver.checks.page_syntax import unreadable_front_matter

SITE = {
    "docs.json": "{}",
    "index.mdx": "# Home\n\n[Start](/guides/start)\n",
    "guides/start.mdx": "---\ntitle: Start\n---\n\n## Install it\n\nText.\n",
    "guides/next.md": "# Next\n\n[back](start.mdx#install-it)\n",
    "images/lamp.png": "png",
    "es/guides/start.mdx": "# Inicio\n",
}


def changed(changes: dict[str, str | None]) -> CheckedChange:
    after = {name: text for name, text in {**SITE, **changes}.items() if text is not None}
    return CheckedChange(FakeSnapshot(SITE), FakeSnapshot(after), {PurePosixPath(name) for name in changes})


GOOD = (
    "[a](start.mdx)", "[a](./start)", "[a](../guides/start.mdx#install-it)", "[a](/guides/start#install-it)",
    "[a](/images/lamp.png)", "![a](../images/lamp.png)", "[a](#new)", "[a](https://example.com/none)",
    "[a](mailto:a@b.c)",
    "[a](/)", "[a](..)", "[a](start.html)", "[a](start.mdx?tab=1)", "[a]({{ url }})", "[a](<start.mdx>)",
    "[a](/es/guides/start/)",
    "`[a](none.md)`",
)  # fmt: skip


@pytest.mark.parametrize("link", GOOD)
def test_links_that_some_site_generator_resolves_are_no_faults(link: str) -> None:
    assert list(broken_links(changed({"guides/new.md": f"# New\n\n{link}\n"}))) == []


BAD = {
    "[a](none.md)": "guides/new.md:3: the link to `none.md` leads nowhere",
    "![a](none.png)": "guides/new.md:3: the image to `none.png` leads nowhere",
    "[a](/guides/none)": "guides/new.md:3: the link to `/guides/none` leads nowhere",
    "[a](../../../etc/passwd)": "guides/new.md:3: the link to `../../../etc/passwd` leads nowhere",
    "[a](start.mdx#none)": "guides/new.md:3: the link to `start.mdx#none`: there is no such heading",
    "[a](#none)": "guides/new.md:3: the link to `#none`: there is no such heading",
}


@pytest.mark.parametrize("link", BAD)
def test_broken_links_are_reported_with_their_line(link: str) -> None:
    assert list(broken_links(changed({"guides/new.md": f"# New\n\n{link}\n"}))) == [BAD[link]]


def test_links_broken_before_are_not_the_changes_fault() -> None:
    before = {"a.md": "# A\n\n[x](none.md)\n"}
    after = {"a.md": "# A\n\nMore.\n\n[x](none.md)\n"}
    assert not list(broken_links(CheckedChange(FakeSnapshot(before), FakeSnapshot(after), {PurePosixPath("a.md")})))


def test_links_to_a_deleted_page_are_reported() -> None:
    found = list(broken_links(changed({"guides/start.mdx": None})))
    assert "guides/next.md:3: the link to `start.mdx#install-it` leads nowhere" in found
    assert "index.mdx:3: the link to `/guides/start` leads nowhere" in found, "though its translation is there"
    assert len(found) == 2


WAYS = {
    "guides/start.mdx": (
        "[a](start.mdx)", "[a]: ./start 'title'",
        "<a href='/guides/start.html'>a</a>", "<Card href='/guides/start' />",
        "![a](start.mdx?x=1)", "[a](start.mdx#install-it)", "[a](/GUIDES/Start)",
    ),
    "faq/index.md": ("[a](/faq/)", "[a](../faq)", "[a](../faq/index.md)"),
    "guides/my page (1).md": ("[a](my%20page%20(1).md)", "[a](my%20page%20%281%29.md)"),
    "images/lamp.v2.png": ("![a](../images/lamp.v2.png)", '<img src="/images/lamp.v2.png" />'),
    "guides/é.md": ("[a](é.md)", "[a](%C3%A9.md)"),
}  # fmt: skip


@pytest.mark.parametrize(("gone", "link"), [(gone, link) for gone, links in WAYS.items() for link in links])
def test_links_to_anything_deleted_are_reported(gone: str, link: str) -> None:
    page = {"guides/other.mdx": f"# Other\n\n[broken](broken.md) and\n\n{link}\n\n[a]\n"}
    before, after = FakeSnapshot({**page, gone: "# Gone\n\n## Install it\n"}), FakeSnapshot(page)
    (problem,) = broken_links(CheckedChange(before, after, {PurePosixPath(gone)}))
    assert problem.startswith("guides/other.mdx:")
    assert "broken.md" not in problem


@dataclass(frozen=True)
class CountingSnapshot(FakeSnapshot):
    """Counts reads."""

    alone: list[PurePosixPath] = field(default_factory=list)
    together: list[int] = field(default_factory=list)

    def read(self, path: PurePosixPath) -> bytes | None:
        self.alone.append(path)
        return super().read(path)

    def read_all(self, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, bytes]]:
        found = [(path, self.files[str(path)].encode()) for path in paths]
        self.together.append(len(found))
        yield from found


def test_unchanged_pages_are_read_once_and_parsed_only_if_relevant() -> None:
    """However common the deleted name is."""
    pages = {f"{n}/start.md": f"# {n}\n\nTo start, [start](../{n + 1}/start.md).\n" for n in range(200)}
    left = CountingSnapshot({**pages, "200/start.md": "# Last\n", "a.md": "[x](guides/start.mdx)"})
    before = FakeSnapshot({**left.files, "guides/start.mdx": "# Gone\n"})
    found = list(broken_links(CheckedChange(before, left, {PurePosixPath("guides/start.mdx")})))
    assert found == ["a.md:1: the link to `guides/start.mdx` leads nowhere"]
    assert left.together == [202]
    assert left.alone == [PurePosixPath("a.md")]


def test_a_root_path_does_not_match_another_languages_page() -> None:
    """A translation's own links may mean the translation: some generators prepend the language."""
    translated: dict[str, str | None] = {"es/guides/solo.mdx": "# Solo\n"}
    english = changed({**translated, "guides/new.md": "[a](/guides/solo)\n"})
    assert list(broken_links(english)) == ["guides/new.md:1: the link to `/guides/solo` leads nowhere"]
    assert not list(broken_links(changed({**translated, "es/guides/new.md": "[a](/guides/solo)\n"})))
    assert not list(broken_links(changed({**translated, "guides/new.md": "[a](/es/guides/solo)\n"})))
    in_folder: dict[str, str | None] = {
        "site/docs/alone.mdx": "# Alone\n",
        "site/docs/new.mdx": "[a](/docs/alone), [b](/alone)\n",
    }
    assert not list(broken_links(changed(in_folder)))
    versions: dict[str, str | None] = {"docs/es/5x/x.md": "# X\n", "docs/en/a.md": "[a](/en/x)\n"}
    assert list(broken_links(changed(versions))) == ["docs/en/a.md:1: the link to `/en/x` leads nowhere"]


KINDS: dict[str, dict[str, str | None]] = {
    "a section of Hugo's": {"content/en/guides/_index.md": "# G\n", "content/en/a.md": "[a](/guides/)\n"},
    "a folder": {"content/functions/safe/x.md": "# X\n", "content/a.md": "[a](/functions/safe/)\n"},
    "in other letters": {"blog/2024-HeroDevs.md": "# B\n", "blog/a.md": "[a](/blog/2024-herodevs)\n"},
    "not translated": {"docs/en/docs/x.md": "# X\n", "docs/de/docs/a.md": "[a](x.md)\n"},
    "not translated, at the root": {"docs/x.md": "# X\n", "docs/de/a.md": "[a](x.md)\n"},
    "an alias": {"a.md": "![a](@site/static/x.png), [b](~/x)\n"},
    "bound by Vue": {"a.md": "# A\n\n<a :href='dep.url'>x</a>\n"},
    "a dot in a heading": {"a.md": "## server.https\n\n[a](#server-https), [b](#serverhttps)\n"},
    "a list of attributes": {"a.md": "*   **`locale`**{ #mkdocs-locale }: The locale\n\n[a](#mkdocs-locale)\n"},
    "a term of a list of definitions": {
        "a.md": "`maxAge`\n: How old.\n\n## B\n\n`maxAge`\n\n: See [a](#maxage-1), [b](#maxage), [c](#step-2)\n\n"
        "Step 2\n: Do.\n"
    },
    "a version below its language": {"docs/en/5x/guide/x.md": "# X\n", "docs/es/5x/a.md": "[a](/en/guide/x)\n"},
    "what a build makes": {"a.html": "<html><script src='/src/entry'></script><link href='made.css'></html>\n"},
    "a placeholder": {"a.md": "[a](ENGLISH_VERSION_URL), ![b](%FAVICON_URL%)\n"},
    "where Vue moves something": {"a.md": "# A\n\n<Teleport to='body'>\n\nx\n\n</Teleport>\n"},
    "headings from elsewhere": {"a.md": '--8<-- "CONTRIBUTING.md"\n\n[a](#from-there)\n'},
    "headings of a program": {"a.md": "::: mkdocs-click\n    :module: mkdocs\n\n[a](#from-there)\n"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_generator_specific_links_are_resolved(kind: str) -> None:
    assert list(broken_links(changed(KINDS[kind]))) == []


def test_links_to_a_deleted_heading_are_reported() -> None:
    found = list(broken_links(changed({"guides/start.mdx": "## Set it up\n"})))
    assert found == ["guides/next.md:3: the link to `start.mdx#install-it`: there is no such heading"]


def test_front_matter_broken_by_the_change_is_reported() -> None:
    broken = changed({"guides/start.mdx": "---\ntitle: [Start\n---\n"})
    assert [problem.partition(": its")[0] for problem in unreadable_front_matter(broken)] == ["guides/start.mdx"]
    was_broken = CheckedChange(
        FakeSnapshot({"a.md": "---\na: [\n---\n"}), FakeSnapshot({"a.md": "---\nb: [\n---\n"}), {PurePosixPath("a.md")}
    )
    assert not list(unreadable_front_matter(was_broken))


LISTED = '{"navigation": {"pages": ["index", "guides/start"]}}'


def navigation(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return list(
        navigation_problems(CheckedChange(FakeSnapshot(before), FakeSnapshot(after), set(map(PurePosixPath, after))))
    )


def test_a_new_page_beside_listed_ones_needs_an_entry() -> None:
    site = {**SITE, "docs.json": LISTED}
    more = {"guides/new.mdx": "# New\n", "snippets/part.mdx": "Part\n", "es/guides/new.mdx": "# Nuevo\n"}
    found = navigation({**site, "snippets/other.mdx": "x"}, {**site, "snippets/other.mdx": "x", **more})
    assert found == ["guides/new.mdx: docs.json has no entry for it, so no menu leads there"]
    listed = LISTED.replace('"index"', '"index", "guides/new"')
    assert navigation(site, {**site, "guides/new.mdx": "# New\n", "docs.json": listed}) == []


def test_an_entry_for_a_deleted_page_is_reported() -> None:
    site = {**SITE, "docs.json": LISTED}
    after = {name: text for name, text in site.items() if name != "guides/start.mdx"}
    assert navigation(site, after) == ["docs.json: it has an entry for `guides/start.mdx`, which is gone"]


def test_navigation_broken_by_the_change_is_reported() -> None:
    site = {**SITE, "docs.json": LISTED}
    found = navigation(site, {**site, "docs.json": LISTED[:-1]})
    assert [problem[:36] for problem in found] == ["docs.json: it cannot be read any more"[:36]]
    assert navigation({**site, "docs.json": "{"}, {**site, "docs.json": "{{"}) == []


def test_the_check_ends_at_its_time_limit() -> None:
    late = CheckedChange(FakeSnapshot(SITE), FakeSnapshot(SITE), {PurePosixPath("index.mdx")}, time_is_up=lambda: True)
    with pytest.raises(TimeoutError):
        list(unreadable_front_matter(late))


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_new_lines_are_those_the_page_had_fewer_of(before: list[str], after: list[str]) -> None:
    new = new_lines("\n".join(before), "\n".join(after))
    for line in "abc":
        numbers = [number for number, text in enumerate(after, start=1) if text == line]
        assert len(new & set(numbers)) == max(0, len(numbers) - before.count(line))


@given(st.text(alphabet="ab./#%?{}", max_size=30))
def test_no_target_leads_out_of_the_repository(path: str) -> None:
    paths = [PurePosixPath(name) for name in SITE]
    found = LinkTargets(paths).find(PurePosixPath("guides/new.md"), path)
    assert found is None or found in {*paths, *(parent for each in paths for parent in each.parents)}
