"""Files that a job may not change stay unchanged, on real git: this is reported, and cannot be bypassed."""

from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath

import pytest
from support.fakes.job_ports import ScriptedEditor, append_prompt
from support.worlds.executor_world import ExecutorWorld, details, executing
from support.worlds.jobserver_world import git

from bot.jobapi.models import AgentJob, CheckResult, CheckStatus, PullRequestState, Status
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.errors import EditError
from bot.jobserver.repository.listings import Snapshot

Edit = Callable[[Path], object]
WORKFLOW = ".github/workflows/ci.yml"


def write(copy: Path, name: str, text: str = "x\n") -> None:
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    (copy / name).write_text(text)


def read(file: Path) -> str:
    return file.read_text()


def files_of(copy: Path) -> set[str]:
    return {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}


def editor(edit: Edit) -> ScriptedEditor:
    async def script(task: EditTask, _: EditProgress) -> EditResult:
        edit(task.workspace.copy)
        return EditResult("Done.")

    return ScriptedEditor(script)


def changed(world: ExecutorWorld, job: AgentJob, branch: str = "") -> list[str]:
    branch = branch or f"pagehand/{job.id}"
    return git(world.bare, "diff", "--name-status", "--no-renames", f"main...{branch}").split()


def summary(job: AgentJob) -> str:
    return details(job).summary or ""


async def test_held_out_changes_are_reported_in_answer_and_pull_request(tmp_path: Path) -> None:
    """The rest of the change is proposed."""

    def edit(copy: Path) -> None:
        write(copy, WORKFLOW)
        write(copy, "docs/new.md")

    async with executing(tmp_path, editor(edit)) as world:
        job = await world.done("go")
        assert changed(world, job) == ["A", "docs/new.md"]
        assert summary(job) == f"Done.\n\nLeft out: `{WORKFLOW}` may not be changed here (PATHS)"
        (opened,) = world.pull_requests.opened
        assert f"Left out:\n\n- `{WORKFLOW}` may not be changed here (PATHS)" in opened.description


def _moved_to_a_workflow(copy: Path) -> None:
    (copy / ".github").mkdir()
    (copy / "docs/start.md").rename(copy / ".github/start.md")


def _folder_in_place_of_a_file(copy: Path) -> None:
    (copy / "package.json").unlink()
    write(copy, "package.json/page.md")


def _file_in_place_of_a_folder(copy: Path) -> None:
    (copy / "site/conf.py").unlink()
    (copy / "site").rmdir()
    write(copy, "site", "text")


def _link_in_place_of_a_folder(copy: Path) -> None:
    (copy / "site/conf.py").unlink()
    (copy / "site").rmdir()
    (copy / "site").symlink_to("docs")


WAYS_ROUND: dict[str, Edit] = {
    "a character nobody sees": lambda copy: write(copy, ".git\u200bhub/workflows/ci.yml"),
    "a program by its first line": lambda copy: write(copy, "bin/deploy", "#!/bin/sh\n"),
    "moved to a held place": _moved_to_a_workflow,
    "moved from a held place": lambda copy: (copy / "package.json").rename(copy / "CODEOWNERS"),
    "deleted": lambda copy: (copy / "package.json").unlink(),
    "a folder in place of a file": _folder_in_place_of_a_file,
    "a file in place of a folder": _file_in_place_of_a_folder,
    "a link in place of a folder": _link_in_place_of_a_folder,
    "a link": lambda copy: (copy / "Makefile").symlink_to("package.json"),
    "attributes": lambda copy: write(copy, ".gitattributes", "* -diff\n"),
    "submodules": lambda copy: write(copy, ".gitmodules", '[submodule "x"]\n'),
    "a right to be executed": lambda copy: (copy / "package.json").chmod(0o755),
}


@pytest.mark.parametrize("way", WAYS_ROUND)
async def test_held_out_paths_cannot_be_bypassed(tmp_path: Path, way: str) -> None:
    """Files there are kept, and so are those that would be lost."""
    async with executing(tmp_path, editor(WAYS_ROUND[way])) as world:
        world.push_files({"package.json": b'{"name": "x"}\n', "site/conf.py": b"x = 1\n"})
        job = await world.done("go")
        assert job.status is Status.COMPLETED
        assert world.branches() == {"main"}


async def test_only_programs_are_executable(tmp_path: Path) -> None:
    """An agent with another umask does not make pages executable."""

    def edit(copy: Path) -> None:
        write(copy, "docs/new.md")
        (copy / "docs/new.md").chmod(0o755)

    async with executing(tmp_path, editor(edit)) as world:
        job = await world.done("go")
        assert git(world.bare, "ls-tree", f"pagehand/{job.id}", "docs/new.md").startswith("100644")


class CopyCheck:
    """Records the copy's contents when the checks run, and passes at the second run."""

    def __init__(self) -> None:
        self.seen: list[set[str]] = []

    async def run(
        self, before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], copy: Path
    ) -> tuple[CheckResult, ...]:
        self.seen.append(files_of(copy))
        failed = len(self.seen) == 1
        status = CheckStatus.FAILED if failed else CheckStatus.PASSED
        return (CheckResult(name="copy", status=status, problems=("fault",) if failed else ()),)


async def test_checks_see_only_the_proposed_changes(tmp_path: Path) -> None:
    """A held-out Makefile would decide what they do; files left out before a fix are reported."""

    seen = []

    async def edit(task: EditTask, _: EditProgress) -> None:
        if not task.conversation:
            for name in ("Makefile", "docs/new.md"):
                write(task.workspace.copy, name)
            write(task.workspace.copy, "package.json", "{}\n")
        else:
            seen.append(read(task.workspace.copy / "package.json"))

    checks = CopyCheck()
    async with executing(tmp_path, ScriptedEditor(edit), checks.run) as world:
        world.push_files({"package.json": b"1\n"})
        job = await world.done("go")
        assert checks.seen == [{"docs/start.md", "docs/new.md", "package.json"}] * 2
        assert seen == ["1\n"]
        assert "`Makefile` may not be changed here" in summary(job)
        assert changed(world, job) == ["A", "docs/new.md"]


async def test_held_out_changes_do_not_return_later(tmp_path: Path) -> None:
    """Partial work, a follow-up and a merge of the base each make a commit of their own."""

    async def edit(task: EditTask, progress: EditProgress) -> None:
        if task.prompt != "continue":
            write(task.workspace.copy, WORKFLOW)
        await append_prompt(task, progress)
        if task.prompt == "half":
            raise EditError("out of credit")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("half")
        await world.done("continue", job.id)
        assert changed(world, job) == ["A", "notes.md"]
        world.push_files({"docs/theirs.md": b"x\n"})
        await world.done("two", job.id)
        assert changed(world, job) == ["A", "notes.md"]
        world.pull_requests.end(PullRequestState.CLOSED)
        await world.done("three", job.id)
        assert changed(world, job, f"pagehand/{job.id}-2") == ["A", "notes.md"]


async def test_changes_by_others_to_held_out_paths_are_not_the_jobs(tmp_path: Path) -> None:
    """Their commits on the branch and on the base are kept."""
    async with executing(tmp_path) as world:
        job = await world.done("one")
        world.push_as_somebody(f"pagehand/{job.id}", "package.json", "{}\n")
        world.push_files({WORKFLOW: b"on: push\n"})
        await world.done("two", job.id)
        assert changed(world, job) == ["A", "notes.md", "A", "package.json"]
        assert git(world.bare, "show", f"pagehand/{job.id}:{WORKFLOW}") == "on: push\n"


async def test_many_held_out_files_are_summarized_by_folder(tmp_path: Path) -> None:
    """An environment left by an agent has a thousand files."""

    def edit(copy: Path) -> None:
        for number in range(30):
            write(copy, f".venv/lib/{number}.py")
        write(copy, WORKFLOW)

    async with executing(tmp_path, editor(edit)) as world:
        job = await world.done("go")
        assert "30 files in `.venv/lib`: each may not be changed here" in str(details(job).reason)
        assert WORKFLOW in str(details(job).reason)
