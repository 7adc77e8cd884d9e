"""The bot's client and files: against the job server, and against job APIs that answer differently."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from support.oracles.log_lines import log_lines
from support.servers.fake_job_api import KEY, FakeJobApiServer
from support.worlds.jobserver_world import JOB as JOBS_PATH
from support.worlds.jobserver_world import KEY as SERVER_KEY
from support.worlds.jobserver_world import JobServerWorld, make_bare, running, until

from bot.domain.requests.request import log_id
from bot.errors import (
    JobApiBusy,
    JobApiError,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUnreachable,
    JobApiUnreadable,
    JobGone,
    NoSuchProject,
)
from bot.jobapi.client import HttpJobApi
from bot.jobapi.models import Job, PromptCall, PromptFile, Requester
from bot.jobapi.settings import JobApiSettings
from bot.runtime.logging import REQUEST_ID_HEADER, LogContext, log_context

CONTENT = b"\x89PNG\r\n\x1a\n..."
DIGEST = hashlib.sha256(CONTENT).hexdigest()
JOB = {"id": "job_1", "status": "active"}
Answer = Callable[[httpx.Request], httpx.Response]


def answered(status: int, body: object, **headers: str) -> httpx.Response:
    """An answer that is yet to be parsed."""
    return httpx.Response(status, stream=httpx.ByteStream(json.dumps(body).encode()), headers=headers)


def at(base_url: str, *, key: str = SERVER_KEY) -> JobApiSettings:
    return JobApiSettings(base_url=base_url, api_key=SecretStr(key))


@asynccontextmanager
async def client(base_url: str, answer: Answer | None = None) -> AsyncIterator[HttpJobApi]:
    """The client, over real sockets unless an answer is given."""
    transport = httpx.MockTransport(answer) if answer else None
    api = HttpJobApi({name: (name, at(base_url)) for name in ("docs", "a/b")}, transport=transport)
    try:
        yield api
    finally:
        await api.aclose()


async def ended(api: HttpJobApi, job: Job) -> Job:
    async def found() -> Job | None:
        newest = await api.get("docs", job.id)
        return newest if newest.ended else None

    return await until(found)


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
    assert seen[0].headers["Authorization"] == f"Bearer {SERVER_KEY}"
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
async def test_each_upload_answer_has_a_remedy(
    status: int, body: object, expected: type[JobApiError], words: str
) -> None:
    """A file that may have arrived can be sent again: the same file is stored once."""
    async with client("http://x", lambda _: answered(status, body)) as api:
        with pytest.raises(expected, match=words) as caught:
            await api.upload("docs", CONTENT, name="a", mimetype="image/png")
    assert type(caught.value) is expected
    assert caught.value.words == (body.get("error", "") if isinstance(body, dict) else "")
    assert SERVER_KEY not in repr(caught.value)


@pytest.mark.parametrize("fault", [httpx.ReadError("cut"), httpx.ReadTimeout("slow"), httpx.ConnectError("refused")])
async def test_a_broken_upload_is_retryable(fault: Exception) -> None:
    """Whether or not the file arrived."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise fault

    async with client("http://x", answer) as api:
        with pytest.raises(JobApiUnreachable):
            await api.upload("docs", CONTENT, name="a", mimetype="image/png")


CREATE, MESSAGE = log_id("first-request"), log_id("second-request")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[JobServerWorld]:
    async with running(make_bare(tmp_path / "r.git", {"docs/a.md": "# Start\n"}), tmp_path / "data") as world:
        yield world


async def test_every_job_server_log_line_has_its_request_id(world: JobServerWorld) -> None:
    with log_lines() as lines:
        async with client(world.url) as api:
            with log_context(LogContext(CREATE, thread="t1")):
                job = await api.create("docs", PromptCall('Replace "Start" with "Begin"', "first-request"))
            await world.ended(job.id)
            with log_context(LogContext(MESSAGE, thread="t1")):
                await api.send_message("docs", job.id, PromptCall("Thank you", "second-request"))
            last = await world.ended(job.id)
    assert last["prLink"]
    server = [line for line in lines if line["logger"].startswith("bot.jobserver") and line.get("job")]
    told = [(line["request"], line["message"]) for line in server]
    assert told == [
        (CREATE, "job accepted: active"),
        (CREATE, "instruction 1 started, attempt 1"),
        (CREATE, f"instruction 1 done: {last['prLink']}"),
        (MESSAGE, "message accepted: active"),
        (MESSAGE, "instruction 2 started, attempt 1"),
        (MESSAGE, "instruction 2 done"),
    ]
    assert {line["job"] for line in server} == {job.id}
    assert "-request" not in str(lines), "an Idempotency-Key was logged"


VALID = "a.B_9-" + "x" * 58


@pytest.mark.first(given=3)
@pytest.mark.parametrize("given", [VALID, "", "a b", "x" * 65, "ä", 'a"b'])
async def test_the_response_carries_the_request_id_or_a_valid_one(world: JobServerWorld, given: str) -> None:
    answer = await world.client.get(f"{JOBS_PATH}/none", headers={REQUEST_ID_HEADER.encode(): given.encode()})
    found = answer.headers[REQUEST_ID_HEADER]
    assert found == VALID if given == VALID else found not in {given, ""}


@asynccontextmanager
async def two_projects() -> AsyncIterator[tuple[HttpJobApi, FakeJobApiServer, FakeJobApiServer]]:
    """`guides` and `api`, each at its own server; both are called docs there."""
    guides, api = FakeJobApiServer(), FakeJobApiServer()
    async with AsyncExitStack() as stack:
        for server in (guides, api):
            await server.start()
            stack.push_async_callback(server.stop)
        apis = HttpJobApi({"guides": ("docs", at(guides.url, key=KEY)), "api": ("docs", at(api.url, key=KEY))})
        stack.push_async_callback(apis.aclose)
        yield apis, guides, api


async def test_each_call_goes_to_the_job_api_of_its_project() -> None:
    """It is found by the project's name; the project's id is in the address."""
    async with two_projects() as (apis, guides, api):
        job = await apis.create("guides", PromptCall("Fix it", "k1"))
        await apis.send_message("guides", job.id, PromptCall("And that", "k2"))
        assert (await apis.get("guides", job.id)).id == job.id
        assert (guides.follow_ups(job.id), api.created) == (["And that"], [])
        with pytest.raises(JobGone):
            await apis.get("api", job.id)


async def test_an_outage_of_one_project_does_not_affect_others() -> None:
    """Its connections are separate."""
    async with two_projects() as (apis, guides, api):
        await guides.stop()
        with pytest.raises(JobApiUnreachable):
            await apis.create("guides", PromptCall("Fix it", "k1"))
        await apis.create("api", PromptCall("Fix it", "k2"))
        assert len(api.created) == 1


async def test_a_project_removed_from_settings_is_named_as_the_reason() -> None:
    """Nothing is sent, and the job is not called gone, since nobody was asked."""
    async with two_projects() as (apis, guides, api):
        calls: list[Callable[[], object]] = [
            lambda: apis.create("old", PromptCall("Fix it", "k")),
            lambda: apis.send_message("old", "job-1", PromptCall("Fix it", "k")),
            lambda: apis.get("old", "job-1"),
            lambda: apis.cancel("old", "job-1", idempotency_key="k"),
            lambda: apis.get("docs", "job-1"),
        ]
        for call in calls:
            with pytest.raises(NoSuchProject, match="settings do not have this project"):
                await call()  # type: ignore[misc]  # each is a coroutine
        assert (guides.attempts, api.attempts) == ([], [])


@pytest.mark.parametrize("who", [None, Requester("Robin", "UROBIN")])
async def test_our_job_server_cancels_a_job(tmp_path: Path, who: Requester | None) -> None:
    """Cancelling is idempotent; the job's reason names who stopped it."""
    bare, command = make_bare(tmp_path / "r.git", {"docs/start.md": "# Start\n"}), '["sh", "-c", "sleep 600"]'
    async with running(bare, tmp_path / "data", editor="command", command=command) as world, client(world.url) as api:
        job = await api.create("docs", PromptCall("Wait", "k1"))
        assert not job.ended
        for key in ("k2", "k2", "k3"):
            await api.cancel("docs", job.id, idempotency_key=key, requester=who)
        stopped = await ended(api, job)
        assert (stopped.status, stopped.pr_link) == ("completed", None)
        assert stopped.details is not None
        assert ("Robin" in str(stopped.details.reason)) == (who is not None)
        with pytest.raises(JobGone):
            await api.cancel("docs", "nowhere", idempotency_key="k4")


async def test_our_job_server_discards_partial_work(tmp_path: Path) -> None:
    """Discarding is idempotent; without partial work it is no error."""
    bare = make_bare(tmp_path / "r.git", {"docs/start.md": "# Start\n"})
    command = '["sh", "-c", "echo half > half.md; exit 1"]'
    async with running(bare, tmp_path / "data", editor="command", command=command) as world, client(world.url) as api:
        job = await api.create("docs", PromptCall("Fail", "k1"))
        failed = await ended(api, job)
        assert failed.details is not None
        assert (failed.status, failed.details.partial_files) == ("failed", 1)
        for key in ("k2", "k2", "k3"):
            discarded = await api.discard("docs", job.id, idempotency_key=key)
            assert discarded.details is not None
            assert (discarded.status, discarded.details.partial_files) == ("failed", 0)
        with pytest.raises(JobGone):
            await api.discard("docs", "nowhere", idempotency_key="k4")
