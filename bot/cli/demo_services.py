"""Everything a demo runs: a workspace, a job server with a small repository and perhaps an agent, and the bot."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import SecretStr

from bot.app.application import App
from bot.app.edges import Edges, open_edges
from bot.app.manifest import ManifestChoices, manifest_for
from bot.app.settings.config import Config, load
from bot.domain.projects import JobApiAbilities
from bot.errors import CannotStart, PagehandError
from bot.jobserver.agents.choice import model_finding
from bot.jobserver.agents.launch import agent_launch
from bot.jobserver.agents.named import NAMED
from bot.jobserver.findings import installed
from bot.jobserver.repository.sample import make_sample_repository
from bot.jobserver.sandbox.choice import close_to_others
from bot.jobserver.server import JobServer
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.workspace.model.app_config import AppConfig
from bot.workspace.server import WorkspaceServer

CHANNEL = "docs"
PROJECT = "docs"
YOU = "you (demo)"
"""The name under which changes are merged and closed on the demo's pages when no login is needed."""
REVIEWER = "You"
_AGENT_SETTINGS = (
    "MODEL", "EFFORT", "MODEL_API", "MODEL_URL", "MODEL_KEY", "MODEL_KEY_HEADER", "AGENT_ENVIRONMENT", "AGENT_HOME",
    "SANDBOX_FOLDERS", "ALLOW_ROOT",
)  # fmt: skip
"""The job server's settings that also apply to a demo. The sandbox and its closed network always stay on."""
WORKSPACE_PORT = 8420
"""Used if it is free."""


class DemoError(PagehandError):
    """The demo cannot start, or did not reach its pull request."""


@dataclass
class Demo:
    """A running demo.

    `url` is the workspace's page, `repository` the git repository that jobs change, and `merge_key` the key to merge
    pull requests with, empty if none is needed.
    """

    workspace: WorkspaceServer
    app: App
    edges: Edges
    url: str
    repository: Path
    merge_key: str


def manifest() -> AppConfig:
    """Returns the app of manifest.yml, so that the demo's workspace grants exactly what a real one would."""
    return AppConfig.from_manifest(manifest_for(ManifestChoices()))


@asynccontextmanager
async def running_demo(directory: Path, port: int | None, agent: str = "") -> AsyncIterator[Demo]:
    """Runs the demo with its data in `directory`. Raises PagehandError, JobServerError.

    `port` is that of the workspace's page: 0 for any free one, None for the default if that is free. `agent` is an
    agent's name or command; if it is empty, the built-in editor does the work.
    """
    key = secrets.token_urlsafe(24)
    repository = await asyncio.to_thread(make_sample_repository, directory)
    async with AsyncExitStack() as stack:
        settings = _job_server_settings(directory, repository, key, agent)
        # With an agent, merging needs a key: the agent might reach the pages.
        everybody = "" if settings.runs_programs else YOU
        job_server = JobServer(settings.model_copy(update={"port": 0}), everybody=everybody)
        job_api_url = await job_server.start()
        stack.push_async_callback(job_server.stop)
        workspace = WorkspaceServer(manifest())
        stack.push_async_callback(workspace.stop)
        url = await _start(workspace, port)
        config = _config(directory, workspace, job_api_url, key)
        edges = await open_edges(config)
        app = App(config, edges)
        stack.push_async_callback(app.stop)
        await app.start()
        merge_key = next((reviewer.key.get_secret_value() for reviewer in settings.reviewers.current), "")
        yield Demo(workspace, app, edges, url, repository, merge_key)


async def _start(workspace: WorkspaceServer, port: int | None) -> str:
    """Starts it at the port that was chosen, or the default one, or any free one if the default is taken."""
    try:
        return await workspace.start(port=WORKSPACE_PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise DemoError(f"it {error.strerror}. Omit --port for a free port") from None
    return await workspace.start()


def _job_server_settings(directory: Path, repository: Path, key: str, agent: str) -> JobServerSettings:
    given: dict[str, object] = {
        "api_key": SecretStr(key),
        "project_id": PROJECT,
        "repository": str(repository),
        "data_directory": directory / "jobserver",
    }
    if agent:
        return settings_with_agent(agent, **given)
    return JobServerSettings.from_environment({}, (), **given)


def _config(directory: Path, workspace: WorkspaceServer, job_api_url: str, key: str) -> Config:
    return load(
        {
            "SLACK_BOT_TOKEN": workspace.credentials.bot_token,
            "SLACK_APP_TOKEN": workspace.credentials.app_token,
            "SLACK_API_URL": workspace.api_url,
            "JOB_API_URL": job_api_url,
            "JOB_API_KEY": key,
            "JOB_API_PROJECT": PROJECT,
            **{f"JOB_API_{each.name.upper()}": "true" for each in fields(JobApiAbilities)},
            "DATABASE_URL": f"sqlite:///{directory / 'pagehand.sqlite3'}",
            "PAGEHAND_POLL_FASTEST": "0.5",
            "PAGEHAND_POLL_SLOWEST": "2",
        }
    )


def settings_with_agent(agent: str, **given: object) -> JobServerSettings:
    """Returns the settings of a demo's job server with an agent, given by name or command, and a reviewer's key.

    Raises ConfigError; CannotStart if the agent is not installed or has no key; JobServerError if it cannot be used.
    """
    reviewers = SecretStr(f"{REVIEWER}: {secrets.token_hex(12)}")
    overrides = {"agent": agent, "reviewers": reviewers, "private_pages": False, **given}
    names = [f"{PREFIX}{name}{ending}" for name in _AGENT_SETTINGS for ending in ("", "_FILE")]
    variables = {name: os.environ[name] for name in names if name in os.environ}
    settings = JobServerSettings.from_environment(variables, (), **overrides)
    launch = agent_launch(settings, os.environ)
    findings = (installed(launch.agent.command, launch.agent.install), model_finding(launch, settings))
    if missing := next((finding.message for finding in findings if not finding.is_ok), ""):
        raise CannotStart(f"{missing}.")
    close_to_others()
    return settings


def agent_offer() -> str:
    """Returns a hint that a demo can run with an agent."""
    others = ", ".join(name for name in NAMED if name != "claude")
    return f"With a coding agent that you have, and its key: pagehand demo --agent claude (or {others})"
