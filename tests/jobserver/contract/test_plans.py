"""Plans and answers: they change nothing, the newest plan is accepted once, and what is carried out is that plan."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.fakes.job_ports import ScriptedEditor, append_prompt, word_check
from support.worlds.executor_world import ExecutorWorld, Secrets, details, executing, partial_files
from support.worlds.jobserver_world import JOB, KEY, JobServerWorld, make_sample, running

from bot.jobapi.models import (
    AgentJob,
    JobDetails,
    Mode,
    Proposal,
    ProposalState,
    ProposedPage,
    PullRequestState,
    Requester,
    Status,
)
from bot.jobapi.probe import JobApiProbe
from bot.jobapi.settings import JobApiSettings
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.errors import EditError, LeaseLostError, RequestRejectedError
from bot.jobserver.store.claims import LEASE, Wanted, Worker
from bot.jobserver.store.database import Database
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import AcceptedPlan, Choices, Instruction, JobTemplate, Outcome, PromptRequest

pytestmark = [pytest.mark.promise("nothing before Start"), pytest.mark.either_database]

ADA, BEN = Requester(name="Ada"), Requester(name="Ben")
TEMPLATE = JobTemplate("docs", "main", "claude")
DAY = timedelta(days=1)
ALL = Choices(tuple(Mode), ("opus", "sonnet"), ("high",))
PAGES = (ProposedPage(path="a.md", reason="it is old"), ProposedPage(path="b.md"))


class Jobs:
    """A real store whose clock a test sets; `plan` is asked for, and made by a worker."""

    def __init__(self, url: str) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.database = Database(url, now=lambda: self.time)
        self.store = JobStore(self.database, "docs", rate_limit=1_000, choices=ALL)
        self.queue = InstructionQueue(self.database)

    async def send(self, words: str, job_id: str | None = None, mode: Mode = Mode.PLAN, **more: Any) -> AgentJob:
        return await self.store.submit(PromptRequest(words, job_id, mode=mode, **more), TEMPLATE)

    async def taken(self, worker: str = "w") -> Instruction:
        taken = await self.queue.claim(Worker(worker), Wanted(["docs"]))
        assert taken is not None
        return taken

    async def propose(self, taken: Instruction, proposal_id: str = "p1") -> AgentJob:
        made = Proposal(id=proposal_id, state=ProposalState.PROPOSED, text=f"Plan {proposal_id}", pages=PAGES)
        await self.queue.finish(taken, Outcome(details=JobDetails(proposal=made), tree="tree"))
        return await self.store.get(taken.job_id)

    async def planned(self, words: str = "Move it", job_id: str | None = None, proposal_id: str = "p1") -> AgentJob:
        await self.send(words, job_id)
        return await self.propose(await self.taken(), proposal_id)

    async def accept(self, job_id: str, proposal_id: str = "p1", **more: Any) -> AgentJob:
        return await self.send("Go", job_id, Mode.EDIT, proposal=proposal_id, **more)

    async def state(self, job_id: str) -> ProposalState | None:
        known = details(await self.store.get(job_id)).proposal
        return known.state if known else None


@pytest.fixture
async def jobs(empty_database: str) -> AsyncIterator[Jobs]:
    jobs = Jobs(empty_database)
    async with jobs.database:
        yield jobs


async def test_a_plan_waits_and_is_carried_out_by_whoever_claims_it(jobs: Jobs) -> None:
    job = await jobs.planned()
    made = Proposal(id="p1", state=ProposalState.PROPOSED, text="Plan p1", pages=PAGES)
    assert (job.status, job.pr_link, job.details) == (
        Status.COMPLETED, None, JobDetails(mode=Mode.PLAN, proposal=made),
    )  # fmt: skip
    accepted = await jobs.accept(job.id, requester=ADA)
    told = made.model_copy(update={"state": ProposalState.ACCEPTED, "accepted_by": "Ada"})
    assert (accepted.status, accepted.details) == (Status.ACTIVE, JobDetails(proposal=told))
    lost = await jobs.taken("one")
    jobs.time += 2 * LEASE
    taken = await jobs.taken("two")
    for each in (lost, taken):
        assert (each.mode, each.plan, each.prompt, each.words) == (
            Mode.EDIT, AcceptedPlan("Plan p1", "tree"), "Go", "Move it",
        )  # fmt: skip
        assert [(earlier.words, earlier.answer) for earlier in each.conversation] == [("Move it", "Plan p1")]
    await jobs.queue.finish(taken, Outcome(pr_link="http://x/1"))
    await jobs.send("And that", job.id, Mode.EDIT)
    await jobs.store.cancel(job.id)
    assert details(await jobs.store.get(job.id)).proposal == told, "whatever comes later"


async def test_of_many_who_accept_at_once_one_does_and_a_retry_gets_its_answer(jobs: Jobs) -> None:
    job = await jobs.planned()

    async def press(number: int) -> AgentJob | RequestRejectedError:
        try:
            return await jobs.accept(job.id, requester=Requester(name=f"N{number}"), idempotency_key=f"k{number}")
        except RequestRejectedError as error:
            return error

    answers = await asyncio.gather(*map(press, range(6)))
    [(first, answer)] = [(number, each) for number, each in enumerate(answers) if isinstance(each, AgentJob)]
    refused = {(each.status, str(each)) for each in answers if isinstance(each, RequestRejectedError)}
    assert refused == {(409, f"N{first} has started this plan already")}
    assert await press(first) == answer
    await jobs.queue.finish(await jobs.taken(), Outcome())
    assert await press(first) == answer, "also when it is done"
    assert await jobs.queue.claim(Worker("w"), Wanted(["docs"])) is None


async def said(jobs: Jobs, job_id: str) -> None:
    await jobs.send("No, that one", job_id, Mode.EDIT)
    await jobs.queue.finish(await jobs.taken(), Outcome())


async def planning(jobs: Jobs, job_id: str) -> None:
    await jobs.send("No, that one", job_id)


async def failed_anew(jobs: Jobs, job_id: str) -> None:
    await jobs.send("No, that one", job_id)
    await jobs.queue.finish(await jobs.taken(), Outcome(failure="the model is away"))


async def planned_anew(jobs: Jobs, job_id: str) -> None:
    await jobs.planned("No, that one", job_id, "p2")


async def stopped(jobs: Jobs, job_id: str) -> None:
    assert details((await jobs.store.cancel(job_id)).job).proposal


async def archived(jobs: Jobs, job_id: str) -> None:
    jobs.time += 3 * DAY
    assert await jobs.store.archive(DAY, DAY) == 1


NO_MORE = "this plan does not count any more: something was written since, or it was stopped"
REFUSALS: Mapping[Callable[[Jobs, str], Awaitable[None]], tuple[int, str]] = {
    said: (409, NO_MORE),
    failed_anew: (409, NO_MORE),
    stopped: (409, NO_MORE),
    planning: (409, "something else is being done for this job: wait for what comes of it"),
    planned_anew: (409, "this is not the newest plan of its job"),
    archived: (400, "this job is archived and accepts no more messages: create a new job"),
}


@pytest.mark.parametrize("happened", REFUSALS)
async def test_a_plan_that_does_not_count_any_more_is_not_accepted(
    jobs: Jobs, happened: Callable[[Jobs, str], Awaitable[None]]
) -> None:
    job = await jobs.planned()
    await happened(jobs, job.id)
    before = await jobs.store.get(job.id)
    with pytest.raises(RequestRejectedError) as refused:
        await jobs.accept(job.id)
    assert (refused.value.status, str(refused.value)) == REFUSALS[happened]
    assert await jobs.store.get(job.id) == before, "nothing is recorded"
    is_newer = happened is planned_anew
    assert await jobs.state(job.id) is (ProposalState.PROPOSED if is_newer else ProposalState.SUPERSEDED)
    if is_newer:
        await jobs.accept(job.id, "p2")
        assert (await jobs.taken()).words == "Move it\n\nNo, that one", "which describe the change"


async def test_words_that_come_while_a_plan_is_made_revise_it(jobs: Jobs) -> None:
    job = await jobs.send("Move it")
    first = await jobs.taken()
    await jobs.send("And keep the old one", job.id)
    await jobs.propose(first, "p1")
    assert await jobs.state(job.id) is None
    await jobs.propose(await jobs.taken(), "p2")
    assert await jobs.state(job.id) is ProposalState.PROPOSED


async def test_a_plan_that_was_stopped_or_lost_while_it_was_made_is_none(jobs: Jobs) -> None:
    job = await jobs.send("Move it")
    lost = await jobs.taken("asleep")
    jobs.time += 2 * LEASE
    taken = await jobs.taken("other")
    with pytest.raises(LeaseLostError):
        await jobs.propose(lost)
    assert (await jobs.store.cancel(job.id, ADA)).running == taken.number
    ended = await jobs.propose(taken)
    assert (ended.status, details(ended).reason, details(ended).proposal) == (
        Status.COMPLETED, "stopped by Ada", None,
    )  # fmt: skip
    await jobs.planned("Move that", job.id)
    await jobs.accept(job.id)
    assert (await jobs.taken()).words == "Move that"


async def test_a_plan_hides_no_failure_before_it(jobs: Jobs) -> None:
    """It is not proposed either: nobody would see it."""
    job = await jobs.send("Do it", None, Mode.EDIT)
    failing = await jobs.taken()
    await jobs.send("Plan more", job.id)
    await jobs.queue.finish(failing, Outcome(failure="the model is away"))
    ended = await jobs.propose(await jobs.taken())
    assert (ended.status, await jobs.state(job.id)) == (Status.FAILED, None)
    assert (await jobs.planned("Plan it again", job.id)).status is Status.COMPLETED
    assert await jobs.state(job.id) is ProposalState.PROPOSED


async def test_a_job_whose_plan_waits_is_archived_later(jobs: Jobs) -> None:
    waits, other = await jobs.planned(), await jobs.planned(proposal_id="p2")
    await jobs.store.cancel(other.id)
    jobs.time += DAY
    assert await jobs.store.archive(DAY, 3 * DAY) == 1
    jobs.time += 1.5 * DAY
    assert await jobs.store.archive(DAY, 3 * DAY) == 0
    assert (await jobs.store.get(waits.id)).status is Status.COMPLETED
    jobs.time += DAY
    assert await jobs.store.archive(DAY, 3 * DAY) == 1


async def test_only_a_message_of_the_same_mode_answers_a_question(jobs: Jobs) -> None:
    job = await jobs.send("Move it")
    taken = await jobs.taken()
    await jobs.send("Change that", job.id, Mode.EDIT)
    assert await jobs.queue.next_reply(taken) is None
    await jobs.store.cancel(job.id)
    await jobs.queue.finish(taken, Outcome())
    await jobs.send("Move it", job.id)
    taken = await jobs.taken()
    await jobs.send("The red one", job.id)
    assert (reply := await jobs.queue.next_reply(taken)) is not None
    assert reply.words == "The red one"


WANTED: Mapping[str, tuple[dict[str, Any], str]] = {
    "mode": (
        {"mode": Mode.ASK},
        "This project's agent can't be kept from changing pages, so it can't plan first or only answer.",
    ),
    "model": ({"model": "gpt"}, "This model can't be chosen in this project; these can: opus, sonnet."),
    "effort": ({"effort": "low"}, "This effort can't be chosen in this project; leave it out."),
}


@pytest.mark.parametrize("name", WANTED)
async def test_what_a_project_does_not_offer_is_refused_before_anything_is_recorded(jobs: Jobs, name: str) -> None:
    chosen, words = WANTED[name]
    store = JobStore(jobs.database, "docs", rate_limit=9, choices=Choices(models=("opus", "sonnet")))
    with pytest.raises(RequestRejectedError) as refused:
        await store.submit(PromptRequest("one", None, "k", **chosen), TEMPLATE)
    assert (refused.value.status, str(refused.value)) == (422, words)
    assert await jobs.queue.claim(Worker("w"), Wanted(["docs"])) is None
    again = await store.submit(PromptRequest("one", None, "k", model="opus"), TEMPLATE)
    assert again.model == "opus"
    taken = await jobs.taken()
    assert (taken.model, taken.effort) == ("opus", "")
    assert (await store.submit(PromptRequest("two", again.id), TEMPLATE)).model == "claude", "the next one's own"
    no_longer = JobStore(jobs.database, "docs", rate_limit=9)
    assert await no_longer.submit(PromptRequest("one", None, "k", model="opus"), TEMPLATE) == again


def test_a_repeated_key_knows_what_was_chosen_but_old_requests_keep_theirs() -> None:
    plain = PromptRequest("one", "j")
    assert plain.fingerprint == hashlib.sha256(json.dumps(["j", "one"]).encode()).hexdigest()
    other = (replace(plain, mode=Mode.ASK), replace(plain, model="o"), replace(plain, proposal="p"))
    assert len({plain.fingerprint, *(each.fingerprint for each in other)}) == 4


WORDS = "I would **move** it."


async def plan(task: EditTask, progress: EditProgress) -> EditResult | None:
    """Writes whatever its mode; what it may not write is to be thrown away."""
    progress.session("s-1")
    await append_prompt(task, progress)
    if task.mode is Mode.PLAN:
        return EditResult(WORDS, proposal=WORDS, proposed_pages=PAGES, closing_question="Shall I?")
    return EditResult("It is in a.md.", pages_read=("a.md",)) if task.mode is Mode.ASK else None


async def submitted(world: ExecutorWorld, words: str, job_id: str | None = None, **more: Any) -> AgentJob:
    return await world.ended((await world.submitted(PromptRequest(words, job_id, **more))).id)


async def test_nothing_is_kept_but_the_plan_until_it_is_carried_out_in_the_same_session(tmp_path: Path) -> None:
    async with executing(tmp_path, ScriptedEditor(plan)) as world:
        job = await submitted(world, "Move it", mode=Mode.PLAN, model="", effort="")
        proposal = details(job).proposal
        assert proposal is not None
        assert details(job) == JobDetails(mode=Mode.PLAN, summary=WORDS, proposal=proposal)
        assert (proposal.text, proposal.pages) == (WORDS, PAGES)
        assert world.branches() == {"main"}
        await world.restarted()
        world.push_files({"docs/new.md": b"New\n"})
        done = await submitted(world, "Go", job.id, proposal=proposal.id, requester=BEN)
        planned, edited = world.editor.tasks
        assert (planned.workspace.read_only, edited.workspace.read_only) == (True, False)
        assert (edited.mode, edited.session, edited.is_accepted) == (Mode.EDIT, "s-1", True)
        assert "The files have changed since it was made" in edited.prompt
        assert edited.prompt.endswith(f"> {WORDS}")
        assert [earlier.answer for earlier in edited.conversation] == [WORDS], "once"
        assert world.notes(f"pagehand/{job.id}") == f"{edited.prompt}\n", "without what the planning wrote"
        assert world.subjects(f"pagehand/{job.id}") == ["Move it"]
        again = await submitted(world, "And that", job.id, mode=Mode.PLAN)
        assert (again.pr_link, details(again).changes) == (done.pr_link, details(done).changes)
        newest = details(again).proposal
        assert newest is not None
        await submitted(world, "Go", job.id, proposal=newest.id)
        assert "have changed" not in world.editor.tasks[-1].prompt
        assert world.subjects(f"pagehand/{job.id}") == ["And that", "Move it"]


async def test_an_answer_is_told_with_the_pages_that_were_read(tmp_path: Path) -> None:
    async with executing(tmp_path, ScriptedEditor(plan), word_check) as world:
        job = await submitted(world, "What is wrong?", mode=Mode.ASK)
        assert (job.status, job.pr_link, details(job)) == (
            Status.COMPLETED, None, JobDetails(mode=Mode.ASK, summary="It is in a.md.", pages_read=("a.md",)),
        )  # fmt: skip
        assert (world.branches(), len(world.editor.tasks)) == ({"main"}, 1), "what it wrote is not even checked"
        changed = await submitted(world, "Change it", job.id)
        assert (changed.status, details(changed).mode, details(changed).pages_read) == (Status.COMPLETED, None, ())
        assert world.editor.tasks[1].session == "s-1"


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ASK])
async def test_after_a_pull_request_has_ended_only_an_edit_begins_another(tmp_path: Path, mode: Mode) -> None:
    """The rest sees the base branch, as that edit will; but somebody may open the pull request again."""
    pages: list[list[str]] = []

    async def edit(task: EditTask, progress: EditProgress) -> EditResult | None:
        pages.append(sorted(path.name for path in task.workspace.copy.rglob("*.md")))
        return await plan(task, progress)

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await submitted(world, "one")
        world.pull_requests.end(PullRequestState.CLOSED)
        asked = await submitted(world, "two", job.id, mode=mode)
        assert (asked.pr_link, pages) == (job.pr_link, 2 * [["start.md"]])
        world.pull_requests.end(PullRequestState.OPEN)
        again = await submitted(world, "three", job.id)
        assert (again.pr_link, world.branches()) == (job.pr_link, {"main", f"pagehand/{job.id}"})
        world.pull_requests.end(PullRequestState.MERGED)
        await submitted(world, "four", job.id, mode=mode)
        await submitted(world, "five", job.id)
        assert world.branches() == {"main", f"pagehand/{job.id}", f"pagehand/{job.id}-2"}


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ASK])
async def test_what_failed_in_a_plan_keeps_nothing_and_touches_no_earlier_work(tmp_path: Path, mode: Mode) -> None:
    async def edit(task: EditTask, progress: EditProgress) -> None:
        await append_prompt(task, progress)
        raise EditError("the model is away")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        new = await submitted(world, "one", mode=mode)
        assert (new.status, partial_files(new)) == (Status.FAILED, None)
        failed = await submitted(world, "two")
        assert partial_files(failed) == 1
        assert partial_files(await submitted(world, "three", failed.id, mode=mode)) == 1
        world.editor.script = plan
        assert partial_files(await submitted(world, "four", failed.id, mode=mode)) == 1, "it changed nothing"
        await submitted(world, "five", failed.id)
        assert world.notes(f"pagehand/{failed.id}") == "two\nfive\n"


@pytest.mark.parametrize("is_stopped", [True, False])
async def test_a_plan_that_is_ended_midway_keeps_nothing(tmp_path: Path, *, is_stopped: bool) -> None:
    """A person's stop ends it; a worker that has to end begins it again later."""
    is_planning = asyncio.Event()

    async def edit(task: EditTask, progress: EditProgress) -> EditResult | None:
        made = await plan(task, progress)
        if len(world.editor.tasks) == 1:
            is_planning.set()
            await asyncio.Event().wait()
        return made

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.submitted(PromptRequest("Move it", mode=Mode.PLAN))
        await is_planning.wait()
        if is_stopped:
            world.runner.interrupt((await world.store.cancel(job.id, ADA)).running or 0)
        else:
            await world.restarted()
        ended = await world.ended(job.id)
        assert (ended.status, partial_files(ended), world.branches()) == (Status.COMPLETED, None, {"main"})
        told = details(ended)
        assert (told.reason, told.proposal is None) == (("stopped by Ada", True) if is_stopped else (None, False))


async def test_no_plan_and_no_answer_shows_a_key(tmp_path: Path) -> None:
    key = "planted-key-of-the-job-server"

    async def edit(task: EditTask, _: EditProgress) -> EditResult:
        if task.mode is Mode.ASK:
            return EditResult(f"It is {key}.", pages_read=(f"{key}.md",))
        return EditResult(proposal=f"Add {key}", proposed_pages=(ProposedPage(path=f"{key}.md", reason=f"for {key}"),))

    async with executing(tmp_path, ScriptedEditor(edit), secrets=Secrets((key,), are_looked_for=False)) as world:
        for mode in (Mode.PLAN, Mode.ASK):
            told = (await submitted(world, "Do it", mode=mode)).model_dump_json()
            assert (key in told, "Add " in told or "It is " in told) == (False, True)


REPLACE = 'Replace "colour" with "color"'


async def send(world: JobServerWorld, job_id: str = "", **body: Any) -> dict[str, Any]:
    """Sends a prompt, and returns the job once it has ended."""
    address = f"{JOB}/{job_id}/message" if job_id else JOB
    answer = (await world.client.post(address, json={"prompt": REPLACE, **body})).raise_for_status()
    return await world.ended(answer.json()["id"])


async def test_a_plan_of_the_demos_editor_is_carried_out_over_the_api(tmp_path: Path) -> None:
    async with running(make_sample(tmp_path), tmp_path / "data") as world:
        job = await send(world, mode="plan", requestedBy={"name": "Ada"})
        proposal = job["details"]["proposal"]
        assert (job["status"], job["prLink"], world.branches()) == ("completed", None, {"main"})
        assert proposal["text"].startswith('Replace "colour" with "color". ')
        done = await send(world, job["id"], prompt="Go", proposal=proposal["id"], requestedBy={"name": "Ben"})
        assert done["details"]["proposal"] == proposal | {"state": "accepted", "acceptedBy": "Ben"}
        assert {page["path"] for page in proposal["pages"]} == {
            file["path"] for file in done["details"]["changes"]["files"]
        }
        assert done["prLink"]
        answer = await send(world, prompt="Where are the schedules?", mode="ask")
        assert answer["details"]["pagesRead"][0] in answer["details"]["summary"]


REFUSED: Mapping[str, tuple[dict[str, Any], int, str]] = {
    "a mode that is none": ({"mode": "look"}, 400, "mode: Input should be 'edit', 'plan' or 'ask'"),
    "a plan that is planned": (
        {"mode": "plan", "proposal": "p"}, 400, "proposal: a plan is carried out in the mode edit",
    ),
    "a plan without an id": ({"proposal": ""}, 400, "proposal: String should have at least 1 character"),
    "a new job's plan": ({"proposal": "p"}, 400, "proposal: a new job has no plan yet"),
    "a model of nobody": ({"model": "opus"}, 422, "This model can't be chosen in this project; leave it out."),
}  # fmt: skip


async def test_what_can_be_chosen_is_told_and_the_rest_refused(tmp_path: Path) -> None:
    offered = {"modes": ["edit", "plan", "ask"], "models": [], "efforts": []}
    async with running(make_sample(tmp_path), tmp_path / "data") as world:
        assert (await world.client.get("/openapi.json")).json()["x-projects"] == {"docs": offered}
        assert (await world.client.get("/health")).json()["choices"] == {"docs": offered}
        for body, status, words in REFUSED.values():
            answer = await world.client.post(JOB, json={"prompt": REPLACE, **body})
            assert (answer.status_code, answer.json()) == (status, {"error": words})


CAT = {"editor": "command", "command": ("cat",)}
CLAUDE = {"editor": "agent", "agent": ("cat",), "models": "opus, sonnet", "efforts": "high"}
OFFERED: Mapping[str, tuple[dict[str, Any], Choices]] = {
    "a command": (CAT | {"models": "opus"}, Choices()),
    "an agent without a sandbox": (CLAUDE, Choices(models=("opus", "sonnet"), efforts=("high",))),
    "an agent": (CLAUDE | {"sandbox": "bubblewrap"}, ALL),
}


@pytest.mark.parametrize("editor", OFFERED)
async def test_only_what_can_be_enforced_is_offered(tmp_path: Path, editor: str) -> None:
    settings, offered = OFFERED[editor]
    async with running(make_sample(tmp_path), tmp_path / "data", **settings) as world:
        told = (await world.client.get("/health")).json()["choices"]["docs"]
        assert told == {name: list(value) for name, value in vars(offered).items()}
        async with JobApiProbe(JobApiSettings(base_url=world.url, api_key=SecretStr(KEY)), "docs") as probe:
            assert (await probe.abilities())["modes"] is (Mode.PLAN in offered.modes), "as doctor finds"
