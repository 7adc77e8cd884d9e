"""`pagehand setup` against the real workspace and a job API over HTTP: what it creates, what it keeps, and
its message for each fault.
"""

import asyncio
import contextlib
import os
import re
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from click.testing import CliRunner, Result
from slack_sdk.web.async_client import AsyncWebClient
from support.servers.fake_job_api import KEY, PROJECT, FakeJobApiServer, refusing
from support.servers.free_ports import free_port
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.agent_world import PROGRAM
from support.worlds.jobserver_world import make_bare

from bot.app.manifest import SlackAppRefused, SlackApps
from bot.cli.demo_services import manifest
from bot.cli.main import main
from bot.runtime.env_file import read_env_file
from bot.slack.sending.web_api import SlackClient, new_session
from bot.workspace import AppConfig

pytestmark = pytest.mark.promise("setup")


NO_JOB_API = {"JOB_API_URL": "", "JOB_API_KEY": "", "JOB_API_PROJECT": ""}


class AdministeredWorkspace(FaultyWorkspace):
    """Installs each app as soon as it is created."""

    def __init__(self, app: AppConfig, *, is_installed: bool) -> None:
        super().__init__(app, is_installed=is_installed)
        self.middlewares.append(self._install)

    @web.middleware
    async def _install(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await handler(request)
        if request.path.endswith("/apps.manifest.create") and self.web_api.calls[-1].applied:
            self.install()
        return answer


@dataclass
class World:
    """A workspace, a job API, and a directory to set Pagehand up in."""

    workspace: FaultyWorkspace
    job_api: FakeJobApiServer
    directory: Path
    environ: dict[str, str | None]
    secrets: list[str] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.directory / ".env"

    def given(self, **values: str) -> dict[str, str]:
        """The environment with every setting, some of them changed."""
        credentials = self.workspace.credentials
        given = {
            "SLACK_BOT_TOKEN": credentials.bot_token,
            "SLACK_APP_TOKEN": credentials.app_token,
            "JOB_API_URL": self.job_api.url,
            "JOB_API_KEY": KEY,
            "JOB_API_PROJECT": PROJECT,
        }
        return {name: value for name, value in (given | values).items() if value}

    async def set_up(self, *options: str, typed: str = "", **environ: str) -> Result:
        """Runs it. None of its output may show a secret."""
        with contextlib.chdir(self.directory):
            result = await asyncio.to_thread(
                CliRunner().invoke, main, ["setup", *options], input=typed, env=self.environ | environ
            )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert [secret for secret in self.secrets if secret in result.output] == []
        return result

    async def set_up_alone(self, *options: str, **changed: str) -> Result:
        """Runs it with every setting, some of them changed, and asks nothing."""
        return await self.set_up("--no-input", *options, **self.given(**changed))

    async def repository(self) -> str:
        return str(await asyncio.to_thread(make_bare, self.directory / "docs.git", {"README.md": "Hello\n"}))

    @property
    def calls(self) -> list[str]:
        return [call.method for call in self.workspace.web_api.calls]


@asynccontextmanager
async def a_world(directory: Path, *, is_installed: bool, app: AppConfig | None = None) -> AsyncIterator[World]:
    workspace, job_api = AdministeredWorkspace(app or manifest(), is_installed=is_installed), FakeJobApiServer()
    await workspace.start()
    await job_api.start()
    names = ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "JOB_API_URL", "JOB_API_KEY")
    environ = dict.fromkeys((*names, "JOB_API_PROJECT", "PAGEHAND_CONFIGURATION_TOKEN"))
    world = World(workspace, job_api, directory, environ | {"SLACK_API_URL": workspace.api_url})
    credentials = workspace.credentials
    world.secrets = [credentials.bot_token, credentials.app_token, credentials.configuration_token, KEY]
    world.secrets.append(credentials.signing_secret)
    try:
        yield world
    finally:
        await job_api.stop()
        await workspace.stop()


def in_order(words: Sequence[str], output: str) -> None:
    places = [output.find(each) for each in words]
    assert -1 not in places, (places, output)
    assert places == sorted(places)


@pytest.fixture
async def new(tmp_path: Path) -> AsyncIterator[World]:
    """No app yet."""
    async with a_world(tmp_path, is_installed=False) as world:
        yield world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """The app is installed."""
    async with a_world(tmp_path, is_installed=True) as world:
        yield world


# from nothing to a file


async def test_with_all_values_given_setup_asks_nothing_and_writes_the_settings(new: World) -> None:
    token = new.workspace.credentials.configuration_token
    result = await new.set_up_alone(PAGEHAND_CONFIGURATION_TOKEN=token)
    assert result.exit_code == 0, result.output
    written = read_env_file(new.file)
    assert {name: written[name] for name in new.given()} == new.given()
    assert written["JOB_API_CANCEL"] == written["JOB_API_FILES"] == "true"
    assert stat.S_IMODE(new.file.stat().st_mode) == 0o600
    assert token not in new.file.read_text()
    assert [path.name for path in new.directory.iterdir()] == [".env"]
    assert new.calls.index("apps.manifest.validate") < new.calls.index("apps.manifest.create")


async def test_each_answer_is_validated_at_once_and_asked_again_if_wrong(new: World) -> None:
    credentials = new.workspace.credentials
    typed = [
        "xoxb-not-a-configuration-token",
        credentials.configuration_token,
        credentials.app_token,
        "xoxb-planted-token-of-nobody",
        credentials.bot_token,
        credentials.bot_token,
        credentials.app_token,
        "y",
        *(new.job_api.url, "planted-key-of-nobody", PROJECT),
        *(new.job_api.url, KEY, PROJECT),
    ]
    result = await new.set_up(typed="\n".join(typed) + "\n")
    assert result.exit_code == 0, result.output
    wanted = [
        "This is not a configuration token",
        "Slack created the app A0PAGEHND: https://api.slack.com/apps/A0PAGEHND",
        "SLACK_BOT_TOKEN must be the bot token",
        "Slack does not know it",
        "SLACK_APP_TOKEN must be the app-level token",
        "(401)",
        " doctor\n",
    ]
    in_order(wanted, result.output)
    assert read_env_file(new.file)["JOB_API_KEY"] == KEY


async def test_an_app_that_was_made_is_known_after_an_interruption(new: World) -> None:
    token = new.workspace.credentials.configuration_token
    address = ("--http", "https://pagehand.example.org")
    interrupted = await new.set_up(*address, typed=f"{token}\n")
    assert (interrupted.exit_code, "Slack created the app A0PAGEHND" in interrupted.output) == (130, True)
    kept = read_env_file(new.file)
    assert kept["SLACK_APP_ID"] == "A0PAGEHND"
    assert kept["SLACK_SIGNING_SECRET"] == new.workspace.credentials.signing_secret
    again = await new.set_up(*address, typed=f"{token}\n")
    assert "The app A0PAGEHND has all that Pagehand needs." in again.output
    new.file.write_text("SLACK_APP_ID=A0OTHER\n")
    assert "remove that for another app" in (await new.set_up(typed=f"{token}\n")).output


@pytest.mark.parametrize("token", ["", "xoxe.xoxp-1-planted-of-nobody"])
async def test_without_a_right_configuration_token_setup_shows_manifest_and_menus(world: World, token: str) -> None:
    result = await world.set_up(typed=f"{token}\n\n\n", PAGEHAND_COMMAND="/write")
    assert "- command: /write\n" in result.output
    assert ("does not accept the configuration token (invalid_auth)" in result.output) is bool(token)
    for words in ("Create New App, From a manifest", "Install App: click Install to Workspace", "Bot User OAuth Token"):
        assert words in result.output
    assert result.exit_code == 130


async def test_over_http_the_signing_secret_comes_with_the_app(new: World) -> None:
    token = new.workspace.credentials.configuration_token
    new.file.write_text("SLACK_APP_TOKEN=xapp-1-planted-app-token\n")
    changed = {"SLACK_APP_TOKEN": "", "PAGEHAND_CONFIGURATION_TOKEN": token}
    result = await new.set_up_alone("--http", "https://pagehand.example.org", **changed)
    assert result.exit_code == 0, result.output
    assert "This replaces SLACK_APP_TOKEN" in result.output
    assert "https://pagehand.example.org/slack/events" in result.output
    written = read_env_file(new.file)
    assert written["SLACK_APP_TOKEN"] == ""
    assert written["SLACK_SIGNING_SECRET"] == new.workspace.credentials.signing_secret


async def test_the_job_server_gets_its_own_file_and_key(world: World) -> None:
    repository = await world.repository()
    result = await world.set_up_alone("--repository", repository, "--agent", "builtin", **NO_JOB_API)
    assert result.exit_code == 0, result.output
    bot, server = read_env_file(world.file), read_env_file(world.directory / "jobserver.env")
    assert server["PAGEHAND_JOBSERVER_REPOSITORY"] == repository
    assert server["PAGEHAND_JOBSERVER_API_KEY"] == bot["JOB_API_KEY"]
    assert bot["JOB_API_IDEMPOTENT"] == "true"
    assert not [name for name in server if "SLACK" in name]
    assert bot["JOB_API_KEY"] not in result.output


async def test_the_job_servers_projects_are_left_to_their_file(world: World) -> None:
    server = world.directory / "jobserver.env"
    server.write_text("PAGEHAND_JOBSERVER_CONFIG=projects.toml\n")
    result = await world.set_up_alone()
    assert result.exit_code == 0, result.output
    assert "PAGEHAND_JOBSERVER_CONFIG names the job server's projects: `pagehand doctor` checks them." in result.output
    assert server.read_text() == "PAGEHAND_JOBSERVER_CONFIG=projects.toml\n"


UNCONFINED = {"SANDBOX": "none", "EGRESS": "open", "ALLOW_ROOT": "true"}


async def test_a_repository_and_an_agent_are_checked_when_asked_and_asked_again(world: World) -> None:
    repository = await world.repository()
    server = world.directory / "jobserver.env"
    server.write_text(f"PAGEHAND_JOBSERVER_REPOSITORY={world.directory}/none.git\n")
    typed = [repository, "no-such-agent", "builtin", "Ada:, Bob", "Ada, Bob van Dam"]
    given = world.given(**NO_JOB_API)
    result = await world.set_up(typed="\n".join(typed) + "\n", **given)
    assert result.exit_code == 0, result.output
    wanted = [
        "there is no git repository: check the directory or address",
        "it can be read, and jobs start from main",
        "there is no program no-such-agent here",
        "each with a name without a colon",
        "Each has a key in jobserver.env",
        "pagehand jobserver    (leave it running)",
        "pagehand doctor",
        "pagehand run",
    ]
    in_order(wanted, result.output)
    written = read_env_file(server)
    assert written["PAGEHAND_JOBSERVER_REPOSITORY"] == repository
    assert "PAGEHAND_JOBSERVER_AGENT" not in written
    reviewers = dict(entry.split(":") for entry in written["PAGEHAND_JOBSERVER_REVIEWERS"].split(","))
    assert [*reviewers] == ["Ada", "Bob van Dam"]
    assert not [key for key in reviewers.values() if key in result.output]


MODES = [{"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "default",
          "options": [{"value": "default", "name": "Default"}]}]  # fmt: skip


REFUSES_THE_OLD_KEY = """
import os
def turn(agent, text):
    if os.environ.get("ANTHROPIC_API_KEY") == "old-key":
        raise Refused(-32000, "this key is old")
    agent.say("ready")
"""


@pytest.mark.first(key=1)
@pytest.mark.parametrize(
    ("key", "variable"),
    [("sk-ant-api03-planted-key", "ANTHROPIC_API_KEY"), ("sk-ant-oat01-planted-token", "CLAUDE_CODE_OAUTH_TOKEN")],
)
async def test_for_claude_setup_takes_a_key_or_the_token_of_a_subscription(
    world: World, key: str, variable: str
) -> None:
    repository = await world.repository()
    script, program = world.directory / "script.py", world.directory / "claude-agent-acp"
    script.write_text(f"options = {MODES}\n{REFUSES_THE_OLD_KEY}")
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {PROGRAM} {script}\n")
    program.chmod(0o755)
    server = world.directory / "jobserver.env"
    server.write_text("ANTHROPIC_API_KEY=old-key\n")
    world.secrets.append(key)
    given = world.given(**NO_JOB_API, PATH=f"{world.directory}:{os.environ['PATH']}")
    given |= {f"PAGEHAND_JOBSERVER_{name}": value for name, value in UNCONFINED.items()}
    options = ("--repository", repository, "--agent", "claude")
    result = await world.set_up(*options, typed=f"claude\n{key}\n\n", **given)
    assert result.exit_code == 0, result.output
    assert result.output.index("this key is old") < result.output.index("“ready”")
    written = read_env_file(server)
    assert (written[variable], written["ANTHROPIC_API_KEY"]) == (key, key if variable == "ANTHROPIC_API_KEY" else "")


# an app that exists


async def test_updating_an_app_keeps_changes_made_by_people(tmp_path: Path) -> None:
    changed = replace(
        manifest(),
        display_name="Docs bot",
        scopes=manifest().scopes - {"files:read", "reactions:write"} | {"team:read"},
        events=manifest().events - {"message.im"} | {"team_join"},
    )
    async with a_world(tmp_path, is_installed=True, app=changed) as world:
        token = world.workspace.credentials.configuration_token
        result = await world.set_up_alone("--app-id", changed.app_id, PAGEHAND_CONFIGURATION_TOKEN=token)
        assert result.exit_code == 0, result.output
        for line in ("oauth_config.scopes.bot: + files:read", "bot_events: + message.im", "Reinstall to Workspace"):
            assert line in result.output
        assert "Slack has not granted the scope files:read" in result.output
        after = await exported(world)
        assert after["features"]["bot_user"]["display_name"] == "Docs bot"
        assert "team:read" in after["oauth_config"]["scopes"]["bot"]
        assert "team_join" in after["settings"]["event_subscriptions"]["bot_events"]
        assert {"files:read", "reactions:write"} <= set(after["oauth_config"]["scopes"]["bot_optional"])
        world.workspace.install()
        again = await world.set_up_alone("--app-id", changed.app_id, PAGEHAND_CONFIGURATION_TOKEN=token)
        assert "has all that Pagehand needs" in again.output
        assert "not granted" not in again.output
        assert await exported(world) == after


async def exported(world: World) -> dict[str, Any]:
    credentials = world.workspace.credentials
    client = AsyncWebClient(credentials.configuration_token, base_url=world.workspace.api_url)
    answer = await client.api_call("apps.manifest.export", json={"app_id": world.workspace.app.app_id})
    found: dict[str, Any] = answer["manifest"]
    return found


async def test_earlier_answers_are_kept_and_nothing_is_replaced_silently(world: World) -> None:
    credentials = world.workspace.credentials
    interrupted = await world.set_up(typed=f"\n\n{credentials.bot_token}\n")
    assert interrupted.exit_code == 130
    assert "to go on from there" in interrupted.output
    assert read_env_file(world.file)["SLACK_BOT_TOKEN"] == credentials.bot_token
    with world.file.open("a") as file:
        file.write("# a comment\nJOB_API_KEY=old-key\n")
    resumed = await world.set_up_alone(SLACK_BOT_TOKEN="")
    assert resumed.exit_code == 0, resumed.output
    assert "This replaces JOB_API_KEY in .env." in resumed.output
    assert "# a comment\n" in world.file.read_text()


# the message for each fault


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("xoxe-1-planted-refresh-token", "This is the Refresh Token"),
        ("xoxb-planted-bot-token", "This is not a configuration token"),
        ("xoxe.xoxp-1-planted-of-nobody", "does not accept the configuration token (invalid_auth)"),
    ],
)
async def test_setup_rejects_a_wrong_configuration_token(new: World, token: str, words: str) -> None:
    result = await new.set_up("--no-input", **new.given(PAGEHAND_CONFIGURATION_TOKEN=token))
    assert result.exit_code == 1
    assert words in result.output
    assert "under Your App Configuration Tokens" in result.output
    assert token not in result.output
    assert not new.file.exists() or token not in new.file.read_text()


async def test_manifest_errors_from_slack_are_shown_with_their_place(world: World) -> None:
    async with new_session() as session:
        token = world.workspace.credentials.configuration_token
        apps = SlackApps(SlackClient(token, session, base_url=world.workspace.api_url))
        with pytest.raises(SlackAppRefused, match=r"/settings/interactivity: Interactivity requires a Request URL"):
            await apps.create(
                {"display_information": {"name": "x"}, "settings": {"interactivity": {"is_enabled": True}}}
            )
        with pytest.raises(SlackAppRefused, match="no app with this id"):
            await apps.plan_update("A0OTHER", {})


@pytest.mark.first(environ=4)
@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"SLACK_BOT_TOKEN": ""}, "set SLACK_BOT_TOKEN or SLACK_BOT_TOKEN_FILE"),
        ({"SLACK_BOT_TOKEN": "xapp-1-planted-app-token"}, "must be the bot token"),
        ({"SLACK_APP_TOKEN": "xapp-1-planted-of-nobody"}, "connections:write"),
        ({"JOB_API_KEY": "planted-key-of-nobody"}, "(401)"),
        ({"JOB_API_KEY": ""}, "set JOB_API_KEY or JOB_API_KEY_FILE"),
        ({"JOB_API_PROJECT": "", "JOB_API_URL": "nowhere"}, "set JOB_API_PROJECT"),
        ({"JOB_API_URL": f"http://0.0.0.0:{free_port()}"}, "Use https://"),
        ({"SLACK_API_URL": f"http://127.0.0.1:{free_port()}"}, "cannot be reached"),
    ],
)
async def test_setup_explains_a_setting_that_does_not_work(world: World, environ: dict[str, str], words: str) -> None:
    result = await world.set_up_alone(**environ)
    assert result.exit_code == 1
    assert words in result.output
    assert "display_information" not in result.output, "a manifest is for people"


async def test_setup_names_scopes_that_were_not_granted(world: World) -> None:
    world.workspace.credentials.remove_scopes("files:read")
    for without in ("files:read", ""):
        assert (await world.set_up_alone(PAGEHAND_WITHOUT=without)).output.count("files:read") == 0
        assert read_env_file(world.file)["PAGEHAND_WITHOUT"] == "files:read", "it is known the next time"
    world.file.unlink()
    result = await world.set_up_alone()
    assert "not granted the scope files:read" in result.output
    assert result.exit_code == 0
    world.workspace.credentials.remove_scopes("chat:write")
    result = await world.set_up_alone()
    assert result.exit_code == 1
    assert "Reinstall to Workspace" in result.output


async def test_a_key_quoted_in_an_answer_is_masked(world: World) -> None:
    world.job_api.fail(refusing(401, f"The key {KEY} is not known."), times=None)
    result = await world.set_up_alone()
    assert "The key *** is not known" in result.output


async def test_setup_detects_tokens_of_two_apps(world: World) -> None:
    world.workspace.credentials.app_token = "xapp-1-A0ANOTHER-1234-planted"
    result = await world.set_up_alone()
    assert result.exit_code == 1
    assert "SLACK_APP_TOKEN is of another app (A0ANOTHER) than SLACK_BOT_TOKEN (A0PAGEHND)" in result.output


async def test_setup_explains_a_file_that_cannot_be_written(world: World) -> None:
    world.directory = Path("/proc/self")
    result = await world.set_up("--no-input", **world.given())
    assert result.exit_code == 1
    assert re.search(r"\.env cannot be written \(.+\)\. Run this in a directory that you may write in", result.output)
    assert "All answers so far" not in result.output
