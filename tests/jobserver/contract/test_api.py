"""The job API over real HTTP, as its specification has it."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from support.worlds.jobserver_world import (
    FILE,
    JOB,
    KEY,
    WITHOUT_TLS,
    JobServerWorld,
    git,
    make_sample,
    running,
    until,
)

from bot.jobserver.errors import JobServerError
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings

REPLACE = 'Replace "colour" with "color"'
ADD_FAQ = "Also add a page called FAQ with the text: Ask us anything."


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[JobServerWorld]:
    async with running(make_sample(tmp_path), tmp_path / "data") as world:
        yield world


async def test_a_job_ends_in_a_pull_request_of_a_real_branch(world: JobServerWorld) -> None:
    created = await world.create(REPLACE)
    assert created.status_code == 201
    job = created.json()
    assert job | {"id": "", "createdAt": ""} == {
        "id": "",
        "status": "active",
        "source": {"repository": "lumo-handbook", "ref": "main"},
        "model": "builtin",
        "prLink": None,
        "createdAt": "",
        "archivedAt": None,
    }
    age = datetime.now(UTC) - datetime.fromisoformat(job["createdAt"])
    assert timedelta(0) <= age < timedelta(minutes=1)

    ended = await world.ended(job["id"])
    details = ended.pop("details")
    assert ended == job | {"status": "completed", "prLink": f"{world.url}/docs/pulls/1"}
    branch = f"pagehand/{job['id']}"
    assert "any color by name" in world.show(branch, "docs/guides/colours.md")
    assert "colours.md" in world.show(branch, "docs/guides/index.md"), "links keep leading somewhere"
    assert "any colour by name" in world.show("main", "docs/guides/colours.md")
    checks = {check["name"]: check["status"] for check in details["pullRequest"].pop("checks")}
    assert checks["links"] == "passed"
    assert details["pullRequest"] == {"number": 1, "state": "open", "reason": None}
    assert details["revision"] == git(world.repository, "rev-parse", branch).strip()
    changed = {file["path"]: file for file in details["changes"]["files"]}
    assert changed["docs/guides/colours.md"]["title"] == "Colours"
    assert (details["changes"]["fileCount"], changed["README.md"]["kind"]) == (len(changed), "changed")
    assert details["reason"] is details["question"] is None
    message = git(world.repository, "log", "-1", "--format=%an <%ae> %cn%n%B", branch)
    assert message.startswith(f"Pagehand <pagehand@localhost> Pagehand\n{REPLACE}\n")
    page = await world.client.get(ended["prLink"])
    assert page.status_code == 200
    assert "any color by name" in page.text


async def test_a_follow_up_to_an_active_job_extends_its_pull_request(world: JobServerWorld) -> None:
    job = (await world.create(REPLACE)).json()
    answer = await world.message(job["id"], ADD_FAQ)
    assert answer.status_code == 200
    assert answer.json()["status"] == "active"
    ended = await world.ended(job["id"])
    assert ended["status"] == "completed"
    branch = f"pagehand/{job['id']}"
    assert git(world.repository, "log", "--format=%s", f"main..{branch}").splitlines() == [ADD_FAQ, REPLACE]
    assert world.show(branch, "docs/faq.md") == "# FAQ\n\nAsk us anything.\n"
    assert world.branches() == {"main", branch}
    assert (await world.client.get("/docs/pulls/2")).status_code == 404


async def test_a_follow_up_to_a_completed_job_reactivates_it_and_hides_the_link(
    world: JobServerWorld,
) -> None:
    first = await world.done(REPLACE)
    answer = (await world.message(first["id"], ADD_FAQ)).json()
    assert (answer["status"], answer["prLink"]) == ("active", None)
    assert (await world.ended(first["id"]))["prLink"] == first["prLink"]


WRONG_KEYS = (None, "Bearer wrong", "Bearer", f"Basic {KEY}", "Bearer \xe9", f"Bearer {KEY}x")
FILE_OF_NOTHING = f"{FILE}/{hashlib.sha256().hexdigest()}"
REQUESTS = (
    ("POST", JOB), ("POST", f"{JOB}/x/message"), ("POST", f"{JOB}/x/cancel"), ("GET", f"{JOB}/x"),
    ("PUT", FILE_OF_NOTHING), ("GET", f"{JOB}/x/picture/y"),
)  # fmt: skip


async def test_without_the_key_nothing_is_revealed(world: JobServerWorld) -> None:
    async with httpx.AsyncClient(base_url=world.url, verify=WITHOUT_TLS) as stranger:
        for header, (method, path) in product(WRONG_KEYS, REQUESTS):
            headers = [(b"Authorization", header.encode("latin-1"))] if header else []
            answer = await stranger.request(method, path, headers=headers, json={"prompt": "x"})
            assert answer.status_code == 401, (header, method, path)
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert list(answer.json()) == ["error"]


BAD_BODIES = [
    b"", b"not json", b"[]", b"null", b'"x"', b"{}", b'{"prompt": null}', b'{"prompt": 7}', b'{"prompt": ""}',
    b'{"prompt": "  \\n"}', b'{"prompt": ["x"]}', b'{"prompt": "a\\u0000b"}', b'{"prompt": "\\ud800"}', b"\xff\xfe",
    b'{"prompt": "x"', b"[" * 20_000, b'{"prompt": "\xff"}',
]  # fmt: skip


async def test_a_body_without_a_prompt_is_refused_with_an_explanation(world: JobServerWorld) -> None:
    for body in BAD_BODIES:
        answer = await world.client.post(JOB, content=body)
        assert answer.status_code == 400, body[:20]
        assert list(answer.json()) == ["error"]
        assert answer.json()["error"]


REFUSED = [
    ("POST", "/v2/agent/other/job", 404), ("GET", "/v2/agent/other/job/1", 404), ("GET", f"{JOB}/nosuchjob", 404),
    ("POST", f"{JOB}/nosuchjob/message", 404), ("GET", f"{JOB}/%ff%00%2f..", 404), ("GET", "/v2/nothing", 404),
    ("DELETE", JOB, 405), ("PUT", f"{JOB}/1/message", 405), ("GET", "/v2/agent//job/1", 404),
    ("POST", f"{JOB}/nosuchjob/cancel", 404), ("PUT", FILE_OF_NOTHING.replace("docs", "other"), 404),
]  # fmt: skip


async def test_refusals_have_one_shape(world: JobServerWorld) -> None:
    for method, path, status in REFUSED:
        answer = await world.client.request(method, path, json={"prompt": "x"} if method != "GET" else None)
        assert answer.status_code == status, (method, path)
        assert list(answer.json()) == ["error"]
        assert ("Allow" in answer.headers) == (status == 405)


async def test_an_oversized_prompt_or_body_is_413(tmp_path: Path) -> None:
    repository = make_sample(tmp_path)
    async with running(repository, tmp_path / "data", max_prompt_characters=100) as world:
        assert (await world.create("é" * 100)).status_code == 201
        for prompt in ("x" * 101, "x" * 100_000):
            answer = await world.create(prompt)
            assert answer.status_code == 413
            assert list(answer.json()) == ["error"]


async def test_the_rate_limit_counts_creates_and_messages_across_restarts(tmp_path: Path) -> None:
    repository = make_sample(tmp_path)
    async with running(repository, tmp_path / "data", rate_limit=2) as world:
        job = (await world.create("Nothing")).json()
        assert (await world.message(job["id"], "Nothing")).status_code == 200
    async with running(repository, tmp_path / "data", rate_limit=2) as world:
        for answer in (await world.create("Nothing"), await world.message(job["id"], "Nothing")):
            assert answer.status_code == 429
            assert 3500 < int(answer.headers["Retry-After"]) <= 3601
        assert (await world.client.get(f"{JOB}/{job['id']}")).status_code == 200


@pytest.mark.full
async def test_an_idempotency_key_returns_the_first_answer_and_repeats_nothing(tmp_path: Path) -> None:
    repository = make_sample(tmp_path)
    key = {"Idempotency-Key": "k-1"}
    async with running(repository, tmp_path / "data") as world:
        answers = await asyncio.gather(*(world.create(REPLACE, **key) for _ in range(5)))
        assert {(answer.status_code, answer.text) for answer in answers} == {(201, answers[0].text)}
        job = answers[0].json()
        await world.ended(job["id"])
    async with running(repository, tmp_path / "data") as world:
        assert (await world.create(REPLACE, **key)).text == answers[0].text
        assert (await world.create("Other", **key)).status_code == 422
        assert (await world.message(job["id"], REPLACE, **key)).status_code == 422
        once = {"Idempotency-Key": "k-2"}
        for _ in range(3):
            assert (await world.message(job["id"], ADD_FAQ, **once)).status_code == 200
        await world.ended(job["id"])
        assert len(git(world.repository, "log", "--format=%H", f"main..pagehand/{job['id']}").split()) == 2
        assert (await world.create("x", **{"Idempotency-Key": ""})).status_code == 400


async def test_the_requester_is_named_if_the_client_sends_one(world: JobServerWorld) -> None:
    robin = {"name": "Robin <b>\n\nField", "id": "U1", "url": "https://example.slack.com/archives/C1/p1"}
    key = {"Idempotency-Key": "k-1"}
    created = await world.client.post(JOB, json={"prompt": REPLACE, "requestedBy": robin}, headers=key)
    assert created.status_code == 201
    again = await world.client.post(JOB, json={"prompt": REPLACE, "requestedBy": {"name": "R"}}, headers=key)
    assert again.text == created.text, "a name that changed meanwhile makes no other request of it"
    job = await world.ended(created.json()["id"])
    trailer = git(
        world.repository, "log", "-1", "--format=%(trailers:key=Requested-by,valueonly)", f"pagehand/{job['id']}"
    )
    assert trailer.strip() == "Robin <b> Field (https://example.slack.com/archives/C1/p1)"
    page = (await world.client.get(job["prLink"])).text
    assert "Field</a> asked:" in page
    assert "<b>" not in page
    message = await world.client.post(f"{JOB}/{job['id']}/message", json={"prompt": ADD_FAQ, "requestedBy": robin})
    assert message.status_code == 200
    assert message.json()["details"]["summary"] is None, "that was the answer before"


BAD_REQUESTERS = [7, "Robin", {}, {"name": ""}, {"name": " \n"}, {"name": 7}, {"name": "x" * 201},
                  {"name": "x", "url": "javascript:alert(1)"}, {"name": "x", "url": "https://a b"}]  # fmt: skip


async def test_an_invalid_requester_is_refused_with_an_explanation(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    for path, requester in product((JOB, f"{JOB}/{job['id']}/cancel"), BAD_REQUESTERS):
        answer = await world.client.post(path, json={"prompt": REPLACE, "requestedBy": requester})
        assert answer.status_code == 400, requester
        assert answer.json()["error"].startswith("requestedBy")
    for body in (b"[]", b"x"):
        assert (await world.client.post(f"{JOB}/{job['id']}/cancel", content=body)).status_code == 400
    assert await world.job(job["id"]) == job


async def test_a_finished_job_is_archived_and_accepts_no_messages(tmp_path: Path) -> None:
    repository = make_sample(tmp_path)
    age = timedelta(seconds=0.2)
    async with running(repository, tmp_path / "data", archive_after=age) as world:
        job = await world.done(REPLACE)

        async def archived() -> str | None:
            seen = await world.job(job["id"])
            return seen["archivedAt"] if seen["status"] == "archived" else None

        archived_at = datetime.fromisoformat(await until(archived))
        assert archived_at >= datetime.fromisoformat(job["createdAt"])
        answer = await world.message(job["id"], ADD_FAQ)
        assert answer.status_code == 400
        assert "archived" in answer.json()["error"]
        assert (await world.job(job["id"]))["prLink"] == f"{world.url}/docs/pulls/1"


async def test_the_openapi_document_describes_the_answers(world: JobServerWorld) -> None:
    document = (await world.client.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    job = (await world.create(REPLACE)).json()
    validator = jsonschema.Draft202012Validator(
        {"$ref": "#/components/schemas/AgentJob", "components": document["components"]}
    )
    for seen in (job, await world.ended(job["id"])):
        validator.validate(seen)
    operations = {(path, method) for path, item in document["paths"].items() for method in item}
    assert operations == {
        ("/v2/agent/{projectId}/job", "post"),
        ("/v2/agent/{projectId}/job/{id}/message", "post"),
        ("/v2/agent/{projectId}/job/{id}/cancel", "post"),
        ("/v2/agent/{projectId}/job/{id}/discard", "post"),
        ("/v2/agent/{projectId}/job/{id}", "get"),
        ("/v2/agent/{projectId}/job/{id}/pull-request", "get"),
        ("/v2/agent/{projectId}/job/{id}/picture/{pictureId}", "get"),
        ("/v2/agent/{projectId}/file/{sha256}", "put"),
    }
    health = (await world.client.get("/health")).json()
    assert health["status"] == "ok"
    assert health["mirror"] in {"being made", "made"}


async def test_a_jobs_pull_request_is_told_until_it_is_merged(world: JobServerWorld) -> None:
    """What the client knows is not sent again."""
    job = await world.done(REPLACE)
    address = f"{JOB}/{job['id']}/pull-request"
    told = await world.client.get(address)
    document = (await world.client.get("/openapi.json")).json()
    schema = {"$ref": "#/components/schemas/PullRequest", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(told.json())
    assert (told.json()["link"], told.json()["state"]) == (job["prLink"], "open")
    known = {"If-None-Match": told.headers["ETag"]}
    assert (await world.client.get(address, headers=known)).status_code == 304
    await world.press(job["prLink"], "merge")
    merged = (await world.client.get(address, headers=known)).json()
    assert (merged["state"], merged["endedBy"]) == ("merged", "Ada Lovelace")


async def test_a_job_without_a_pull_request_says_so(world: JobServerWorld) -> None:
    job = await world.done("What can you do?")
    for job_id, words in ((job["id"], "this job has no pull request"), ("unknown", "job")):
        answer = await world.client.get(f"{JOB}/{job_id}/pull-request")
        assert (answer.status_code, words in answer.json()["error"]) == (404, True)


async def test_a_foreign_host_header_is_refused_everywhere(world: JobServerWorld) -> None:
    for path in ("/health", "/pulls", "/openapi.json", f"{JOB}/1"):
        for host in ("evil.example", "127.0.0.1.evil.example", "[", ""):
            answer = await world.client.get(path, headers={"Host": host})
            assert answer.status_code in {400, 403}
    async with running(world.repository, world.repository.parent / "b", public_url="https://Jobs.example/") as public:
        answer = await public.client.get("/health", headers={"Host": "jobs.example"})
        assert answer.status_code == 200
        assert (await public.done(REPLACE))["prLink"] == "https://Jobs.example/docs/pulls/1"


async def test_requests_may_use_a_host_name_of_the_settings(tmp_path: Path, world: JobServerWorld) -> None:
    """In Compose, it is the name of the container."""
    async with running(world.repository, tmp_path / "named", host_names="jobserver") as named:
        for host, status in (("jobserver:8765", 404), ("Jobserver", 404), ("other:8765", 403)):
            assert (await named.client.get(f"{JOB}/none", headers={"Host": host})).status_code == status


async def test_an_unexpected_error_is_reported_without_its_details(world: JobServerWorld) -> None:
    await asyncio.to_thread(world.break_table)
    for answer in (await world.client.get(f"{JOB}/1"), await world.create(REPLACE), await world.client.get("/health")):
        assert answer.status_code == 500
        assert answer.json() == {"error": "Something went wrong in the job server. Its log says what."}


async def test_the_key_is_in_no_log_and_no_file(world: JobServerWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await world.done(REPLACE)
    assert KEY not in caplog.text
    assert KEY not in repr(world.settings)
    written = [path for path in world.settings.data_directory.rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if KEY.encode() in path.read_bytes()]


async def test_a_failed_start_is_explained(tmp_path: Path, world: JobServerWorld) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    port = int(world.url.rsplit(":", 1)[1])
    faults: dict[str, dict[str, object]] = {
        "already works in": {"data_directory": world.settings.data_directory},
        "cannot listen": {"port": port},
        "no commits": {"repository": str(tmp_path / "empty.git")},
        "cannot be used": {"repository": str(tmp_path / "nothing")},
        "has no branch": {"base_branch": "nothing"},
    }
    for number, (words, fault) in enumerate(faults.items()):
        values: dict[str, Any] = {"repository": str(world.repository), "data_directory": tmp_path / f"d{number}"}
        settings = JobServerSettings(**(values | {"port": 0, "api_key": KEY} | fault))
        with pytest.raises(JobServerError, match=words):
            await JobServer(settings).start()
