"""Parts of the sandbox: what a program needs, what is counted, and what is removed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.sandbox.bubblewrap import needed_paths
from bot.jobserver.sandbox.choice import NoSandbox, open_sandbox
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.sandbox.limits import disk_use
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import AllowedHost


def script(path: Path, first_line: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


def settings(**values: Any) -> JobServerSettings:
    given: dict[str, Any] = {"repository": "/x", "api_key": "k" * 16, "allow_root": True}
    return JobServerSettings(**(given | values))


def test_an_npm_program_comes_with_its_packages_and_interpreter(tmp_path: Path) -> None:
    node = script(tmp_path / "node" / "bin" / "node")
    main = script(tmp_path / "npm" / "lib" / "node_modules" / "agent" / "dist" / "index.js", "#!/usr/bin/env node")
    program = tmp_path / "npm" / "bin" / "agent"
    program.parent.mkdir()
    program.symlink_to("../lib/node_modules/agent/dist/index.js")
    (tmp_path / "npm" / "secrets").mkdir()
    needed = needed_paths(("agent",), f"{program.parent}:{node.parent}")
    npm = tmp_path / "npm"
    of_env = {path for path in needed if path.is_relative_to("/usr") or path.is_relative_to("/bin")}
    assert needed - of_env == {npm / "bin", npm / "lib", main.parents[2], node.parent}


def test_a_single_file_exposes_nothing_of_its_folder(tmp_path: Path) -> None:
    program = script(tmp_path / "agents" / "mine")
    assert needed_paths((str(program),), "/bin") == {program}


def test_files_named_by_the_command_are_visible_and_folders_are_not(tmp_path: Path) -> None:
    program, config, prompt = (script(tmp_path / name / "x") for name in ("program", "config", "prompt"))
    arguments = (str(program), f"--config={config}", str(prompt), str(tmp_path), "relative", "--x=y")
    assert needed_paths(arguments, "/bin") == {program, config, prompt}


def test_a_chain_of_symlinks_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(EditError, match="there is no program a on this server"):
        needed_paths((str(tmp_path / "a"),), "/bin")


def test_a_workspaces_disk_use_excludes_symlink_targets(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "copy", tmp_path / "home")
    for directory in (workspace.copy / "deep" / "er", workspace.home, tmp_path / "outside"):
        directory.mkdir(parents=True)
    before = disk_use(workspace)
    (tmp_path / "outside" / "big").write_bytes(b"x" * 4_000_000)
    (workspace.copy / "link").symlink_to(tmp_path / "outside")
    (workspace.copy / "deep" / "er" / "page").write_bytes(b"x" * 1_000_000)
    (workspace.home / "kept").write_bytes(b"x" * 1_000_000)
    assert 2_000_000 <= disk_use(workspace) - before < 2_100_000


def deep(directory: Path, levels: int) -> None:
    directory.mkdir()
    subprocess.run(
        [sys.executable, "-c", f"import os\nfor _ in range({levels}): os.mkdir('folder'); os.chdir('folder')"],
        cwd=directory,
        check=True,
    )


def test_deeply_nested_folders_are_detected_and_can_be_removed(tmp_path: Path) -> None:
    deep(tmp_path / "copy", 1100)
    (tmp_path / "copy" / "closed").mkdir()
    (tmp_path / "copy" / "closed" / "page").touch()
    (tmp_path / "copy" / "closed").chmod(0)
    with pytest.raises(OSError, match=r"too long|denied"):
        disk_use(Workspace(tmp_path / "copy", tmp_path / "copy"))
    remove(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


async def test_without_bubblewrap_the_server_explains_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        JobServerError, match=r"not installed: .* Or set PAGEHAND_JOBSERVER_SANDBOX=none and .* can read, "
    ):
        await open_sandbox(settings(), tmp_path / "data")


async def test_a_failing_bubblewrap_is_reported_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = script(tmp_path / "bwrap", "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{failing.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(JobServerError, match="does not work here: bwrap: No permissions to create new namespace"):
        await open_sandbox(settings(), tmp_path / "data")


async def test_a_machine_without_seccomp_has_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{script(tmp_path / 'bwrap').parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(JobServerError, match=r"supports x86_64 and aarch64, not riscv64\. Or set PAGEHAND_"):
        await open_sandbox(settings(), tmp_path / "data", machine="riscv64")


@pytest.mark.parametrize("folder", ["data", "data/copies", "."])
async def test_no_setting_exposes_the_data_directory(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "copies").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{script(tmp_path / 'bwrap').parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(JobServerError, match="must not show the data directory"):
        await open_sandbox(settings(sandbox_folders=json_list(tmp_path / folder)), tmp_path / "data")


def json_list(path: Path) -> str:
    return f'["{path}"]'


async def test_without_a_sandbox_a_host_list_is_refused(tmp_path: Path) -> None:
    """So the server does not start with a false sense of protection."""
    for egress in ((), (AllowedHost("a.example", 443),)):
        with pytest.raises(JobServerError, match="set PAGEHAND_JOBSERVER_EGRESS=open"):
            await open_sandbox(settings(sandbox="none", egress=egress), tmp_path)
    assert isinstance(await open_sandbox(settings(sandbox="none", egress="open"), tmp_path), NoSandbox)
