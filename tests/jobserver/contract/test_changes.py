"""The pages of a pull request describe any change correctly and do no harm to the reader."""

import asyncio
import base64
import html
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import HttpCredentials, Page
from support.worlds.browser_page import NoChromium, chromium
from support.worlds.jobserver_world import REVIEWER, REVIEWER_KEY, JobServerWorld, git, make_bare, push_to, running

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
    assert "the contents of 1 file that is not text; parts of " in first
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
async def test_the_page_describes_changes_without_lines(world: JobServerWorld) -> None:
    link, copy = await open_pull_request(world, {"gone.md": None, "empty.md": b"", ".gitattributes": b"* -diff\n"})
    git(copy, "mv", "old name.md", "new\tname.md")
    (copy / "leads-out").symlink_to("/etc/passwd")
    (copy / "run.sh").chmod(0o755)
    head = git(copy, "rev-parse", "HEAD").strip()
    git(copy, "update-index", "--add", "--cacheinfo", f"160000,{head},nested")
    git(copy, "add", "leads-out", "run.sh")
    git(copy, "commit", "--quiet", "-m", "More")
    git(copy, "push", "--quiet", "origin", "HEAD")
    text = await text_of(world, link)
    for words in (
        "Only its name changed.",
        "old name.md → new name.md",
        "This is a link.",
        "/etc/passwd",
        "This is a submodule (another repository).",
        f"Subproject commit {head}",
        "Can now be run as a program.",
        "An empty file.",
        '<span class="tag">deleted</span>',
    ):
        assert words in text
    assert "Not everything is on this page" not in text, "an attribute of the change hides nothing"
    assert "root:" not in text


@pytest.mark.full
async def test_pages_are_rendered_before_and_after(world: JobServerWorld) -> None:
    link, _ = await open_pull_request(world, {"docs/start.md": AFTER, "img/dot.png": PICTURE})
    answer = await world.client.get(f"{link}/rendered", timeout=30)
    assert answer.status_code == 200
    before, after = answer.text.index("<strong>colour</strong>"), answer.text.index("<strong>color</strong>")
    assert before < after
    assert answer.text.count('<pre class="front-matter">title: Start</pre>') == 2
    [address] = set(re.findall(r'src="(/pulls/1/after/[^"]*)"', answer.text))
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
    assert (await world.client.get("/pulls/9/after/fine.png")).status_code == 404


@pytest.mark.full
@pytest.mark.browser
@pytest.mark.enable_socket
async def test_a_person_reads_and_merges_in_a_browser(world: JobServerWorld) -> None:
    files: dict[str, bytes | None] = {"docs/start.md": AFTER, "img/dot.png": PICTURE, "big.txt": b"x\n" * 9000}
    link, _ = await open_pull_request(world, files)
    try:
        async with chromium() as browser:
            ada: HttpCredentials = {"username": REVIEWER, "password": REVIEWER_KEY}
            page = await browser.new_page(viewport={"width": 400, "height": 800}, http_credentials=ada)
            faults: list[str] = []
            page.on("console", lambda message: faults.append(message.text))
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("request", lambda request: faults.append(request.url))
            await read_and_merge(page, link)
            assert [fault for fault in faults if not fault.startswith(world.url)] == []
    except NoChromium as missing:
        pytest.skip(str(missing))
    assert "A **color**." in world.show("main", "docs/start.md")


async def read_and_merge(page: Page, link: str) -> None:
    await page.goto(link)
    await fits(page)
    assert await page.get_by_text("parts of 1 file").count() == 2
    await page.get_by_role("link", name="Rendered").click()
    await page.wait_for_url(f"{link}/rendered")
    await fits(page)
    assert await page.locator(".side strong").all_inner_texts() == ["colour", "color"]
    dot = page.get_by_role("img", name="A dot").last
    await dot.scroll_into_view_if_needed()
    await page.wait_for_function("image => image.complete && image.naturalWidth === 1", arg=await dot.element_handle())
    assert await page.title() != "taken"
    await page.get_by_role("link", name="Changes", exact=True).click()
    await page.get_by_role("button", name="Merge").click()
    await page.get_by_text("merged by Ada Lovelace").wait_for()
    await fits(page)


async def fits(page: Page) -> None:
    assert await page.evaluate("document.documentElement.scrollWidth") <= 400
