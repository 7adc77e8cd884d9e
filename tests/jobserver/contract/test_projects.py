"""Many projects in one job server: what each has of its own, and what happens when their file changes."""

import asyncio
import contextlib
import hashlib
import json
import logging
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.worlds.jobserver_world import (
    ADA,
    KEY,
    REVIEWER,
    REVIEWER_KEY,
    WAIT_S,
    WITHOUT_TLS,
    git,
    make_bare,
    make_data_of_1_0_0,
    until,
)

from bot.errors import ConfigError
from bot.jobserver.errors import JobServerError
from bot.jobserver.server import JobServer
from bot.jobserver.settings import PREFIX
from bot.jobserver.settings.projects import Projects

SITE_KEY = "planted-key-of-the-site"
BEN_KEY = "planted-key-of-ben-who-reviews"
METRICS = "planted-token-of-metrics"
DOCS = {"api_key": KEY, "reviewers": f"{REVIEWER}: {REVIEWER_KEY}", "rate_limit": 5}
SITE = {"api_key": SITE_KEY, "reviewers": f"Ben: {BEN_KEY}"}
BEN = httpx.BasicAuth("Ben", BEN_KEY)
REPLACE = 'Replace "colour" with "color"'


class ManyProjects:
    """A server of the projects in a file, a repository for each, and a client without a key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "projects.toml"
        self.url = ""
        self.client = httpx.AsyncClient(verify=WITHOUT_TLS, timeout=WAIT_S)
        files = {"a.md": "A colour.\n"}
        self.repositories = {name: make_bare(folder / f"{name}.git", files) for name in ("docs", "site")}

    def write(self, **tables: Mapping[str, Any]) -> None:
        lines = []
        for name, table in tables.items():
            lines.append(f"[projects.{name}]")
            given = {"repository": str(self.repositories[name]), **table}
            lines += [f"{setting} = {json.dumps(value)}" for setting, value in given.items()]
        self.file.write_text("\n".join(lines))

    def settings(self) -> Projects:
        given = {"CONFIG": str(self.file), "DATA_DIRECTORY": str(self.folder / "data"), "PORT": "0"}
        more = {"SANDBOX": "none", "EGRESS": "open", "ALLOW_ROOT": "true", "METRICS_TOKEN": METRICS}
        return Projects.read({f"{PREFIX}{name}": value for name, value in (given | more).items()}, [])

    async def call(self, key: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"} | more.pop("headers", {})
        return await self.client.request(method, f"{self.url}/v2/agent/{path}", headers=headers, **more)

    async def create(self, project: str, key: str, prompt: str = REPLACE, **headers: str) -> httpx.Response:
        return await self.call(key, "POST", f"{project}/job", json={"prompt": prompt}, headers=headers)

    async def ended(self, project: str, key: str, job_id: str) -> dict[str, Any]:
        async def check() -> dict[str, Any] | None:
            job: dict[str, Any] = (await self.call(key, "GET", f"{project}/job/{job_id}")).raise_for_status().json()
            return None if job["status"] == "active" else job

        return await until(check)

    async def done(self, project: str, key: str) -> dict[str, Any]:
        return await self.ended(project, key, (await self.create(project, key)).raise_for_status().json()["id"])

    async def health(self) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.client.get(f"{self.url}/health")).json()
        return answer

    async def press(self, address: str, button: str, auth: httpx.Auth, **form: str) -> httpx.Response:
        headers = {"Origin": self.url}
        return await self.client.post(f"{self.url}{address}/{button}", data=form, headers=headers, auth=auth)


@asynccontextmanager
async def started(many: ManyProjects) -> AsyncIterator[ManyProjects]:
    server = JobServer(many.settings(), look_pause=0.05)
    try:
        many.url = await server.start()
        yield many
    finally:
        await server.stop()
        await many.client.aclose()


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[ManyProjects]:
    many = ManyProjects(tmp_path)
    many.write(docs=DOCS, site=SITE)
    async with started(many):
        yield many


@pytest.mark.promise("secrets")
async def test_a_key_opens_its_own_project_only(two: ManyProjects) -> None:
    job = (await two.create("docs", KEY)).json()["id"]
    await two.ended("docs", KEY, job)
    for path in (f"job/{job}", f"job/{job}/pull-request"):
        for project, key, status in (
            ("docs", SITE_KEY, 404), ("site", SITE_KEY, 404), ("site", KEY, 404), ("unknown", KEY, 404),
            ("docs", "wrong", 401), ("unknown", "wrong", 401), ("unknown", "Basic", 401), ("docs", KEY, 200),
        ):  # fmt: skip
            assert (await two.call(key, "GET", f"{project}/{path}")).status_code == status, (project, key)
    for action in ("message", "cancel", "discard"):
        answer = await two.call(SITE_KEY, "POST", f"site/job/{job}/{action}", json={"prompt": "x"})
        assert answer.status_code == 404, action


async def test_idempotency_keys_limits_and_files_are_a_projects_own(two: ManyProjects) -> None:
    for _ in range(2):
        created = [
            (await two.create(project, key, **{"Idempotency-Key": "k-1"})).json()["id"]
            for project, key in (("docs", KEY), ("site", SITE_KEY))
        ]
        assert len(set(created)) == 2
    content = b"the project's own"
    digest = hashlib.sha256(content).hexdigest()
    assert (await two.call(KEY, "PUT", f"docs/file/{digest}", content=content)).status_code == 200
    body = {"prompt": "What can you do?", "files": [{"id": digest, "name": "a.txt"}]}
    told = await two.call(SITE_KEY, "POST", "site/job", json=body)
    assert (told.status_code, "has not been uploaded" in told.json()["error"]) == (400, True)
    assert (await two.call(KEY, "POST", "docs/job", json=body)).status_code == 201
    statuses = [(await two.create("docs", KEY)).status_code for _ in range(4)]
    assert statuses == [201, 201, 201, 429]
    assert (await two.create("site", SITE_KEY)).status_code == 201


async def test_pages_are_a_projects_own(two: ManyProjects) -> None:
    link = (await two.done("docs", KEY))["prLink"]
    other = (await two.done("site", SITE_KEY))["prLink"]
    assert (link, other) == (f"{two.url}/docs/pulls/1", f"{two.url}/site/pulls/2"), "numbers are the server's"
    for page, status in (("/docs/pulls/1", 200), ("/site/pulls/1", 404), ("/docs/pulls/2", 404), ("/none/pulls", 404)):
        for view in ("", "/rendered") if "1" in page or "2" in page else ("",):
            assert (await two.client.get(f"{two.url}{page}{view}")).status_code == status, page
    for project, number in (("docs", 1), ("site", 2)):
        page = (await two.client.get(f"{two.url}/{project}/pulls")).text
        assert [f'"/{project}/pulls/{each}"' in page for each in (1, 2)] == [number == 1, number == 2]
    head = head_of_change(two.repositories["site"])
    for auth, status in ((ADA, 401), (BEN, 303)):
        answer = await two.press("/site/pulls/2", "review", auth, head=head, outcome="approved")
        assert answer.status_code == status
    assert (await two.press("/docs/pulls/1", "merge", BEN)).status_code == 401
    assert (await two.press("/docs/pulls/2", "merge", ADA, head=head)).status_code == 404
    refused = [await two.press(page, "merge", httpx.BasicAuth("", "")) for page in ("/docs/pulls/1", "/site/pulls/2")]
    realms = {answer.headers["WWW-Authenticate"] for answer in refused}
    assert len(realms) == 2, "so that a browser sends no other project's key"


def head_of_change(repository: Path) -> str:
    return git(repository, "for-each-ref", "--format=%(objectname)", "refs/heads/pagehand").strip()


async def test_addresses_without_a_project_lead_to_its_page(two: ManyProjects) -> None:
    await two.done("docs", KEY)
    head = head_of_change(two.repositories["docs"])
    for path in ("/pulls/1", "/pulls/1/rendered?page=1", "/pulls/1/after/a%20b.png"):
        answer = await two.client.get(two.url + path)
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/docs{path}")
    form = {"head": head, "name": "build", "outcome": "passed"}
    assert (await two.press("/pulls/1", "check", ADA, **form)).headers["Location"] == "/docs/pulls/1"
    assert (await two.press("/pulls/1", "check", BEN, **form)).status_code == 401
    assert (await two.press("/pulls/9", "check", ADA, **form)).status_code == 404
    several = await two.client.get(f"{two.url}/pulls")
    assert (several.status_code, "several projects" in several.text) == (404, True)
    assert "All pull requests" not in several.text, "a link that leads back to this page"
    two.write(docs=DOCS)
    await until(lambda: serves(two, "docs"))
    assert (await two.client.get(f"{two.url}/pulls")).headers["Location"] == "/docs/pulls"


@pytest.mark.promise("secrets")
async def test_who_may_not_read_a_page_does_not_learn_whose_it_is(tmp_path: Path) -> None:
    """The redirect named the project of each pull request, and so which there are, to anybody."""
    many = ManyProjects(tmp_path)
    many.write(docs=DOCS, site=SITE | {"private_pages": True})
    async with started(many):
        await many.done("docs", KEY)
        await many.done("site", SITE_KEY)
        told = set()
        for number in ("2", "9"):
            for auth in (None, ADA):
                answers = (
                    await many.client.get(f"{many.url}/pulls/{number}", auth=auth),
                    await many.press(f"/pulls/{number}", "merge", auth or httpx.BasicAuth("", "")),
                )
                told |= {(each.status_code, each.headers["WWW-Authenticate"], each.text) for each in answers}
        assert [(status, "site" in words + realm) for status, realm, words in told] == [(401, False)]
        for number, auth, status in (("1", None, 302), ("2", BEN, 302), ("9", BEN, 404)):
            assert (await many.client.get(f"{many.url}/pulls/{number}", auth=auth)).status_code == status
        many.write(site=SITE | {"private_pages": True})
        await until(lambda: serves(many, "site"))
        for number in ("1", "2", "9"):
            answer = await many.client.get(f"{many.url}/pulls/{number}")
            assert answer.headers["Location"] == f"/site/pulls/{number}", "there is only one"


async def test_where_nobody_may_read_no_browser_asks_for_a_key(tmp_path: Path) -> None:
    many = ManyProjects(tmp_path)
    many.write(docs=DOCS, site={"api_key": SITE_KEY, "checks": "git --version"})
    async with started(many):
        await many.done("site", SITE_KEY)
        for page in ("/site/pulls/1", "/pulls/1", "/pulls/9"):
            answer = await many.client.get(f"{many.url}{page}")
            assert (answer.status_code, "there are none yet" in answer.text) == (403, True), page


async def serves(many: ManyProjects, *names: str) -> bool:
    return set((await many.health())["projects"]) == set(names)


async def test_metrics_tell_projects_apart(two: ManyProjects) -> None:
    await two.done("docs", KEY)
    page = (await two.client.get(f"{two.url}/metrics", headers={"Authorization": f"Bearer {METRICS}"})).text
    for project, count in (("docs", 1), ("site", 0)):
        assert f'pagehand_jobserver_runs_total{{agent="builtin",outcome="done",project="{project}"}} {count}.0' in page
        assert f'pagehand_jobserver_queued_seconds{{project="{project}"}} 0.0' in page


async def test_a_changed_file_is_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    many = ManyProjects(tmp_path)
    many.write(docs=DOCS)
    async with started(many):
        assert (await many.create("site", SITE_KEY)).status_code == 401
        many.write(docs=DOCS, site=SITE)
        await until(lambda: serves(many, "docs", "site"))
        assert (await many.done("site", SITE_KEY))["status"] == "completed"
        many.write(docs=DOCS | {"api_key": "planted-key-that-is-new"}, site=SITE)

        async def is_new() -> bool:
            return (await many.create("docs", "planted-key-that-is-new")).status_code == 201

        await until(is_new)
        assert (await many.create("docs", KEY)).status_code == 401
        many.file.write_text(many.file.read_text().replace("rate_limit", "rate_limits"))

        async def is_told() -> bool:  # a file that is half written may be told of before
            return "project docs: rate_limits is unknown: is rate_limit meant?" in caplog.text

        await until(is_told)
        assert await is_new(), "what is not valid changes nothing"
        health = await many.health()
        assert ("site" in health["projects"], bool(health["problems"])) == (True, True)
        many.write(docs=DOCS, site=SITE)
        await until(lambda: is_well(many))
    assert not [key for key in (KEY, SITE_KEY, "planted-key-that-is-new") if key in caplog.text]


async def is_well(many: ManyProjects) -> bool:
    return not (await many.health())["problems"]


async def test_a_key_that_two_projects_come_to_have_opens_neither_until_it_is_replaced(tmp_path: Path) -> None:
    many = ManyProjects(tmp_path)
    file = tmp_path / "site-key"
    file.write_text(SITE_KEY)
    many.write(docs=DOCS, site={"api_key_file": str(file)})
    async with started(many):
        assert (await many.create("site", SITE_KEY)).status_code == 201
        file.write_text(KEY)

        async def is_told() -> bool:
            problems: list[str] = (await many.health())["problems"]
            return problems == ["The file of the projects is not valid as it is now, and not in use."]

        await until(is_told)
        assert [(await many.create(name, KEY)).status_code for name in ("docs", "site")] == [401, 401]
        file.write_text(SITE_KEY)
        await until(lambda: is_well(many))
        assert [(await many.create("docs", KEY)).status_code, (await many.create("site", KEY)).status_code] == [
            201,
            404,
        ]


WAITS = """
import pathlib, sys, time
while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.02)
pathlib.Path("b.md").write_text("B.")
"""


async def test_a_removed_project_ends_what_runs_and_keeps_what_waits(tmp_path: Path) -> None:
    many, go_on = ManyProjects(tmp_path), tmp_path / "go-on"
    docs = DOCS | {"editor": "command", "command": json.dumps([sys.executable, "-c", WAITS, str(go_on)])}
    many.write(docs=docs, site=SITE)
    async with started(many):
        job = (await many.create("docs", KEY)).json()["id"]
        await until(lambda: logged(many, job))
        told = await many.call(KEY, "POST", f"docs/job/{job}/message", json={"prompt": "Once more"})
        assert told.status_code == 200
        many.write(site=SITE)
        await until(lambda: serves(many, "site"))
        assert (await many.create("docs", KEY)).status_code == 401
        assert (await many.done("site", SITE_KEY))["status"] == "completed", "others go on"
        assert (await many.health())["problems"] == [
            "Project docs is not served any more, and 1 of its instructions wait."
        ]
        go_on.touch()
        await until(lambda: pushed(many))
        many.write(docs=docs, site=SITE)
        await until(lambda: serves(many, "docs", "site"))
        ended = await many.ended("docs", KEY, job)
        assert (ended["status"], await is_well(many)) == ("completed", True)


async def test_what_runs_ends_with_the_tools_that_it_began_with(tmp_path: Path) -> None:
    many, go_on = ManyProjects(tmp_path), tmp_path / "go-on"
    command = json.dumps([sys.executable, "-c", WAITS, str(go_on)])
    many.write(docs=DOCS | {"editor": "command", "command": command})
    async with started(many):
        job = (await many.create("docs", KEY)).json()["id"]
        await until(lambda: logged(many, job))
        many.write(docs=DOCS | {"rate_limit": 1})

        async def is_limited() -> bool:
            told = await many.call(KEY, "POST", f"docs/job/{job}/message", json={"prompt": "What can you do?"})
            return told.status_code == 429

        await until(is_limited)
        go_on.touch()
        ended = await many.ended("docs", KEY, job)
    assert git(many.repositories["docs"], "show", f"pagehand/{job}:b.md") == "B."
    assert "four things" in ended["details"]["reason"], "what came before the change was done by the new editor"


async def logged(many: ManyProjects, job: str) -> bool:
    return (many.folder / "data" / "logs" / f"{job}.log").exists()


async def pushed(many: ManyProjects) -> bool:
    return bool(head_of_change(many.repositories["docs"]))


async def test_a_project_whose_repository_is_away_keeps_no_other_from_work(tmp_path: Path) -> None:
    many = ManyProjects(tmp_path)
    many.write(docs=DOCS, site=SITE | {"repository": str(tmp_path / "away.git")})
    async with started(many):
        assert (await many.done("docs", KEY))["status"] == "completed"
        assert (await many.health())["problems"] == ["Project site cannot be served as its settings are now."]
    many.client = httpx.AsyncClient()
    many.write(site=SITE | {"repository": str(tmp_path / "away.git")})
    with pytest.raises(JobServerError, match="cannot be used"):
        async with started(many):
            pass


async def test_a_host_that_does_not_answer_delays_no_change(two: ManyProjects) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(WAIT_S)
        away = SITE | {"repository": f"https://127.0.0.1:{silent.getsockname()[1]}/site.git"}
        two.write(docs=DOCS, site=away)
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            two.write(docs=DOCS | {"api_key": "planted-key-that-is-new"}, site=away)

            async def is_refused() -> bool:
                return (await two.create("docs", KEY)).status_code == 401

            await until(is_refused)


async def test_a_key_of_another_project_is_not_pushed(tmp_path: Path) -> None:
    many, writes = ManyProjects(tmp_path), f"import pathlib; pathlib.Path('b.md').write_text('{SITE_KEY}')"
    many.write(docs=DOCS | {"editor": "command", "command": json.dumps([sys.executable, "-c", writes])}, site=SITE)
    async with started(many):
        job = await many.done("docs", KEY)
    assert (job["status"], "a key of this job server" in (job["details"]["reason"] or "")) == ("failed", True)


@pytest.mark.promise("upgrades")
async def test_the_data_of_1_0_0_is_its_projects(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    many, data = ManyProjects(tmp_path), tmp_path / "data"
    data.mkdir()
    make_data_of_1_0_0(data)
    git(data, "clone", "--quiet", "--bare", str(many.repositories["docs"]), "mirror.git")
    (data / "copies").symlink_to(tmp_path)
    many.write(site=SITE)
    with pytest.raises(JobServerError, match="of a project docs, which is not served"):
        await JobServer(many.settings()).start()
    with contextlib.closing(sqlite3.connect(data / "jobs.sqlite3")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (7,), "1.0.0 can still read it"
    assert all((data / name).exists() for name in ("mirror.git", "pull_requests.sqlite3"))
    many.write(site=SITE, docs=DOCS)
    async with started(many):
        assert f"project docs's now: to go back to 1.0.0, restore your copy of {data}" in caplog.text
        assert (data / "mirrors" / "docs.git" / "HEAD").exists()
        assert not [name for name in ("mirror.git", "copies", "pull_requests.sqlite3") if (data / name).exists()]
        assert (await many.client.get(f"{many.url}/pulls/2")).headers["Location"] == "/docs/pulls/2"
        assert "/docs/pulls/2" in (await many.client.get(f"{many.url}/docs/pulls")).text
        job = (await many.call(KEY, "GET", "docs/job/0000000000000001")).json()
        assert job["prLink"] == "http://x/docs/pulls/1"
    with contextlib.closing(sqlite3.connect(data / "jobs.sqlite3")) as connection:
        tables = ("spending", "old_branches", "local_pull_requests", "uploads", "attachments")
        owners = " UNION ".join(f"SELECT project_id FROM {table}" for table in tables)  # noqa: S608
        assert connection.execute(owners).fetchall() == [("docs",)]


def test_a_file_that_is_not_valid_stops_the_start(tmp_path: Path) -> None:
    many = ManyProjects(tmp_path)
    many.write(docs=DOCS, site=SITE | {"api_key": KEY})
    with pytest.raises(ConfigError, match="projects docs and site have the same api_key"):
        many.settings()
