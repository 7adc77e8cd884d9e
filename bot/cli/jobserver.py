"""`pagehand jobserver` runs the self-hosted job server, or checks its setup."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping, MutableMapping
from typing import Literal

import click

from bot.domain.findings import Finding
from bot.errors import CannotStart, SchemaMismatch, StoreError
from bot.jobserver.composition import Role, require_shareable
from bot.jobserver.errors import JobServerError
from bot.jobserver.findings import SetupFinding
from bot.jobserver.pipeline.job_folders import JobFolders
from bot.jobserver.project import not_offered
from bot.jobserver.sandbox.choice import close_to_others, forget_secrets
from bot.jobserver.server import JobServer
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.process import ProcessSettings
from bot.jobserver.settings.projects import Projects
from bot.jobserver.setup_check import check_github, check_machine, check_setup
from bot.jobserver.store.database import Database, sqlite_url
from bot.jobserver.store.files import FileStore, pieces_of
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.runtime.logging import configure_logging
from bot.runtime.process_signals import run_until_signal
from bot.runtime.settings import SettingNames, variable_names

logger = logging.getLogger(__name__)

_SIGNS = {True: "ok", False: "FAIL", None: "note"}
JOB_SERVER = "job_server"
_FIX = "bot/docs/start.md and bot/docs/security.md have what it needs."
Part = Literal["machine", "editor"]
"""What is checked: the machine with the repository, and the editor, which an agent is."""
_EVERYTHING: tuple[Part, ...] = ("machine", "editor")
_WITHOUT_AGENTS: tuple[Part, ...] = ("machine",)


def run_job_server(environ: MutableMapping[str, str], role: str) -> None:
    """Runs the job server, or this part of it, until SIGTERM or Ctrl-C, and removes its secrets from `environ`.

    Raises ConfigError; CannotStart with the job server's own message.
    """
    close_to_others()
    projects, without_effect = read_projects(environ), setting_names().warnings(environ)
    forget_secrets(environ)
    configure_logging("INFO", projects.secrets, projects.process.log_format)
    for words in without_effect:
        logger.warning(words)

    async def start() -> JobServer:
        server = JobServer(projects, Role(role))
        await server.start()
        return server

    try:
        asyncio.run(run_until_signal(start))
    except JobServerError as error:
        raise CannotStart(str(error)) from None


def check_job_server(environ: Mapping[str, str], role: str) -> int:
    """Prints a line for each check, and returns the exit code: 1 if any failed.

    Raises ConfigError; CannotStart if other processes cannot do the other part of the work.
    """
    projects = read_projects(environ)
    configure_logging("WARNING", projects.secrets)
    try:
        for settings in projects.current.values():
            require_shareable(settings, projects.process, Role(role))
    except JobServerError as error:
        raise CannotStart(str(error)) from None
    parts = _EVERYTHING if Role(role).runs_agents else _WITHOUT_AGENTS
    return asyncio.run(_print_findings(projects, environ, parts))


def print_log(environ: Mapping[str, str], job_id: str) -> None:
    """Prints a job's log: what is stored, then what is written at the moment, if that is here.

    Raises ConfigError; CannotStart if there is none.
    """
    projects = read_projects(environ)
    configure_logging("WARNING", projects.secrets)
    asyncio.run(_print_log(projects.process, job_id))


async def _print_log(settings: ProcessSettings, job_id: str) -> None:
    file, url = settings.data_directory / "jobs.sqlite3", settings.database_url
    if url is None and not file.exists():
        raise CannotStart(f"there is no {file}")
    database = Database(url.get_secret_value() if url else sqlite_url(file))
    is_found = False
    try:
        store, running = FileStore(database), JobFolders(settings.data_directory).log(job_id)
        stored = [store.read(log) for log in await store.logs_of(job_id)]
        for pieces in (*stored, *([pieces_of(running)] if running.exists() else [])):
            async for piece in pieces:
                is_found = True
                click.echo(piece, nl=False)
    finally:
        await database.close()
    if not is_found:
        raise CannotStart(f"there is no log of a job {job_id}")


async def _print_findings(projects: Projects, environ: Mapping[str, str], parts: Collection[Part]) -> int:
    exit_code, last = 0, ""
    async for project, found in _findings(projects, environ, parts):
        if project != last and projects.has_file:
            click.echo(f"\nproject {project}")
        last = project
        click.echo(f"{_SIGNS[found.is_ok]:<5}{found.name:<14} {found.message}")
        exit_code = 1 if found.is_ok is False else exit_code
    for words in await _not_offered(projects) if parts is _WITHOUT_AGENTS else ():
        click.echo(f"{_SIGNS[None]:<5}{'workers':<14} {words}")
    return exit_code


async def find_faults(environ: Mapping[str, str], parts: Collection[Part] = _EVERYTHING) -> AsyncIterator[Finding]:
    """Checks the job server whose settings are in the environment. Raises ConfigError."""
    projects = read_projects(environ)
    async for project, each in _findings(projects, environ, parts):
        place = f"{JOB_SERVER}.{project}" if project and projects.has_file else JOB_SERVER
        check = f"{place}.{each.name.replace(' ', '_')}"
        if each.is_ok is None and each.name == "checks":  # what is in the repository is seen only while jobs run
            yield Finding.not_checked(check, each.message)
        elif each.is_ok is None:
            yield Finding.warning(check, each.message, why="Jobs work, but this may surprise people.", fix=_FIX)
        elif each.is_ok:
            yield Finding.ok(check, each.message)
        else:
            yield Finding.error(check, each.message, why="Jobs fail.", fix=_FIX)


async def _findings(
    projects: Projects, environ: Mapping[str, str], parts: Collection[Part] = _EVERYTHING
) -> AsyncIterator[tuple[str, SetupFinding]]:
    """Checks the machine, then each project, whose name comes with what is found: its repository, GitHub if it is used,
    and the editor.
    """
    if "machine" in parts:
        for words in setting_names().warnings(environ):
            yield "", SetupFinding("settings", is_ok=None, message=words)
        async for finding in check_machine(projects):
            yield "", finding
    for name, settings in projects.current.items():
        if "machine" in parts:
            async for finding in check_setup(settings):
                yield name, finding
            for finding in await check_github(settings):
                yield name, finding
        if "editor" in parts:
            from bot.jobserver.agents.choice import check_editor  # noqa: PLC0415 - it takes half as long as all the rest

            async for finding in check_editor(settings, environ):
                yield name, finding


async def _not_offered(projects: Projects) -> list[str]:
    """Returns what no worker offers now; nothing if the database cannot be read, as its own finding says."""
    if projects.process.database_url is None:
        return []
    database = Database(projects.process.database_url.get_secret_value())
    try:
        offers = await InstructionQueue(database).offers()
    except SchemaMismatch:
        offers = []  # it has no tables yet
    except StoreError:
        return []
    finally:
        await database.close()
    return list(not_offered(offers, projects.current.values()))


def read_projects(environ: Mapping[str, str]) -> Projects:
    """Reads the settings, and checks the names of variables. Raises ConfigError."""
    return Projects.read(environ, setting_names().misspelt(environ))


def setting_names() -> SettingNames:
    """Returns the names of the job server's variables."""
    removed = {
        "LOGIN_LASTS": "Reviewers no longer log in, their browser sends their name and key: remove it.",
        "TRUSTED_PROXIES": "Wrong keys are no longer counted by address: remove it.",
        "SANDBOX_NETWORK": f"Remove it if it was false; if it was true, set {PREFIX}EGRESS=open instead.",
        "PERMISSIONS": "Whatever an agent asks for beyond its copy's files is denied: remove it.",
        "COMMITTER": f"Commits have one identity, {PREFIX}AUTHOR: remove it.",
        "GITHUB_API_URL": "GitHub's API is at the address that belongs to the repository's: remove it.",
    }
    words_of_removed = {f"{PREFIX}{name}": words for name, words in removed.items()}
    return SettingNames(variable_names(JobServerSettings), (PREFIX,), near="PAG", removed=words_of_removed)
