"""Addresses of a site without a file: redirects in its settings, and pages of its generator."""

import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.fake_snapshot import FakeSnapshot

from bot.jobserver.checks.change import CheckedChange
from bot.jobserver.checks.links import broken_links
from bot.jobserver.checks.site_addresses import SiteAddresses


def addresses(files: dict[str, str]) -> SiteAddresses:
    return SiteAddresses.of(FakeSnapshot(files))


REDIRECTS = {
    "mintlify": {"docs.json": '{"redirects": [{"source": "/old", "destination": "/new"}]}'},
    "mintlify, earlier": {"docs/mint.json": '{"redirects": [{"source": "old", "destination": "/new"}]}'},
    "another file": {"docs.json": '{"redirects": {"$ref": "./set/r.json"}}', "set/r.json": '[{"source": "/old"}]'},
    "vercel": {"vercel.json": '{"redirects": [{"source": "/old", "destination": "/new"}]}'},
    "netlify": {"static/_redirects": "# moved\n/old  /new  301\n"},
    "netlify.toml": {"netlify.toml": '[[redirects]]\nfrom = "/old"\nto = "/new"\n'},
    "docusaurus": {"docusaurus.config.js": "redirects: [{ to: '/new', from: '/old' }]"},
    "docusaurus, several": {"docusaurus.config.ts": 'redirects: [{ to: "/new", from: ["/older", "/old"] }]'},
    "mkdocs": {"mkdocs.yml": "plugins:\n  - redirects:\n      redirect_maps:\n        old.md: new.md\n"},
}  # fmt: skip


@pytest.mark.parametrize("kind", REDIRECTS)
def test_a_redirect_in_the_settings_is_followed(kind: str) -> None:
    found = addresses(REDIRECTS[kind])
    assert found.serve("/old")
    assert found.serve("/old/")
    assert not found.serve("/new")
    assert not found.serve("/old/more")


@pytest.mark.parametrize("source", ["/old/:slug*", "/old/*", "/old/:path", "/old/(.*)"])
def test_a_wildcard_redirect_covers_everything_below(source: str) -> None:
    found = addresses({"docs.json": json.dumps({"redirects": [{"source": source}]})})
    assert found.serve("/old/a/b")
    assert not found.serve("/older")


GENERATED = {
    "docs.json": ("/llms.txt", "/llms-full.txt", "/sitemap.xml", "/robots.txt", "/rss.xml"),
    "docusaurus.config.ts": (
        "/sitemap.xml",
        "/blog/rss.xml",
        "/blog/atom.xml",
        "/search",
        "/docs/tags",
        "/blog/archive",
    ),
    "mkdocs.yml": ("/sitemap.xml", "/search/search_index.json", "/404.html"),
    "docs/conf.py": ("/genindex.html", "/py-modindex.html", "/search.html", "/objects.inv"),
    ".vitepress/config.mts": ("/sitemap.xml", "/404.html"),
}


@pytest.mark.parametrize("settings", GENERATED)
def test_generated_addresses_exist(settings: str) -> None:
    found = addresses({settings: ""})
    for address in GENERATED[settings]:
        assert found.serve(address), address
    assert not found.serve("/none")


def test_an_unknown_generator_may_generate_any_of_them() -> None:
    found = addresses({"a.md": ""})
    assert all(found.serve(address) for each in GENERATED.values() for address in each)


def test_sphinx_has_labels_and_hugo_render_hooks() -> None:
    """Like MyST's `(labels/line-length)=`, which may be in any page; and `[term](g)` in Hugo's own documentation."""
    assert addresses({"docs/conf.py": ""}).serve("labels/line-length")
    assert addresses({"hugo.toml": ""}).serve("glossary term")
    assert not addresses({"docs/conf.py": ""}).serve("none.md")
    assert not addresses({"mkdocs.yml": ""}).serve("labels/line-length")


WORST = (
    "[" * 100_000, '{"redirects": ' * 50_000, '{"redirects": {"$ref": "docs.json"}}',
    '{"redirects": {"$ref": "../../etc/x"}}',
    '{"redirects": {"$ref": "/etc/passwd"}}', '{"redirects": [1, null, {"source": 7}, {"source": "("}]}',
    "null", "\x00",
    "from: [" * 20_000, "from: '" + "a" * 1_000_000, "redirect_maps:\n" + "  a" * 100_000,
)  # fmt: skip


@pytest.mark.parametrize("text", WORST, ids=range(len(WORST)))
@pytest.mark.parametrize("name", ["docs.json", "docusaurus.config.js", "_redirects", "mkdocs.yml", "netlify.toml"])
def test_the_worst_settings_redirect_nothing(name: str, text: str) -> None:
    assert not addresses({name: text}).serve("/guides/start")


@given(st.text(max_size=200), st.text(alphabet="/ab*:().", max_size=20))
def test_any_text_is_read_for_site_addresses(text: str, address: str) -> None:
    for name in ("docs.json", "docusaurus.config.js", "_redirects", "mkdocs.yml", "netlify.toml"):
        addresses({name: text}).serve(address)


def test_a_change_may_link_to_generated_addresses() -> None:
    """A page's own address with `.md` is one of Mintlify's, too."""
    before = {"docs.json": '{"redirects": [{"source": "/old"}]}', "guides/start.mdx": "# Start\n"}
    page = "[a](/llms.txt), [b](/old), [c](/guides/start.md), [d](/none), [e](none.md)\n"
    change = CheckedChange(FakeSnapshot(before), FakeSnapshot({**before, "new.mdx": page}), {PurePosixPath("new.mdx")})
    assert [problem.split("`")[1] for problem in broken_links(change)] == ["/none", "none.md"]
