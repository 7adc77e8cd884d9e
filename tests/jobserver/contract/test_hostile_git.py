"""Programs that use git against the server: the `.git` that they leave is ignored, and only files come back."""

import asyncio
from pathlib import Path

import pytest
from support.worlds.hostile_world import hostile_world, needs_bubblewrap
from support.worlds.jobserver_world import KEY, JobServerWorld, git, make_bare

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only")
SECRET = "the operator's secret file"


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    needs_bubblewrap()


GIT = """
def git(*arguments, cwd="."):
    own = ["-c", "user.name=Agent", "-c", "user.email=a@b"]
    return subprocess.run(["git", *own, *arguments], cwd=cwd, capture_output=True, text=True)
git("init", "--quiet")
"""


async def run(tmp_path: Path, program: str) -> tuple[JobServerWorld, str]:
    """Runs the program as a job's editor, and returns the world, stopped, and the job's branch."""
    async with hostile_world(tmp_path, GIT + program) as world:
        job = await world.done("go")
        if job["prLink"]:
            assert SECRET not in (await world.client.get(job["prLink"])).text
    assert git(world.repository, "log", "--format=%s", "main").split() == ["Start"]
    return world, f"pagehand/{job['id']}"


def tree(world: JobServerWorld, branch: str) -> dict[str, str]:
    """Returns each path of a branch with its mode; empty if there is no such branch."""
    if branch not in world.branches():
        return {}
    lines = git(world.repository, "ls-tree", "-r", branch).splitlines()
    return {line.partition("\t")[2]: line.split()[0] for line in lines}


def everything(world: JobServerWorld) -> str:
    """Returns everything that ever came into the repository."""
    objects = git(world.repository, "cat-file", "--batch-check", "--batch-all-objects").splitlines()
    blobs = [line.split()[0] for line in objects if " blob " in line]
    return "".join(git(world.repository, "cat-file", "blob", blob) for blob in blobs)


CHANGE = 'pathlib.Path("page.md").write_text("changed")\n'
LEFT = {
    "filters": """
pathlib.Path(".gitattributes").write_text("* filter=evil diff=evil merge=evil\\n")
for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command",
            "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "credential.helper", "gpg.program",
            "uploadpack.packObjectsHook", "core.gitProxy", "core.askPass"):
    git("config", key, "touch {marker}; cat")
git("config", "include.path", "/workspace/copy/more")
""",
    "hooks": """
hooks = pathlib.Path(".git/hooks")
hooks.mkdir(exist_ok=True)
git("config", "core.hooksPath", "/workspace/copy/.git/hooks")
for name in ("pre-commit", "commit-msg", "post-commit", "pre-push", "reference-transaction", "post-index-change",
             "post-checkout", "prepare-commit-msg", "fsmonitor-watchman"):
    hook = hooks / name
    hook.write_text("#!/bin/sh\\ntouch {marker}\\n")
    hook.chmod(0o755)
""",
    "remotes": """
for key in ("insteadOf", "pushInsteadOf"):
    for start in ("/", "file:", "https:", "ssh:", "git@"):
        git("config", "--add", f"url.{elsewhere}.{{key}}", start)
git("remote", "add", "origin", "{elsewhere}")
git("config", "remote.origin.pushurl", "{elsewhere}")
""",
    "another worktree": 'git("config", "core.worktree", "{outside}")\n',
    "a file that names another": """
import shutil
shutil.rmtree(".git")
git("init", "--quiet", "evil")
git("config", "core.worktree", "{outside}", cwd="evil")
git("config", "filter.evil.clean", "touch {marker}; cat", cwd="evil")
pathlib.Path(".git").write_text("gitdir: evil/.git\\n")
pathlib.Path(".gitattributes").write_text("* filter=evil\\n")
""",
    "a nested repository": """
git("init", "--quiet", "nested")
git("config", "filter.evil.clean", "touch {marker}; cat", cwd="nested")
pathlib.Path("nested/.gitattributes").write_text("* filter=evil\\n")
pathlib.Path("nested/page.md").write_text("inside")
git("add", "--all", cwd="nested"), git("commit", "--quiet", "-m", "x", cwd="nested")
""",
}


@pytest.mark.parametrize(
    "what", [what if what == "hooks" else pytest.param(what, marks=pytest.mark.full) for what in LEFT]
)
async def test_a_git_that_a_program_leaves_runs_shows_and_reaches_nothing(tmp_path: Path, what: str) -> None:
    outside, marker = tmp_path / "outside", tmp_path / "marker"
    outside.mkdir()
    (outside / "secret.md").write_text(SECRET)
    elsewhere = await asyncio.to_thread(make_bare, tmp_path / "elsewhere.git", {"x": "x"})
    before = git(elsewhere, "for-each-ref")
    program = LEFT[what].format(marker=marker, outside=outside, elsewhere=elsewhere)
    world, branch = await run(tmp_path, program + CHANGE)
    assert not marker.exists()
    assert SECRET not in everything(world)
    assert git(elsewhere, "for-each-ref") == before
    found = tree(world, branch)
    assert "page.md" in found
    assert set(found.values()) == {"100644"}, "no link and no submodule"
    assert not [path for path in found if ".git/" in path]


PUSH = """
pathlib.Path("page.md").write_text("past review")
git("add", "--all"), git("commit", "--quiet", "-m", "past review")
for address in ("origin", "{address}", "file://{address}"):
    for target in ("HEAD:main", "HEAD:refs/heads/mine", "+HEAD:refs/heads/main"):
        git("push", address, target)
"""


async def test_no_change_bypasses_review(tmp_path: Path) -> None:
    world, branch = await run(tmp_path, PUSH.format(address=str(tmp_path / "r.git")))
    assert "page.md" in tree(world, branch)
    assert {name.partition("/")[0] for name in world.branches()} == {"main", "pagehand"}
    assert "past review" not in git(world.repository, "log", "--all", "--format=%s").splitlines()


KEYS = """
import base64
pathlib.Path("page.md").write_text("changed")
pathlib.Path("docs/start.md").write_bytes(base64.b64encode(b"xx{key}"))
"""


@pytest.mark.full
async def test_a_program_cannot_extract_the_servers_keys(tmp_path: Path) -> None:
    """Whatever it found, nothing of the change is pushed."""
    async with hostile_world(tmp_path, KEYS.format(key=KEY)) as world:
        job = await world.done("go")
        assert "a key of this job server, in `docs/start.md`" in job["details"]["reason"]
        assert KEY not in world.log(job["id"])
    assert world.branches() == {"main"}
    assert KEY not in everything(world)
