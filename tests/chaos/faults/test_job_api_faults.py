"""Job API faults: each row of the error table, and every malformed answer, beside unaffected jobs."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.fakes.slack_limits import ANY_NUMBER
from support.servers.fake_job_api import (
    GARBAGE,
    GIANT,
    MISSING,
    PROJECT,
    TRUNCATED,
    Fault,
    Operation,
    answering,
    cut,
    refusing,
    slow,
    web_page,
)
from support.worlds.app_world import AppWorld, a_world, until

from bot.app.edges import EdgeTimings
from bot.notices.notice import Reaction
from bot.notices.said import ButtonId

pytestmark = [pytest.mark.promise("sent once"), pytest.mark.chaos, pytest.mark.either_database]
FINISHED = ("started", "completed")
_PROJECT = '[[projects]]\nname = "{}"\nproject = "{}"\nwords = ["{}"]\n'

NOT_ARRIVED = {
    "429": refusing(429, "slow down", Retry_After="1"),
    "429 without a time": refusing(429),
    "503 with a time": refusing(503, Retry_After="1"),
    "425": refusing(425),
    "409": refusing(409, "a turn is running"),
    "423": refusing(423, "locked", Retry_After="1"),
    "404 page": web_page(404, applied=False),
    "404 text": Fault(status=404, body=b"Not Found"),
}
REJECTED = {
    "400": refusing(400, "No <!channel> & no <https://evil.example|link>"),
    "422": refusing(422, "Too short"),
    "404": refusing(404, "no such project"),
    "402": refusing(402, "out of credit"),
    "403 page": web_page(403, applied=False),
    "451": refusing(451, "by order of a court"),
}
NO_JOB = refusing(404, "no such job")
UNKNOWN = {
    "500": refusing(500, "oops"),
    "500 after": refusing(500, "oops", applied=True),
    "502 page": web_page(502, applied=True),
    "503": refusing(503),
    "time-out": slow(15.0),
    "cut before": cut(applied=False),
    "cut after": cut(applied=True),
    "truncated": TRUNCATED,
    "giant": GIANT,
    "page": web_page(),
    "garbage": GARBAGE,
    "empty": Fault(applied=True, body=b""),
    "no id": answering(id=MISSING),
}
ODD = (
    "Odd",
    "Late",
    "Changing",
    "Vanishing",
    "Backwards",
    "Missing",
    "Gone",
    "Future",
    "Malformed",
    "Not a link",
    "No JSON",
)


SHORT_PAUSES = EdgeTimings(job_api_pause=1.0, slack_limits=ANY_NUMBER, hold_back=0.0, gone_after=3.0)
"""If the job API names no time, a project is left alone for a second only. A job is gone after three."""


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[AppWorld]:
    async with a_world(database_url, edge_timings=SHORT_PAUSES) as made:
        yield made


@pytest.mark.full
async def test_requests_that_did_not_arrive_are_retried_automatically(world: AppWorld) -> None:
    await world.start()
    for name, fault in NOT_ARRIVED.items():
        world.fake_job_api.fail(fault, Operation.CREATE, prompt=name)
        world.fake_job_api.fail(fault, Operation.MESSAGE, prompt=f"More of {name}")
    async with world.hurrying():
        jobs = await world.begin(*NOT_ARRIVED)
        replies = [await world.reply(name, f"More of {name}") for name in NOT_ARRIVED]
        for job, name in zip(jobs, NOT_ARRIVED, strict=True):
            await world.until_steered(job, f"More of {name}")
    for name in NOT_ARRIVED:
        assert world.fake_job_api.tried(Operation.CREATE, name) == 2
        assert world.fake_job_api.tried(Operation.MESSAGE, f"More of {name}") == 2
    world.complete(*jobs)
    for name in NOT_ARRIVED:
        await world.until_said(name, "started", "completed")
    await world.settled()
    assert [world.reactions(reply) for reply in replies] == [[Reaction.ACCEPTED.value]] * len(replies)
    await world.check()


@pytest.mark.full
async def test_refused_requests_are_explained_and_not_retried(world: AppWorld) -> None:
    await world.start()
    for name, fault in REJECTED.items():
        world.fake_job_api.fail(fault, Operation.CREATE, prompt=name, times=None)
        await world.ask(name)
    for name in REJECTED:
        await world.until_said(name, "refused/1")
        assert world.fake_job_api.tried(Operation.CREATE, name) == 1
    words = world.thread("400")[1].text
    assert "<!channel>" not in words
    assert "&lt;!channel&gt;" in words
    (job,) = await world.begin("Spared")
    of_words = REJECTED.keys() - {"404"}
    for name in of_words:
        world.fake_job_api.fail(REJECTED[name], Operation.MESSAGE, prompt=f"More of {name}")
        reply = await world.reply("Spared", f"More of {name}")
        await world.until_marked(reply, Reaction.PROBLEM)
    world.complete(job)
    await world.until_said("Spared", "started", *["refused/1"] * len(of_words), "completed")
    world.fake_job_api.heal()
    await world.press("402", ButtonId.SEND_AGAIN, key="/refused/")
    await world.until_said("402", "refused/1", "started")
    world.complete(world.fake_job_api.job_of("402"))
    await world.until_said("402", "refused/1", *FINISHED)
    await world.check()


@pytest.mark.full
async def test_requests_in_doubt_are_asked_about(world: AppWorld) -> None:
    """They are neither repeated nor forgotten: the thread has a button that sends the request once more."""
    await world.start()
    for name, fault in UNKNOWN.items():
        world.fake_job_api.fail(fault, Operation.CREATE, prompt=name)
        world.fake_job_api.fail(fault, Operation.MESSAGE, prompt=f"More: {name}")
    (spared,) = await world.begin("Spared")
    for name in UNKNOWN:
        await world.ask(name)
        await world.reply("Spared", f"More: {name}")
    for name in UNKNOWN:
        await world.until_said(name, "unsure/1")
        assert world.fake_job_api.tried(Operation.CREATE, name) == 1
    await world.settled()
    assert world.said("Spared")[1:] == ["unsure/1"] * len(UNKNOWN)
    assert {world.fake_job_api.tried(Operation.MESSAGE, f"More: {name}") for name in UNKNOWN} == {1}
    await world.press("500", ButtonId.SEND_AGAIN, key="/unsure/")
    await world.until_said("500", "unsure/1", "started")
    world.complete(spared, world.fake_job_api.job_of("500"))
    await world.until_said("500", "unsure/1", *FINISHED)
    await world.workspace.changes.wait_for(lambda: "completed" in world.said("Spared"))
    await world.check()


@pytest.mark.full
async def test_with_idempotency_keys_everything_is_retried_and_done_once(world: AppWorld) -> None:
    world.fake_job_api.honours_keys = True
    await world.start(JOB_API_IDEMPOTENT="true")
    names = list(UNKNOWN)
    # No thread meets the same fault twice, so that both time-outs pass at the same time.
    after = dict(zip(names, [*names[1:], names[0]], strict=True))
    for name, fault in UNKNOWN.items():
        world.fake_job_api.fail(fault, Operation.CREATE, prompt=name)
        world.fake_job_api.fail(UNKNOWN[after[name]], Operation.MESSAGE, prompt=f"More: {name}")
    for name in UNKNOWN:
        await world.ask(name)
    for name in UNKNOWN:
        await world.reply(name, f"More: {name}")
    async with world.hurrying():
        for name in UNKNOWN:
            await world.until_said(name, "started")
        jobs = [world.fake_job_api.job_of(name) for name in UNKNOWN]
        for job, name in zip(jobs, UNKNOWN, strict=True):
            await world.until_steered(job, f"More: {name}")
        # The job API has them all; Pagehand knows them only after each was sent once more.
        await world.settled()
    world.complete(*jobs)
    for name in UNKNOWN:
        await world.until_said(name, "started", "completed")
    await world.check()


@pytest.mark.full
async def test_failing_polls_are_silent_and_continue(world: AppWorld) -> None:
    """Every fault, for one job's polls each, while another job continues at full speed."""
    faults = NOT_ARRIVED | REJECTED | UNKNOWN | {"403 once": refusing(502), "odd type": answering(status=7)}
    del faults["403 page"]  # which is told at once, like any 403 to a poll
    await world.start()
    jobs = await world.begin(*faults)
    (spared,) = await world.begin("Spared")
    for job, fault in zip(jobs, faults.values(), strict=True):
        world.fake_job_api.fail(fault, Operation.GET, job_id=job, times=2)
    world.complete(*jobs)
    await world.fake_job_api.until(lambda: world.fake_job_api.polls_of(spared) > 0)
    world.complete(spared)
    await world.until_said("Spared", *FINISHED, seconds=15)
    for name in faults:
        await world.until_said(name, *FINISHED)
    await world.check()


async def test_the_job_api_is_away_and_comes_back(world: AppWorld) -> None:
    await world.start()
    (job,) = await world.begin("Running")
    await world.fake_job_api.stop()
    await world.reply("Running", "Meanwhile")
    await world.ask("Asked meanwhile")
    await world.card("Asked meanwhile")

    async def both_tried() -> bool:
        rows = await world.sql("SELECT count(*) FROM requests WHERE state = 'waiting' AND attempts > 0")
        return bool(rows[0][0] == 2)

    await until(both_tried)
    await world.fake_job_api.start()
    await world.hurry()
    await world.fake_job_api.until(lambda: world.fake_job_api.follow_ups(job) == ["Meanwhile"])
    await world.until_said("Asked meanwhile", "started")
    world.complete(job)
    await world.until_said("Running", "started", "completed")
    await world.check()


@pytest.mark.full
async def test_malformed_jobs_from_the_job_api(world: AppWorld) -> None:
    """Unusual values are shown or left out; they stop nothing, and nothing is posted twice."""
    await world.start()
    fake_job_api = world.fake_job_api
    seen = dict(zip(ODD, await world.begin(*ODD), strict=True))
    fake_job_api.show(seen["Odd"], "<!here> dreaming")
    fake_job_api.show(seen["Late"], "completed")
    fake_job_api.show(seen["Changing"], "active", "https://git.example/first")
    fake_job_api.show(seen["Vanishing"], "active", "https://git.example/there")
    fake_job_api.show(seen["Backwards"], "completed")
    fake_job_api.fail(NO_JOB, Operation.GET, job_id=seen["Missing"], times=2)
    fake_job_api.fail(NO_JOB, Operation.GET, job_id=seen["Gone"], times=None)
    fake_job_api.fail(NO_JOB, Operation.MESSAGE, job_id=seen["Gone"], times=None)
    fake_job_api.show(seen["Future"], "failed", createdAt="9999-12-31T23:59:59Z", archivedAt="2999-01-01")
    fake_job_api.show(seen["Malformed"], "failed", createdAt="yesterday\u202e\x00", source="x" * 9999, model={"a": 1})
    fake_job_api.show(seen["Not a link"], "completed", "javascript:alert(1)//<!channel>")

    no_json = b'{"id": "job\xe9", "status": "failed\x01", "model": "\\ud83d", "novelty": %s}' % (b"1" * 10_000)
    fake_job_api.fail(Fault(applied=True, body=no_json), Operation.GET, job_id=seen["No JSON"], times=None)

    await world.workspace.changes.wait_for(lambda: "dreaming" in world.thread("Odd")[0].text)
    assert "<!here>" not in world.thread("Odd")[0].text
    await world.until_said("Late", *FINISHED)
    fake_job_api.show(seen["Late"], "completed", "https://git.example/late")
    await world.until_said("Late", *FINISHED, "link")
    await world.until_said("Changing", "started", "link")
    fake_job_api.show(seen["Changing"], "completed", "https://git.example/second")
    await world.until_said("Changing", "started", "link", "completed")
    await world.until_said("Vanishing", "started", "link")
    fake_job_api.show(seen["Vanishing"], "completed", None)
    await world.until_said("Vanishing", "started", "link", "completed")
    await world.until_said("Backwards", *FINISHED)
    fake_job_api.show(seen["Backwards"], "active")
    await world.workspace.changes.wait_for(lambda: "Active" in world.thread("Backwards")[0].text)
    fake_job_api.show(seen["Backwards"], "completed")
    await world.workspace.changes.wait_for(lambda: "Finished" in world.thread("Backwards")[0].text)
    await world.until_said("Gone", "started", "gone")
    await world.until_said("Future", "started", "failed")
    await world.until_said("Malformed", "started", "failed")
    await world.until_said("No JSON", "started", "failed")
    await world.until_said("Not a link", *FINISHED)
    assert "&lt;!channel&gt;" in world.thread("Not a link")[2].text
    reply = await world.reply("Gone", "Still there?")
    await world.until_said("Gone", "started", "gone", "refused/1")
    assert world.reactions(reply) == [Reaction.PROBLEM.value]
    fake_job_api.show(seen["Missing"], "completed", "https://git.example/found")
    await world.until_said("Missing", *FINISHED)
    await world.settled()
    said = world.said("Backwards")  # a status that comes back is said again once it has lasted
    assert (said[:2], said[-1].rpartition("/")[2]) == (list(FINISHED), FINISHED[-1])
    await world.check()


@pytest.mark.full
async def test_a_missing_job_is_gone_after_a_while_and_may_come_back(world: AppWorld) -> None:
    """A follow-up waits until it is clear whether the job is gone; a later one shows that it is there again."""
    await world.start(PAGEHAND_POLL_FASTEST="1")
    lost, spared = await world.begin("Lost", "Spared")
    world.fake_job_api.fail(NO_JOB, job_id=lost, times=None)
    reply = await world.reply("Lost", "More")
    await world.until_marked(reply, Reaction.PROBLEM)
    await world.workspace.changes.wait_for(lambda: "no longer has this job" in world.thread("Lost")[0].text)
    told = world.thread("Lost")[-1].text
    assert "wasn't sent: the agent no longer has this job. Start a new one with `/docs`." in told
    assert world.fake_job_api.tried(Operation.MESSAGE, "More") > 1
    assert "Active" not in world.thread("Lost")[0].text
    await world.reply("Spared", "More, please")
    await world.until_steered(spared, "More, please")
    world.fake_job_api.heal()
    await world.reply("Lost", "And more")
    await world.until_steered(lost, "And more")
    await world.workspace.changes.wait_for(lambda: "has this job again" in world.thread("Lost")[-1].text)
    world.complete(lost, spared)
    await world.until_said("Spared", *FINISHED)
    await world.workspace.changes.wait_for(lambda: world.said("Lost")[-1] == "completed")
    await world.check()


@pytest.mark.full
async def test_a_429_of_a_poll_holds_back_only_polls_of_its_project(world: AppWorld, scratch: Path) -> None:
    world.fake_job_api.projects.add("another")
    file = scratch / "projects.toml"
    file.write_text("".join(_PROJECT.format(*[name] * 3) for name in (PROJECT, "another")))
    await world.start(PAGEHAND_PROJECTS=str(file), JOB_API_PROJECT="")
    slowed, too = await world.begin("Slowed docs", "Slowed docs too")
    (other,) = await world.begin("Other another")
    retry_after = 5
    world.fake_job_api.fail(refusing(429, Retry_After=str(retry_after)), Operation.GET, job_id=slowed)
    await world.fake_job_api.until(lambda: not world.fake_job_api.pending(slowed))
    asked_to_wait = [poll for poll in world.fake_job_api.polls if poll.job_id == slowed][-1].started
    world.complete(slowed, too, other)
    await world.until_said("Other another", *FINISHED)
    await world.until_said("Slowed docs", *FINISHED)
    await world.until_said("Slowed docs too", *FINISHED)
    meanwhile = Counter(
        poll.job_id for poll in world.fake_job_api.polls if 0 < poll.started - asked_to_wait < retry_after
    )
    assert meanwhile[other] > 0
    assert meanwhile[slowed] == 0
    assert meanwhile[too] <= 1, "only a poll that was in flight may arrive"
    await world.check()
