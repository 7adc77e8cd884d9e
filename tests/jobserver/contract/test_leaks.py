"""Keys are never pushed: a change that reveals one is held back, kept, reported without it, and pushed once fixed."""

import base64
import io
import random
import string
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.fakes.job_ports import ScriptedEditor
from support.worlds.executor_world import ExecutorWorld, Secrets, details, executing, partial_files
from support.worlds.jobserver_world import git

from bot.jobapi.models import AgentJob, PlanStep, Requester, Status, StepStatus
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask

OWN = "kX9/w2+QzR7vLm4&pT8sYb1dN6"
"""A configured value of the server in these tests, which no rule recognizes."""
_DRAWN = random.Random(8)  # noqa: S311 - the same in each run


def drawn(length: int, signs: str = string.ascii_uppercase + string.digits) -> str:
    return "".join(_DRAWN.choices(signs, k=length))


AWS = f"AKIA{drawn(16, 'ABCDEFGHJKLMNOPQRSTUVWXYZ234567')}"
GITHUB = f"ghp_{drawn(36, string.ascii_letters + string.digits)}"
PEM = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "\n".join(drawn(64, string.ascii_letters) for _ in range(6))
    + "\n-----END PRIVATE KEY-----"
)


def editor(files: dict[str, bytes], answer: str = "Done.") -> ScriptedEditor:
    """Writes the files, unless it is told to fix them or to do nothing."""

    async def script(task: EditTask, progress: EditProgress) -> EditResult:
        copy = task.workspace.copy
        if task.prompt == "mend":
            (copy / "docs/a.md").write_text("No key.\n")
        for name, data in files.items():
            file = copy / name
            if task.prompt not in {"mend", "continue"}:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        progress.activity(answer)
        progress.plan([PlanStep(title=answer, status=StepStatus.COMPLETED)])
        return EditResult(answer)

    return ScriptedEditor(script)


def reason(job: AgentJob) -> str:
    return details(job).reason or ""


def everything(world: ExecutorWorld) -> str:
    """Returns everything that ever came into the repository, including names and messages."""
    objects = git(world.bare, "cat-file", "--batch-check", "--batch-all-objects").splitlines()
    return "".join(git(world.bare, "cat-file", "-p", line.split()[0]) for line in objects)


@pytest.mark.full
async def test_a_suspected_key_is_held_back_and_reported_without_its_value(tmp_path: Path) -> None:
    """The agent is told in the next instruction and fixes it; then all is pushed."""
    files = {"docs/a.md": f"Set `AWS_ACCESS_KEY_ID={AWS}`.\n".encode(), "docs/b.md": b"Fine.\n"}
    async with executing(tmp_path, editor(files), secrets=Secrets()) as world:
        job = await world.done("go")
        assert job.status is Status.FAILED
        assert reason(job) == (
            "Nothing was pushed, since the change contains what looks like a secret (AWS key, rule aws-access-key-id) "
            "in `docs/a.md`. Reply to have it removed, or, if it is none, have 'docs/a.md:aws-access-key-id' added to "
            "PAGEHAND_JOBSERVER_ALLOWED_SECRETS"
        )
        assert partial_files(job) == 2
        assert world.branches() == {"main"}
        again = await world.done("continue", job.id)
        assert again.status is Status.FAILED, "it is still there"
        assert "docs/a.md" in world.editor.tasks[-1].conversation[0].answer
        fixed = await world.done("mend", job.id)
        assert fixed.status is Status.COMPLETED
        assert git(world.bare, "ls-tree", "-r", "--name-only", f"pagehand/{job.id}").split() == [
            "docs/a.md", "docs/b.md", "docs/start.md"
        ]  # fmt: skip
        assert AWS not in everything(world)


async def test_an_allowed_finding_is_pushed(tmp_path: Path) -> None:
    """According to its description."""
    files = {"docs/a.md": f"Use {AWS}.\n".encode()}
    async with executing(tmp_path, editor(files), secrets=Secrets()) as world:
        job = await world.done("go")
    (tmp_path / "again").mkdir()
    assert "'docs/a.md:aws-access-key-id'" in reason(job)
    secrets = Secrets(allowed=("docs/a.md:aws-access-key-id",))
    async with executing(tmp_path / "again", editor(files), secrets=secrets) as world:
        assert (await world.done("go")).status is Status.COMPLETED


async def test_a_sample_in_the_base_can_be_edited_copied_and_moved(tmp_path: Path) -> None:
    """It reveals nothing new; a key of several lines is compared line by line."""
    sample = f"Set {AWS} and\n\n{PEM}\n"

    async def edit(task: EditTask, _: EditProgress) -> EditResult:
        copy = task.workspace.copy
        text = (copy / "docs/sample.md").read_text()
        (copy / "docs/sample.md").rename(copy / "docs/moved.md")
        (copy / "docs/copied.md").write_text(f"New words.\n\n{text}")
        (copy / "docs/indented.md").write_text(PEM.replace("\n", "\n    "))
        if task.prompt == "two":
            (copy / "docs/new.md").write_text(GITHUB)
        return EditResult("Done.")

    async with executing(tmp_path, ScriptedEditor(edit), secrets=Secrets()) as world:
        world.push_as_somebody("main", "docs/sample.md", sample)
        job = await world.done("one")
        assert (job.status, reason(job)) == (Status.COMPLETED, "")
        other = await world.done("two")
        assert "GitHub token" in reason(other)
        assert "AWS" not in reason(other)


async def test_file_names_are_scanned_and_reported_without_the_secret(tmp_path: Path) -> None:
    """For a rule's secret and the server's own."""
    files = {f"docs/{GITHUB}.md": b"x", "docs/plain-own-value-1.md": b"x"}
    async with executing(tmp_path, editor(files), secrets=Secrets(("plain-own-value-1",))) as world:
        job = await world.done("go")
        assert "`docs/[masked: GitHub token].md`" in reason(job)
        assert "`docs/[masked: Pagehand's own credential].md`" in reason(job)
        assert GITHUB not in reason(job)
        assert world.branches() == {"main"}


async def test_a_prompt_with_a_secret_is_pushed_without_it(tmp_path: Path) -> None:
    """Commits and pull requests quote prompts and answers; the agent gets the prompt unchanged."""
    async with executing(tmp_path, editor({"docs/a.md": b"x"}, f"Used {OWN}."), secrets=Secrets((OWN,))) as world:
        asked = f"Write of {GITHUB} and {OWN}"
        job = await world.done(asked, requester=Requester(name=f"Robin {OWN}"))
        assert job.status is Status.COMPLETED
        assert world.editor.tasks[0].prompt == asked
        (opened,) = world.pull_requests.opened
        out = everything(world) + opened.title + opened.description + job.model_dump_json()
        assert GITHUB not in out.replace(job.model_dump_json(), "")
        assert OWN not in out
        assert "[masked: GitHub token]" in opened.title
        trailer = git(
            world.bare, "log", "-1", "--format=%(trailers:key=Pagehand-Instruction,valueonly)", f"pagehand/{job.id}"
        )
        assert trailer.strip() == f"{job.id}/1"
        assert OWN not in world.log(job.id)


async def test_a_change_that_cannot_be_scanned_in_time_is_held_back(tmp_path: Path) -> None:
    """It says so, and where it stopped; nothing is lost."""
    secrets = Secrets(time_limit=0.0)
    async with executing(tmp_path, editor({"docs/a.md": b"x"}), secrets=secrets) as world:
        job = await world.done("go")
        assert "could not be searched for keys: the search took too long at" in reason(job)
        assert partial_files(job) == 1
        assert world.branches() == {"main"}


def packed(*, as_tar: bool = False) -> bytes:
    with io.BytesIO() as stream:
        if as_tar:
            with tarfile.open(fileobj=stream, mode="w") as tar:
                tar.addfile(tarfile.TarInfo("a.md"))
        else:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("word/document.xml", f"<w:t>{GITHUB}</w:t>" * 9)
        return stream.getvalue()


async def test_packed_files_are_held_out_and_named(tmp_path: Path) -> None:
    """By their first bytes, whatever they are called; what was there can be moved and deleted, but not changed."""

    async def edit(task: EditTask, _: EditProgress) -> EditResult:
        docs = task.workspace.copy / "docs"
        (docs / "new.md").write_bytes(packed())
        (docs / "new\nline.png").write_bytes(packed(as_tar=True))
        (docs / "theirs.bin").write_bytes(packed() + b"x")
        (docs / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
        (docs / "moved.bin").rename(docs / "there.bin")
        (docs / "gone.bin").unlink()
        return EditResult("Done.")

    async with executing(tmp_path, ScriptedEditor(edit), secrets=Secrets()) as world:
        world.push_files({f"docs/{name}.bin": packed() + name.encode() for name in ("theirs", "moved", "gone")})
        job = await world.done("go")
        assert job.status is Status.COMPLETED
        for name in ("new.md", "new line.png", "theirs.bin"):
            assert f"`docs/{name}` is a packed file, in which keys cannot be" in (details(job).summary or "")
        changed = git(world.bare, "diff", "--name-status", "--no-renames", f"main...pagehand/{job.id}").split()
        assert changed == ["A", "docs/b.png", "D", "docs/gone.bin", "D", "docs/moved.bin", "A", "docs/there.bin"]


async def test_what_was_encoded_before_can_be_edited(tmp_path: Path) -> None:
    """Also a value of the server itself, which cannot be allowed."""
    hidden = base64.b64encode(f"user:{OWN}".encode())

    async def edit(task: EditTask, _: EditProgress) -> EditResult:
        (task.workspace.copy / "docs/sample.md").rename(task.workspace.copy / "docs/moved.md")
        with (task.workspace.copy / "docs/moved.md").open("a") as file:
            file.write("More.\n")
        return EditResult("Done.")

    async with executing(tmp_path, ScriptedEditor(edit), secrets=Secrets((OWN,))) as world:
        world.push_files({"docs/sample.md": hidden + b"\n"})
        job = await world.done("go")
        assert (job.status, reason(job)) == (Status.COMPLETED, "")


async def test_commits_of_others_on_the_branch_are_not_the_jobs(tmp_path: Path) -> None:
    """Their key is public already; the job's own change goes on top."""
    async with executing(tmp_path, secrets=Secrets()) as world:
        job = await world.done("one")
        world.push_as_somebody(f"pagehand/{job.id}", "theirs.md", AWS)
        assert (await world.done("two", job.id)).status is Status.COMPLETED
