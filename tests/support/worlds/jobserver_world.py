"""A running job server with a real repository, for tests."""

import asyncio
import atexit
import contextlib
import hashlib
import os
import re
import shutil
import sqlite3
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import httpx
from support.scratch import IN_MEMORY

from bot.jobserver.repository.sample import make_sample_repository
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import OPEN
from bot.jobserver.store.database import SCHEMA, sqlite_url

KEY = "planted-key-of-the-job-server"
REVIEWER, REVIEWER_KEY = "Ada Lovelace", "planted-key-of-a-reviewer"
ADA = httpx.BasicAuth(REVIEWER, REVIEWER_KEY)
JOB = "/v2/agent/docs/job"
FILE = "/v2/agent/docs/file"
Named = dict[str, str]
"""A file of a prompt."""
WITHOUT_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of our own servers: reading all authorities' certificates takes longer than most tests."""
WAIT_S = 30.0
_OF_1_0_0 = Path(__file__).parents[2] / "jobserver" / "contract" / "data_of_1_0_0"
T = TypeVar("T")


def make_data_of_1_0_0(folder: Path, steps: int = 7) -> Path:
    """Creates the databases that 1.0.0 wrote, and returns that of the jobs. Its schema counts its steps."""
    for name in ("jobs", "pull_requests"):
        with contextlib.closing(sqlite3.connect(folder / f"{name}.sqlite3")) as connection:
            connection.executescript((_OF_1_0_0 / f"{name}.sql").read_text())
            connection.execute(f"PRAGMA user_version = {steps if name == 'jobs' else 0}")
    return folder / "jobs.sqlite3"


def git(directory: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "A. Person",
        "GIT_AUTHOR_EMAIL": "person@example.com",
        "GIT_COMMITTER_NAME": "A. Person",
        "GIT_COMMITTER_EMAIL": "person@example.com",
    }
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def make_repository(directory: Path, files: dict[str, str]) -> Path:
    """A repository with a working copy and one commit on main."""
    shutil.copytree(_template(tuple(files.items())) / "copy", directory)
    return directory


def make_bare(directory: Path, files: dict[str, str]) -> Path:
    """The same without a working copy; that is beside it."""
    make_repository(directory.with_name(f"{directory.name}-copy"), files)
    shutil.copytree(_template(tuple(files.items())) / "bare", directory)
    return directory


def push_to(repository: Path, branch: str, files: Mapping[str, bytes | None]) -> Path:
    """Pushes another person's commit, and returns their copy. None deletes a file."""
    copy = Path(tempfile.mkdtemp(dir=repository.parent))
    git(copy, "clone", "--quiet", "--branch", branch, str(repository), ".")
    for name, contents in files.items():
        if contents is None:
            (copy / name).unlink()
        else:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(contents)
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "By hand")
    git(copy, "push", "--quiet", "origin", f"HEAD:{branch}")
    return copy


def make_sample(directory: Path) -> Path:
    """The sample repository, as `make_sample_repository` makes it."""
    made = _sample()
    return Path(shutil.copytree(made, directory / made.name))


@cache
def _template(files: tuple[tuple[str, str], ...]) -> Path:
    """A repository with these files, as `copy` and as `bare`: made once, since each takes six git processes."""
    made = Path(tempfile.mkdtemp(dir=_templates()))
    copy = made / "copy"
    copy.mkdir()
    git(copy, "init", "--quiet", "--template=", "--initial-branch=main")
    for name, text in files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(text, encoding="utf-8")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "Start")
    git(copy, "clone", "--quiet", "--template=", "--bare", str(copy), str(made / "bare"))
    git(made / "bare", "remote", "remove", "origin")
    return made


def jobs_in(directory: Path) -> str:
    """Returns the URL of the database that the server has in this directory. A new one has empty tables: it is a copy,
    since making them takes ten times as long.
    """
    file = directory / "jobs.sqlite3"
    if not file.exists():
        shutil.copy(_jobs_template(), file)
    return sqlite_url(file)


def _add_tables(data: Path) -> None:
    if not data.exists():
        data.mkdir(mode=0o700, parents=True)
        jobs_in(data)


@cache
def _jobs_template() -> Path:
    file = Path(tempfile.mkdtemp(dir=_templates())) / "jobs.sqlite3"
    with ThreadPoolExecutor(1) as thread:  # a test's thread has a running loop
        thread.submit(asyncio.run, SCHEMA.migrate(sqlite_url(file))).result()
    return file


@cache
def _sample() -> Path:
    return make_sample_repository(_templates())


@cache
def _templates() -> Path:
    made = Path(tempfile.mkdtemp(dir=IN_MEMORY))
    atexit.register(shutil.rmtree, made)
    return made


async def until(check: Callable[[], Awaitable[T | None]]) -> T:
    """Returns the first answer that is neither None nor empty, within WAIT_S seconds."""
    async with asyncio.timeout(WAIT_S):
        while not (answer := await check()):  # noqa: ASYNC110 (what is awaited happens in another process)
            await asyncio.sleep(0.05)
        return answer


@dataclass
class JobServerWorld:
    """A server, its repository, and a client with the key."""

    server: JobServer
    settings: JobServerSettings
    repository: Path
    url: str
    client: httpx.AsyncClient

    async def create(self, prompt: str, files: Sequence[Named] = (), /, **headers: str) -> httpx.Response:
        return await self.client.post(JOB, json=_body(prompt, files), headers=headers)

    async def message(self, job_id: str, prompt: str, files: Sequence[Named] = (), /, **headers: str) -> httpx.Response:
        return await self.client.post(f"{JOB}/{job_id}/message", json=_body(prompt, files), headers=headers)

    async def put(self, content: bytes, *, mimetype: str = "image/png", file_id: str = "") -> httpx.Response:
        """Uploads a file; `file_id` is its digest, unless it is given."""
        path = f"{FILE}/{file_id or hashlib.sha256(content).hexdigest()}"
        return await self.client.put(path, content=content, headers={"Content-Type": mimetype})

    async def uploaded(self, name: str, content: bytes, **more: str) -> Named:
        """Uploads a file, and returns it as a prompt names it."""
        return {"id": (await self.put(content)).raise_for_status().json()["id"], "name": name, **more}

    async def job(self, job_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.client.get(f"{JOB}/{job_id}")).raise_for_status().json()
        return answer

    async def ended(self, job_id: str) -> dict[str, Any]:
        async def check() -> dict[str, Any] | None:
            job = await self.job(job_id)
            return None if job["status"] == "active" else job

        return await until(check)

    async def done(self, prompt: str, files: Sequence[Named] = ()) -> dict[str, Any]:
        """Creates a job and waits for its end."""
        created = (await self.create(prompt, files)).raise_for_status().json()
        return await self.ended(created["id"])

    async def continued(self, job_id: str, prompt: str, files: Sequence[Named] = ()) -> dict[str, Any]:
        """Sends a message and waits for the end."""
        (await self.message(job_id, prompt, files)).raise_for_status()
        return await self.ended(job_id)

    def break_table(self) -> None:
        """Removes a table that every request for a job needs. Waits for the server, but not for its event loop."""
        path = self.settings.data_directory / "jobs.sqlite3"
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("ALTER TABLE jobs RENAME TO gone")

    async def press(self, link: str, button: str) -> httpx.Response:
        """Presses a button as Ada, with the current form of the page."""
        form = hidden_fields((await self.client.get(link, auth=ADA, timeout=WAIT_S)).text)
        return await self.send(link, button, form)

    async def send(self, link: str, button: str, form: Mapping[str, str], auth: httpx.Auth = ADA) -> httpx.Response:
        headers = {"Origin": self.url}
        return await self.client.post(f"{link}/{button}", data=form, headers=headers, auth=auth, timeout=WAIT_S)

    def show(self, branch: str, path: str) -> str:
        return git(self.repository, "show", f"{branch}:{path}")

    def branches(self) -> set[str]:
        return set(git(self.repository, "for-each-ref", "--format=%(refname:short)", "refs/heads").split())

    def log(self, job_id: str) -> str:
        return stored_log(self.settings.data_directory / "jobs.sqlite3", job_id)


def stored_log(database: Path, job_id: str) -> str:
    """Returns the log of a job that has ended."""
    stored = "SELECT content FROM instructions JOIN chunks ON file = log WHERE job_id = ? ORDER BY number, position"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return b"".join(row[0] for row in connection.execute(stored, [job_id])).decode()


def _body(prompt: str, files: Sequence[Named]) -> dict[str, Any]:
    return {"prompt": prompt, **({"files": list(files)} if files else {})}


def hidden_fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


async def press_in_demo(link: str, button: str, **fields: str) -> None:
    """Sends a form of a demo's pull request page, as a visitor's browser would."""
    async with httpx.AsyncClient(verify=WITHOUT_TLS, timeout=WAIT_S) as client:
        form = hidden_fields((await client.get(link)).text) | fields
        origin = {"Origin": link.partition("/docs")[0]}
        assert (await client.post(f"{link}/{button}", data=form, headers=origin)).status_code == 303


@asynccontextmanager
async def running(
    repository: Path, data: Path, *, everybody: str = "", address: str = "", **settings: Any
) -> AsyncIterator[JobServerWorld]:
    """Starts a server; `address` is where it finds the repository, if not in its directory."""
    values: dict[str, Any] = {
        "repository": address or str(repository),
        "data_directory": data,
        "port": 0,
        "api_key": KEY,
        "allow_root": True,
        "sandbox": "none",  # so that programs in other tests write where the test looks
        "reviewers": f"{REVIEWER}: {REVIEWER_KEY}\n",
    }
    given = values | settings
    if given["allow_root"] and not given.get("database_url"):
        await asyncio.to_thread(_add_tables, data)
    configured = JobServerSettings(**({"egress": OPEN if given["sandbox"] == "none" else ()} | given))
    server = JobServer(configured, everybody=everybody)
    url = await server.start()
    headers = {"Authorization": f"Bearer {KEY}"}
    try:
        async with httpx.AsyncClient(base_url=url, headers=headers, verify=WITHOUT_TLS) as client:
            yield JobServerWorld(server, configured, repository, url, client)
    finally:
        await server.stop()


@asynccontextmanager
async def serving(directory: Path, files: dict[str, str], **settings: Any) -> AsyncIterator[JobServerWorld]:
    """Starts a server of a new repository with these files."""
    repository = await asyncio.to_thread(make_bare, directory / "served.git", files)
    async with running(repository, directory / "data", **settings) as world:
        yield world
