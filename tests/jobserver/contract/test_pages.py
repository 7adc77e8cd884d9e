"""The pull request pages: what they show, what their buttons do, and who may press them."""

import itertools
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.worlds.jobserver_world import ADA, JobServerWorld, git, hidden_fields, make_bare, make_repository, running

PAGES = {"docs/start.md": "# Start\n\nA colour.\n\nAnother line.\n", "docs/guides/one.md": "# One\n\nThe colour.\n"}
MERGE_BUTTON = '<button class="primary">Merge</button>'
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
    assert "Merged-by: Ada Lovelace" in git(world.repository, "log", "-1", "--format=%b", "main")
    text = (await world.client.get(link)).text
    assert "Merged" in text
    assert MERGE_BUTTON not in text
    assert "<mark>color</mark>" in text, "a merged change stays visible"


async def test_close_leaves_the_base_unchanged_and_keeps_the_page(world: JobServerWorld) -> None:
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


async def test_a_conflict_is_explained_and_nothing_is_half_done(world: JobServerWorld, tmp_path: Path) -> None:
    job = await world.done(REPLACE)
    commit_to_main(world.repository, tmp_path / "other", "docs/start.md", "# Start\n\nA hue.\n")
    before = git(world.repository, "rev-parse", "main")
    answer = await world.press(job["prLink"], "merge")
    assert answer.status_code == 409
    assert "main has changed the same lines in docs/start.md" in answer.text
    assert git(world.repository, "rev-parse", "main") == before
    assert MERGE_BUTTON in (await world.client.get(job["prLink"])).text


async def test_a_base_that_moved_elsewhere_merges_and_is_not_in_the_diff(world: JobServerWorld, tmp_path: Path) -> None:
    job = await world.done(REPLACE)
    commit_to_main(world.repository, tmp_path / "other", "docs/new.md", "unrelated\n")
    assert "unrelated" not in (await world.client.get(job["prLink"])).text
    assert (await world.press(job["prLink"], "merge")).status_code == 303
    assert world.show("main", "docs/new.md") == "unrelated\n"
    assert "color" in world.show("main", "docs/start.md")


async def test_a_manual_merge_is_noticed(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    git(world.repository, "update-ref", "refs/heads/main", f"refs/heads/pagehand/{job['id']}")
    text = (await world.client.get(job["prLink"])).text
    assert "Merged" in text
    assert "<mark>color</mark>" in text


async def test_a_repository_with_a_working_copy_is_served_and_merged_into(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "manual", PAGES)
    async with running(repository, tmp_path / "data") as world:
        first = await world.done(REPLACE)
        (repository / "docs/start.md").write_text("not committed")
        answer = await world.press(first["prLink"], "merge")
        assert answer.status_code == 409
        assert "changes that are not committed" in answer.text
        git(repository, "checkout", "--", ".")
        assert (await world.press(first["prLink"], "merge")).status_code == 303
        assert "A color." in (repository / "docs/start.md").read_text()
        assert git(repository, "status", "--porcelain") == ""


ELSEWHERE = (None, "null", "http://evil.example", "https://127.0.0.1", "http://localhost:1", "http://127.0.0.1:1")


async def test_buttons_cannot_be_pressed_from_another_site(world: JobServerWorld) -> None:
    link = (await world.done(REPLACE))["prLink"]
    before = git(world.repository, "rev-parse", "main")
    form = hidden_fields((await world.client.get(link)).text)
    for origin, button in itertools.product(ELSEWHERE, ("merge", "close")):
        headers = {"Origin": origin} if origin else {}
        answer = await world.client.post(f"{link}/{button}", data=form, headers=headers, auth=ADA)
        assert answer.status_code == 403, (origin, button)
        assert git(world.repository, "rev-parse", "main") == before, (origin, button)
        assert MERGE_BUTTON in (await world.client.get(link)).text, (origin, button)


async def test_texts_of_people_are_escaped(world: JobServerWorld) -> None:
    nasty = '<script>alert("1")</script><img src=x onerror=alert(1)>'
    job = await world.done(f"Add a page called <b>x</b> with the text: {nasty}")
    for address in (job["prLink"], "/pulls"):
        answer = await world.client.get(address)
        assert "<script" not in answer.text
        assert "<b>" not in answer.text
        assert "<img src=x" not in answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy, "no other site can have its buttons pressed"
        assert "unsafe" not in policy
    assert "&lt;script&gt;" in (await world.client.get(job["prLink"])).text


async def test_missing_pages_are_404(world: JobServerWorld) -> None:
    for path in ("/pulls/1", "/pulls/0", "/pulls/x", "/pulls/99999999999", "/static/nothing.css", "/static/../x"):
        answer = await world.client.get(path)
        assert answer.status_code == 404
    assert (await world.send("/pulls/7", "merge", {})).status_code == 404
    assert "no pull requests yet" in (await world.client.get("/pulls")).text
    assert (await world.client.get("/")).headers["Location"] == "/pulls"


def commit_to_main(repository: Path, copy: Path, path: str, text: str) -> None:
    git(repository, "clone", "--quiet", str(repository), str(copy))
    (copy / path).write_text(text)
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "Meanwhile")
    git(copy, "push", "--quiet", "origin", "HEAD:main")


async def test_the_list_is_paged_and_counts_each_state(world: JobServerWorld) -> None:
    merged, closed, opened = [(await world.done(f"Add a page called {n} with the text: x"))["prLink"] for n in range(3)]
    await world.press(merged, "merge")
    await world.press(closed, "close")
    text = (await world.client.get("/pulls")).text
    assert [int(n) for n in re.findall(r'<span class="quiet">(\d+)</span></a>', text)] == [3, 1, 1, 1]
    assert len(re.findall(r'by <bdi class="person">Ada Lovelace</bdi>, <time', text)) == 2
    text = (await world.client.get("/pulls?state=open&page=9")).text
    assert re.findall(r'class="entry-title" href="([^"]*)"', text) == [opened.removeprefix(world.url)]
    assert (await world.client.get("/pulls?state=nonsense&page=x")).status_code == 200


async def test_a_change_that_was_not_shown_is_not_merged(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    form = hidden_fields((await world.client.get(job["prLink"])).text)
    await world.message(job["id"], "Add a page called More with the text: x")
    await world.ended(job["id"])
    answer = await world.send(job["prLink"], "merge", form)
    assert answer.status_code == 409
    assert "has changed since you opened this page" in answer.text
    assert (await world.press(job["prLink"], "merge")).status_code == 303
