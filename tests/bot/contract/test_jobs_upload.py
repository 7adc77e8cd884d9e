"""The bot's client and files: against the job server, and against job APIs that answer differently."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from support.worlds.jobserver_world import KEY, make_bare, running

from bot.errors import (
    JobApiBusy,
    JobApiError,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUnreachable,
    JobApiUnreadable,
)
from bot.jobapi.client import MAX_UPLOAD_BYTES, HttpJobApi
from bot.jobapi.models import PromptCall, PromptFile
from bot.jobapi.settings import JobApiSettings

CONTENT = b"\x89PNG\r\n\x1a\n..."
DIGEST = hashlib.sha256(CONTENT).hexdigest()
JOB = {"id": "job_1", "status": "active"}
Answer = Callable[[httpx.Request], httpx.Response]


def answered(status: int, body: object, **headers: str) -> httpx.Response:
    """An answer that is yet to be parsed."""
    return httpx.Response(status, stream=httpx.ByteStream(json.dumps(body).encode()), headers=headers)


@asynccontextmanager
async def client(base_url: str, answer: Answer | None = None) -> AsyncIterator[HttpJobApi]:
    """The client, over real sockets unless an answer is given."""
    transport = httpx.MockTransport(answer) if answer else None
    settings = JobApiSettings(base_url=base_url, api_key=SecretStr(KEY))
    api = HttpJobApi({name: (name, settings) for name in ("docs", "a/b")}, transport=transport)
    try:
        yield api
    finally:
        await api.aclose()


async def test_an_uploaded_file_is_attached_to_a_job_and_a_message(tmp_path: Path) -> None:
    """The job server accepts what the client sends."""
    bare = make_bare(tmp_path / "r.git", {"docs/start.md": "# Start\n"})
    async with running(bare, tmp_path / "data") as world, client(world.url) as api:
        file = await api.upload("docs", CONTENT, name="diagram.png", mimetype="image/png")
        assert file == PromptFile(DIGEST, "diagram.png", "image/png")
        assert await api.upload("docs", CONTENT, name="diagram.png", mimetype="image/png") == file
        job = await api.create("docs", PromptCall('Replace "Start" with "Begin"', "k1", files=(file,)))
        assert "Attached, and left alone: diagram.png." in (await world.ended(job.id))["details"]["summary"]
        await api.send_message("docs", job.id, PromptCall("Thank you", "k2", files=(file,)))
        assert "Attached, and left alone: diagram.png." in (await world.ended(job.id))["details"]["reason"]


async def test_an_upload_sends_the_bytes_digest_and_type() -> None:
    """An invalid type is sent as plain bytes; a name is one line that the job server accepts."""
    seen = list[httpx.Request]()

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answered(200, {"id": DIGEST} if request.method == "PUT" else JOB)

    async with client("http://x/api", answer) as api:
        plain = await api.upload("a/b", CONTENT, name="x\ny" * 100, mimetype="image/png\r\nX: y")
        await api.upload("docs", CONTENT, name="", mimetype="text/plain")
        await api.create("docs", PromptCall("x", "k", files=(plain, PromptFile("1", "", "text/plain"))))
        await api.create("docs", PromptCall("x", "k"))
    assert [request.url.raw_path for request in seen[:2]] == [
        f"/api/v2/agent/a%2Fb/file/{DIGEST}".encode(), f"/api/v2/agent/docs/file/{DIGEST}".encode()
    ]  # fmt: skip
    assert [request.headers["Content-Type"] for request in seen[:2]] == ["application/octet-stream", "text/plain"]
    assert [request.content for request in seen[:2]] == [CONTENT, CONTENT]
    assert seen[0].headers["Authorization"] == f"Bearer {KEY}"
    files = json.loads(seen[2].content)["files"]
    assert [len(file["name"]) for file in files] == [200, 4]
    assert files[1] == {"id": "1", "name": "file", "mimetype": "text/plain"}
    assert b"files" not in seen[3].content


@pytest.mark.parametrize(
    ("status", "body", "expected", "words"),
    [
        (404, {"error": "no such address"}, JobApiRejected, "takes no files"),
        (405, {}, JobApiRejected, "takes no files"),
        (501, {}, JobApiRejected, "takes no files"),
        (413, {"error": "the file is larger than 10 MB"}, JobApiRejected, "refused this"),
        (400, {"error": "other digest"}, JobApiRejected, "refused this"),
        (507, {"error": "no room"}, JobApiRejected, "has no room"),
        (401, {}, JobApiNotAllowed, "know Pagehand's key"),
        (429, {}, JobApiBusy, "busy"),
        (500, {}, JobApiUnreachable, "failed"),
        (502, {}, JobApiUnreachable, "failed"),
        (408, {}, JobApiUnreachable, "failed"),
        (200, {"id": 7}, JobApiUnreadable, "no usable id"),
        (200, [], JobApiUnreadable, "no usable id"),
    ],
)
async def test_each_upload_answer_maps_to_a_remedy(
    status: int, body: object, expected: type[JobApiError], words: str
) -> None:
    """A file that may have arrived can be sent again: the same file is stored once."""
    async with client("http://x", lambda _: answered(status, body)) as api:
        with pytest.raises(expected, match=words) as caught:
            await api.upload("docs", CONTENT, name="a", mimetype="image/png")
    assert type(caught.value) is expected
    assert caught.value.words == (body.get("error", "") if isinstance(body, dict) else "")
    assert KEY not in repr(caught.value)


@pytest.mark.parametrize("fault", [httpx.ReadError("cut"), httpx.ReadTimeout("slow"), httpx.ConnectError("refused")])
async def test_a_broken_upload_is_retryable(fault: Exception) -> None:
    """Whether or not the file arrived."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise fault

    async with client("http://x", answer) as api:
        with pytest.raises(JobApiUnreachable):
            await api.upload("docs", CONTENT, name="a", mimetype="image/png")


async def test_an_oversized_file_is_not_sent() -> None:
    """Nobody waits for something that will not be accepted."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise AssertionError("it was sent")

    async with client("http://x", answer) as api:
        with pytest.raises(JobApiRejected, match="not sent"):
            await api.upload("docs", bytes(MAX_UPLOAD_BYTES + 1), name="a", mimetype="image/png")


async def test_busy_uploads_hold_back_only_uploads() -> None:
    """Their limit is not that of creates and messages."""
    calls = list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        calls.append(request.method)
        return answered(429, {}, **{"Retry-After": "60"})

    async with client("http://x", answer) as api:
        with pytest.raises(JobApiBusy):
            await api.upload("docs", CONTENT, name="a", mimetype="image/png")
        with pytest.raises(JobApiBusy):
            await api.upload("docs", CONTENT, name="a", mimetype="image/png")
        with pytest.raises(JobApiBusy):
            await api.create("docs", PromptCall("x", "k"))
    assert calls == ["PUT", "POST"]
