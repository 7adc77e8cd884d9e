"""The log has a line for each step of a job, with the request, the job and the thread that it is about."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from support.fakes.ports import FakeJobApi
from support.oracles.log_lines import log_lines
from support.worlds.core_world import ANA, CoreWorld

from bot.domain.requests.request import Reply
from bot.errors import JobApiRejected, NotRecorded, StoreUnavailable
from bot.jobapi.models import Job, PromptCall
from bot.runtime.logging import current_log_context
from bot.service import Service
from bot.store.store import Transaction

T = TypeVar("T")
LINK = "https://git.example/pull/1"
PROMPT, MORE = "Rewrite the planted words", "Also the planted FAQ"


class Listening(FakeJobApi):
    """Records the request's id and the key with which each prompt was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[str, str] = {}

    async def create(self, project: str, call: PromptCall) -> Job:
        self.sent[call.idempotency_key] = current_log_context().request
        return await super().create(project, call)

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        self.sent[call.idempotency_key] = current_log_context().request
        return await super().send_message(project, job_id, call)


async def a_jobs_life(world: CoreWorld) -> None:
    ts = await world.started(PROMPT)
    await world.reply(ts, MORE, "5.000001", wait=5)
    await world.show("completed", LINK, wait=60)


async def test_each_step_of_a_job_is_one_line(world: CoreWorld) -> None:
    with log_lines() as lines:
        await a_jobs_life(world)
    assert [line["message"] for line in lines] == [
        "request recorded: start",
        "audit: asked",
        "job created: active",
        "request recorded: follow_up",
        "audit: steered",
        "message sent: active",
        f"job ended: completed {LINK}",
    ]
    assert {line["thread"] for line in lines} == {lines[0]["thread"]}
    assert [line.get("job") for line in lines] == [None, None, "job-1", None, "job-1", "job-1", "job-1"]


async def test_a_request_has_one_log_id_that_is_not_its_idempotency_key(world: CoreWorld) -> None:
    listening = Listening()
    world.configure(job_api=listening)
    with log_lines() as lines:
        await a_jobs_life(world)
    start, follow_up = listening.sent.values()
    its_end = start  # events of a job are logged with the request that asked for it
    assert [line.get("request") for line in lines] == [start] * 3 + [follow_up] * 3 + [its_end]
    assert start != follow_up
    assert not listening.sent.keys() & {start, follow_up}


async def test_a_job_api_refusal_is_logged_with_its_request(world: CoreWorld) -> None:
    world.job_api.faults.append(JobApiRejected("The job API refused this (400).", words="planted words"))
    with log_lines() as lines:
        await world.started(PROMPT)
    recorded, asked, refused = lines
    assert refused["message"] == "start: The job API refused this (400)."
    assert refused["request"] == asked["request"] == recorded["request"]


class FailingStore:
    """A store that records nothing, because of `fault`."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        raise self._fault

    async def close(self) -> None:
        """Does nothing."""


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (StoreUnavailable("The database is locked by another program."), "The database is locked by another program."),
        (RuntimeError(PROMPT), "because of an unexpected RuntimeError"),
    ],
)
async def test_an_unrecorded_message_has_the_same_log_id_again(world: CoreWorld, fault: Exception, words: str) -> None:
    """Even after an unexpected error, whose text may quote a person."""
    ts = await world.started(PROMPT)
    reply = Reply(ANA, "C1", ts, "5.000001", MORE)
    with log_lines() as lines:
        with pytest.raises((StoreUnavailable, NotRecorded)):
            await Service(FailingStore(fault), on_commit=lambda: None).receive(reply)
        await world.receive(reply)
    (failed, recorded) = lines
    assert failed["message"].startswith("not recorded")
    assert failed["message"].endswith(words)
    assert recorded["message"] == "request recorded: follow_up"
    assert failed["request"] == recorded["request"]


@pytest.mark.full
async def test_texts_of_people_are_not_logged_above_debug(world: CoreWorld) -> None:
    with log_lines(logging.INFO) as lines:
        await a_jobs_life(world)
    assert lines
    assert "planted" not in str(lines)
