"""Files attached to a prompt: uploaded over real HTTP, provided to the editor, and deleted in the end."""

import asyncio
import hashlib
import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.worlds.executor_world import executing
from support.worlds.hostile_world import findings_of, hostile_world, needs_bubblewrap
from support.worlds.jobserver_world import (
    ADA,
    FILE,
    KEY,
    JobServerWorld,
    git,
    make_bare,
    running,
    until,
)

from bot.jobapi.models import AttachedFile
from bot.jobserver.store.database import as_text
from bot.jobserver.store.records import PromptRequest
from bot.jobserver.store.uploads import KEPT_UNUSED

pytestmark = pytest.mark.promise("files")

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PAGES = {"docs/start.md": "# Start\n\nA colour.\n", "docs/img/old.png": "x"}
SHOW = """
import json, os, pathlib, re, sys
told = sys.stdin.read()
files = [pathlib.Path(path) for path in re.findall(r"^- (/\\S+) \\(", told, re.MULTILINE)]
folder = files[0].parent if files else None
found = {"told": told, "named": [path.name for path in files], "copy": os.getcwd()}
found["there"] = {path.name: path.read_bytes().hex() for path in sorted(folder.iterdir())} if folder else {}
pathlib.Path("found.json").write_text(json.dumps(found))
"""


@asynccontextmanager
async def showing(tmp_path: Path, program: str = SHOW, **settings: Any) -> AsyncIterator[JobServerWorld]:
    """Opens a server whose editor reports what it is told and the files that it sees."""
    script = tmp_path / "program.py"
    script.write_text(program)
    bare = await asyncio.to_thread(make_bare, tmp_path / "r.git", PAGES)
    command = json.dumps([sys.executable, str(script)])
    async with running(bare, tmp_path / "data", editor="command", command=command, **settings) as world:
        yield world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[JobServerWorld]:
    """Opens a server with small limits."""
    async with showing(tmp_path, max_upload_megabytes=0.1, upload_space_megabytes=0.25) as world:
        yield world


def found_in(world: JobServerWorld, job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.show(f"pagehand/{job['id']}", "found.json"))
    return found


def kept(data: Path, now: datetime | None = None) -> set[str]:
    """Returns the digests of the files that are stored, each once, and `arriving` for others that are."""
    with closing(sqlite3.connect(data)) as connection:
        digests = {row[0] for row in connection.execute("SELECT uploads.id FROM uploads JOIN files ON files.id = file")}
        logs = "SELECT log FROM instructions WHERE log IS NOT NULL"
        files = f"SELECT count(*) FROM files WHERE expires_at IS NULL AND id NOT IN ({logs})"  # noqa: S608 - ours
        [(stored,)] = connection.execute(files)
        values = [as_text(now or datetime.now(UTC))]
        [(arriving,)] = connection.execute("SELECT count(*) FROM files WHERE expires_at > ?", values)
    assert stored == len(digests)
    return digests | ({"arriving"} if arriving else set())


def kept_by(world: JobServerWorld) -> set[str]:
    return kept(world.settings.data_directory / "jobs.sqlite3")


@pytest.mark.full
async def test_an_uploaded_file_is_available_to_the_editor_but_not_in_the_change(world: JobServerWorld) -> None:
    """The editor is told its path, type and size."""
    file = await world.uploaded("Diagram v2.png", PICTURE)
    job = await world.done("Look at the diagram", [file])
    found = found_in(world, job)
    assert found["there"] == {"Diagram-v2.png": PICTURE.hex()}
    assert 'Diagram-v2.png (image/png, 264 bytes, called "Diagram v2.png")' in found["told"]
    assert found["told"].endswith("The instruction:\n\nLook at the diagram")
    changed = git(world.repository, "diff", "--name-only", "main", f"pagehand/{job['id']}").split()
    assert changed == ["found.json"]
    assert "Attached to the request: Diagram v2.png." in (await world.client.get(job["prLink"], auth=ADA)).text
    folder = world.settings.data_directory / "jobs" / job["id"]
    assert found["copy"] == str(folder / "copy")
    assert [path.name for path in folder.iterdir()] == ["home"], "data of a run is deleted with it"


@pytest.mark.full
async def test_a_follow_up_sees_earlier_files_and_is_told_its_own(world: JobServerWorld) -> None:
    """Two files of one name are kept apart, and the first one keeps its name."""
    job = await world.done("one", [await world.uploaded("a.txt", b"first", mimetype="text/plain")])
    second = [await world.uploaded("A.txt", b"second"), await world.uploaded("empty.txt", b"")]
    found = found_in(world, await world.continued(job["id"], "two", second))
    assert found["named"] == ["A-2.txt", "empty.txt"]
    assert found["there"] == {"a.txt": b"first".hex(), "A-2.txt": b"second".hex(), "empty.txt": ""}


async def test_identical_uploads_are_stored_once(world: JobServerWorld) -> None:
    """Also at the same moment, and under two names."""
    answers = await asyncio.gather(*(world.put(PICTURE) for _ in range(5)))
    digest = hashlib.sha256(PICTURE).hexdigest()
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"id": digest})] * 5
    assert kept_by(world) == {digest}


async def test_bytes_that_do_not_match_the_digest_are_refused(world: JobServerWorld) -> None:
    """None of them are kept."""
    answer = await world.put(b"other", file_id=hashlib.sha256(PICTURE).hexdigest())
    assert (answer.status_code, answer.json()["error"]) == (
        400, "the SHA-256 of these bytes differs from the one in the address"
    )  # fmt: skip
    assert not kept_by(world)


NOT_DIGESTS = (
    "x", "0" * 63, "0" * 65, "A" * 64, "..%2f..%2fjobs.sqlite3", "%2e%2e", "0" * 63 + "%00", "0" * 63 + "\u0660",
    "%0a" + "0" * 63,
)  # fmt: skip


async def test_an_address_that_is_not_a_digest_is_refused(world: JobServerWorld) -> None:
    """Especially one that leads elsewhere."""
    before = {path: path.stat().st_mtime_ns for path in world.settings.data_directory.glob("*.sqlite3")}
    for file_id in NOT_DIGESTS:
        answer = await world.put(b"x", file_id=file_id)
        assert answer.status_code in {400, 404, 405}, file_id
        assert list(answer.json()) == ["error"]
    assert not kept_by(world)
    assert before == {path: path.stat().st_mtime_ns for path in world.settings.data_directory.glob("*.sqlite3")}


async def test_an_oversized_file_is_refused_with_or_without_a_length(world: JobServerWorld) -> None:
    """Without a length, no more than the limit is read."""
    large = b"x" * 100_001
    told = await world.put(large)
    assert (told.status_code, told.json()["error"]) == (413, "the file is larger than 0.1 MB")

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 10_000

    path = f"{FILE}/{hashlib.sha256(large).hexdigest()}"
    untold = await world.client.put(path, content=parts())
    assert untold.status_code == 413
    assert not kept_by(world)
    assert (await world.put(large[:-1])).status_code == 200


async def test_all_files_together_are_bounded(world: JobServerWorld) -> None:
    """Stored files take up no space again."""
    first, second, third = (letter * 100_000 for letter in (b"a", b"b", b"c"))
    assert [(await world.put(content)).status_code for content in (first, second, third)] == [200, 200, 507]
    assert "has no room for this one" in (await world.put(third)).json()["error"]
    assert (await world.put(first)).status_code == 200
    assert len(kept_by(world)) == 2


async def test_an_aborted_upload_leaves_nothing(world: JobServerWorld) -> None:
    """The connection is cut in the middle of the body."""
    port = int(world.url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    digest = hashlib.sha256(b"x" * 1000).hexdigest()
    head = [f"PUT {FILE}/{digest} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {KEY}", "Content-Length: 1000"]
    writer.write("\r\n".join([*head, "", ""]).encode() + b"x" * 500)
    await writer.drain()

    async def began() -> bool:
        return "arriving" in kept_by(world)

    await until(began)
    writer.close()

    async def gone() -> bool:
        return not kept_by(world)

    await until(gone)
    assert (await world.put(b"x" * 1000)).status_code == 200


BAD_FILES: list[Any] = [
    [{"id": "0" * 64, "name": "a.png"}], [{"id": "../x", "name": "a"}], [{"id": 7, "name": "a"}], [{"name": "a"}],
    [{"id": "0" * 64}], [{"id": "0" * 64, "name": ""}], [{"id": "0" * 64, "name": "x" * 201}], "x", [None], {"a": 1},
]  # fmt: skip


async def test_a_prompt_with_a_missing_file_is_refused_with_an_explanation(world: JobServerWorld) -> None:
    """No job is created, and the answer quotes nothing that was sent."""
    errors = []
    for files in BAD_FILES:
        answer = await world.client.post("/v2/agent/docs/job", json={"prompt": "x", "files": files})
        assert answer.status_code == 400, files
        errors.append(answer.json()["error"])
    assert [error for error in errors if not error.startswith("files")] == []
    assert "this file has not been uploaded: upload it with PUT" in errors[0]
    assert world.branches() == {"main"}


@pytest.mark.full
async def test_twenty_files_are_accepted_and_one_more_is_not(world: JobServerWorld) -> None:
    """Even with the longest prompt and names full of escapes."""
    name = "\U0001f600" * 195
    files = [await world.uploaded(f"{name}{number}", b"x") for number in range(21)]
    prompt = "\U0001f600" * world.settings.max_prompt_characters
    assert (await world.create("x", files)).status_code == 400
    taken = await world.create(prompt, files[:20])
    assert taken.status_code == 201
    assert len(found_in(world, await world.ended(taken.json()["id"]))["there"]) == 20


async def test_a_repeated_key_requires_the_same_files(world: JobServerWorld) -> None:
    """With another file it is another request."""
    one, other = await world.uploaded("a.png", PICTURE), await world.uploaded("a.png", b"other")
    key = {"Idempotency-Key": "k"}
    first = await world.create("x", [one], **key)
    assert (await world.create("x", [one], **key)).json() == first.json()
    assert (await world.create("x", [other], **key)).status_code == 422
    assert (await world.create("x", **key)).status_code == 422


async def test_a_file_whose_bytes_are_gone_fails_the_job_with_a_reason(world: JobServerWorld) -> None:
    """Somebody has deleted them in the database."""
    file = await world.uploaded("a.png", PICTURE)
    with closing(sqlite3.connect(world.settings.data_directory / "jobs.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM chunks")
    job = await world.done("go", [file])
    assert (job["status"], job["details"]["reason"]) == (
        "failed", "a.png, which came with this, is not here any more: send it again"
    )  # fmt: skip


async def test_files_expire_or_go_with_the_last_job_that_names_them(tmp_path: Path) -> None:
    """A file that was uploaded again is kept longer."""
    async with executing(tmp_path) as world:

        async def upload(content: bytes) -> str:
            async def chunks() -> AsyncIterator[bytes]:
                yield content

            file_id = hashlib.sha256(content).hexdigest()
            await world.uploads.add(file_id, "text/plain", chunks())
            return file_id

        named, again, _ = [await upload(content) for content in (b"named", b"again", b"unused")]
        request = PromptRequest("x", files=(AttachedFile(id=named, name="a.txt", mimetype=None),))
        job = await world.submitted(request)
        await world.ended(job.id)
        assert await world.uploads.delete_unused() == 0
        world.now.ahead = KEPT_UNUSED - timedelta(hours=1)
        await upload(b"again")
        world.now.ahead = KEPT_UNUSED + timedelta(hours=1)
        sweep = world.retention(archive_after=timedelta(days=20), keep_for=timedelta(days=20)).sweep
        await sweep()
        assert kept(tmp_path / "jobs.sqlite3", world.now()) == {named, again}
        for days in (21, 42):
            world.now.ahead = timedelta(days=days)
            await sweep()
        with closing(sqlite3.connect(tmp_path / "jobs.sqlite3")) as connection:
            assert [*connection.execute("SELECT id FROM files"), *connection.execute("SELECT file FROM chunks")] == []


LOOK = """
    import re
    told = sys.stdin.read()
    path = pathlib.Path(re.search(r"^- (/\\S+) ", told, re.MULTILINE)[1])
    attempt("path", lambda: path)
    attempt("read", lambda: path.read_bytes().hex())
    attempt("write", lambda: path.write_bytes(b"x"))
    attempt("mode", lambda: path.chmod(0o666))
    attempt("add", lambda: (path.parent / "new").write_bytes(b"x"))
    attempt("delete", lambda: path.unlink())
    attempt("folder", lambda: sorted(os.listdir("/workspace")))
    report()
"""


@pytest.mark.full
async def test_in_the_sandbox_files_are_read_only(tmp_path: Path) -> None:
    """Their path is the same for every job."""
    await asyncio.to_thread(needs_bubblewrap)
    async with hostile_world(tmp_path, LOOK) as world:
        job = await world.done("go", [await world.uploaded("a.png", PICTURE)])
        found = findings_of(world, job)
        assert found == {
            "path": "/workspace/attachments/a.png", "read": PICTURE.hex(), "write": "OSError", "mode": "OSError",
            "add": "OSError", "delete": "OSError", "folder": "['attachments', 'copy', 'doors', 'home']",
        }  # fmt: skip
        assert kept_by(world) == {hashlib.sha256(PICTURE).hexdigest()}
