"""Who may merge and close, and who may read."""

import base64
import sys
from pathlib import Path

import httpx
import pytest
from support.worlds.jobserver_world import (
    ADA,
    REVIEWER,
    REVIEWER_KEY,
    git,
    hidden_fields,
    make_bare,
    running,
)

PAGES = {"docs/start.md": "# Start\n\nA colour.\n"}
REPLACE = 'Replace "colour" with "color"'
MERGE_BUTTON = '<button class="primary">Merge</button>'
PATHS = ("/pulls", "/pulls/1", "/pulls/1/rendered", "/pulls/1/after/x.png", "/pulls/9")


def encoded(credentials: bytes) -> str:
    return base64.b64encode(credentials).decode()


KNOWN = encoded(f"{REVIEWER}:{REVIEWER_KEY}".encode())
NOBODY = [
    "", "Basic", "Basic :", "Basic =", "Basic \xff", f"Basic {'A' * 7000}", f"Bearer {KNOWN}", f"Basic {KNOWN}A",
    f"Basic {KNOWN[:-5]}", f"Basic {encoded(b'%s:' % REVIEWER.encode())}",
    f"Basic {encoded(b':%s' % REVIEWER_KEY.encode())}", f"Basic {encoded(b'Ben:%s' % REVIEWER_KEY.encode())}",
    f"Basic {encoded(b'%s%s' % (REVIEWER.encode(), REVIEWER_KEY.encode()))}", f"Basic {encoded(bytes(range(256)))}",
]  # fmt: skip


async def test_only_a_reviewer_can_merge(tmp_path: Path) -> None:
    """A browser asks for name and key when a button is pressed; whatever is malformed belongs to nobody."""
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world:
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
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", reviewers=f"Zo\xeb  \u5f20: {REVIEWER_KEY}") as world:
        name = encoded(f"Zo\xeb \u5f20:{REVIEWER_KEY}".encode())
        answer = await world.client.get("/pulls", headers={"Authorization": f"bAsIc {name}"})
        assert "Zo\xeb \u5f20" in answer.text


async def test_a_short_key_of_1_0_0_reads_and_is_told_how_it_is_replaced(tmp_path: Path) -> None:
    repository, short = make_bare(tmp_path / "manual.git", PAGES), httpx.BasicAuth("Ben", "sixteen-of-1.0.0")
    reviewers = f"Ben: sixteen-of-1.0.0\n{REVIEWER}: {REVIEWER_KEY}"
    async with running(repository, tmp_path / "data", reviewers=reviewers, private_pages=True) as world:
        link = (await world.done(REPLACE))["prLink"]
        form = hidden_fields((await world.client.get(link, auth=short)).raise_for_status().text)
        answer = await world.send(link, "merge", form, auth=short)
        assert answer.status_code == 403
        assert "for a new one of at least 22 characters (openssl rand -hex 24)" in answer.text
        assert (await world.press(link, "close")).status_code == 303


READS_THE_DRAFTS = """
import re, sys, urllib.error, urllib.request
base = re.search("http://\\S+", sys.stdin.read())[0]
for path in ("/pulls", "/pulls/1", "/pulls/1/rendered", "/pulls/1/after/x.png"):
    try:
        print(path, urllib.request.urlopen(base + path).read())
    except urllib.error.HTTPError as error:
        print(path, "is", error.code)
"""


async def test_an_agents_programs_cannot_read_the_drafts(tmp_path: Path) -> None:
    """It runs without a sandbox, beside the server: the pages ask for a key."""
    (tmp_path / "reads.py").write_text(READS_THE_DRAFTS)
    command = (sys.executable, str(tmp_path / "reads.py"))
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", editor="command", command=command) as world:
        job = await world.done(f"Read {world.url}")
        assert job["details"]["summary"].splitlines() == [
            f"{path} is 401" for path in ("/pulls", "/pulls/1", "/pulls/1/rendered", "/pulls/1/after/x.png")
        ]


async def test_without_reviewers_nobody_can_merge_and_the_page_says_why(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", reviewers="") as world:
        link = (await world.done(REPLACE))["prLink"]
        page = (await world.client.get(link)).text
        assert MERGE_BUTTON not in page
        assert "PAGEHAND_JOBSERVER_REVIEWERS" in page
        assert (await world.send(link, "merge", {})).status_code == 403


async def test_in_a_demo_every_visitor_is_the_same_person(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", reviewers="", everybody="you (demo)") as world:
        link = (await world.done(REPLACE))["prLink"]
        form = hidden_fields((await world.client.get(link)).text)
        answer = await world.client.post(f"{link}/merge", data=form, headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403
        answer = await world.client.post(f"{link}/merge", data=form, headers={"Origin": world.url})
        assert answer.status_code == 303
        assert 'by <bdi class="person">you (demo)</bdi>' in (await world.client.get("/pulls")).text


async def test_a_demo_listens_only_on_this_machine(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "manual.git", PAGES)
    with pytest.raises(ValueError, match="loopback"):
        async with running(repository, tmp_path / "data", everybody="you", host="0.0.0.0"):  # noqa: S104 (refused)
            pass


async def test_a_demo_runs_no_agent(tmp_path: Path) -> None:
    """It could press the buttons like everybody."""
    repository = make_bare(tmp_path / "manual.git", PAGES)
    with pytest.raises(ValueError, match="no agent"):
        async with running(repository, tmp_path / "data", everybody="you", editor="command", command=("true",)):
            pass


async def test_private_pages_are_for_reviewers(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", private_pages=True) as world:
        await world.done(REPLACE)
        for path in PATHS:
            assert (await world.client.get(path)).status_code == 401
            assert (await world.client.get(path, auth=("Ada", REVIEWER_KEY))).status_code == 401
        assert (await world.client.get("/pulls/1", auth=ADA)).status_code == 200


async def test_private_pages_without_reviewers_are_closed_and_say_what_is_missing(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", editor="command", command=("true",), reviewers="") as world:
        for path in PATHS:
            answer = await world.client.get(path, auth=ADA)
            assert answer.status_code == 403
            assert "PAGEHAND_JOBSERVER_REVIEWERS" in answer.text
            assert "WWW-Authenticate" not in answer.headers
