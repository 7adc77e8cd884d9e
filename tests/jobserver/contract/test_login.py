"""Who may merge and close, and who may read."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import httpx
import pytest
from support.worlds.jobserver_world import (
    REVIEWER_KEY,
    WITHOUT_TLS,
    JobServerWorld,
    git,
    hidden_fields,
    make_bare,
    running,
)

from bot.jobserver.pages.login import KeyOwners, Sessions
from bot.jobserver.settings.pages import reviewers_in

PAGES = {"docs/start.md": "# Start\n\nA colour.\n"}
REPLACE = 'Replace "colour" with "color"'
MERGE_BUTTON = '<button class="primary">Merge</button>'


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def strangers(world: JobServerWorld) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=world.url, verify=WITHOUT_TLS)


async def test_only_a_logged_in_reviewer_can_merge(tmp_path: Path) -> None:
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world:
        link = (await world.done(REPLACE))["prLink"]
        before = git(world.repository, "rev-parse", "main")
        page = (await world.client.get(link)).text
        assert MERGE_BUTTON not in page
        assert "/login?next=/pulls/1" in page
        wrong = await world.log_in("planted-key-of-nobody-at-all")
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
        assert "nobody&#39;s key" in wrong.text
        for form in ({}, {"token": "x"}):
            answer = await world.client.post(f"{link}/merge", data=form, headers={"Origin": world.url})
            assert answer.status_code == 403
        assert (await world.log_in()).headers["Location"] == "/pulls"
        answer = await world.client.post(f"{link}/merge", data={"token": "x"}, headers={"Origin": world.url})
        assert answer.status_code == 403, "the token is the session's own"
        assert git(world.repository, "rev-parse", "main") == before
        assert (await world.press(link, "merge")).status_code == 303
        async with strangers(world) as stranger:
            assert 'merged by <bdi class="person">Ada Lovelace</bdi>' in (await stranger.get(link)).text


async def test_a_session_ends_at_logout_and_its_cookie_is_bound_to_this_server(tmp_path: Path) -> None:
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world:
        cookie = (await world.log_in()).headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        kept = dict(world.client.cookies)
        form = hidden_fields((await world.client.get("/pulls")).text)
        assert (await world.client.post("/logout", data=form)).status_code == 403, "not from this page"
        out = await world.client.post("/logout", data=form, headers={"Origin": world.url})
        assert out.status_code == 303
        async with httpx.AsyncClient(base_url=world.url, cookies=kept, verify=WITHOUT_TLS) as stolen:
            assert "Ada" not in (await stolen.get("/pulls")).text


async def test_over_https_the_cookie_is_secure(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", public_url="https://docs-jobs.example.com") as world:
        assert "Secure" in (await world.log_in()).headers["Set-Cookie"]


async def test_a_login_redirects_only_within_the_site(tmp_path: Path) -> None:
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world:
        for target in ("https://evil.example", "//evil.example", "/pulls/1/merge", "/pulls\n", "", "/pulls/1?x"):
            form = {"key": REVIEWER_KEY, "next": target}
            answer = await world.client.post("/login", data=form, headers={"Origin": world.url})
            assert answer.headers["Location"] == "/pulls", target
        answer = await world.client.get("/login", params={"next": "/pulls/1/rendered"})
        assert answer.headers["Location"].endswith("/1/rendered")


async def test_guessing_keys_locks_nobody_out(tmp_path: Path) -> None:
    """A hundred and twenty concurrent wrong keys from the reviewer's own address: the reviewer still gets in."""
    async with (
        running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world,
        strangers(world) as other,
    ):
        wrong = [other.post("/login", data={"key": f"planted-{n}"}, headers={"Origin": world.url}) for n in range(120)]
        attack = asyncio.gather(*wrong)
        await asyncio.sleep(0)
        right = await world.log_in()
        assert (right.status_code, right.headers["Location"]) == (303, "/pulls")
        assert {answer.status_code for answer in await attack} == {403}


async def test_a_key_posted_from_another_site_is_not_checked(tmp_path: Path) -> None:
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world:
        elsewhere = {"Origin": "http://evil.example"}
        answer = await world.client.post("/login", data={"key": REVIEWER_KEY}, headers=elsewhere)
        assert answer.status_code == 403


@pytest.mark.parametrize("trusted", ["", "127.0.0.1"])
async def test_the_key_counts_whatever_forwarded_headers_say(tmp_path: Path, trusted: str) -> None:
    said = [
        "203.0.113.9",
        "unknown",
        "2001:db8::1",
        ",".join(["127.0.0.1"] * 800),
        "%00" * 2000,
        "[::1",
        ", ,",
        "9" * 8000,
    ]
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", trusted_proxies=trusted) as world, strangers(world) as stranger:

        async def statuses(key: str) -> list[int]:
            headers = [{"Origin": world.url, "X-Forwarded-For": header} for header in said]
            sent = (stranger.post("/login", data={"key": key}, headers=each) for each in headers)
            return [answer.status_code for answer in await asyncio.gather(*sent)]

        assert await statuses(REVIEWER_KEY) == [303] * len(said)
        assert await statuses("nobody's") == [403] * len(said)


READS_THE_DRAFTS = """
import re, sys, urllib.request
base = re.search("http://\\S+", sys.stdin.read())[0]
for path in ("/pulls", "/pulls/1", "/pulls/1/rendered", "/pulls/1/after/x.png"):
    with urllib.request.urlopen(base + path) as page:
        print(path, "is", re.search("<h1>(.*?)</h1>", page.read().decode())[1])
"""


async def test_an_agents_programs_cannot_read_the_drafts(tmp_path: Path) -> None:
    """It runs without a sandbox, beside the server: the pages' own login keeps it out."""
    (tmp_path / "reads.py").write_text(READS_THE_DRAFTS)
    command = (sys.executable, str(tmp_path / "reads.py"))
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", editor="command", command=command) as world:
        job = await world.done(f"Read {world.url}")
        assert job["details"]["summary"].splitlines() == [
            f"{path} is Log in" for path in ("/pulls", "/pulls/1", "/pulls/1/rendered", "/pulls/1/after/x.png")
        ]


async def test_without_logins_the_page_says_what_is_missing(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", editor="command", command=("true",), reviewers="") as world:
        page = await world.client.get("/pulls", follow_redirects=True)
        assert "PAGEHAND_JOBSERVER_REVIEWERS" in page.text


async def test_without_reviewers_nobody_can_merge_and_the_page_says_why(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", reviewers="") as world:
        link = (await world.done(REPLACE))["prLink"]
        page = (await world.client.get(link)).text
        assert MERGE_BUTTON not in page
        assert "PAGEHAND_JOBSERVER_REVIEWERS" in page
        assert "Log in" not in page
        assert (await world.log_in("")).status_code == 403


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
        for path in ("/pulls", "/pulls/1", "/pulls/1/rendered", "/pulls/1/after/x.png", "/pulls/9"):
            answer = await world.client.get(path)
            assert answer.status_code == 303
            assert answer.headers["Location"].startswith("/login?next=/pulls")
        await world.log_in()
        assert (await world.client.get("/pulls/1")).status_code == 200


MALFORMED = (
    ("application/x-www-form-urlencoded", b"key=\xff%ff\x00&key=%"),
    ("application/x-www-form-urlencoded; charset=nonsense", b"key=x"),
    ("application/x-www-form-urlencoded", b"key=x&" * 50_000),
    ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
    ("multipart/form-data", b"--"),
    ("text/plain", b"key=" + REVIEWER_KEY.encode()),
    ("nonsense", b""),
)


async def test_a_malformed_form_belongs_to_nobody(tmp_path: Path) -> None:
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data") as world:
        for (kind, body), path in product(MALFORMED, ("/login", "/logout", "/pulls/1/merge")):
            headers = {"Origin": world.url, "Content-Type": kind}
            answer = await world.client.post(path, content=body, headers=headers)
            assert answer.status_code == 403, (kind, path)


def test_a_key_belongs_to_one_person() -> None:
    owners = KeyOwners(reviewers_in(f"Ada: {'a' * 16}\nBen: {'b' * 16}"))
    found = [owners.find(key) for key in ("a" * 16, f" {'b' * 16}\n", "a", "", "\udcff")]
    assert [owner and owner.name for owner in found] == ["Ada", "Ben", None, None, None]


def test_sessions_expire_and_are_bounded() -> None:
    clock = Clock()
    owners = KeyOwners(reviewers_in(f"Ada: {'a' * 16}"))
    ada = owners.find("a" * 16)
    assert ada
    sessions = Sessions(owners, lasting=timedelta(hours=1), now=clock)
    first = sessions.open(ada)
    assert sessions.find(first)
    clock.now += timedelta(hours=1)
    assert sessions.find(first) is None
    cookies = [sessions.open(ada) for _ in range(1001)]
    assert [bool(sessions.find(cookie)) for cookie in cookies] == [False] + [True] * 1000
