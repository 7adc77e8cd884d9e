"""Commands in the documentation that cannot run in a test name files, units, services and options that exist."""

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click
import pytest
import yaml
from support.worlds.documented_commands import ROOT, blocks

from bot.app.settings.config import Config
from bot.cli.main import main

PAGES = ("bot/docs/operate.md", "bot/docs/start.md", "bot/docs/slack.md")
DEPLOY = ROOT / ".deploy"
NOT_HERE = {
    "apt-get": "would install packages on this machine",
    "cd": "into a directory that only an installation has",
    "cp": "into directories of the system",
    "docker": "there is no Docker on the machines that run the tests, and no image can be pulled",
    "git": "clones from, or pushes to, another machine",
    "heroku": "needs an account",
    "install": "into directories of the system",
    "npm": "would install programs on this machine",
    "journalctl": "there is no systemd on the machines that run the tests",
    "python3": "makes /opt/pagehand/.venv; the README's own installation is run by CI",
    "systemctl": "there is no systemd on the machines that run the tests",
    "systemd-run": "there is no systemd on the machines that run the tests",
    "useradd": "would add a user to this machine",
    ".venv/bin/pagehand": "asks questions, and needs GitHub; test_installing.py follows the page without them",
    ".venv/bin/pip": "installs into /opt/pagehand/.venv; the README's own installation is run by CI",
}
"""The programs, each with the reason why its blocks are not run."""


def commands(page: str) -> list[list[str]]:
    text = "\n".join(blocks(page, "text")).replace("\\\n", " ")
    for short, long in re.findall(r"(?m)^alias (\w+)='(.*)'$", text):
        text = re.sub(rf"(?m)^{short} ", f"{long} ", text)
    lines = [line.removeprefix("sudo ") for line in text.splitlines() if not line.startswith("alias ")]
    return [shlex.split(command) for line in lines for command in line.split(" && ") if command]


COMMANDS = [command for page in PAGES for command in commands(page)]


def after(words: Sequence[str], *options: str) -> list[str]:
    """Returns the word after each of the options."""
    return [word for option, word in pairwise(words) if option in options]


def pagehand_arguments(words: Sequence[str]) -> list[str]:
    """Returns what a command passes to Pagehand; nothing if it does not run it."""
    match = re.search(r"(?:bin/pagehand|(?:exec|run)(?: --\S+)* \w+ pagehand|python -m bot) (.*)$", " ".join(words))
    return match.group(1).split() if match else []


def test_each_skipped_program_has_a_reason_and_vice_versa() -> None:
    assert {words[0] for words in COMMANDS} == set(NOT_HERE)


@pytest.mark.parametrize("words", COMMANDS, ids=shlex.join)
def test_every_file_and_service_exists(words: list[str]) -> None:
    files = [word for word in words if word.startswith(".deploy/")] + after(words, "-r")
    assert [file for file in files if not (ROOT / file).exists()] == []
    if words[0] in {"systemctl", "journalctl"}:
        unit = words[-1] if words[0] == "systemctl" else words[2]
        assert (DEPLOY / "systemd" / (unit if "." in unit else f"{unit}.service")).exists()
    if words[:2] == ["docker", "compose"]:
        composed = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in DEPLOY.glob("compose*.yml")]
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
    page = (ROOT / PAGES[0]).read_text(encoding="utf-8")
    lines = (ROOT / "Procfile").read_text(encoding="utf-8").splitlines()
    procfile = dict(line.split(": ", 1) for line in lines)
    assert set(procfile) <= set(re.findall(r"`(\w+)`", page))
    section = page.partition("## A platform with a Procfile")[2].partition("```")[0]
    assert set(re.findall(r"`(python -m bot \w+)`", section)) == set(procfile.values())


def test_fly_runs_the_image_as_configured() -> None:
    (block,) = blocks(PAGES[0], "toml")
    fly = tomllib.loads(block)
    assert (ROOT / fly["build"]["dockerfile"]).exists()
    started = [*fly["processes"].values(), fly["deploy"]["release_command"]]
    assert all(command.split()[0] == "pagehand" and command.split()[1] in main.commands for command in started)
    assert fly["http_service"]["internal_port"] == Config.model_fields["port"].default
    assert set(fly["http_service"]["processes"]) <= set(fly["processes"])


def test_systemd_passes_secrets_on_as_the_guide_says(tmp_path: Path) -> None:
    """The lines for `systemctl edit pagehand`, in the place of a drop-in."""
    (lines,) = blocks(PAGES[0], "ini")
    unit = (DEPLOY / "systemd" / "pagehand.service").read_text(encoding="utf-8")
    (tmp_path / "pagehand.service").write_text(unit.replace("/opt/pagehand/.venv/bin/pagehand", "/bin/true"))
    (tmp_path / "pagehand.service.d").mkdir()
    (tmp_path / "pagehand.service.d" / "override.conf").write_text(lines)
    if not (program := shutil.which("systemd-analyze")):
        pytest.skip("systemd-analyze is not installed: the drop-in was not checked by it")
    command = [program, "verify", "--man=no", str(tmp_path / "pagehand.service")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", PAGES)
def test_every_option_that_a_page_names_exists(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    every: list[click.Command] = [main, *main.commands.values()]
    known = {option for command in every for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"`(--[\w-]+)", page)) <= known | set(main.context_settings["help_option_names"])
