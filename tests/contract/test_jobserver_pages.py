"""The pull request pages: what they show, what their buttons do, and who may press them."""

import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import async_playwright
from support.worlds.jobserver_world import JobServerWorld, git, make_bare, make_repository, running

PAGES = {"docs/start.md": "# Start\n\nA colour.\n\nAnother line.\n", "docs/guides/one.md": "# One\n\nThe colour.\n"}
REPLACE = 'Replace "colour" with "color"'


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[JobServerWorld]:
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world:
        yield world


async def test_merge_really_merges_and_says_so(world: JobServerWorld) -> None:
    link = (await world.done(REPLACE))["prLink"]
    for _ in range(2):  # a second press finds it done
        answer = await world.press(link, "merge")
        assert (answer.status_code, answer.headers["Location"]) == (303, "/pulls/1")
    assert "A color." in world.show("main", "docs/start.md")
    parents = git(world.repository, "log", "-1", "--format=%P%n%s", "main").splitlines()
    assert len(parents[0].split()) == 2
    assert parents[1] == f"Merge pull request #1: {REPLACE}"
    text = (await world.client.get(link)).text
    assert "Merged" in text
    assert "<button" not in text
    assert "<mark>color</mark>" in text, "what was merged stays visible"


async def test_close_leaves_the_base_alone_and_keeps_the_page(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    before = git(world.repository, "rev-parse", "main")
    assert (await world.press(job["prLink"], "close")).status_code == 303
    git(world.repository, "update-ref", "-d", f"refs/heads/pagehand/{job['id']}")
    assert git(world.repository, "rev-parse", "main") == before
    text = (await world.client.get(job["prLink"])).text
    assert "Closed" in text
    assert "<mark>color</mark>" in text
    answer = await world.press(job["prLink"], "merge")
    assert answer.status_code == 409
    assert "is closed" in answer.text


async def test_a_conflict_is_told_in_words_and_nothing_is_half_done(world: JobServerWorld, tmp_path: Path) -> None:
    job = await world.done(REPLACE)
    commit_to_main(world.repository, tmp_path / "other", "docs/start.md", "# Start\n\nA hue.\n")
    before = git(world.repository, "rev-parse", "main")
    answer = await world.press(job["prLink"], "merge")
    assert answer.status_code == 409
    assert "main has changed the same lines in docs/start.md" in answer.text
    assert git(world.repository, "rev-parse", "main") == before
    assert "<button" in (await world.client.get(job["prLink"])).text
    assert not list(world.settings.data_directory.glob("merge-*"))


async def test_a_base_that_went_on_elsewhere_merges_and_is_no_part_of_the_diff(
    world: JobServerWorld, tmp_path: Path
) -> None:
    job = await world.done(REPLACE)
    commit_to_main(world.repository, tmp_path / "other", "docs/new.md", "unrelated\n")
    assert "unrelated" not in (await world.client.get(job["prLink"])).text
    assert (await world.press(job["prLink"], "merge")).status_code == 303
    assert world.show("main", "docs/new.md") == "unrelated\n"
    assert "color" in world.show("main", "docs/start.md")


async def test_a_merge_by_hand_is_noticed(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    git(world.repository, "update-ref", "refs/heads/main", f"refs/heads/pagehand/{job['id']}")
    text = (await world.client.get(job["prLink"])).text
    assert "Merged" in text
    assert "<mark>color</mark>" in text


async def test_a_repository_with_a_working_copy_is_served_and_merged_into(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "manual", PAGES)
    async with running(repository, tmp_path / "data") as world:
        first = await world.done(f"{REPLACE} in start.md")
        (repository / "docs/start.md").write_text("not committed")
        answer = await world.press(first["prLink"], "merge")
        assert answer.status_code == 409
        assert "changes that are not committed" in answer.text
        git(repository, "checkout", "--", ".")
        assert (await world.press(first["prLink"], "merge")).status_code == 303
        assert "A color." in (repository / "docs/start.md").read_text()
        assert git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1", "http://localhost:1", "http://127.0.0.1:1"]
)
@pytest.mark.parametrize("button", ["merge", "close"])
async def test_buttons_cannot_be_pressed_from_elsewhere(world: JobServerWorld, origin: str | None, button: str) -> None:
    link = (await world.done(REPLACE))["prLink"]
    before = git(world.repository, "rev-parse", "main")
    headers = {"Origin": origin} if origin else {}
    answer = await world.client.post(f"{link}/{button}", headers=headers)
    assert answer.status_code == 403
    assert git(world.repository, "rev-parse", "main") == before
    assert "<button" in (await world.client.get(link)).text


async def test_what_people_wrote_is_escaped(world: JobServerWorld) -> None:
    nasty = '<script>alert("1")</script><img src=x onerror=alert(1)>'
    job = await world.done(f"Add a page called <b>x</b> with the text: {nasty}")
    for address in (job["prLink"], "/pulls"):
        answer = await world.client.get(address)
        assert "<script" not in answer.text
        assert "<b>" not in answer.text
        assert "<img src=x" not in answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    assert "&lt;script&gt;" in (await world.client.get(job["prLink"])).text


async def test_pages_that_are_not_there(world: JobServerWorld) -> None:
    for path in ("/pulls/1", "/pulls/0", "/pulls/x", "/pulls/99999999999", "/static/nothing.css", "/static/../x"):
        answer = await world.client.get(path)
        assert answer.status_code == 404
    assert (await world.press("/pulls/7", "merge")).status_code == 404
    assert "no pull requests yet" in (await world.client.get("/pulls")).text
    assert (await world.client.get("/")).headers["Location"] == "/pulls"


@pytest.mark.browser
@pytest.mark.enable_socket
async def test_a_person_reads_and_merges_in_a_browser(world: JobServerWorld) -> None:
    link = (await world.done(REPLACE))["prLink"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                  "--disable-background-networking", "--disable-component-update", "--disable-sync"],
        )  # fmt: skip
        page = await browser.new_page(viewport={"width": 400, "height": 800})
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        await page.goto(link)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 400
        assert await page.locator("tr.added mark").all_inner_texts() == ["color", "color"]
        assert re.fullmatch(r"rgb\(.*\)", await page.locator("body").evaluate("b => getComputedStyle(b).color"))
        await page.get_by_role("button", name="Merge").click()
        await page.get_by_text("Merged", exact=True).wait_for()
        assert page.url == link
        assert complaints == []
        await browser.close()
    assert "A color." in world.show("main", "docs/start.md")


def commit_to_main(repository: Path, copy: Path, path: str, text: str) -> None:
    git(repository, "clone", "--quiet", str(repository), str(copy))
    (copy / path).write_text(text)
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "Meanwhile")
    git(copy, "push", "--quiet", "origin", "HEAD:main")


async def test_a_huge_change_still_has_a_page(tmp_path: Path) -> None:
    pages = {f"docs/{n}.md": f"colour {'x' * 1000}\n" * 300 for n in range(5)}
    async with running(make_bare(tmp_path / "manual.git", pages), tmp_path / "data") as world:
        link = (await world.done(REPLACE))["prLink"]
        answer = await world.client.get(link, timeout=30)
        assert answer.status_code == 200
        assert len(answer.content) < 10_000_000
        assert "too many to show all of them" in answer.text
        assert (await world.press(link, "merge")).status_code == 303
