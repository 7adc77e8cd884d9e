"""From an empty directory to a finished job: over Socket Mode with `pagehand setup`, and over HTTP with the Docker
Compose files. Each fault of a set-up happens in turn, and `pagehand doctor` explains it to a new user.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.libfaketime import LIBFAKETIME
from support.programs import running_programs
from support.servers.fake_job_api import KEY, PROJECT
from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer
from support.worlds.documented_commands import LIMIT, ROOT, Shell, blocks, filled_in
from support.worlds.new_user import SIGNING_SECRET, NewUser, new_user

from bot.app.settings.config import Config
from bot.workspace import WorkspaceServer

pytestmark = [pytest.mark.full, pytest.mark.promise("new user")]
DEPLOY = ROOT / ".deploy"


@dataclass(frozen=True)
class SetupFault:
    """A mistake of a new user, or an event; `words` are what `pagehand doctor` says about it."""

    words: Sequence[str]
    settings: Mapping[str, str] = field(default_factory=dict)
    happens: Callable[[WorkspaceServer], object] = lambda workspace: None
    is_error: bool = True


def only_two_scopes(workspace: WorkspaceServer) -> None:
    some = ("app_mentions:read", "channels:history", "channels:read", "users:read", "files:read")
    workspace.credentials.remove_scopes(*some)


def no_events(workspace: WorkspaceServer) -> None:
    manifest = workspace.manifests.export(workspace.app.app_id)
    manifest["settings"]["event_subscriptions"]["bot_events"] = ["app_mention"]
    workspace.manifests.update(workspace.app.app_id, manifest)


FAULTS = {
    "a token in the other's place": SetupFault(
        ["SLACK_BOT_TOKEN must be the bot token", "OAuth & Permissions"],
        {"SLACK_BOT_TOKEN": "xapp-1-planted-app-token"},
    ),
    "a wrong key": SetupFault(["(401)", "JOB_API_KEY"], {"JOB_API_KEY": "planted-key-of-nobody"}),
    "a scope that was declined": SetupFault(
        ["files:read", "names and links of files", "Reinstall to Workspace"],
        happens=lambda workspace: workspace.credentials.remove_scopes("files:read"),
        is_error=False,
    ),
    "an app with some of its scopes": SetupFault(
        ["app_mentions:read", "channels:history", "Reinstall to Workspace"], happens=only_two_scopes
    ),
    "tokens that were revoked": SetupFault(
        ["it was revoked", "OAuth & Permissions"], happens=lambda workspace: workspace.credentials.revoke()
    ),
    "no subscriptions": SetupFault(
        ["bot_events: + message.channels", "pagehand setup --app-id", "reinstall the app"], happens=no_events
    ),
    "a PostgreSQL that is not there": SetupFault(
        ["The database cannot be reached", "Check DATABASE_URL"],
        {"DATABASE_URL": "postgresql://pagehand@127.0.0.1:9/pagehand"},
    ),
}
if LIBFAKETIME:
    FAULTS["a wrong clock"] = SetupFault(
        ["machine's clock is 360", "s ahead of Slack's", "time synchronization"],
        {"LD_PRELOAD": LIBFAKETIME, "FAKETIME": "+1h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"},
    )
OVER_SOCKET_MODE = {
    "a signing secret for an app-level token": SetupFault(
        ["SLACK_APP_TOKEN must be the app-level tok"], {"SLACK_APP_TOKEN": "0123456789abcdef" * 2}
    ),
}
OVER_HTTP = {
    "Socket Mode's token for an app that uses HTTP": SetupFault(
        ["Socket Mode"], {"SLACK_APP_TOKEN": "the app's own", "SLACK_SIGNING_SECRET": ""}
    ),
}


@dataclass(frozen=True)
class Doctor:
    """`pagehand doctor` in the bot's directory and environment."""

    pagehand: Sequence[str]
    directory: Path
    environment: Mapping[str, str]

    async def says(self, settings: Mapping[str, str]) -> tuple[int, str]:
        given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **self.environment, **settings}
        # The time of a process is another one only if the library is loaded at its start.
        command = (sys.executable, "-m", "bot") if "LD_PRELOAD" in settings else self.pagehand
        async with running_programs() as programs:
            doctor = await programs.start(*command, "doctor", directory=self.directory, environment=given)
            return await doctor.end(within=LIMIT), " ".join(doctor.output.split())

    async def explains(self, faults: Mapping[str, SetupFault], user: NewUser) -> None:
        """Applies each fault alone, and then none."""
        credentials, app_id = user.workspace.credentials, user.workspace.app.app_id
        as_made = user.workspace.manifests.export(app_id)
        for name, fault in faults.items():
            settings = {
                setting: credentials.app_token if value == "the app's own" else value
                for setting, value in fault.settings.items()
            }
            fault.happens(user.workspace)
            code, printed = await self.says(settings)
            user.workspace.manifests.update(app_id, as_made)
            user.workspace.install()
            assert [words for words in fault.words if words not in printed] == [], (name, printed)
            assert code == int(fault.is_error), (name, printed)
        code, printed = await self.says({})
        assert code == 0, printed


async def test_over_socket_mode_faults_are_explained_and_a_job_is_done(tmp_path: Path, pagehand: Sequence[str]) -> None:
    """By the commands of the page to start with; the job API is there already."""
    written = "".join(blocks("bot/docs/start.md", "text")).splitlines()
    setup, doctor, run = (
        line.partition(" --repository ")[0] for line in written if re.search(r"pagehand (setup|doctor|run)\b", line)
    )
    async with AsyncExitStack() as stack:
        user = await stack.enter_async_context(new_user())
        credentials = user.workspace.credentials
        answers = {
            "SLACK_BOT_TOKEN": credentials.bot_token,
            "SLACK_APP_TOKEN": credentials.app_token,
            "SLACK_API_URL": user.workspace.api_url,
            "JOB_API_URL": user.job_api.url,
            "JOB_API_KEY": KEY,
            "JOB_API_PROJECT": PROJECT,
        }
        given = " ".join(f"{name}={value}" for name, value in answers.items())
        shell = Shell(tmp_path, {}, stack)
        await shell.follow(f"{given} {setup} --no-input")
        await shell.follow(doctor)
        token = {"PAGEHAND_CONFIGURATION_TOKEN": credentials.configuration_token}
        await Doctor(pagehand, tmp_path, token).explains(FAULTS | OVER_SOCKET_MODE, user)
        await shell.follow(run)
        await user.gets_a_job_done("Fix the guide", LIMIT)


# the services of Docker Compose, as processes of this machine


def image() -> tuple[dict[str, str], str]:
    """Returns the environment and the health check of the Dockerfile's default target, which is its last."""
    target = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").rpartition("\nFROM ")[2]
    (variables,) = re.findall(r"^ENV (.*)$", target, re.MULTILINE)
    (health_check,) = re.findall(r"^HEALTHCHECK .*\\\n *CMD (\[.*\])$", target, re.MULTILINE)
    _, _, program = json.loads(health_check)
    return dict(variable.split("=", 1) for variable in variables.split()), program


def services() -> dict[str, Any]:
    """The services of the bot's image."""
    found = yaml.safe_load((DEPLOY / "compose.yml").read_text(encoding="utf-8"))["services"]
    return {name: service for name, service in found.items() if service["image"] == "pagehand"}


@pytest.mark.postgres
async def test_by_docker_compose_faults_are_explained_and_a_job_is_done(
    tmp_path: Path, pagehand: Sequence[str], postgres: PostgresServer
) -> None:
    variables, health_check = image()
    bots = services()
    assert set(bots) == {"migrate", "web", "worker"}
    assert bots["web"]["ports"] == [f"127.0.0.1:{Config.model_fields['port'].default}:3000"]
    assert all(bots[name]["depends_on"]["migrate"]["condition"].endswith("_successfully") for name in ("web", "worker"))
    port = free_port()
    async with AsyncExitStack() as stack:
        user = await stack.enter_async_context(new_user(f"http://127.0.0.1:{port}"))
        database_key = tmp_path / "database-url"
        database_key.write_text(await stack.enter_async_context(postgres.empty_database()))
        env_file = {
            "SLACK_BOT_TOKEN": user.workspace.credentials.bot_token,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SLACK_API_URL": user.workspace.api_url,
            "JOB_API_URL": user.job_api.url,
            "JOB_API_KEY": KEY,
            "JOB_API_PROJECT": PROJECT,
        }
        environment: dict[str, str] = {}
        for name in ("migrate", "web", "worker"):
            container = tmp_path / name
            container.mkdir()
            places = {"/keys/database-url": str(database_key), "8080": str(free_port())}
            of_docker = {
                variable: filled_in(value, places)
                for variable, value in (variables | bots[name]["environment"]).items()
            }
            environment = env_file | of_docker | {"PORT": str(port)}
            shell = Shell(container, environment, stack)
            await shell.follow(" ".join([".venv/bin/pagehand", *bots[name]["command"][1:]]))
            if name != "migrate":
                await shell.follow(f'.venv/bin/python3 -c "{filled_in(health_check, places)}"')
        token = {"PAGEHAND_CONFIGURATION_TOKEN": user.workspace.credentials.configuration_token}
        await Doctor(pagehand, tmp_path / "worker", environment | token).explains(FAULTS | OVER_HTTP, user)
        challenge = {"type": "url_verification", "challenge": "c0ffee"}
        assert "c0ffee" in (await user.workspace.deliveries.request("events_api", challenge)).payload.values()
        await user.gets_a_job_done("Fix the guide", LIMIT)
