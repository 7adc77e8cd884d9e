"""The pictures of a job's change are told with its details, and sent to whoever has the key; nothing else is."""

import sys
from collections.abc import AsyncIterator, Mapping
from hashlib import sha256
from pathlib import Path

import httpx
import jsonschema
import pytest
from support.fakes.job_ports import ScriptedEditor
from support.worlds.executor_world import details, executing
from support.worlds.jobserver_world import ADA, JOB, WITHOUT_TLS, JobServerWorld, git, serving

from bot.jobserver.editors.interface import EditProgress, EditTask

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
COPIES = "import shutil, sys; shutil.copytree(sys.argv[1], '.', dirs_exist_ok=True)"


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """What the agent writes."""
    (folder := tmp_path / "changed").mkdir()
    return folder


@pytest.fixture
async def world(tmp_path: Path, changed: Path) -> AsyncIterator[JobServerWorld]:
    files = {"docs/start.md": "# Start\n", "docs/kept.png": PNG.decode("latin-1")}
    command = (sys.executable, "-c", COPIES, str(changed))
    async with serving(tmp_path, files, editor="command", command=command) as world:
        yield world


async def picture(world: JobServerWorld, job_id: str, picture_id: str) -> httpx.Response:
    return await world.client.get(f"{JOB}/{job_id}/picture/{picture_id}")


async def test_a_picture_is_told_and_sent_until_the_change_is_without_it(world: JobServerWorld, changed: Path) -> None:
    put(changed, {"docs/start.md": b"![The form](form.png) ![Old](kept.png) ![Page](x.png)", "docs/form.png": PNG})
    put(changed, {"docs/x.png": b"<html><script>alert(1)</script>", "docs/large.png": PNG + bytes(5_000_000)})
    job = await world.done("Draw")
    digest = sha256(PNG).hexdigest()
    told = {"id": digest, "path": "docs/form.png", "alt": "The form", "mimetype": "image/png", "size": len(PNG)}
    seen_at = f"{job['prLink']}/after/docs/form.png"
    assert job["details"]["pictures"] == [told | {"link": seen_at}]
    assert (await world.client.get(seen_at, auth=ADA)).content == PNG
    sent = await picture(world, job["id"], digest)
    assert (sent.status_code, sent.content, sent.headers["Content-Type"]) == (200, PNG, "image/png")
    assert sent.headers["X-Content-Type-Options"] == "nosniff"
    document = (await world.client.get("/openapi.json")).json()
    schema = {"$ref": "#/components/schemas/AgentJob", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(job)

    put(changed, {"docs/start.md": b"# Without\n"})
    again = await world.continued(job["id"], "Undo it")
    assert again["details"]["pictures"] == []
    assert (await picture(world, job["id"], digest)).status_code == 404


async def test_a_later_round_keeps_what_it_does_not_change(world: JobServerWorld, changed: Path) -> None:
    put(changed, {"docs/start.md": b"![The form](form.png)", "docs/form.png": PNG})
    job = await world.done("Draw")
    again = await world.continued(job["id"], "The same once more")
    assert again["details"]["pictures"] == job["details"]["pictures"] != []
    assert (await picture(world, job["id"], sha256(PNG).hexdigest())).content == PNG


async def test_a_page_shows_a_picture_of_an_earlier_round(world: JobServerWorld, changed: Path) -> None:
    put(changed, {"docs/form.png": PNG})
    job = await world.done("Draw")
    assert job["details"]["pictures"] == []
    (changed / "docs/form.png").unlink()
    put(changed, {"docs/start.md": b"![The form](form.png)"})
    again = await world.continued(job["id"], "Show it")
    assert [each["path"] for each in again["details"]["pictures"]] == ["docs/form.png"]


async def test_nothing_but_a_jobs_own_pictures_can_be_read(world: JobServerWorld, changed: Path) -> None:
    other = await world.done("Nothing")
    put(changed, {"docs/start.md": b"![x](form.png)", "docs/form.png": PNG, "docs/unshown.png": PNG + b"2"})
    job = await world.done("Draw")
    digest, unshown = sha256(PNG).hexdigest(), sha256(PNG + b"2").hexdigest()
    revision = job["details"]["revision"]
    asked = [
        (other["id"], digest), (job["id"], unshown), (job["id"], "docs/form.png"), (job["id"], revision),
        (job["id"], "..%2f..%2fdocs%2fstart.md"), ("unknown", digest),
    ]  # fmt: skip
    for job_id, picture_id in asked:
        answer = await picture(world, job_id, picture_id)
        assert (answer.status_code, "error" in answer.json()) == (404, True), picture_id
    async with httpx.AsyncClient(base_url=world.url, verify=WITHOUT_TLS) as stranger:
        assert (await stranger.get(f"{JOB}/{job['id']}/picture/{digest}")).status_code == 401


async def test_a_picture_whose_commit_is_gone_is_not_sent(world: JobServerWorld, changed: Path) -> None:
    put(changed, {"docs/start.md": b"![x](form.png)", "docs/form.png": PNG})
    job = await world.done("Draw")
    mirror = world.settings.data_directory / "mirrors" / "docs.git"
    for repository in (world.repository, mirror):
        for name in git(repository, "for-each-ref", "--format=%(refname)").split():
            if name != "refs/heads/main":
                git(repository, "update-ref", "-d", name)
        git(repository, "gc", "--quiet", "--prune=now")
    assert (await picture(world, job["id"], sha256(PNG).hexdigest())).status_code == 404


async def test_a_picture_that_another_machine_pushed_is_fetched(tmp_path: Path) -> None:
    async def edit(task: EditTask, _: EditProgress) -> None:
        put(task.workspace.copy / "docs", {"start.md": b"![x](form.png)", "form.png": PNG})

    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    async with (
        executing(tmp_path / "one", ScriptedEditor(edit)) as world,
        executing(tmp_path / "other", like=world) as other,
    ):
        await other.repository.start("main")
        job = await world.done("Draw")
        revision = details(job).revision or ""
        assert await other.repository.file_of_job(job.id, revision, "docs/form.png") == PNG
        assert await other.repository.file_of_job(job.id, revision, "docs/none.png") is None
