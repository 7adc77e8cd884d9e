"""What a team has: Slack, the bot, the job server with a real coding agent, and GitHub. The model is the tests' own."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.agents.packages import NotInstalled, package_of, program_folder
from support.agents.real_agents import EXAMPLE_AGENTS
from support.servers.github_server import GitHubServer, github_server
from support.servers.github_server_state import TOKEN
from support.servers.model_server import ModelServer

from bot.app.application import App
from bot.app.edges import open_edges
from bot.app.settings.config import load
from bot.cli.demo_services import manifest
from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import SandboxSettings
from bot.workspace.server import WorkspaceServer

KEY = "planted-key-of-the-job-server"
GOOSE = EXAMPLE_AGENTS["goose"]
"""The one that starts fastest."""


@dataclass
class TeamWorld:
    """All of it, running."""

    workspace: WorkspaceServer
    github: GitHubServer
    model: ModelServer


@asynccontextmanager
async def team_world(directory: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TeamWorld]:
    """Skips the test if the agent cannot be installed, or bubblewrap does not work."""
    try:
        monkeypatch.setenv("PATH", f"{program_folder(package_of(GOOSE.agent))}:{os.environ['PATH']}")
        await open_sandbox(SandboxSettings(allow_root=True), directory / "data")
    except (NotInstalled, JobServerError) as reason:
        pytest.skip(str(reason))
    async with AsyncExitStack() as stack:
        github = await stack.enter_async_context(github_server(directory / "github", {"colours.md": "A colour.\n"}))
        model = await stack.enter_async_context(ModelServer().running())
        job_server = JobServer(_settings(directory, github, model.url))
        job_api_url = await job_server.start()
        stack.push_async_callback(job_server.stop)
        workspace = WorkspaceServer(manifest())
        await workspace.start()
        stack.push_async_callback(workspace.stop)
        await _start_bot(directory, workspace, job_api_url, stack)
        yield TeamWorld(workspace, github, model)


def _settings(directory: Path, github: GitHubServer, model_url: str) -> JobServerSettings:
    return JobServerSettings(
        port=0,
        api_key=SecretStr(KEY),
        repository=github.repository_url,
        github_token=SecretStr(TOKEN),
        data_directory=directory / "data",
        allow_root=True,
        **GOOSE.settings(model_url),
    )


async def _start_bot(directory: Path, workspace: WorkspaceServer, job_api_url: str, stack: AsyncExitStack) -> None:
    config = load(
        {
            "SLACK_BOT_TOKEN": workspace.credentials.bot_token,
            "SLACK_APP_TOKEN": workspace.credentials.app_token,
            "SLACK_API_URL": workspace.api_url,
            "JOB_API_URL": job_api_url,
            "JOB_API_KEY": KEY,
            "JOB_API_PROJECT": "docs",
            "JOB_API_IDEMPOTENT": "true",
            "JOB_API_REQUESTER": "true",
            "DATABASE_URL": f"sqlite:///{directory / 'pagehand.sqlite3'}",
            "PAGEHAND_MERGE_SECONDS": "0",
            "PAGEHAND_POLL_FASTEST": "0.5",
            "PAGEHAND_POLL_SLOWEST": "5",
        }
    )
    app = App(config, await open_edges(config))
    stack.push_async_callback(app.stop)
    await app.start()
