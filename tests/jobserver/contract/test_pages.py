"""The pull request pages: what they show, what their buttons do, who may press them, and who may read."""

import base64
import itertools
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.worlds.jobserver_world import (
    ADA,
    REVIEWER,
    REVIEWER_KEY,
    JobServerWorld,
    git,
    hidden_fields,
    make_bare,
    make_repository,
    push_to,
    running,
    serving,
)

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
        assert (answer.status_code, answer.headers["Location"]) == (303, "/docs/pulls/1")
    assert "A color." in world.show("main", "docs/start.md")
    parents = git(world.repository, "log", "-1", "--format=%P%n%s", "main").splitlines()
    assert len(parents[0].split()) == 2
    assert parents[1] == f"Merge pull request #1: {REPLACE}"
    assert "Merged-by: Ada Lovelace" in git(world.repository, "log", "-1", "--format=%b", "main")
    text = (await world.client.get(link)).text
    assert "Merged" in text
    assert MERGE_BUTTON not in text
    assert "</span>A color." in text, "a merged change stays visible"


async def test_close_leaves_the_base_unchanged_and_keeps_the_page(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    before = git(world.repository, "rev-parse", "main")
    assert (await world.press(job["prLink"], "close")).status_code == 303
    git(world.repository, "update-ref", "-d", f"refs/heads/pagehand/{job['id']}")
    assert git(world.repository, "rev-parse", "main") == before
    text = (await world.client.get(job["prLink"])).text
    assert "Closed" in text
    assert "</span>A color." in text
    answer = await world.press(job["prLink"], "merge")
    assert answer.status_code == 409
    assert "is closed" in answer.text


@pytest.mark.full
async def test_a_conflict_is_explained_and_nothing_is_half_done(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    push_to(world.repository, "main", {"docs/start.md": b"# Start\n\nA hue.\n"})
    before = git(world.repository, "rev-parse", "main")
    answer = await world.press(job["prLink"], "merge")
    assert answer.status_code == 409
    assert "main has changed the same lines in docs/start.md" in answer.text
    assert git(world.repository, "rev-parse", "main") == before
    assert MERGE_BUTTON in (await world.client.get(job["prLink"])).text


@pytest.mark.full
async def test_a_base_that_moved_elsewhere_merges_and_is_not_in_the_diff(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    push_to(world.repository, "main", {"docs/new.md": b"unrelated\n"})
    assert "unrelated" not in (await world.client.get(job["prLink"])).text
    assert (await world.press(job["prLink"], "merge")).status_code == 303
    assert world.show("main", "docs/new.md") == "unrelated\n"
    assert "color" in world.show("main", "docs/start.md")


@pytest.mark.full
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
    page = await world.client.get(link)
    policy = page.headers["Content-Security-Policy"]
    assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert "unsafe" not in policy
    for origin, button in itertools.product(ELSEWHERE, ("merge", "close")):
        headers = {"Origin": origin} if origin else {}
        answer = await world.client.post(f"{link}/{button}", data=hidden_fields(page.text), headers=headers, auth=ADA)
        assert answer.status_code == 403, (origin, button)
    assert git(world.repository, "rev-parse", "main") == before
    assert MERGE_BUTTON in (await world.client.get(link)).text


async def test_missing_pages_are_404(world: JobServerWorld) -> None:
    of_pages = (f"/docs/pulls/{number}" for number in ("1", "0", "x", "99999999999"))
    for path in (*of_pages, "/static/nothing.css", "/static/../x", "/other/pulls", "/other/pulls/1", "/pulls/1"):
        answer = await world.client.get(path, follow_redirects=True)
        assert answer.status_code == 404
    assert (await world.send("/docs/pulls/7", "merge", {})).status_code == 404
    assert "no pull requests yet" in (await world.client.get("/docs/pulls")).text
    assert (await world.client.get("/")).headers["Location"] == "/pulls"


@pytest.mark.full
async def test_the_list_has_those_that_are_open_before_the_others(world: JobServerWorld) -> None:
    opened, merged, closed = [(await world.done(f"Add a page called {n} with the text: x"))["prLink"] for n in range(3)]
    await world.press(merged, "merge")
    await world.press(closed, "close")
    text = (await world.client.get("/docs/pulls")).text
    assert len(re.findall(r'by <bdi class="person">Ada Lovelace</bdi>, <time', text)) == 2
    listed = [link.removeprefix(world.url) for link in (opened, closed, merged)]
    assert re.findall(r'class="entry-title" href="([^"]*)"', text) == listed


@pytest.mark.full
async def test_a_change_that_was_not_shown_is_not_merged(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    form = hidden_fields((await world.client.get(job["prLink"])).text)
    await world.continued(job["id"], "Add a page called More with the text: x")
    answer = await world.send(job["prLink"], "merge", form)
    assert answer.status_code == 409
    assert "has changed since you opened this page" in answer.text
    assert (await world.press(job["prLink"], "merge")).status_code == 303


PATHS = ("/docs/pulls", "/docs/pulls/1", "/docs/pulls/1/rendered", "/docs/pulls/1/after/x.png", "/docs/pulls/9")


def encoded(credentials: bytes) -> str:
    return base64.b64encode(credentials).decode()


KNOWN = encoded(f"{REVIEWER}:{REVIEWER_KEY}".encode())
NOBODY = [
    "", "Basic", "Basic :", "Basic =", "Basic \xff", f"Basic {'A' * 7000}", f"Bearer {KNOWN}", f"Basic {KNOWN}A",
    f"Basic {KNOWN[:-5]}", f"Basic {encoded(b'%s:' % REVIEWER.encode())}",
    f"Basic {encoded(b':%s' % REVIEWER_KEY.encode())}", f"Basic {encoded(b'Ben:%s' % REVIEWER_KEY.encode())}",
    f"Basic {encoded(b'%s%s' % (REVIEWER.encode(), REVIEWER_KEY.encode()))}", f"Basic {encoded(bytes(range(256)))}",
]  # fmt: skip


@pytest.mark.full
async def test_only_a_reviewer_can_merge(world: JobServerWorld) -> None:
    """A browser asks for name and key when a button is pressed; whatever is malformed belongs to nobody."""
    link = (await world.done(REPLACE))["prLink"]
    before = git(world.repository, "rev-parse", "main")
    page = (await world.client.get(link)).text
    assert MERGE_BUTTON in page
    assert "your browser asks for your name and your key" in page
    for credentials in NOBODY:
        headers = httpx.Headers({"Origin": world.url, "Authorization": credentials}, encoding="latin-1")
        answer = await world.client.post(f"{link}/merge", data=hidden_fields(page), headers=headers)
        assert answer.status_code == 401, credentials
        assert answer.headers["WWW-Authenticate"].startswith('Basic realm="'), credentials
    assert git(world.repository, "rev-parse", "main") == before
    assert (await world.press(link, "merge")).status_code == 303
    assert 'merged by <bdi class="person">Ada Lovelace</bdi>' in (await world.client.get(link)).text


async def test_a_name_is_read_in_unicode_and_without_regard_to_the_scheme_s_case(tmp_path: Path) -> None:
    async with serving(tmp_path, PAGES, reviewers=f"Zo\xeb  \u5f20: {REVIEWER_KEY}") as world:
        name = encoded(f"Zo\xeb \u5f20:{REVIEWER_KEY}".encode())
        answer = await world.client.get("/docs/pulls", headers={"Authorization": f"bAsIc {name}"})
        assert "Zo\xeb \u5f20" in answer.text


READS_THE_DRAFTS = """
import re, sys, urllib.error, urllib.request
base = re.search("http://\\S+", sys.stdin.read())[0]
for path in ("/docs/pulls", "/docs/pulls/1", "/docs/pulls/1/rendered", "/docs/pulls/1/after/x.png"):
    try:
        print(path, urllib.request.urlopen(base + path).read())
    except urllib.error.HTTPError as error:
        print(path, "is", error.code)
"""


async def test_an_agents_programs_cannot_read_the_drafts(tmp_path: Path) -> None:
    """It runs without a sandbox, beside the server: the pages ask for a key."""
    (tmp_path / "reads.py").write_text(READS_THE_DRAFTS)
    command = (sys.executable, str(tmp_path / "reads.py"))
    async with serving(tmp_path, PAGES, editor="command", command=command) as world:
        job = await world.done(f"Read {world.url}")
        assert job["details"]["summary"].splitlines() == [f"{path} is 401" for path in PATHS[:4]]


@pytest.mark.full
async def test_in_a_demo_every_visitor_is_the_same_person(tmp_path: Path) -> None:
    async with serving(tmp_path, PAGES, reviewers="", everybody="you (demo)") as world:
        link = (await world.done(REPLACE))["prLink"]
        form = hidden_fields((await world.client.get(link)).text)
        answer = await world.client.post(f"{link}/merge", data=form, headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403
        answer = await world.client.post(f"{link}/merge", data=form, headers={"Origin": world.url})
        assert answer.status_code == 303
        assert 'by <bdi class="person">you (demo)</bdi>' in (await world.client.get("/docs/pulls")).text


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"host": "0.0.0.0"}, "loopback"),  # noqa: S104 (refused)
        ({"editor": "command", "command": ("true",)}, "no agent"),
    ],
)
async def test_a_demo_listens_only_on_this_machine_and_runs_no_agent(
    tmp_path: Path, settings: dict[str, Any], refused: str
) -> None:
    """An agent could press the buttons like everybody."""
    repository = make_bare(tmp_path / "manual.git", PAGES)
    with pytest.raises(ValueError, match=refused):
        async with running(repository, tmp_path / "data", everybody="you", **settings):
            pass


async def test_private_pages_without_reviewers_are_closed_and_say_what_is_missing(tmp_path: Path) -> None:
    async with serving(tmp_path, PAGES, editor="command", command=("true",), reviewers="") as world:
        for path in PATHS:
            answer = await world.client.get(path, auth=ADA)
            assert answer.status_code == 403
            assert "PAGEHAND_JOBSERVER_REVIEWERS" in answer.text
            assert "WWW-Authenticate" not in answer.headers
