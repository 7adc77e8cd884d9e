"""The documentation names existing things, its links resolve, and what Pagehand names is there."""

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder
from support.promised import PROMISES, files_by_promise
from support.settings_page import PAGE, with_tables
from support.worlds.documented_commands import DOCUMENTS, ROOT, blocks

from bot.app.settings.config import Config
from bot.cli.main import main
from bot.jobserver.agents.named import CLAUDE
from bot.jobserver.middleware import allowed_hosts
from bot.jobserver.settings.server import JobServerSettings
from bot.runtime.settings import variable_name

PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
LINKS = [
    (name, link) for name, page in PAGES.items() for link in re.findall(r"\]\(([^)\s]+)\)", page) if "://" not in link
]
NAMED = re.compile(
    r"(?<![\w/])(?:bot/docs/\w+|(?:bot|tests|\.deploy|\.github)/(?:\w+/)*[A-Z]+|\.deploy/[\w.]+)\.(?:md|yml)\b"
)
"""A document or a file for deployment, as messages, help, units, alerts and comments name it: from the top."""


def headings(page: str) -> set[str]:
    """Returns the fragments of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_there_is_a_page_for_each_reader() -> None:
    of_readers = ("agents", "develop", "jobserver", "operate", "security", "settings", "slack", "start")
    beside = (".deploy/README.md", "README.md", "bot/queue/README.md", "tests/README.md")
    of_github = (f".github/{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"))
    assert set(PAGES) == {*(f"bot/docs/{name}.md" for name in of_readers), *beside, *of_github}


def test_every_link_resolves() -> None:
    for page, link in LINKS:
        path, _, fragment = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), (page, link)
        assert not fragment or fragment in headings(target.read_text(encoding="utf-8")), (page, link)


def test_every_file_named_in_the_pages_exists() -> None:
    """By its path from the page's folder, or from the top or one of its rooms."""
    named = [
        (page, path)
        for page, text in PAGES.items()
        for path in re.findall(r"`((?:[\w.-]+/)+\w+\.(?:py|yml|js|txt|csv))`", text)
    ]
    places = ("", "bot", "bot/jobserver", "bot/workspace", "bot/workspace/page/static", "tests")
    assert len(named) > 40
    assert [each for each in named if not any((ROOT / place / each[1]).exists() for place in places)] == []


def test_every_document_that_the_repository_names_exists_and_is_in_the_wheel_if_pagehand_names_it() -> None:
    files = [path for folder in ("bot", "tests", ".deploy", ".github") for path in (ROOT / folder).rglob("*.*")]
    files += [*(ROOT / ".ci").iterdir(), *ROOT.glob("*.*"), ROOT / "Procfile"]
    endings = {"", ".css", ".html", ".js", ".json", ".md", ".py", ".service", ".timer", ".toml", ".yml"}
    named = {
        (path.relative_to(ROOT), name)
        for path in files
        if path.is_file() and path.suffix in endings
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
    }
    shipped = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert len(named) > 20
    assert [each for each in named if not (ROOT / each[1]).exists()] == []
    assert [
        each for each in named if each[0].parts[0] == "bot" and each[0].suffix == ".py" and each[1] not in shipped
    ] == []


def test_the_page_of_the_settings_is_current() -> None:
    """Run `.venv/bin/python tests/support/settings_page.py`."""
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page


@pytest.mark.parametrize("name", list(main.commands))
def test_every_command_is_shown(name: str) -> None:
    assert any(f"pagehand {name}" in page for page in PAGES.values())


def test_every_scope_and_event_is_explained() -> None:
    manifest = yaml.safe_load((ROOT / "manifest.yml").read_text(encoding="utf-8"))
    scopes = manifest["oauth_config"]["scopes"]["bot"]
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert [name for name in (*scopes, *events) if f"`{name}`" not in PAGES["bot/docs/slack.md"]] == []


def test_every_promise_has_a_test_and_every_marker_a_promise() -> None:
    assert set(files_by_promise()) == set(PROMISES)


def test_tests_use_the_deployed_versions() -> None:
    deployed, tested = (
        set(re.findall(r"^([a-z0-9._-]+==\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.txt", "tests/requirements.txt")
    )
    assert deployed < tested


DEPLOY = Path(__file__).parents[3] / ".deploy"
COMPOSE = sorted(DEPLOY.glob("compose*.yml"))
PODS = DEPLOY / "kubernetes.jobworker.yml"
FILES = [*COMPOSE, *DEPLOY.glob("systemd/*.service"), DEPLOY / "Dockerfile", PODS]
OF_PROGRAMS = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE", "PATH"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_variable_in_deployment_files_is_a_setting(file: Path) -> None:
    settings = {variable_name(kind, field) for kind in (Config, JobServerSettings) for field in kind.model_fields}
    known = OF_PROGRAMS | settings | {f"{name}_FILE" for name in settings}
    if file == PODS:
        named = {variable["name"] for variable in worker_pod()["containers"][0]["env"]}
    elif file.suffix == ".yml":
        composed = yaml.safe_load(file.read_text(encoding="utf-8"))["services"].values()
        named = {name for service in composed for name in service.get("environment", {})}
    else:
        lines = re.findall(r"^(?:ENV |Environment=)(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        named = {name for line in lines for name in re.findall(r"(?:^| )([A-Z_]+)=", line)}
    assert named
    assert named <= known


def worker_pod() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(PODS.read_text(encoding="utf-8"))["spec"]["template"]["spec"]
    return found


def test_whatever_runs_a_worker_gives_it_more_time_to_stop_than_its_agents() -> None:
    unit = dict(re.findall(r"(\w+)=(\d+)$", (DEPLOY / "systemd/pagehand-jobworker.service").read_text(), re.MULTILINE))
    service = yaml.safe_load((DEPLOY / "compose.jobworker.yml").read_text())["services"]["jobworker"]
    variables = {each["name"]: each["value"] for each in worker_pod()["containers"][0]["env"]}
    times = [
        (unit["PAGEHAND_JOBSERVER_STOP_TIME"], unit["TimeoutStopSec"]),
        (service["environment"]["PAGEHAND_JOBSERVER_STOP_TIME"], service["stop_grace_period"].removesuffix("s")),
        (variables["PAGEHAND_JOBSERVER_STOP_TIME"], worker_pod()["terminationGracePeriodSeconds"]),
    ]
    assert all(int(killed) >= int(stopped) + 10 for stopped, killed in times)


def test_the_image_contains_the_default_agent_of_the_job_server() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    arguments = dict(re.findall(r"^ARG (AGENT_\w+)=(\S+)$", dockerfile, re.MULTILINE))
    assert CLAUDE.install.endswith(f" {arguments['AGENT_PACKAGE']} --before={arguments['AGENT_PACKAGES_BEFORE']}")


def test_every_process_of_the_bot_can_reach_the_job_server_of_compose() -> None:
    """Each process reads all settings before it starts, and the job server refuses host names that it does not know."""
    base, added = (
        yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))["services"]
        for name in ("compose.yml", "compose.jobserver.yml")
    )
    bots = {name for name, service in base.items() if service["image"] == "pagehand"} - {"migrate"}
    assert bots == {"worker", "web"}
    for name in bots:
        assert added[name]["environment"] == added["worker"]["environment"]
    served = {name: value for name, value in added["jobserver"]["environment"].items() if "KEY" not in name}
    served |= {"PAGEHAND_JOBSERVER_PUBLIC_URL": "http://127.0.0.1:8765", "PAGEHAND_JOBSERVER_API_KEY": "x" * 16}
    settings = JobServerSettings.from_environment(served | {"PAGEHAND_JOBSERVER_REPOSITORY": "https://x.example/r"})
    url = urlsplit(added["worker"]["environment"]["JOB_API_URL"])
    assert (url.hostname, url.port) == ("jobserver", settings.port), "the name of the service"
    assert url.hostname in allowed_hosts(settings.host, settings.public_url or "", settings.host_names)


def test_every_path_that_a_container_writes_is_in_a_volume() -> None:
    for file in COMPOSE:
        composed = yaml.safe_load(file.read_text(encoding="utf-8"))
        named = {
            volume.partition(":")[0]
            for service in composed["services"].values()
            for volume in service.get("volumes", [])
        }
        declared = yaml.safe_load((DEPLOY / "compose.yml").read_text(encoding="utf-8"))["volumes"]
        assert named <= set(declared) | set(composed.get("volumes", {}))


COMMAND_PAGES = ("bot/docs/operate.md", "bot/docs/start.md", "bot/docs/slack.md")
DEPLOYED = ROOT / ".deploy"


def commands(page: str) -> list[list[str]]:
    text = "\n".join(blocks(page, "text")).replace("\\\n", " ")
    for short, long in re.findall(r"(?m)^alias (\w+)='(.*)'$", text):
        text = re.sub(rf"(?m)^{short} ", f"{long} ", text)
    lines = [line.removeprefix("sudo ") for line in text.splitlines() if not line.startswith("alias ")]
    return [shlex.split(command) for line in lines for command in line.split(" && ") if command]


COMMANDS = [command for page in COMMAND_PAGES for command in commands(page)]


def after(words: Sequence[str], *options: str) -> list[str]:
    """Returns the word after each of the options."""
    return [word for option, word in pairwise(words) if option in options]


def pagehand_arguments(words: Sequence[str]) -> list[str]:
    """Returns what a command passes to Pagehand; nothing if it does not run it."""
    match = re.search(r"(?:bin/pagehand|(?:exec|run)(?: --\S+)* \w+ pagehand|python -m bot) (.*)$", " ".join(words))
    return match.group(1).split() if match else []


@pytest.mark.parametrize("words", COMMANDS, ids=shlex.join)
def test_every_file_and_service_exists(words: list[str]) -> None:
    files = [word for word in words if word.startswith(".deploy/")] + after(words, "-r")
    assert [file for file in files if not (ROOT / file).exists()] == []
    if words[0] in {"systemctl", "journalctl"}:
        unit = words[-1] if words[0] == "systemctl" else words[2]
        assert (DEPLOYED / "systemd" / (unit if "." in unit else f"{unit}.service")).exists()
    if words[:2] == ["docker", "compose"]:
        composed = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in DEPLOYED.glob("compose*.yml")]
        plain = [word for word in words if not word.startswith("--")]
        named = set(after(plain, "exec", "logs", "run", "start", "stop"))
        assert named <= {service for each in composed for service in each["services"]}


def test_every_command_of_pagehand_exists_with_its_options() -> None:
    given = [arguments for words in COMMANDS if (arguments := pagehand_arguments(words))]
    assert len(given) >= 3
    for arguments in given:
        (command,) = (main.commands[word] for word in arguments if word in main.commands)
        known = {option for parameter in (*main.params, *command.params) for option in parameter.opts}
        assert {word for word in arguments if word.startswith("--")} <= known


def test_platforms_are_given_the_procfiles_lines() -> None:
    page = (ROOT / COMMAND_PAGES[0]).read_text(encoding="utf-8")
    lines = (ROOT / "Procfile").read_text(encoding="utf-8").splitlines()
    procfile = dict(line.split(": ", 1) for line in lines)
    assert set(procfile) <= set(re.findall(r"`(\w+)`", page))
    section = page.partition("## A platform with a Procfile")[2].partition("```")[0]
    assert set(re.findall(r"`(python -m bot \w+)`", section)) == set(procfile.values())


def test_fly_runs_the_image_as_configured() -> None:
    (block,) = blocks(COMMAND_PAGES[0], "toml")
    fly = tomllib.loads(block)
    assert (ROOT / fly["build"]["dockerfile"]).exists()
    started = [*fly["processes"].values(), fly["deploy"]["release_command"]]
    assert all(command.split()[0] == "pagehand" and command.split()[1] in main.commands for command in started)
    assert fly["http_service"]["internal_port"] == Config.model_fields["port"].default
    assert set(fly["http_service"]["processes"]) <= set(fly["processes"])


def test_systemd_passes_secrets_on_as_the_guide_says(tmp_path: Path) -> None:
    """The lines for `systemctl edit pagehand`, in the place of a drop-in."""
    (lines,) = blocks(COMMAND_PAGES[0], "ini")
    unit = (DEPLOYED / "systemd" / "pagehand.service").read_text(encoding="utf-8")
    (tmp_path / "pagehand.service").write_text(unit.replace("/opt/pagehand/.venv/bin/pagehand", "/bin/true"))
    (tmp_path / "pagehand.service.d").mkdir()
    (tmp_path / "pagehand.service.d" / "override.conf").write_text(lines)
    if not (program := shutil.which("systemd-analyze")):
        pytest.skip("systemd-analyze is not installed: the drop-in was not checked by it")
    command = [program, "verify", "--man=no", str(tmp_path / "pagehand.service")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", COMMAND_PAGES)
def test_every_option_that_a_page_names_exists(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    every: list[click.Command] = [main, *main.commands.values()]
    known = {option for command in every for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"`(--[\w-]+)", page)) <= known | set(main.context_settings["help_option_names"])
