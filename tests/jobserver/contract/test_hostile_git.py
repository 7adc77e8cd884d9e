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


FILTERS = """
marker = {marker!r}
pathlib.Path(".gitattributes").write_text("* filter=evil diff=evil merge=evil\\n")
for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command",
            "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "credential.helper", "gpg.program",
            "uploadpack.packObjectsHook", "core.gitProxy", "core.askPass"):
    git("config", key, f"touch {{marker}}; cat")
git("config", "include.path", "/workspace/copy/more")
pathlib.Path("page.md").write_text("changed")
"""


@pytest.mark.full
async def test_filters_of_the_copys_git_run_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    await run(tmp_path, FILTERS.format(marker=str(marker)))
    assert not marker.exists()


HOOKS = """
marker = {marker!r}
hooks = pathlib.Path(".git/hooks")
hooks.mkdir(exist_ok=True)
git("config", "core.hooksPath", "/workspace/copy/.git/hooks")
for name in ("pre-commit", "commit-msg", "post-commit", "pre-push", "reference-transaction", "post-index-change",
             "post-checkout", "prepare-commit-msg", "fsmonitor-watchman"):
    hook = hooks / name
    hook.write_text(f"#!/bin/sh\\ntouch {{marker}}\\n")
    hook.chmod(0o755)
pathlib.Path("page.md").write_text("changed")
"""


async def test_hooks_run_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    world, branch = await run(tmp_path, HOOKS.format(marker=str(marker)))
    assert not marker.exists()
    assert "page.md" in tree(world, branch)


ELSEWHERE = """
for key in ("insteadOf", "pushInsteadOf"):
    for start in ("/", "file:", "https:", "ssh:", "git@"):
        git("config", "--add", f"url.{elsewhere}.{{key}}", start)
git("remote", "add", "origin", "{elsewhere}")
git("config", "remote.origin.pushurl", "{elsewhere}")
pathlib.Path("page.md").write_text("changed")
"""


@pytest.mark.full
async def test_no_remote_of_the_copys_git_gets_the_branch(tmp_path: Path) -> None:
    elsewhere = await asyncio.to_thread(make_bare, tmp_path / "elsewhere.git", {"x": "x"})
    before = git(elsewhere, "for-each-ref")
    world, branch = await run(tmp_path, ELSEWHERE.format(elsewhere=str(elsewhere)))
    assert git(elsewhere, "for-each-ref") == before
    assert "page.md" in tree(world, branch)


WORKTREE = """
git("config", "core.worktree", "{outside}")
pathlib.Path("page.md").write_text("changed")
"""


@pytest.mark.full
async def test_another_worktree_exposes_no_file_of_the_server(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(SECRET)
    world, branch = await run(tmp_path, WORKTREE.format(outside=str(outside)))
    assert SECRET not in everything(world)
    assert "page.md" in tree(world, branch)


GIT_FILE = """
import shutil
shutil.rmtree(".git")
git("init", "--quiet", "evil")
git("config", "core.worktree", "{outside}", cwd="evil")
git("config", "filter.evil.clean", "touch {marker}; cat", cwd="evil")
pathlib.Path(".git").write_text("gitdir: evil/.git\\n")
pathlib.Path(".gitattributes").write_text("* filter=evil\\n")
pathlib.Path("page.md").write_text("changed")
"""


@pytest.mark.full
async def test_a_git_file_leads_nowhere(tmp_path: Path) -> None:
    outside, marker = tmp_path / "outside", tmp_path / "marker"
    outside.mkdir()
    (outside / "secret.md").write_text(SECRET)
    world, _ = await run(tmp_path, GIT_FILE.format(outside=str(outside), marker=str(marker)))
    assert SECRET not in everything(world)
    assert not marker.exists()


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


LINKS = """
os.symlink("/etc/passwd", "absolute.md")
os.symlink("../../../../../../{outside}/secret.md", "relative.md")
os.symlink("{outside}", "folder")
os.symlink("/proc/self/environ", "environ.md")
os.remove("docs/start.md"), os.rmdir("docs"), os.symlink("{outside}", "docs")
pathlib.Path("page.md").write_text("changed")
"""


@pytest.mark.full
async def test_symlinks_out_of_the_tree_are_neither_followed_nor_proposed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("secret.md", "start.md"):
        (outside / name).write_text(SECRET)
    world, branch = await run(tmp_path, LINKS.format(outside=str(outside)))
    assert SECRET not in everything(world)
    assert set(tree(world, branch)) >= {"page.md"}
    assert "120000" not in tree(world, branch).values()
    assert (outside / "start.md").read_text() == SECRET


NESTED = """
git("init", "--quiet", "nested")
git("config", "filter.evil.clean", "touch {marker}; cat", cwd="nested")
pathlib.Path("nested/.gitattributes").write_text("* filter=evil\\n")
pathlib.Path("nested/page.md").write_text("inside")
git("add", "--all", cwd="nested"), git("commit", "--quiet", "-m", "x", cwd="nested")
pathlib.Path("page.md").write_text("changed")
"""


@pytest.mark.full
async def test_a_nested_repository_becomes_no_submodule(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    world, branch = await run(tmp_path, NESTED.format(marker=str(marker)))
    assert not marker.exists()
    assert "page.md" in tree(world, branch)
    assert "160000" not in tree(world, branch).values()
    assert not [path for path in tree(world, branch) if ".git/" in path]


ODD_FILES = """
import socket
os.mkfifo("pipe.md")
socket.socket(socket.AF_UNIX).bind("socket.md")
os.makedirs("closed"), pathlib.Path("closed/page.md").write_text("x"), os.chmod("closed", 0)
pathlib.Path("line\\nbreak.md").write_text("x")
open(b"not-\\xff-text.md", "w").close()
pathlib.Path("-rf").write_text("x")
pathlib.Path(":(exclude)*").write_text("x")
pathlib.Path("page.md").write_text("changed")
"""


@pytest.mark.full
async def test_unusual_files_do_not_block(tmp_path: Path) -> None:
    """A pipe would block a reader forever."""
    world, branch = await run(tmp_path, ODD_FILES)
    assert not {"pipe.md", "socket.md"} & set(tree(world, branch))


@pytest.mark.full
async def test_leftovers_are_removed_afterwards(tmp_path: Path) -> None:
    deep = "for _ in range(45):\n    os.mkdir('d' * 100); os.chdir('d' * 100)\n"
    await run(tmp_path, "os.makedirs('x/y'), os.chmod('x', 0)\n" + deep)
    jobs = list((tmp_path / "data" / "jobs").iterdir())
    assert len(jobs) == 1
    assert {path.name for job in jobs for path in job.iterdir()} <= {"home"}


HELD_OUT = """
import base64, shutil
for name in (".github/workflows/ci.yml", ".GitHub/Workflows/ci.yml", ".git\u200bhub/workflows/x.yml", "CODEOWNERS",
             "docs/.claude/settings.json", "AGENTS.md", "package.json", "docs/conf.py", "Makefile", ".gitmodules",
             "GITHUB~1/workflows/ci.yml", "a/.husky/pre-commit", "bin/run"):
    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(name).write_text("#!/bin/sh\\n")
pathlib.Path("docs/.vscode").symlink_to("/workspace/copy")
pathlib.Path("page.md").write_text("changed")
os.chmod("page.md", 0o777)
"""


@pytest.mark.full
async def test_nothing_executable_comes_back_from_a_program(tmp_path: Path) -> None:
    """Under no name, spelling, link or permission."""
    world, branch = await run(tmp_path, HELD_OUT)
    assert tree(world, branch) == {"docs/start.md": "100644", "page.md": "100644"}


KEYS = """
import base64, json
key = {key!r}
pathlib.Path("page.md").write_text("changed")
pathlib.Path("docs/{place}.md").write_bytes({form})
"""


@pytest.mark.full
@pytest.mark.parametrize(
    "form",
    [
        "base64.b64encode(f'xx{key}'.encode())",
        pytest.param("key.encode('utf-16')", marks=pytest.mark.full),
        pytest.param("json.dumps(key).encode().hex().encode()", marks=pytest.mark.full),
    ],
)  # fmt: skip
async def test_a_program_cannot_extract_the_servers_keys(tmp_path: Path, form: str) -> None:
    """Whatever it found, nothing of the change is pushed."""
    async with hostile_world(tmp_path, KEYS.format(key=KEY, form=form, place="start")) as world:
        job = await world.done("go")
        assert "a key of this job server, in `docs/start.md`" in job["details"]["reason"]
        assert KEY not in world.log(job["id"])
    assert world.branches() == {"main"}
    assert KEY not in everything(world)
