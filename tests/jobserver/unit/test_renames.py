"""A renamed page: what the built-in editor renames along, and when it keeps the file's name."""

import json
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builtin_editor import work

from bot.jobserver.editors.builtin.page_rewrites import with_new_address, with_redirect

RENAME = "Rename the getting started page to Quickstart"


def site(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    return root


def pages(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_bytes().decode() for path in root.rglob("*") if path.is_file()}


def answer_text(answer: Mapping[str, str]) -> str:
    assert "error" not in answer
    return answer.get("summary", answer.get("reason", ""))


def test_links_titles_and_anchors_are_renamed_along(tmp_path: Path) -> None:
    root = site(
        tmp_path,
        {
            "README.md": "# Lamp\n\n[Getting started](docs/getting-started.md), [how](docs/getting-started.md#pair).\n",
            "docs/getting-started.md": "# Getting started\r\n\r\n## Pair\r\n\r\n[up](#getting-started)\r\n",
            "docs/guides/one.md": "# One\n\n[first](../getting-started.md#getting-started) `getting-started.md`\n\n"
            "[ref]\n\n[ref]: ../getting-started.md\n\nGetting started is easy.\n",
            "docs/other/getting-started-again.md": "# Again\n\n[x](https://a.example/getting-started)\n",
        },
    )
    answer = answer_text(work(RENAME, root))
    assert pages(root) == {
        "README.md": "# Lamp\n\n[Quickstart](docs/quickstart.md), [how](docs/quickstart.md#pair).\n",
        "docs/quickstart.md": "# Quickstart\r\n\r\n## Pair\r\n\r\n[up](#quickstart)\r\n",
        "docs/guides/one.md": "# One\n\n[first](../quickstart.md#quickstart) `getting-started.md`\n\n"
        "[ref]\n\n[ref]: ../quickstart.md\n\nGetting started is easy.\n",
        "docs/other/getting-started-again.md": "# Again\n\n[x](https://a.example/getting-started)\n",
    }
    assert answer.startswith('Renamed docs/getting-started.md to docs/quickstart.md, and its title to "Quickstart"')
    assert "No redirect from the old address was added." in answer


def test_mintlify_gets_its_entry_and_a_redirect(tmp_path: Path) -> None:
    settings = {
        "navigation": {"pages": ["getting-started", "one"]},
        "redirects": [{"source": "/a", "destination": "/getting-started"}],
    }
    root = site(
        tmp_path,
        {
            "docs.json": json.dumps(settings, indent=2) + "\n",
            "getting-started.mdx": '---\ntitle: "Getting started"\n---\n\nHello.\n',
            "one.mdx": '---\ntitle: "One"\n---\n\n<Card title="Getting started" href="/getting-started">x</Card>\n',
        },
    )
    answer = answer_text(work(RENAME, root))
    found = pages(root)
    assert json.loads(found["docs.json"]) == {
        "navigation": {"pages": ["quickstart", "one"]},
        "redirects": [
            {"source": "/getting-started", "destination": "/quickstart"},
            {"source": "/a", "destination": "/quickstart"},
        ],
    }
    assert found["quickstart.mdx"] == '---\ntitle: "Quickstart"\n---\n\nHello.\n'
    assert '<Card title="Quickstart" href="/quickstart">' in found["one.mdx"]
    assert "a redirect from /getting-started" in answer


def test_mkdocs_gets_its_entry_under_the_new_title(tmp_path: Path) -> None:
    root = site(
        tmp_path,
        {
            "mkdocs.yml": "site_name: X\nnav:\n  - Getting started: start/getting-started.md\n  - One: one.md\n",
            "docs/start/getting-started.md": "# Getting started\n",
            "docs/one.md": "# One\n\n[x](start/getting-started.md)\n",
        },
    )
    work(RENAME, root)
    found = pages(root)
    assert "  - Quickstart: start/quickstart.md\n  - One: one.md\n" in found["mkdocs.yml"]
    assert found["docs/one.md"] == "# One\n\n[x](start/quickstart.md)\n"


def test_myst_gets_its_toctree_and_roles(tmp_path: Path) -> None:
    root = site(
        tmp_path,
        {
            "docs/conf.py": "project = 'X'\n",
            "docs/index.md": "# Home\n\n```{toctree}\n:maxdepth: 2\n\ngetting-started\none\n```\n",
            "docs/getting-started.md": "Getting started\n===============\n\nHello.\n",
            "docs/one.md": "# One\n\nSee {doc}`getting-started` and {doc}`there </getting-started>`.\n",
        },
    )
    work(RENAME, root)
    found = pages(root)
    assert found["docs/quickstart.md"] == "Quickstart\n===============\n\nHello.\n"
    assert found["docs/index.md"].endswith("\nquickstart\none\n```\n")
    assert "See {doc}`quickstart` and {doc}`there </quickstart>`." in found["docs/one.md"]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"sidebars.js": "module.exports = {docs: ['getting-started']}\n"}, "sidebars.js names it"),
        ({"docs/.vitepress/config.mts": "export default {link: '/getting-started'}\n"}, "config.mts names it"),
        ({"docs/index.rst": ".. toctree::\n\n   getting-started\n"}, "docs/index.rst names it"),
        ({"mkdocs.yml": "nav: [\n  - getting-started.md\n"}, "mkdocs.yml names it"),
        ({"docs/one.mdx": "import Start from './getting-started.md'\n\n# One\n"}, "docs/one.mdx includes it"),
        ({"docs/getting-started.md": "---\nslug: /\n---\n\n# Getting started\n"}, "its `slug` says its address"),
    ],
)
def test_a_file_that_others_name_keeps_its_name(tmp_path: Path, files: Mapping[str, str], why: str) -> None:
    """Only the title changes if a program or the page itself uses the file's name."""
    root = site(tmp_path, {"docs/getting-started.md": "# Getting started\n", **files})
    answer = answer_text(work(RENAME, root))
    assert why in answer
    assert "# Quickstart" in (root / "docs/getting-started.md").read_text()


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("Rename the attic page to Roof", 'Nothing renamed: no page is called "attic".'),
        ("Rename the one page to two.html", "no other folder or ending"),
        ("Rename the one page to ../two.md", "no other folder or ending"),
        ("Rename the one page to Two", "Nothing renamed: there already is docs/two.md."),
        ("Rename the one page to One", "is called so already"),
    ],
)
def test_a_page_that_cannot_be_renamed_is_kept_and_reported(tmp_path: Path, prompt: str, reason: str) -> None:
    files = {"docs/one.md": "# One\n", "docs/two.md": "# Two\n"}
    root = site(tmp_path, files)
    answer = work(prompt, root)
    assert reason in answer["reason"]
    assert pages(root) == files


def test_a_quoted_name_is_a_page_or_else_text(tmp_path: Path) -> None:
    root = site(tmp_path, {"one.md": "# One\n\nThe Widget.\n", "two.md": "# Two\n\n[One](one.md)\n"})
    assert "The words in other pages stay" in answer_text(work('Rename "One" to "First"', root))
    assert answer_text(work('Rename "Widget" to "Gadget"', root)).startswith('Replaced "Widget" with "Gadget": 1 place')
    assert pages(root) == {"first.md": "# First\n\nThe Gadget.\n", "two.md": "# Two\n\n[First](first.md)\n"}


def test_the_worst_pages_are_renamed_in_time(tmp_path: Path) -> None:
    """Links, definitions, directives and entries by the ten thousand."""
    many = 10_000
    root = site(
        tmp_path,
        {
            "getting-started.md": "# Getting started\n",
            "links.md": "[getting-started](getting-started.md) " * many,
            "definitions.md": "`c` [a]\n\n" + "[a]: getting-started.md\n" * many,
            "tree.md": "```{toctree}\n\n" + "getting-started\n" * many + "```\n",
            "include.md": "include " * many + "not-getting-started",
            "mkdocs.yml": "docs_dir: .\nnav:\n" + "  - Getting started: getting-started.md\n" * 2_000,
        },
    )
    started = time.process_time()
    work(RENAME, root)
    assert time.process_time() - started < 20
    assert "getting-started.md" not in (root / "definitions.md").read_text() + (root / "mkdocs.yml").read_text()


NAMES = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,2}", fullmatch=True).map(PurePosixPath)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | NAMES.map(lambda path: f"/{path}"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("redirects"), inner, max_size=4),
    max_leaves=12,
)
SETTINGS = st.dictionaries(st.sampled_from(["redirects", "navigation", "name"]), VALUES)


@given(SETTINGS, NAMES, NAMES, st.none() | st.just(2))
def test_settings_are_unchanged_except_for_the_address(
    settings: dict[str, object], old: PurePosixPath, new: PurePosixPath, indent: int | None
) -> None:
    """Whatever the settings contain, they stay JSON, and a redirect is one more entry or nothing."""
    text = json.dumps(settings, indent=indent)
    json.loads(with_new_address(text, old, new))
    redirected = with_redirect(text, old, new)
    if redirected is not None:
        after = json.loads(redirected)
        assert after.pop("redirects")[0] == {"source": f"/{old}", "destination": f"/{new}"}
        assert after == {key: value for key, value in settings.items() if key != "redirects"}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"redirects": {"$ref": "./redirects.json"}}', "[" * 100_000])
def test_settings_without_a_place_for_redirects_get_none(text: str) -> None:
    assert with_redirect(text, PurePosixPath("a"), PurePosixPath("b")) is None
