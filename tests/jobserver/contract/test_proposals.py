"""Pushed changes get their pull request in the end, whose state is current and costs its host few calls; work of an
agent that failed is kept, and never proposed alone.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.fakes.job_ports import ScriptedEditor, append_prompt, word_check
from support.servers.github_server import github_server
from support.worlds.executor_world import ExecutorWorld, changes_of, details, executing, partial_files, pull_request_of
from support.worlds.github_world import jobs_at
from support.worlds.jobserver_world import git, serving, until

from bot.errors import StoreUnavailable
from bot.jobapi.models import AgentJob, PullRequestDetails, PullRequestState, Status
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.errors import CodeHostError, EditError, NothingToProposeError
from bot.jobserver.pipeline.propose import PullRequestStates, retry_due, retry_forever
from bot.jobserver.store.proposals import ProposalStore


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ExecutorWorld]:
    async with executing(tmp_path) as world:
        yield world


AWAY = CodeHostError("the host is away")


async def edit_once(task: EditTask, progress: EditProgress) -> EditResult | None:
    """Changes something at the first instruction only."""
    if task.prompt != "one":
        return EditResult("I looked.", reason="It is right as it is.")
    await append_prompt(task, progress)
    return None


async def pushed_in_vain(world: ExecutorWorld) -> AgentJob:
    world.pull_requests.outage = AWAY
    return await world.done("one")


async def test_a_pull_request_that_cannot_be_opened_is_pending_with_its_reason(world: ExecutorWorld) -> None:
    """The work is done, and the server keeps trying: this is no permanent failure."""
    job = await pushed_in_vain(world)
    assert (job.status, job.pr_link) == (Status.COMPLETED, None)
    told = pull_request_of(job)
    assert (told.state, told.number, told.reason) == (PullRequestState.PENDING, None, "the host is away")
    words = f"The change was pushed to pagehand/{job.id}, but has no pull request yet: the host is away."
    assert details(job).reason == f"{words} The server keeps trying."
    assert "the host is away" in world.log(job.id)


async def test_a_pending_pull_request_is_retried_with_backoff(world: ExecutorWorld) -> None:
    """Nobody has to ask for it, and an unreachable host is not called all the time."""
    job = await pushed_in_vain(world)
    await retry_due(world.tools)
    world.pull_requests.outage = None
    world.now.ahead = timedelta(seconds=44)
    await retry_due(world.tools)
    assert world.pull_requests.opened == [], "it is not due yet"
    world.now.ahead = timedelta(seconds=61)
    await retry_due(world.tools)
    again = await world.store.get(job.id)
    assert again.pr_link == "https://host/pulls/1"
    assert pull_request_of(again) == PullRequestDetails(number=1, state=PullRequestState.OPEN)
    assert details(again).reason is None
    world.now.ahead = timedelta(days=1)
    await retry_due(world.tools)
    assert [new.commit for new in world.pull_requests.opened] == [None], "more may have been pushed since"
    assert world.pull_requests.additions == []


class AwayAtFirst(ProposalStore):
    """A real table that cannot be written at first."""

    is_away = True

    async def make_all_due(self) -> None:
        was_away, self.is_away = self.is_away, False
        if was_away:
            raise StoreUnavailable("The database is locked.")
        await super().make_all_due()


async def test_pending_pull_requests_are_retried_at_a_start_even_if_the_database_is_away_then(
    world: ExecutorWorld,
) -> None:
    """They were not until the next start, or the job's next instruction."""
    job = await pushed_in_vain(world)
    world.pull_requests.outage = None
    tools = replace(world.tools, proposals=AwayAtFirst(world.proposals.database, "docs"))
    retrying = asyncio.create_task(retry_forever(tools, pause=0.01))

    async def is_opened() -> bool:
        return (await world.store.get(job.id)).pr_link is not None

    await until(is_opened)
    retrying.cancel()


async def test_a_late_refusal_says_nothing_of_what_another_process_has_opened(world: ExecutorWorld) -> None:
    job = await pushed_in_vain(world)
    pending = await world.proposals.of_job(job.id)
    assert pending is not None
    world.pull_requests.outage = None
    world.now.ahead = timedelta(seconds=61)
    await retry_due(world.tools)
    await world.proposals.record_refused(pending, "the host was away", pause=timedelta(0))
    assert pull_request_of(await world.store.get(job.id)).reason is None


async def test_the_next_instruction_opens_it_even_without_changes(tmp_path: Path) -> None:
    """A follow-up without changes still proposes earlier ones."""
    async with executing(tmp_path, ScriptedEditor(edit_once)) as world:
        job = await pushed_in_vain(world)
        world.pull_requests.outage = None
        again = await world.done("two", job.id)
        assert (again.status, again.pr_link) == (Status.COMPLETED, "https://host/pulls/1")
        assert pull_request_of(again).state is PullRequestState.OPEN
        (opened,) = world.pull_requests.opened
        assert opened.title == "one"
        assert opened.description.startswith("> one\n")


async def test_the_next_change_is_described_with_the_previous_one(world: ExecutorWorld) -> None:
    """Its description has both, in order."""
    job = await pushed_in_vain(world)
    world.pull_requests.outage = None
    again = await world.done("two", job.id)
    assert (again.status, again.pr_link) == (Status.COMPLETED, "https://host/pulls/1")
    assert world.notes(f"pagehand/{job.id}") == "one\ntwo\n"
    (opened,) = world.pull_requests.opened
    assert opened.title == "one"
    assert opened.description.index("> one\n") < opened.description.index("> two\n")


async def test_an_unrecorded_branch_is_proposed_by_the_next_instruction(tmp_path: Path) -> None:
    """An older version recorded nothing; the branch itself shows that there is something."""
    async with executing(tmp_path, ScriptedEditor(edit_once)) as world:
        job = await pushed_in_vain(world)
        (pending,) = [one for one in [await world.proposals.of_job(job.id)] if one]
        await world.proposals.drop(pending)
        world.pull_requests.outage = None
        again = await world.done("two", job.id)
        assert again.pr_link == "https://host/pulls/1"
        (opened,) = world.pull_requests.opened
        assert (opened.title, opened.branch) == ("one", f"pagehand/{job.id}")


async def test_while_a_second_is_pending_the_first_link_is_not_shown(world: ExecutorWorld) -> None:
    """The first was merged without the change; the link is set once a pull request contains it."""
    job = await world.done("one")
    assert job.pr_link == "https://host/pulls/1"
    pushed = git(world.bare, "rev-parse", f"pagehand/{job.id}").strip()
    assert [new.commit for new in world.pull_requests.opened] == [pushed]
    world.pull_requests.end(PullRequestState.MERGED)
    world.pull_requests.outage = AWAY
    again = await world.done("two", job.id)
    assert (again.status, again.pr_link) == (Status.COMPLETED, None)
    assert pull_request_of(again).state is PullRequestState.PENDING
    assert f"pushed to pagehand/{job.id}-2, but has no pull request yet" in str(details(again).reason)
    world.pull_requests.outage = None
    world.now.ahead = timedelta(minutes=2)
    await retry_due(world.tools)
    assert (await world.store.get(job.id)).pr_link == "https://host/pulls/2"


async def test_our_checks_are_included_in_a_late_pull_request(tmp_path: Path) -> None:
    """The results of the checks are not lost."""

    async def edit(task: EditTask, _: EditProgress) -> None:
        (task.workspace.copy / "a.md").write_text("wrong")

    async with executing(tmp_path, ScriptedEditor(edit), word_check) as world:
        job = await pushed_in_vain(world)
        assert [check.name for check in pull_request_of(job).checks] == ["words"]
        world.pull_requests.outage = None
        world.now.ahead = timedelta(minutes=2)
        await retry_due(world.tools)
        told = pull_request_of(await world.store.get(job.id))
        assert (told.state, [check.name for check in told.checks]) == (PullRequestState.OPEN, ["words"])


async def test_refused_labels_and_reviews_are_told(world: ExecutorWorld) -> None:
    """The pull request is open and says what it lacks; a reviewer is asked once."""
    world.pull_requests.refused_extras = ("ada is no collaborator",)
    job = await world.done("one")
    told = pull_request_of(job)
    assert (told.state, told.reason) == (PullRequestState.OPEN, "ada is no collaborator")
    assert job.pr_link == "https://host/pulls/1"
    assert await world.proposals.of_job(job.id) is None
    await world.done("two", job.id)
    assert world.pull_requests.asked_for_extras == 1


async def test_nothing_to_propose_is_not_retried_if_git_agrees(world: ExecutorWorld) -> None:
    """Somebody merged the branch by hand: the pull request would be empty."""
    job = await pushed_in_vain(world)
    git(world.bare, "update-ref", "refs/heads/main", f"pagehand/{job.id}")
    world.pull_requests.outage = NothingToProposeError("there is nothing to propose")
    world.now.ahead = timedelta(minutes=2)
    await retry_due(world.tools)
    assert await world.proposals.of_job(job.id) is None


async def test_a_pushed_change_is_proposed_though_the_code_host_sees_it_late(world: ExecutorWorld) -> None:
    """It then claims that there is nothing to propose; git knows better."""
    world.pull_requests.outage = NothingToProposeError("there is nothing to propose")
    job = await world.done("one")
    assert pull_request_of(job).state == PullRequestState.PENDING
    world.pull_requests.outage = None
    world.now.ahead = timedelta(minutes=2)
    await retry_due(world.tools)
    assert pull_request_of(await world.store.get(job.id)).state == PullRequestState.OPEN


async def test_texts_added_meanwhile_are_not_taken_for_settled(world: ExecutorWorld) -> None:
    """An instruction may add to a pending proposal during a retry."""
    job = await pushed_in_vain(world)
    before = await world.proposals.of_job(job.id)
    assert before is not None
    await world.done("two", job.id)
    opened = PullRequestDetails(number=1, state=PullRequestState.OPEN)
    await world.proposals.record_proposed(before, opened, "https://x")
    after = await world.proposals.of_job(job.id)
    assert after is not None
    assert "> two" in after.description


async def half(task: EditTask, progress: EditProgress) -> EditResult | None:
    """Does its work, and fails if the prompt says so."""
    copy = task.workspace.copy
    if task.prompt == "continue":
        found = (copy / "new.md").read_text() if (copy / "new.md").exists() else "nothing"
        return EditResult(f"Found: {found}.")
    await append_prompt(task, progress)
    if task.prompt.startswith("half"):
        (copy / "new.md").write_text("new")
        (copy / "docs" / "start.md").unlink(missing_ok=True)
        raise EditError("agent failed: out of credit")
    return None


def kept_refs(world: ExecutorWorld) -> list[str]:
    return git(world.data / "mirror.git", "for-each-ref", "--format=%(refname)", "refs/pagehand/").split()


async def test_partial_work_is_kept_and_reported_and_the_next_instruction_finds_and_proposes_it(tmp_path: Path) -> None:
    """Three files were written when the credit ran out: the agent's session remembers them, and the copy has them."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        assert (job.status, job.pr_link, partial_files(job)) == (Status.FAILED, None, 3)
        assert details(job).reason == "agent failed: out of credit"
        assert world.branches() == {"main"}
        assert world.pull_requests.opened == []
        again = await world.done("continue", job.id)
        assert (again.status, partial_files(again)) == (Status.COMPLETED, None)
        assert details(again).summary == "Found: new."
        branch = f"pagehand/{job.id}"
        assert world.notes(branch) == "half\n"
        assert git(world.bare, "ls-tree", "-r", "--name-only", branch).split() == ["new.md", "notes.md"]
        assert changes_of(again).file_count == 3
        await world.retention(archive_after=timedelta(days=30), keep_for=timedelta(days=90)).sweep()
        assert kept_refs(world) == []


async def test_a_second_failure_keeps_both_changes(tmp_path: Path) -> None:
    """A time limit may stop an agent more than once."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        await world.done("half two", job.id)
        await world.done("continue", job.id)
        assert world.notes(f"pagehand/{job.id}") == "half\nhalf two\n"


async def test_partial_work_is_applied_on_top_of_later_pushes(tmp_path: Path) -> None:
    """Another person's commit to the branch is kept."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("one")
        await world.done("half", job.id)
        branch = f"pagehand/{job.id}"
        world.push_as_somebody(branch, "theirs.md", "theirs")
        await world.done("continue", job.id)
        assert world.notes(branch) == "one\nhalf\n"
        assert git(world.bare, "show", f"{branch}:theirs.md") == "theirs"


async def test_partial_work_that_no_longer_applies_is_dropped_and_logged(tmp_path: Path) -> None:
    """The same lines were changed by hand: nothing is guessed."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("one")
        await world.done("half", job.id)
        branch = f"pagehand/{job.id}"
        world.push_as_somebody(branch, "notes.md", "theirs\n")
        again = await world.done("continue", job.id)
        assert details(again).summary == "Found: nothing."
        assert world.notes(branch) == "theirs\n"
        assert "no longer applies" in world.log(job.id)
        assert world.subjects(branch) == ["By hand", "one"]


async def test_after_a_merge_only_the_partial_work_is_carried_over(tmp_path: Path) -> None:
    """It does not bring back what was rejected with the branch before."""

    async def edit(task: EditTask, progress: EditProgress) -> EditResult | None:
        if task.prompt != "half":
            return await half(task, progress)
        (task.workspace.copy / "new.md").write_text("new")
        raise EditError("out of credit")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        await world.done("half", job.id)
        world.pull_requests.end(PullRequestState.CLOSED)
        await world.done("continue", job.id)
        listed = git(world.bare, "ls-tree", "-r", "--name-only", f"pagehand/{job.id}-2").split()
        assert listed == ["docs/start.md", "new.md"]


async def test_partial_work_can_be_discarded(tmp_path: Path) -> None:
    """The next instruction starts from what was pushed before."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        discarded = await world.store.discard(job.id)
        assert partial_files(discarded) is None
        assert details(discarded).reason == "agent failed: out of credit", "which promises nothing that is gone"
        again = await world.done("continue", job.id)
        assert details(again).summary == "Found: nothing."
        assert world.branches() == {"main"}


async def test_an_active_job_keeps_the_partial_work_in_its_copy(tmp_path: Path) -> None:

    async def wait(task: EditTask, progress: EditProgress) -> EditResult | None:
        if task.prompt == "continue":
            assert partial_files(await executor.store.discard(task.workspace.copy.parent.name)) is None
        return await half(task, progress)

    async with executing(tmp_path, ScriptedEditor(wait)) as executor:
        job = await executor.done("half")
        again = await executor.done("continue", job.id)
        assert details(again).summary == "Found: new."


async def test_a_failure_without_changes_keeps_nothing(tmp_path: Path) -> None:
    """It is not mentioned."""

    async def edit(task: EditTask, progress: EditProgress) -> None:
        raise EditError("its key is not valid")

    async with executing(tmp_path, ScriptedEditor(edit)) as world:
        job = await world.done("one")
        assert (details(job).reason, details(job).partial_work) == ("its key is not valid", None)


async def test_work_that_could_not_be_pushed_is_kept(world: ExecutorWorld) -> None:
    """The branch is protected at its host until somebody allows it."""
    git(world.bare, "config", "receive.hideRefs", "refs/heads/pagehand")
    job = await world.done("one")
    assert (job.status, partial_files(job)) == (Status.FAILED, 1)
    git(world.bare, "config", "--unset", "receive.hideRefs")
    await world.done("two", job.id)
    assert world.notes(f"pagehand/{job.id}") == "one\ntwo\n"


async def test_partial_work_is_deleted_with_the_job(tmp_path: Path) -> None:
    """Retention deletes both."""
    async with executing(tmp_path, ScriptedEditor(half)) as world:
        job = await world.done("half")
        retention = world.retention(archive_after=timedelta(days=30), keep_for=timedelta(days=90))
        await retention.sweep()
        assert kept_refs(world) == [f"refs/pagehand/partial/{job.id}"]
        world.now.ahead = timedelta(days=31)
        await retention.sweep()
        world.now.ahead = timedelta(days=31 + 91)
        await retention.sweep()
        assert kept_refs(world) == []


def state_of(job: AgentJob) -> PullRequestState | None:
    return pull_request_of(job).state


def looking(world: ExecutorWorld, patience: float = 20.0) -> PullRequestStates:
    return PullRequestStates(world.pull_requests, world.proposals, patience=patience)


async def test_a_merge_on_our_pages_shows_at_the_next_read(tmp_path: Path) -> None:
    """Nobody has to send another message for it."""
    async with serving(tmp_path, {"colours.md": "Every colour has a name.\n"}) as world:
        job = await world.done('Replace "colour" with "color"')
        assert job["details"]["pullRequest"]["state"] == "open"
        await world.press(job["prLink"], "merge")
        assert (await world.job(job["id"]))["details"]["pullRequest"]["state"] == "merged"


@pytest.mark.parametrize(
    ("is_renamed", "known"), [(False, "closed"), pytest.param(True, "open", marks=pytest.mark.full)]
)
async def test_github_states_are_current(tmp_path: Path, *, is_renamed: bool, known: str) -> None:
    """A restarted server does not know the state yet, and asks. After a rename the last known one stays: the log says
    which setting needs the new address.
    """
    async with github_server(tmp_path / "github") as server:
        async with jobs_at(server, tmp_path) as world:
            job, address = await world.done('Replace "colour" with "color"'), server.repository_url
        if is_renamed:
            server.repository.rename("acme-inc", "handbook")
        server.close(1)
        async with jobs_at(server, tmp_path, address=address) as world:
            assert (await world.job(job["id"]))["details"]["pullRequest"]["state"] == known


async def test_concurrent_readers_share_one_lookup_that_is_recorded(world: ExecutorWorld) -> None:
    """A team looks at one card."""
    job, states = await world.done("one"), looking(world)
    world.pull_requests.end(PullRequestState.MERGED)
    readers = [asyncio.create_task(states.as_of_now(job)) for _ in range(50)]
    await asyncio.sleep(0)
    world.pull_requests.looking.set()
    assert {state_of(await reader) for reader in readers} == {PullRequestState.MERGED}
    assert world.pull_requests.looks == 1
    after = await world.store.get(job.id)
    assert state_of(after) is PullRequestState.MERGED
    await states.as_of_now(after)
    assert world.pull_requests.looks == 1, "a merged one stays merged"


async def test_a_slow_host_delays_no_reader(world: ExecutorWorld) -> None:
    """The job is shown as known, and the next reader gets the result."""
    job, states = await world.done("one"), looking(world, patience=0.01)
    world.pull_requests.end(PullRequestState.CLOSED)
    assert await states.as_of_now(job) == job
    world.pull_requests.looking.set()
    async with asyncio.timeout(20):
        while state_of(await world.store.get(job.id)) is not PullRequestState.CLOSED:  # noqa: ASYNC110 - a row
            await asyncio.sleep(0.01)
    await states.stop()


async def test_an_unreachable_host_changes_nothing(world: ExecutorWorld) -> None:
    """Reading a job never fails because of GitHub."""
    job, states = await world.done("one"), looking(world)
    world.pull_requests.outage = CodeHostError("away")
    world.pull_requests.looking.set()
    assert await states.as_of_now(job) == job
