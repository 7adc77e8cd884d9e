"""A request's id goes from the bot's log through a header into each line of the job server's log."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.oracles.log_lines import log_lines
from support.worlds.jobserver_world import JOB, KEY, JobServerWorld, make_bare, running

from bot.domain.requests.request import log_id
from bot.errors import JobApiError
from bot.jobapi.client import HttpJobApi
from bot.jobapi.models import PromptCall
from bot.jobapi.settings import JobApiSettings
from bot.runtime.log_context import REQUEST_ID_HEADER, LogContext, log_context

CREATE, MESSAGE = log_id("first-request"), log_id("second-request")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[JobServerWorld]:
    async with running(make_bare(tmp_path / "r.git", {"docs/a.md": "# Start\n"}), tmp_path / "data") as world:
        yield world


@asynccontextmanager
async def client(url: str) -> AsyncIterator[HttpJobApi]:
    api = HttpJobApi({"docs": ("docs", JobApiSettings(base_url=url, api_key=SecretStr(KEY)))})
    yield api
    await api.aclose()


async def test_every_job_server_log_line_has_its_request_id(world: JobServerWorld) -> None:
    with log_lines() as lines:
        async with client(world.url) as api:
            with log_context(LogContext(CREATE, thread="t1")):
                job = await api.create("docs", PromptCall('Replace "Start" with "Begin"', "first-request"))
            await world.ended(job.id)
            with log_context(LogContext(MESSAGE, thread="t1")):
                await api.send_message("docs", job.id, PromptCall("Thank you", "second-request"))
            ended = await world.ended(job.id)
    assert ended["prLink"]
    server = [line for line in lines if line["logger"].startswith("bot.jobserver") and line.get("job")]
    told = [(line["request"], line["message"]) for line in server]
    assert told == [
        (CREATE, "job accepted: active"),
        (CREATE, "instruction 1 started, attempt 1"),
        (CREATE, f"instruction 1 done: {ended['prLink']}"),
        (MESSAGE, "message accepted: active"),
        (MESSAGE, "instruction 2 started, attempt 1"),
        (MESSAGE, "instruction 2 done"),
    ]
    assert {line["job"] for line in server} == {job.id}
    assert "-request" not in str(lines), "an Idempotency-Key was logged"


async def test_a_poll_that_fails_in_the_job_server_is_found_by_request_id(world: JobServerWorld) -> None:
    await asyncio.to_thread(world.break_table)
    with log_lines() as lines:
        async with client(world.url) as api:
            with log_context(LogContext(CREATE, "job-1", "t1")), pytest.raises(JobApiError):
                await api.get("docs", "job-1")
    requested = [line for line in lines if line["logger"].startswith("bot.jobserver") and line.get("request")]
    assert [(line["level"], line["request"]) for line in requested] == [("ERROR", CREATE)]


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "ä", 'a"b'])
async def test_an_invalid_request_id_is_replaced(world: JobServerWorld, given: str) -> None:
    answer = await world.client.get(f"{JOB}/none", headers={REQUEST_ID_HEADER.encode(): given.encode()})
    assert answer.headers[REQUEST_ID_HEADER] not in {given, ""}


async def test_the_response_carries_the_request_id(world: JobServerWorld) -> None:
    kept = "a.B_9-" + "x" * 58
    answer = await world.client.get(f"{JOB}/none", headers={REQUEST_ID_HEADER: kept})
    assert answer.headers[REQUEST_ID_HEADER] == kept
