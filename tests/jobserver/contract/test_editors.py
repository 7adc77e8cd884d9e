"""Editors that are programs, restarts during their work, and hostile repositories."""

import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.worlds.jobserver_world import (
    KEY,
    JobServerWorld,
    git,
    make_bare,
    make_repository,
    running,
    serving,
)

from bot.jobserver.errors import JobServerError

PAGES = {"docs/start.md": "# Start\n\nA colour.\n"}


@asynccontextmanager
async def with_program(tmp_path: Path, program: str, *arguments: str, **settings: Any) -> AsyncIterator[JobServerWorld]:
    """Opens a server whose editor is a Python program given as text."""
    script = tmp_path / "program.py"
    script.write_text(program)
    command = json.dumps([sys.executable, str(script), *arguments])
    repository = tmp_path / "r.git"
    if not repository.exists():
        make_bare(repository, PAGES)
    async with running(repository, tmp_path / "data", editor="command", command=command, **settings) as world:
        yield world


WRITE_INPUT = """
import sys
open("given.md", "w").write(" ".join(sys.argv[1:]) + "|" + sys.stdin.read())
print("working")
"""
NASTY = "--help; $(touch oops) `touch oops` && touch oops | 'x' \"y\" \\ * ~ %s {0}\nsecond line"


@pytest.mark.full
async def test_the_prompt_is_passed_unchanged_on_standard_input(tmp_path: Path) -> None:
    async with with_program(tmp_path, WRITE_INPUT, author="Docs Bot <docs@example.com>") as world:
        job = await world.done(NASTY)
        assert job["model"] == Path(sys.executable).name
        branch = f"pagehand/{job['id']}"
        assert world.show(branch, "given.md") == f"|The instruction:\n\n{NASTY}"
        assert "oops" not in git(world.repository, "ls-tree", "-r", "--name-only", branch)
        assert git(world.repository, "log", "--format=%an|%cn", f"main..{branch}") == "Docs Bot|Docs Bot\n"
        assert "working" in world.log(job["id"])


READ_FILE = """
import pathlib, sys
path = pathlib.Path(sys.argv[1].removeprefix("--message-file="))
pathlib.Path("given.md").write_text(path.read_text() + "|" + sys.stdin.read())
pathlib.Path("path.md").write_text(str(path))
"""


@pytest.mark.full
async def test_the_prompt_is_passed_in_a_file_that_is_deleted_afterwards(tmp_path: Path) -> None:
    async with with_program(tmp_path, READ_FILE, "--message-file={prompt_file}") as world:
        job = await world.done("/docs !id")
        branch = f"pagehand/{job['id']}"
        assert world.show(branch, "given.md") == "The instruction:\n\n/docs !id|"
        path = Path(world.show(branch, "path.md"))
        assert not path.is_relative_to(tmp_path / "data")
        assert not path.parent.exists()


async def test_program_output_is_logged_without_the_servers_key(tmp_path: Path) -> None:
    """Even if it comes in two pieces without a line end."""
    program = f"""
import sys
sys.stdout.write("first {KEY[:5]}"), sys.stdout.flush()
sys.stdout.write("{KEY[5:]} second\\nlast {KEY}"), sys.stdout.flush()
"""
    async with with_program(tmp_path, program) as world:
        job = await world.done("go")
        log = world.log(job["id"])
        assert "first [masked: Pagehand's own credential] second\nlast [masked" in log
        assert KEY not in log + job["details"]["summary"]


async def test_a_failure_shows_the_programs_last_output_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", "planted-secret-of-the-agent")
    program = """
import os, sys
print("some output")
sys.exit(f"\\x1b[31mNo access to the model with {os.environ['AGENT_KEY']}\\x1b[0m")
"""
    async with with_program(tmp_path, program, pass_environment="AGENT_KEY") as world:
        job = await world.done("go")
        told = "the editor ended with exit code 1: No access to the model with [masked: Pagehand's own credential]"
        assert f"failed: {told}" in world.log(job["id"])
        assert job["details"]["reason"].endswith(told)


async def test_only_program_editors_need_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_bare(tmp_path / "r.git", PAGES)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    async with running(repository, tmp_path / "data", sandbox="bubblewrap") as world:
        assert (await world.done('Replace "colour" with "color"'))["prLink"]
    with pytest.raises(JobServerError, match=r"bubblewrap, in which programs and agents run, is not installed"):
        async with running(repository, tmp_path / "data", sandbox="bubblewrap", editor="command", command="true"):
            pass


async def test_a_missing_program_is_named_at_the_start_and_fails_the_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, PAGES, editor="command", command="/nothing/here") as world:
        assert "project docs: there is no program /nothing/here here; without it, jobs fail" in caplog.text
        job = await world.done("go")
        assert job["status"] == "failed"
        assert "cannot be started" in world.log(job["id"])


def make_hostile(directory: Path, outside: Path, marker: Path) -> Path:
    """Adds symlinks to the outside, and hooks, filters and drivers that would each leave a marker."""
    copy = make_repository(directory / "copy", {"docs/start.md": "A colour.\n", "docs/x.bin": "colour\0"})
    (copy / "docs/link.md").symlink_to(outside / "secret.md")
    (copy / "docs/inside.md").symlink_to("start.md")
    (copy / "linked").symlink_to(outside)
    (copy / "docs/colour.md").symlink_to("../../../colour.md")
    (copy / ".gitattributes").write_text("* filter=bad diff=bad merge=bad\n*.md text working-tree-encoding=UTF-8\n")
    (copy / ".gitmodules").write_text(f'[submodule "m"]\n\tpath = m\n\turl = ext::sh -c "touch {marker}"\n')
    (copy / "typos.toml").write_text("[default.extend-words]\nstart = 'colour'\n")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "Links")
    bad = f"touch {marker}; cat"
    for key in ("filter.bad.clean", "filter.bad.smudge", "diff.bad.textconv", "diff.bad.command", "merge.bad.driver",
                "core.fsmonitor", "uploadpack.packObjectsHook", "core.sshCommand", "core.pager"):  # fmt: skip
        git(copy, "config", key, bad)
    for hook in ("pre-receive", "post-receive", "update", "reference-transaction", "post-checkout", "pre-commit",
                 "pre-push", "post-merge", "push-to-checkout", "post-update", "commit-msg"):  # fmt: skip
        path = copy / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {marker}\n")
        path.chmod(0o755)
    bare = directory / "bare.git"
    (copy / ".git").rename(bare)
    git(bare, "config", "core.bare", "true")
    return bare


@pytest.mark.full
async def test_a_hostile_repository_runs_nothing_and_reaches_nothing_outside(tmp_path: Path) -> None:
    outside, marker = tmp_path / "outside", tmp_path / "marker"
    outside.mkdir()
    (outside / "secret.md").write_text("A colour outside.")
    (tmp_path / "colour.md").write_text("A colour above.")
    repository = make_hostile(tmp_path / "h", outside, marker)
    async with running(repository, tmp_path / "data") as world:
        job = await world.done('Replace "colour" with "color"')
        page = await world.client.get(job["prLink"])
        assert page.status_code == 200
        assert "colour outside" not in page.text
        assert (await world.press(job["prLink"], "merge")).status_code == 303
        await world.done("Fix the typos")
        await world.done("Add a page called ../../../outside/secret with the text: x")
        assert world.show("main", "docs/start.md") == "A color.\n"
        assert world.show("main", "docs/colour.md") == "../../../colour.md"
        assert world.show("main", "docs/link.md") == str(outside / "secret.md")
    assert (outside / "secret.md").read_text() == "A colour outside."
    assert [path.name for path in outside.iterdir()] == ["secret.md"]
    assert (tmp_path / "colour.md").read_text() == "A colour above."
    assert not marker.exists()
