"""The user that a server runs as: root only if that is allowed, and the owner of its data directory."""

import asyncio
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from support.worlds.jobserver_world import KEY, make_bare, running, serving, until

from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.choice import require_ordinary_user
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.projects import Projects
from bot.jobserver.settings.sandbox import SandboxSettings
from bot.jobserver.setup_check import check_machine

pytestmark = pytest.mark.promise("root")

as_root = pytest.mark.skipif("os.geteuid() != 0", reason="for a server that is root")
PAGES = {"docs/start.md": "# Start\n\nA colour.\n"}
JOBS_USER = 1_900_000_001
"""As 1.0.0 chose them."""
CHECK = (("true",),)


def test_only_root_is_refused_and_only_unless_it_is_allowed() -> None:
    require_ordinary_user(SandboxSettings(), 1000)
    require_ordinary_user(SandboxSettings(allow_root=True), 0)
    with pytest.raises(JobServerError, match=r"would run as root, .* Or set PAGEHAND_JOBSERVER_ALLOW_ROOT=true"):
        require_ordinary_user(SandboxSettings(), 0)


@as_root
@pytest.mark.parametrize("programs", [{"editor": "command", "command": ("true",)}, {"checks": CHECK}, {"agent": "x"}])
async def test_a_server_that_is_root_runs_no_programs(tmp_path: Path, programs: dict[str, Any]) -> None:
    """Nothing was written that would belong to root afterwards."""
    bare = make_bare(tmp_path / "docs.git", PAGES)
    with pytest.raises(JobServerError, match="would run as root"):
        async with running(bare, tmp_path / "data", allow_root=False, **programs):
            pass
    assert not (tmp_path / "data").exists()
    settings = JobServerSettings(repository=str(bare), api_key=KEY, data_directory=tmp_path / "data", checks=CHECK)
    assert [finding.is_ok async for finding in check_machine(Projects.one(settings)) if finding.name == "user"] == [
        False
    ]


@as_root
async def test_the_built_in_editor_runs_as_anybody(tmp_path: Path) -> None:
    """The repository's own checkers are programs."""
    async with serving(
        tmp_path, {**PAGES, ".codespellrc": "[codespell]\n"}, allow_root=False, sandbox="bubblewrap"
    ) as world:
        job = await world.done('Replace "colour" with "color"')
    assert job["status"] == "completed"
    problems = [words for check in job["details"]["pullRequest"]["checks"] for words in check["problems"]]
    assert any("would run as root" in words or "is not installed" in words for words in problems)


@pytest.mark.full
@as_root
async def test_a_data_directory_with_other_owners_works_after_the_command_that_its_refusal_names(
    tmp_path: Path,
) -> None:
    """Until then, nothing in it changes. The command follows no links, and an interrupted job is finished."""
    bare, data, go, outside = (tmp_path / name for name in ("docs.git", "data", "go", "outside"))
    make_bare(bare, PAGES)
    outside.touch()
    command = ("sh", "-c", f"touch ~/begun; test -e {go} || sleep 60; echo made > docs/new.md")
    given: dict[str, Any] = {"editor": "command", "command": command}
    async with running(bare, data, **given) as world:
        job = str((await world.create("go")).json()["id"])
        home = data / "jobs" / job / "home"
        await until(lambda: asyncio.to_thread((home / "begun").exists))
    (home / "link").symlink_to(outside)
    copy = home.with_name("copy")
    copy.mkdir(exist_ok=True)
    for path in (outside, home, copy, *home.iterdir()):
        os.chown(path, JOBS_USER, JOBS_USER, follow_symlinks=False)
    before = _seen(data)
    with pytest.raises(JobServerError, match=f"belongs to user {JOBS_USER}, and the job server runs as user 0") as told:
        async with running(bare, data, **given):
            pass
    found = [finding async for finding in check_machine(Projects.one(world.settings)) if finding.name == "data"]
    assert [(finding.is_ok, finding.message) for finding in found] == [(False, str(told.value))]
    assert _seen(data) == before
    words = shlex.split(str(told.value).rpartition(": ")[2])
    assert words == ["chown", "-hR", f"0:{os.getegid()}", str(data)]
    await asyncio.to_thread(subprocess.run, words, check=True)
    assert outside.stat().st_uid == JOBS_USER
    go.touch()
    async with running(bare, data, **given) as world:
        assert (await world.ended(job))["status"] == "completed"
        assert world.show(f"pagehand/{job}", "docs/new.md") == "made\n"


@as_root
async def test_a_check_says_in_a_starts_words_why_a_directory_cannot_be_used(tmp_path: Path) -> None:
    """Of one below a closed folder it said nothing else, and of others not what to do."""
    with tempfile.TemporaryDirectory() as place:
        await asyncio.to_thread(Path(place).chmod, 0o755)
        (file := Path(place, "file")).touch()
        found = {}
        for folder in (Path(place), file, tmp_path / "data"):
            settings = JobServerSettings(repository=place, api_key=KEY, data_directory=folder, port=0)
            os.seteuid(JOBS_USER)
            try:
                found[folder] = [each.message async for each in check_machine(Projects.one(settings)) if not each.is_ok]
                with pytest.raises(JobServerError) as told:
                    await JobServer(settings).start()
            finally:
                os.seteuid(0)
            assert found[folder] == [str(told.value)]
    assert "give this user all of the data directory, as root, and start the job" in found[Path(place)][0]
    assert "it is a file" in found[file][0]
    assert f"a folder above it is closed to user {JOBS_USER}" in found[tmp_path / "data"][0]


def _seen(folder: Path) -> dict[Path, tuple[int, int, int]]:
    found = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    return {path: (stat.st_uid, stat.st_size, stat.st_ctime_ns) for path, stat in found.items()}
