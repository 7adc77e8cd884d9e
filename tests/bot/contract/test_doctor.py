"""`pagehand doctor` finds each fault, says what to do about it, and reports nothing if all is well: against the real
workspace, a job API over HTTP and a real database."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler
from support.servers.fake_job_api import KEY, PROJECT, Operation, refusing, slow
from support.servers.postgres import PostgresServer
from support.servers.silent import black_hole_port, mute_port
from support.worlds.doctor_world import REQUEST_URL, SIGNING_SECRET, Setup, hurried, note, set_up
from support.worlds.store_world import Sql

from bot.app.checks.database import check_database, room_finding
from bot.app.checks.job_api import check_job_api
from bot.app.checks.whole import Check, examine, run_all
from bot.app.settings.config import load
from bot.cli.demo_services import manifest
from bot.cli.doctor import in_json
from bot.domain.findings import Finding, FindingStatus, LastTime
from bot.domain.projects import JobApiAbilities
from bot.store.schema.migration import known_versions
from bot.workspace.model.app_config import AppConfig, SlashCommand

pytestmark = pytest.mark.promise("doctor")


@pytest.fixture
async def setup(used: str) -> AsyncIterator[Setup]:
    async with set_up(manifest(), used) as made:
        yield made


@pytest.mark.either_database
async def test_a_healthy_set_up_has_no_faults_and_skips_the_unknown(setup: Setup) -> None:
    assert await setup.faults() == {}
    not_checked = {check for check, finding in setup.found.items() if finding.status is FindingStatus.NOT_CHECKED}
    assert not_checked <= {f"job_api.docs.{each.name}" for each in fields(JobApiAbilities)}
    assert "Pagehand" in setup.found["slack.bot_token"].found or "pagehand" in setup.found["slack.bot_token"].found
    assert setup.job_api.created == []


@pytest.mark.first(settings=4)
@pytest.mark.either_database
@pytest.mark.parametrize(
    ("settings", "check", "words"),
    [
        ({"SLACK_BOT_TOKEN": "xapp-1-planted-app-token"}, "settings.SLACK_BOT_TOKEN", "must be the bot token"),
        ({"SLACK_APP_TOKEN": "xoxb-planted-bot-token"}, "settings.SLACK_APP_TOKEN", "must be the app-level token"),
        ({"SLACK_SIGNING_SECRET": "xoxb-planted-bot-token"}, "settings.SLACK_SIGNING_SECRET", "must be the signing"),
        ({"JOB_API_KEY": ""}, "settings.JOB_API_KEY", "is missing"),
        ({"PORT": "x"}, "settings.PORT", "must be a valid integer"),
        (
            {"PAGEHAND_ALLOWED_CHANELS": "C0NOWHERE"},
            "settings.PAGEHAND_ALLOWED_CHANELS",
            "PAGEHAND_ALLOWED_CHANNELS meant",
        ),
        ({"PAGEHAND_PORT": "8080"}, "settings.PAGEHAND_PORT", "Set PORT instead"),
        ({"SLACK_BOT_TOKEN": "xoxb-planted-of-nobody"}, "slack.bot_token", "Slack does not know it"),
        ({"SLACK_APP_TOKEN": "xapp-planted-of-nobody"}, "slack.app_token", "Slack does not know it"),
        ({"JOB_API_KEY": "planted-key-of-nobody"}, "job_api.docs", "(401)"),
        ({"JOB_API_URL": "http://127.0.0.1:9"}, "job_api.docs", "cannot be reached"),
        ({"JOB_API_CANCEL": ""}, "job_api.docs.cancel", "more than JOB_API_CANCEL=false"),
        ({"PAGEHAND_ALLOWED_CHANNELS": "C0NOWHERE"}, "channels.C0NOWHERE", "does not show Pagehand the channel"),
        ({"PAGEHAND_COMMAND": "/write"}, "manifest.command", "slash_commands: + /write"),
    ],
)
async def test_a_wrong_setting_is_named(setup: Setup, settings: dict[str, str], check: str, words: str) -> None:
    assert words in (await setup.fault(check, **settings)).found


@pytest.mark.either_database
async def test_a_revoked_token_does_not_hide_independent_checks(setup: Setup) -> None:
    setup.workspace.credentials.revoke()
    faults = await setup.faults()
    assert set(faults) == {"slack.bot_token", "slack.app_token"}
    assert "it was revoked" in faults["slack.bot_token"].found
    assert "OAuth & Permissions" in faults["slack.bot_token"].fix
    assert setup.found["slack.scopes"].status is FindingStatus.NOT_CHECKED
    assert setup.found["job_api.docs"].status is FindingStatus.OK
    setup.workspace.credentials.refusal = None
    assert await setup.faults() == {}


@pytest.mark.either_database
async def test_a_removed_scope_is_named_with_what_it_disables(setup: Setup) -> None:
    setup.workspace.credentials.remove_scopes("files:read")
    fault = await setup.fault("slack.scopes.files:read")
    assert fault.status is FindingStatus.WARNING
    assert "names and links of files" in fault.why
    assert "Reinstall to Workspace" in fault.fix
    setup.workspace.credentials.remove_scopes("chat:write")
    assert (await setup.faults())["slack.scopes.chat:write"].status is FindingStatus.ERROR
    setup.workspace.credentials.reinstall()
    assert await setup.faults() == {}


@pytest.mark.either_database
async def test_a_scope_declined_on_purpose_is_no_fault(setup: Setup) -> None:
    setup.workspace.credentials.remove_scopes("files:read", "im:history", "usergroups:read")
    without = {"PAGEHAND_WITHOUT": "files:read, im:history,usergroups:read,chat:write"}
    assert await setup.faults(**without) == {}
    assert "PAGEHAND_WITHOUT says. Without it, direct" in setup.found["slack.scopes.im:history"].found
    faults = await setup.faults()
    assert set(faults) == {f"slack.scopes.{name}" for name in ("files:read", "im:history", "usergroups:read")}
    assert "add files:read to PAGEHAND_WITHOUT" in faults["slack.scopes.files:read"].fix
    fault = await setup.fault("slack.scopes.usergroups:read", **without, PAGEHAND_ALLOWED_GROUPS="S0WRITERS")
    assert "nobody counts as a member" in fault.why, "another setting needs it"
    setup.workspace.credentials.remove_scopes("chat:write")
    assert "nothing can be posted" in (await setup.fault("slack.scopes.chat:write", **without)).why


@pytest.mark.either_database
@pytest.mark.parametrize(("skew", "words"), [(-400.0, "behind Slack's"), (400.0, "ahead of Slack's")])
async def test_a_wrong_clock_is_reported(setup: Setup, skew: float, words: str) -> None:
    setup.skew = skew
    assert words in (await setup.faults())["slack.clock"].found


@pytest.mark.either_database
async def test_a_job_api_without_a_configured_ability_is_reported(setup: Setup) -> None:
    for operation in (Operation.CANCEL, Operation.UPLOAD):
        setup.job_api.fail(refusing(405), operation, times=None)
    faults = await setup.faults()
    assert set(faults) == {"job_api.docs.cancel", "job_api.docs.files"}
    assert "JOB_API_CANCEL=true, but the job API does not have that." in faults["job_api.docs.cancel"].found
    assert await setup.faults(JOB_API_CANCEL="", JOB_API_FILES="") == {}


@asynccontextmanager
async def answering(path: str, answer: Handler) -> AsyncIterator[str]:
    """A server of a test's own; gives its address."""
    application = web.Application()
    application.router.add_route("*", path, answer)
    async with TestServer(application) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.mark.either_database
@pytest.mark.parametrize(
    ("status", "scopes", "finding", "words"),
    [
        (200, {"X-OAuth-Scopes": "repo"}, FindingStatus.OK, "takes the token."),
        (200, {}, FindingStatus.OK, "If it is fine-grained, it may not read checks"),
        (401, {}, FindingStatus.WARNING, "does not take the token"),
        (None, {}, FindingStatus.WARNING, "gives no answer"),
    ],
)
async def test_a_code_host_takes_its_token(
    setup: Setup, status: int | None, scopes: dict[str, str], finding: FindingStatus, words: str
) -> None:
    tokens = []

    async def limits(request: web.Request) -> web.Response:
        tokens.append(request.headers["Authorization"])
        return web.json_response({}, status=status or 200, headers=scopes)

    async with answering("/api/v3/rate_limit", limits) as address:
        url = "http://127.0.0.1:9" if status is None else address
        found = await setup.examine(CODE_HOST_URL=url, CODE_HOST_TOKEN="planted-code-host-token")
    assert (found["code_host.127.0.0.1"].status, words in found["code_host.127.0.0.1"].found) == (finding, True)
    assert tokens == ([] if status is None else ["Bearer planted-code-host-token"])


@pytest.mark.either_database
@pytest.mark.parametrize(
    ("asks_first", "names_jobs", "path", "status", "words"),
    [
        (True, True, "", FindingStatus.OK, "answers, and takes the key"),
        (True, True, "/v2", FindingStatus.ERROR, "there is no job API"),
        (False, True, "/elsewhere", FindingStatus.ERROR, "there is no job API"),
        (False, True, "", FindingStatus.WARNING, "takes any key"),
        (True, False, "", FindingStatus.NOT_CHECKED, "shows with the first one"),
    ],
)
async def test_a_404_proves_neither_the_address_nor_the_key(
    setup: Setup, *, asks_first: bool, names_jobs: bool, path: str, status: FindingStatus, words: str
) -> None:
    """`asks_first`: for the key, whatever the address; `names_jobs`: a job is not found in words of its own."""

    async def answer(request: web.Request) -> web.Response:
        if asks_first and request.headers["Authorization"] != f"Bearer {KEY}":
            return web.json_response({"error": "who is there?"}, status=401)
        is_job = request.path == f"/v2/agent/{PROJECT}/job/pagehand-doctor" and names_jobs
        return web.json_response({"error": "no such job" if is_job else "nothing is here"}, status=404)

    async with answering("/{path:.*}", answer) as address:
        finding = (await setup.examine(JOB_API_URL=address + path))["job_api.docs"]
    assert (finding.status, words in finding.found) == (status, True), finding
    assert finding.fix or status is FindingStatus.OK


@pytest.mark.either_database
@pytest.mark.parametrize(
    ("told", "has"),
    [
        ({"x-projects": {PROJECT: {"modes": ["edit", "plan", "ask"]}}}, True),
        ({"x-projects": {PROJECT: {"modes": ["edit"]}}, "mode": 1}, False),
        ({"mode": 1}, True),
        ({}, False),
    ],
)
async def test_the_modes_of_a_job_api_are_compared_with_the_settings(
    setup: Setup, told: dict[str, Any], *, has: bool
) -> None:
    """In both directions, and by project where the job API tells that. One that lacks them may do at once what somebody
    wanted to be shown first.
    """

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/openapi.json":
            return web.json_response(told)
        is_job = request.path == f"/v2/agent/{PROJECT}/job/pagehand-doctor"
        return web.json_response({"error": "no such job" if is_job else "nothing is here"}, status=404)

    async with answering("/{path:.*}", answer) as address:
        for setting in (True, False):
            found = await setup.examine(JOB_API_URL=address, JOB_API_MODES=str(setting).lower())
            differs = FindingStatus.ERROR if setting else FindingStatus.WARNING
            assert found["job_api.docs.modes"].status is (FindingStatus.OK if has is setting else differs)


@pytest.mark.either_database
async def test_one_key_of_a_rotation_has_to_work(setup: Setup) -> None:
    unknown = "planted-key-that-is-not-known"
    for keys in (f"{KEY} {unknown}", f"{unknown} {KEY}"):
        assert await setup.faults(JOB_API_KEY=keys) == {}
        assert "takes the key" in setup.found["job_api.docs"].found
        assert setup.found["job_api.docs.cancel"].status is FindingStatus.OK, "asked with the key that works"
    fault = await setup.fault("job_api.docs", JOB_API_KEY=f"{unknown} {unknown}-1")
    assert fault.status is FindingStatus.ERROR


@pytest.mark.either_database
async def test_an_archived_channel_is_reported_but_not_a_joinable_one(setup: Setup) -> None:
    channel = setup.workspace.channels["docs"]
    setup.workspace.channels.remove_bot("docs")
    assert await setup.faults(PAGEHAND_ALLOWED_CHANNELS=channel.id) == {}
    setup.workspace.channels.archive("docs")
    fault = await setup.fault(f"channels.{channel.id}", PAGEHAND_ALLOWED_CHANNELS=channel.id)
    assert "is archived" in fault.found


@pytest.mark.either_database
async def test_an_unreadable_key_file_of_a_project_is_reported(setup: Setup, tmp_path: Path) -> None:
    key = tmp_path / "key"
    files = {"JOB_API_KEY": "", "JOB_API_KEY_FILE": str(key)}
    for words in ("No such file", "Is a directory"):
        fault = await setup.fault("settings.JOB_API_KEY", **files)
        assert f"JOB_API_KEY_FILE names a file that cannot be read: {words}" in fault.found
        assert setup.found["job_api"].status is FindingStatus.NOT_CHECKED
        key.mkdir(mode=0o700, exist_ok=True)
    key.rmdir()
    key.write_text(setup.environ["JOB_API_KEY"])
    key.chmod(0o600)
    assert await setup.faults(**files) == {}


CHANGES: Sequence[tuple[Callable[[AppConfig], AppConfig], str, str]] = [
    (lambda app: replace(app, events=app.events - {"message.im"}), "events.message.im", "bot_events: + message.im"),
    (lambda app: replace(app, interactivity=False), "interactivity", "interactivity.is_enabled: false -> true"),
    (lambda app: replace(app, home_tab=False), "home", "home_tab_enabled: false -> true"),
    (lambda app: replace(app, shortcuts=app.shortcuts[:1]), "shortcuts", "features.shortcuts: + "),
    (lambda app: replace(app, commands=(SlashCommand("/docs"),)), "command", "/docs.should_escape: "),
]


@pytest.mark.first(change=2)
@pytest.mark.either_database
@pytest.mark.parametrize(("change", "check", "words"), CHANGES, ids=[check for _, check, _ in CHANGES])
async def test_what_the_app_lacks_is_named_with_the_command_that_adds_it(
    used: str, change: Callable[[AppConfig], AppConfig], check: str, words: str
) -> None:
    async with set_up(change(manifest()), used) as setup:
        fault = await setup.fault(f"manifest.{check}")
        assert words in fault.found
        assert f"setup --app-id {manifest().app_id}`" in fault.fix


def over_http(**changes: Any) -> AppConfig:
    (command,) = manifest().commands
    return replace(
        manifest(),
        request_url=REQUEST_URL,
        interactivity_url=changes.pop("interactivity_url", REQUEST_URL),
        commands=(replace(command, url=REQUEST_URL),),
    )


HTTP = {"SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": SIGNING_SECRET}


@pytest.mark.either_database
async def test_the_transport_must_match_the_app(used: str) -> None:
    async with set_up(manifest(), used) as setup:
        faults = await setup.faults(**HTTP)
        assert {"manifest.socket_mode", "manifest.addresses"} == set(faults)
    async with set_up(over_http(), used) as setup:
        assert await setup.faults(**HTTP) == {}
        faults = await setup.faults()
        assert set(faults) == {"slack.app_token", "manifest.socket_mode"}
        assert "Enable Socket Mode" in faults["slack.app_token"].fix
    async with set_up(over_http(interactivity_url="https://elsewhere.example"), used) as setup:
        fault = await setup.fault("manifest.addresses", **HTTP)
        assert "settings.interactivity.request_url: " in fault.found
        assert f" --http {REQUEST_URL}`" in fault.fix, "without it, setup would turn Socket Mode on"


@pytest.mark.either_database
async def test_without_a_valid_configuration_token_the_rest_is_checked(setup: Setup) -> None:
    without = {finding.check: finding for finding in await examine(setup.environ)}
    assert without["manifest"].status is FindingStatus.NOT_CHECKED
    wrong = {
        each.check: each for each in await examine(setup.environ, configuration_token="xoxe.xoxp-planted-of-nobody")
    }
    assert wrong["manifest"].status is FindingStatus.ERROR
    assert "12 hours" in wrong["manifest"].fix
    assert not [each for each in wrong.values() if each.is_fault and each.check != "manifest"]


@pytest.mark.either_database
async def test_a_missing_delivery_is_a_warning_and_the_last_one_is_dated(database: str) -> None:
    async with set_up(manifest(), database) as setup:
        faults = await setup.faults()
        assert {"arrivals.command", "arrivals.event", "arrivals.click"} <= set(faults)
        assert {each.status for each in faults.values()} == {FindingStatus.WARNING}
        await note(database, LastTime.COMMAND)
        assert "less than a minute ago" in (await setup.examine())["arrivals.command"].found


@pytest.mark.either_database
async def test_wrongly_signed_requests_put_the_secret_in_doubt(used: str) -> None:
    async with set_up(over_http(), used) as setup:
        await note(used, LastTime.BAD_SIGNATURE)
        assert "Signing Secret" in (await setup.fault("slack.signing_secret", **HTTP)).fix
        await note(used, LastTime.EVENT)
        assert await setup.faults(**HTTP) == {}


async def test_a_slow_check_times_out_and_a_broken_one_hides_no_other(setup: Setup) -> None:
    setup.job_api.fail(slow(60.0), Operation.GET)

    async def broken() -> Sequence[Finding]:
        raise ZeroDivisionError

    async def well() -> Sequence[Finding]:
        return [Finding.ok("well", "It is.")]

    found = await run_all(hurried([Check("broken", broken), Check("well", well), job_api_check(setup)]))
    assert [(each.check, each.status) for each in found] == [
        ("broken", FindingStatus.NOT_CHECKED),
        ("well", FindingStatus.OK),
        ("job_api.docs", FindingStatus.ERROR),
    ]
    setup.job_api.heal()


async def test_a_check_that_cleans_up_slowly_is_not_awaited() -> None:
    ended = asyncio.Event()

    async def lingers() -> Sequence[Finding]:
        try:
            await asyncio.Event().wait()
        finally:
            await ended.wait()
        return []

    (found,) = await run_all(hurried([Check("lingers", lingers)]))
    assert found.status is FindingStatus.ERROR
    ended.set()


def job_api_check(setup: Setup) -> Check:
    (project,) = load(setup.environ).projects
    return Check("job_api.docs", lambda: check_job_api(project))


async def test_the_json_has_the_documented_shape(setup: Setup) -> None:
    document = json.loads(in_json(await examine(setup.environ)))
    assert set(document) == {"version", "ok", "findings"}
    assert document["ok"] is True
    assert {frozenset(each) for each in document["findings"]} == {frozenset({"check", "status", "found", "why", "fix"})}
    assert {each["status"] for each in document["findings"]} <= set(FindingStatus)


MB = 1 << 20
Port = Callable[[], AbstractContextManager[int]]


def check(url: str) -> Check:
    return Check("database", partial(check_database, url, command="/docs", by_socket=True, now=time.time))


async def found_in(url: str) -> dict[str, Finding]:
    return {finding.check: finding for finding in await run_all([check(url)])}


async def test_a_missing_database_is_not_a_fault_and_is_not_created(tmp_path: Path) -> None:
    async with set_up(manifest(), f"sqlite:///{tmp_path}/new.db") as setup:
        faults = await setup.faults()
        assert {check.partition(".")[0] for check in faults} == {"arrivals"}
        assert files_in(tmp_path) == []


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_damaged_database_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    file.write_text("This is no database. " * 1_000)
    async with set_up(manifest(), f"sqlite:///{file}") as setup:
        assert list(await setup.faults()) == ["database"]


@pytest.mark.parametrize(
    ("free", "status"),
    [(1024 * MB, FindingStatus.OK), (1023 * MB, FindingStatus.WARNING), (99 * MB, FindingStatus.ERROR)],
)
def test_a_nearly_full_disk_is_reported(free: int, status: FindingStatus) -> None:
    finding = room_finding(Path("/var/lib/pagehand"), free)
    assert finding.status is status
    assert f"{free // MB:,} MB free at /var/lib/pagehand" in finding.found
    assert finding.is_fault is ("Free some room" in finding.fix)


async def test_an_older_schema_is_reported_with_its_command(used: str, server: PostgresServer | None, sql: Sql) -> None:
    newest = known_versions()[-1]
    for version in ("0018", newest):
        await sql(
            "UPDATE pagehand_schema SET version_num = :version, compatible_with = :oldest",
            version=version,
            oldest=version,
        )
        found = await found_in(used)
        assert [each.check for each in found.values() if each.is_fault] == (["database"] if version != newest else [])
        if version != newest:
            assert found["database"].status is (FindingStatus.WARNING if server is None else FindingStatus.ERROR)
            assert "older version" in found["database"].found
            assert "`pagehand migrate`" in found["database"].fix


@pytest.mark.parametrize("port", [mute_port, black_hole_port])
async def test_a_database_that_never_answers_times_out(port: Port) -> None:
    with port() as number:
        (found,) = await run_all(hurried([check(f"postgresql://pagehand@127.0.0.1:{number}/pagehand")]))
    assert (found.check, found.passing) == ("database", True)
    assert "There was no answer" in found.found
