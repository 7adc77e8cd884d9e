"""The pages of a pull request describe any change correctly and do no harm to the reader."""

import asyncio
import base64
import html
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.worlds.jobserver_world import JobServerWorld, git, make_bare, push_to, running

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCRIPT = "<script>document.title='taken'</script>"
TURNED = "user\u202e\u2066// admin\u2069"


async def open_pull_request(world: JobServerWorld, files: dict[str, bytes | None]) -> tuple[str, Path]:
    """Returns the page's address and a copy of the branch. The job's own change is among the contents."""
    job = await world.done("Add a page called Of The Job with the text: x")
    copy = await asyncio.to_thread(push_to, world.repository, f"pagehand/{job['id']}", files)
    return str(job["prLink"]), copy


def hostile_files() -> dict[str, bytes | None]:
    """One change with everything: scripts, deceptive characters, and files that are too large or too many."""
    many: dict[str, bytes | None] = {f"many/{n:03}.md": f"# Page {n}\n\nText.\n".encode() for n in range(500)}
    return many | {
        "a-script.md": f"# {SCRIPT}\n\n{SCRIPT}\n\n[x](javascript:alert(1)) ![p](x.png) ![q](https://evil.example/q.png)\n".encode(),
        "a-turned.md": f"{TURNED}\n".encode(),
        "a-brackets.md": b"[" * 150_000,
        "a-huge-brackets.md": b"[" * 5_000_000,
        "a-huge.txt": b"0123456789abcde\n" * 440_000,
        "a-lines.txt": b"x\n" * 100_000,
        "a-one-line.txt": b"y" * 7_000_000,
        "a-binary.bin": bytes(range(256)) * 100,
        ".gitattributes": b"*.md -diff\n",
        "a-<b>name&\"'.md": b"named\n",
        "x.png": PICTURE,
        "not-a.png": SCRIPT.encode(),
    }


PAGES = {
    "docs/start.md": "---\ntitle: Start\n---\n\n# Start\n\nA **colour**.\n",
    "old name.md": "".join(f"line {n}\n" for n in range(40)),
    "run.sh": "echo\n",
    "gone.md": "gone\n",
}
AFTER = (
    f"{PAGES['docs/start.md'].replace('colour', 'color')}\n"
    f"![A dot](/img/dot.png) ![far](https://evil.example/x.png)\n\n{SCRIPT}\n"
).encode()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[JobServerWorld]:
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world:
        yield world


async def text_of(world: JobServerWorld, address: str) -> str:
    answer = await world.client.get(address, timeout=60)
    assert answer.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", answer.text))


@pytest.mark.full
async def test_one_change_with_every_feature(world: JobServerWorld) -> None:
    link, _ = await open_pull_request(world, hostile_files())
    files, added, removed = shortstat(world, link)
    assert files > 500
    first = await text_of(world, link)
    assert (
        f'{files} files changed <span class="plus">+{added:,}</span> <span class="minus">\u2212{removed:,}</span>'
        in first
    )
    missing = f"Not everything is on this page. Not shown: {files - 100} of the {files} changed files; "
    assert first.count(missing) == 2, "at the top and beside the button"
    assert "the contents of 1 file that is not text; parts of " in first, "an attribute of the change hides nothing"
    assert first.index(missing) < first.index(">Merge</button>")
    pages = [first] + [await text_of(world, f"{link}?page={n}") for n in range(2, -(-files // 100) + 1)]
    shown = "".join(pages)
    assert len(set(re.findall(r'id="file-(\d+)"', shown))) == files, "every file has its place on one of the pages"
    for name in ("a-huge.txt", "a-lines.txt", "a-huge-brackets.md", "a-one-line.txt"):
        assert re.search(rf"{name}</bdi></span>.*?changed lines? (is|are) not shown here|ends of", shown)
    assert "user[U+202E][U+2066]// admin[U+2069]" in shown
    assert "98500 of its 100000 changed lines are not shown here." in shown
    assert "# Page 499" in shown, "what is large hides nothing that is small"
    for page in pages:
        assert len(page) < 4_000_000
    raw = (await world.client.get(link, timeout=60)).text
    assert SCRIPT not in raw
    assert "<b>name" not in raw
    assert (await world.press(link, "merge")).status_code == 303


def shortstat(world: JobServerWorld, link: str) -> tuple[int, int, int]:
    branch = next(name for name in world.branches() if name.startswith("pagehand/"))
    said = git(world.repository, "diff", "--shortstat", "--find-renames", f"main...{branch}")
    files, added, removed = (re.search(rf"(\d+) {word}", said) for word in ("file", "insertion", "deletion"))
    return tuple(int(found[1]) if found else 0 for found in (files, added, removed))  # type: ignore[return-value]


@pytest.mark.full
async def test_pages_are_rendered_before_and_after(world: JobServerWorld) -> None:
    link, _ = await open_pull_request(world, {"docs/start.md": AFTER, "img/dot.png": PICTURE})
    answer = await world.client.get(f"{link}/rendered", timeout=30)
    assert answer.status_code == 200
    before, after = answer.text.index("<strong>colour</strong>"), answer.text.index("<strong>color</strong>")
    assert before < after
    assert answer.text.count('<pre class="front-matter">title: Start</pre>') == 2
    [address] = set(re.findall(r'src="(/docs/pulls/1/after/[^"]*)"', answer.text))
    picture = await world.client.get(address)
    assert (picture.content, picture.headers["Content-Type"]) == (PICTURE, "image/png")
    assert "sandbox" in picture.headers["Content-Security-Policy"]
    assert (await world.client.get(address.replace("after", "before"))).status_code == 404


@pytest.mark.full
async def test_only_images_are_served(world: JobServerWorld) -> None:
    files: dict[str, bytes | None] = {
        "not-a.png": SCRIPT.encode(),
        "large.png": PICTURE + bytes(5_000_000),
        "picture.txt": PICTURE,
        "picture.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "fine.png": PICTURE,
    }
    link, copy = await open_pull_request(world, files)
    (copy / "link.png").symlink_to("fine.png")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "A link")
    git(copy, "push", "--quiet", "origin", "HEAD")
    await world.client.get(link)
    found = {
        name: (await world.client.get(f"{link}/after/{name}")).status_code for name in [*files, "link.png", "x.png"]
    }
    assert found == dict.fromkeys([*files, "link.png", "x.png"], 404) | {"fine.png": 200}
    for path in ("%2e%2e/fine.png", "..%2ffine.png", "fine.png%00.png", ":fine.png", "-h.png", "*.png"):
        assert (await world.client.get(f"{link}/after/{path}")).status_code == 404
    assert (await world.client.get("/docs/pulls/9/after/fine.png")).status_code == 404
