"""Checks that this machine, the repository and GitHub meet the needs of every job."""

import asyncio
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from bot.errors import ConfigError, StoreError
from bot.jobserver.data_directory import find_database, not_usable, owner_of_1_0_0, require_own
from bot.jobserver.egress.proxy import egress_for
from bot.jobserver.errors import CodeHostError, GitError, JobServerError
from bot.jobserver.findings import SetupFinding
from bot.jobserver.pull_requests.github.api import OPEN, READ_CHECKS, READ_STATUSES, Call, Purpose, RefusedError
from bot.jobserver.pull_requests.github.github_pull_requests import GitHubConnection, connect
from bot.jobserver.pull_requests.github.repository_api import RepositoryApi
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.mirror import find_base
from bot.jobserver.sandbox.choice import own_user, require_ordinary_user
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.process import ProcessSettings
from bot.jobserver.settings.projects import Projects
from bot.jobserver.store.database import SCHEMA
from bot.queue.migration import WORDS, SchemaState

_HOST_S = 60.0
"""Time limit for one request to the repository's host."""
_OLDEST_GIT = (2, 38)
_VERSION = re.compile(r"\b(\d{1,4})\.(\d{1,4})")
_BRANCH = "pagehand/check-"


async def check_machine(projects: Projects) -> AsyncIterator[SetupFinding]:
    """Checks what all projects need, and yields the findings."""
    process = projects.process
    try:
        if any(settings.runs_programs for settings in projects.current.values()):
            require_ordinary_user(process, own_user())
    except JobServerError as error:
        yield SetupFinding("user", is_ok=False, message=str(error))
    yield (data := await asyncio.to_thread(_data_directory, process.data_directory))
    if data.is_ok:
        yield await _database(process, projects.current)


async def check_setup(settings: JobServerSettings) -> AsyncIterator[SetupFinding]:
    """Checks a project, from its programs to a push, and yields the findings."""
    for name, words in settings.warnings:
        yield SetupFinding(name, is_ok=None, message=words)
    try:
        egress_for(settings)
    except JobServerError as error:
        yield SetupFinding("egress", is_ok=False, message=str(error))
    for finding in _check_programs(settings):
        yield finding
    try:
        async with connect(settings) as github:
            git = Git.for_settings(settings, github.credentials if github else None)
            with tempfile.TemporaryDirectory(prefix="pagehand-check-") as directory:
                async for finding in _repository(git, settings, Path(directory)):
                    yield finding
    except JobServerError as error:
        yield SetupFinding("repository", is_ok=False, message=str(error))


def _data_directory(directory: Path) -> SetupFinding:
    """Tries to write to the directory, and removes what it created."""
    made = None
    try:
        made = next((folder for folder in reversed([directory, *directory.parents]) if not folder.exists()), None)
        require_own(directory)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as stream:
            stream.write(b"written")
        free = shutil.disk_usage(directory).free
    except JobServerError as error:
        return SetupFinding("data", is_ok=False, message=str(error))
    except OSError as error:
        return SetupFinding("data", is_ok=False, message=not_usable(directory, error))
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
    return SetupFinding("data", is_ok=True, message=f"{directory} can be written, {free / 1e9:.1f} GB are free")


async def _database(process: ProcessSettings, served: Collection[str]) -> SetupFinding:
    """Looks at the database as a start does, and changes nothing."""
    data, state = process.data_directory.resolve(), SchemaState.EMPTY
    try:
        url, is_there = find_database(process, data)
        if is_there:
            await owner_of_1_0_0(data, url, served)
            state = await SCHEMA.state(url)
    except (ConfigError, StoreError, JobServerError) as error:
        return SetupFinding("database", is_ok=False, message=str(error))
    is_ok = state.usable or state in {SchemaState.EMPTY, SchemaState.OLDER}
    return SetupFinding("database", is_ok=is_ok, message="it can be used" if is_ok else WORDS[state])


def _check_programs(settings: JobServerSettings) -> Iterator[SetupFinding]:
    """Looks for the programs of CHECKS; one with a path inside the repository exists only in a job's copy."""
    for program in dict.fromkeys(command[0] for command in settings.checks if command):
        if "/" in program and not program.startswith("/"):
            yield SetupFinding("checks", is_ok=None, message=f"{program} will be looked for in each job's copy")
        elif shutil.which(program) is None:
            words = f"there is no program {program} here: install it, or change {PREFIX}CHECKS"
            yield SetupFinding("checks", is_ok=False, message=words)
        else:
            yield SetupFinding("checks", is_ok=True, message=f"{program} is installed")


async def _repository(git: Git, settings: JobServerSettings, directory: Path) -> AsyncIterator[SetupFinding]:
    version = await _git_version(git, directory)
    yield version
    if version.is_ok is False:
        return
    try:
        async with asyncio.timeout(_HOST_S):
            base = await find_base(git, settings.base_branch, directory)
            found = SetupFinding("repository", is_ok=True, message=f"it can be read, and jobs start from {base}")
    except TimeoutError:
        found = SetupFinding("repository", is_ok=False, message=f"its host does not answer within {_HOST_S:g} s")
    except (GitError, CodeHostError) as error:
        found = SetupFinding("repository", is_ok=False, message=str(error))
    yield found
    if found.is_ok:
        yield await _push(git, directory)


async def _git_version(git: Git, directory: Path) -> SetupFinding:
    try:
        started = (await git.run(directory, "--version")).strip()
    except GitError as error:
        return SetupFinding("git", is_ok=False, message=str(error))
    found = _VERSION.search(started)
    is_new = found is not None and (int(found[1]), int(found[2])) >= _OLDEST_GIT
    return SetupFinding("git", is_ok=is_new, message=started if is_new else f"{started}: 2.38 or newer is needed")


async def _push(git: Git, directory: Path) -> SetupFinding:
    """Pushes an empty branch, which starts no workflow, and deletes it again."""
    branch, is_pushed = f"{_BRANCH}{secrets.token_hex(4)}", False
    try:
        async with asyncio.timeout(_HOST_S):
            place = directory / "check.git"
            await git.init(place)
            tree = (await git.run(place, "hash-object", "-t", "tree", "-w", "--stdin")).strip()
            commit = (await git.run(place, "commit-tree", "-m", "Pagehand tries whether it may push", tree)).strip()
            await git.push(place, commit, branch)
            is_pushed = True
            await git.push(place, "", branch)
    except TimeoutError:
        return SetupFinding("push", is_ok=False, message=f"the repository's host does not answer within {_HOST_S:g} s")
    except JobServerError as error:
        if is_pushed:
            words = f"a branch can be pushed but not deleted: delete {branch} by hand"
            return SetupFinding("push", is_ok=None, message=words)
        return SetupFinding("push", is_ok=False, message=str(error))
    return SetupFinding("push", is_ok=True, message="a branch was pushed and deleted again")


async def check_github(settings: JobServerSettings) -> list[SetupFinding]:
    """Returns what works and what does not; empty if the settings do not use GitHub."""
    async with connect(settings) as connection:
        return [] if connection is None else [result async for result in _check(connection, settings.base_branch)]


async def _check(connection: GitHubConnection, base: str | None) -> AsyncIterator[SetupFinding]:
    try:
        found = await connection.repository.describe()
    except CodeHostError as error:
        yield SetupFinding("GitHub", is_ok=False, message=str(error))
        return
    yield SetupFinding("GitHub", is_ok=True, message=f"the repository {found.full_name} can be read")
    if found.archived:
        yield SetupFinding("push", is_ok=False, message="the repository is archived: nobody can change it")
        return
    base = base or found.default_branch
    yield await _check_pull_requests(connection.repository, base)
    commit = f"/commits/{quote(base, safe='')}"
    yield await _check_reading(connection.repository, f"{commit}/check-runs?per_page=1", READ_CHECKS)
    yield await _check_reading(connection.repository, f"{commit}/status", READ_STATUSES)


async def _check_pull_requests(repository: RepositoryApi, base: str) -> SetupFinding:
    """Tries to open a pull request from a branch into itself: with permission, GitHub calls it invalid."""
    body = {"title": "Pagehand tries whether it may", "head": base, "base": base}
    try:
        await repository.call(Call("POST", "/pulls", OPEN, body, is_repeatable=False))
    except RefusedError as error:
        if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            return SetupFinding("pull requests", is_ok=False, message=str(error))
    except CodeHostError as error:
        return SetupFinding("pull requests", is_ok=False, message=str(error))
    return SetupFinding("pull requests", is_ok=True, message="they can be opened")


async def _check_reading(repository: RepositoryApi, path: str, purpose: Purpose) -> SetupFinding:
    try:
        await repository.call(Call("GET", path, purpose))
    except CodeHostError as error:
        return SetupFinding("checks", is_ok=None, message=f"they are not shown: {error}")
    return SetupFinding("checks", is_ok=True, message=f"it can {purpose.doing}")
