"""The context of a request, part by part: an unavailable one does not delay the others, and files wait with their
request while the job API is out of reach.
"""

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from support.fakes.ports import FakeJobApi
from support.worlds.core_world import ANA, CoreWorld

from bot.domain.messages import FileContent, SlackFile, ThreadMessage
from bot.domain.projects import Project, Projects, ReplyMode
from bot.domain.requests.request import Attachments, Reply, Request, RequestKind, RequestState
from bot.errors import ChatError, ChatRateLimited, ChatRejected, ChatUncertain, JobApiRejected, JobApiUnreachable
from bot.notices.requests import ContextCut
from bot.scheduler.gathering import FetchLimits

pytestmark = pytest.mark.promise("parts")

NOTES = SlackFile("F1", "notes.md", "text/markdown", permalink="https://t.slack.com/files/F1")
PICTURE = SlackFile("F2", "a.png", "image/png", permalink="https://t.slack.com/files/F2")
OTHER = SlackFile("F3", "b.png", "image/png", permalink="https://t.slack.com/files/F3")
CONTENTS = {
    "F1": FileContent(b"The port is 8080", "text/markdown"),
    "F2": FileContent(b"\x89PNG a", "image/png"),
    "F3": FileContent(b"\x89PNG b", "image/png"),
}
AT = [f"1700000000.{number:06}" for number in range(1, 10)]
FAILED = ChatUncertain("status_502")
LIMITED = ChatRateLimited("ratelimited", retry_after=300.0)
AWAY = [JobApiUnreachable("down")] * 100_000


@pytest.fixture(autouse=True)
def _files(world: CoreWorld) -> None:
    world.job_api.files_taken = True
    world.reading.files = dict(CONTENTS)


async def asked_with(world: CoreWorld, *files: SlackFile, text: str = "Use it", wait: float | None = None) -> None:
    """A mention with files."""
    assert await world.receive(Reply(ANA, "C1", "", AT[0], text, Attachments(files), mentions_us=True), wait=wait)


async def start_of(world: CoreWorld) -> Request:
    thread = await world.newest(AT[0])
    start = await world.store.transact(lambda tx: tx.requests.find_start(thread.id))
    assert start is not None
    return start


def files_sent(job_api: FakeJobApi, prompt: str) -> list[str]:
    return [file.name for file in job_api.files[prompt]]


async def test_a_long_outage_delays_the_file_and_the_job_and_loses_neither(world: CoreWorld) -> None:
    """The thread says that it waits, as for any request; the preparer stays healthy."""
    world.job_api.faults = list(AWAY)
    await asked_with(world, PICTURE, wait=1200)
    assert world.job_api.created == []
    assert [said for said in world.chat.said() if said != "card_changed"] == ["outage_started"]
    assert world.request_preparer.status().failing_seconds == 0
    assert world.file_uploader.job_api_status("docs").failing_seconds > 600
    world.job_api.faults = []
    await world.pass_time(300)
    (created,) = world.job_api.created
    assert files_sent(world.job_api, created) == ["a.png"]
    assert "a.png (https://t.slack.com/files/F2). The file itself comes with this request." in created


@pytest.mark.parametrize(("error", "patience"), [(ChatUncertain("status_502"), 150), (LIMITED, 590)])
async def test_a_file_that_slack_refuses_becomes_a_link(world: CoreWorld, error: ChatError, patience: float) -> None:
    """After minutes; everything else is sent along, and read once. Neither the request nor the health is affected."""
    world.reading.refused["file F1"] = error
    guide = replace(NOTES, id="F9", name="guide.md")
    world.reading.files["F9"] = FileContent(b"The guide", "text/markdown")
    await asked_with(world, NOTES, guide, wait=patience)
    assert world.job_api.created == []
    assert (await start_of(world)).state is RequestState.RECEIVED
    await world.pass_time(150)
    assert error is not LIMITED or world.reading.asked.count("file F1") == 3
    (created,) = world.job_api.created
    assert "The guide" in created
    assert "notes.md (https://t.slack.com/files/F1). You get the link only" in created
    assert world.reading.asked.count("file F9") == 1
    assert world.chat.posted_as(ContextCut) == [ContextCut("UANA", ("notes.md",))]
    assert world.request_preparer.status().failing_seconds == 0


@pytest.mark.parametrize(("limited", "failed"), [("F1", "F9"), ("F9", "F1")])
async def test_if_slack_asks_to_wait_for_one_file_all_wait(world: CoreWorld, limited: str, failed: str) -> None:
    world.reading.refused = {f"file {limited}": LIMITED, f"file {failed}": FAILED}
    await asked_with(world, NOTES, replace(NOTES, id="F9"), wait=290)
    assert world.reading.asked.count(f"file {failed}") == 1


async def test_a_downloaded_file_survives_its_process_and_is_deleted_after_use(world: CoreWorld) -> None:
    world.reading.files["F9"] = FileContent(b"The guide", "text/markdown")
    world.reading.refused["file F1"] = FAILED
    await asked_with(world, NOTES, replace(NOTES, id="F9", name="guide.md"))
    await world.prepare()
    start = await start_of(world)
    kept = await world.store.transact(lambda tx: tx.request_parts.fetched(start.id))
    assert [each.found.text for each in kept.files] == ["The guide"]
    world.restart("two")
    await world.pass_time(400)
    assert world.reading.asked.count("file F9") == 1
    kept = await world.store.transact(lambda tx: tx.request_parts.fetched(start.id))
    assert kept.files == ()


async def test_twenty_slow_files_are_all_sent(world: CoreWorld) -> None:
    """Each round takes some, however short it is."""

    async def slow_read(file: SlackFile, *, max_bytes: int) -> FileContent:
        await asyncio.sleep(0.01)
        return FileContent(f"This is {file.name}.".encode(), "text/markdown")

    world.reading.read = slow_read  # type: ignore[method-assign]
    world.configure(fetch_limits=FetchLimits(begin=0.005))
    await asked_with(world, *(replace(NOTES, id=f"F{number}", name=f"n{number}.md") for number in range(20)))
    rounds = 0
    while await world.step(world.request_preparer):
        rounds += 1
    assert rounds >= 5
    await world.pass_time(5)
    (created,) = world.job_api.created
    assert [f"This is n{number}.md." in created for number in range(20)] == [True] * 20


async def test_a_file_that_never_arrives_delays_only_itself(world: CoreWorld) -> None:
    async def hangs(file: SlackFile, *, max_bytes: int) -> FileContent:
        await asyncio.Event().wait()
        raise AssertionError

    world.reading.read = hangs  # type: ignore[method-assign]
    world.configure(fetch_limits=FetchLimits(part=0.01))
    await asked_with(world, NOTES, wait=300)
    assert "You get the link only" in world.job_api.created[0]


@pytest.mark.first(error=1)
@pytest.mark.parametrize(
    ("error", "patience"), [(ChatUncertain("status_502"), 60), (ChatRejected("file_not_found"), 0), (LIMITED, 590)]
)
async def test_an_image_that_slack_refuses_becomes_a_link(world: CoreWorld, error: ChatError, patience: float) -> None:
    """At once if Slack refuses, after minutes if it fails or asks to wait; the other one is sent along."""
    world.reading.refused["file F2"] = error
    await asked_with(world, PICTURE, OTHER, wait=max(patience, 1))
    assert len(world.job_api.created) == (not patience)
    await world.pass_time(300)
    assert error is not LIMITED or world.reading.asked.count("file F2") == 3
    (created,) = world.job_api.created
    assert files_sent(world.job_api, created) == ["b.png"]
    assert "a.png (https://t.slack.com/files/F2). You get the link only" in created
    assert world.chat.posted_as(ContextCut) == [ContextCut("UANA", ("a.png",))]


async def test_a_failure_counts_from_its_beginning_though_slack_asked_to_wait_before(world: CoreWorld) -> None:
    world.reading.refused["file F1"] = LIMITED
    await asked_with(world, NOTES, wait=290)
    world.reading.refused["file F1"] = FAILED
    await world.pass_time(300)  # of which 270 until the last attempt, at the slowest pace
    assert "You get the link only" in world.job_api.created[0]


async def test_a_file_becomes_a_link_if_the_job_api_takes_none_any_more(world: CoreWorld) -> None:
    world.job_api.faults = list(AWAY)
    await asked_with(world, PICTURE, wait=30)
    world.job_api.files_taken, world.job_api.faults = False, []
    await world.pass_time(300)
    assert "You get the link only" in world.job_api.created[0]
    assert world.job_api.uploads == {}


async def test_a_file_the_job_api_refuses_blocks_no_other(world: CoreWorld) -> None:
    world.job_api.faults = [JobApiRejected("413")]
    await asked_with(world, PICTURE, OTHER, wait=10)
    (created,) = world.job_api.created
    assert len(files_sent(world.job_api, created)) == 1
    assert len(world.chat.posted_as(ContextCut)) == 1


async def test_a_request_withdrawn_while_its_file_waits_is_not_sent(world: CoreWorld) -> None:
    world.job_api.faults = list(AWAY)
    await asked_with(world, PICTURE, wait=30)
    taken_back = Reply(ANA, "C1", AT[0], AT[0], "", edited_at=AT[1], withdrawn=True, mentions_us=True)
    await world.revise(taken_back)
    world.job_api.faults = []
    await world.pass_time(300)
    assert (world.job_api.created, world.job_api.uploads) == ([], {})


async def test_a_request_edited_while_its_file_waits_is_sent_with_its_new_files(world: CoreWorld) -> None:
    world.job_api.faults = list(AWAY)
    await asked_with(world, PICTURE, wait=30)
    edited = Reply(ANA, "C1", AT[0], AT[0], "Use it", Attachments((OTHER,)), edited_at=AT[1], mentions_us=True)
    await world.revise(edited)
    world.job_api.faults = []
    await world.pass_time(300)
    (created,) = world.job_api.created
    assert files_sent(world.job_api, created) == ["b.png"]
    assert list(world.job_api.uploads.values()) == [b"\x89PNG b"]


async def test_an_upload_in_flight_for_another_project_does_not_count(world: CoreWorld) -> None:
    """Each project has its own job API."""
    world.configure(projects=Projects((Project("docs", channels=frozenset({"C1"})), Project("api"))))
    await asked_with(world, PICTURE)
    await world.prepare()
    await world.step(world.outbox)
    upload = await world.claim(world.file_uploader)
    thread_id = (await start_of(world)).thread_id
    await world.press(RequestKind.CHOOSE_PROJECT, ANA, "api", key="p1", thread_id=thread_id)
    await upload.process(wait=60)
    assert (world.job_api.uploaded_to, world.job_api.projects) == (["docs", "api"], ["api"])
    assert len(world.job_api.files[world.job_api.created[0]]) == 1


async def test_a_follow_up_with_a_file_at_another_project_is_prepared_again(world: CoreWorld) -> None:
    """Meanwhile, another project was chosen for a job that had not been sent."""
    world.configure(projects=Projects((Project("docs", channels=frozenset({"C1"})), Project("api"))))
    world.job_api.faults_of["create"] = list(AWAY)
    await asked_with(world, text="Do it")
    await world.receive(Reply(ANA, "C1", AT[0], AT[1], "With this", Attachments((PICTURE,)), mentions_us=True), wait=30)
    assert len(world.job_api.uploads) == 1
    world.job_api.uploads.clear()
    thread_id = (await start_of(world)).thread_id
    await world.press(RequestKind.CHOOSE_PROJECT, ANA, "api", key="p1", thread_id=thread_id)
    world.job_api.faults_of.clear()
    await world.pass_time(300)
    (sent,) = world.job_api.messages["job-1"]
    assert files_sent(world.job_api, sent) == ["a.png"]
    assert sent.count("a.png") == 1
    assert len(world.job_api.uploads) == 1


async def test_a_crash_while_uploading_leaves_no_doubt(world: CoreWorld) -> None:
    """Another one uploads the file once the claim has expired, and sends the request."""
    await asked_with(world, PICTURE)
    await world.prepare()
    await world.step(world.outbox)
    assert len(await world.file_uploader.claim(10)) == 1
    world.restart("two")
    await world.pass_time(20)
    assert world.job_api.created == []
    await world.pass_time(60)
    assert len(world.job_api.created) == 1
    assert (await start_of(world)).state is RequestState.ACCEPTED


async def test_a_request_handed_back_after_days_is_sent_again_with_its_file(world: CoreWorld) -> None:
    world.job_api.faults = list(AWAY)
    await asked_with(world, PICTURE, wait=4 * 86_400)
    start = await start_of(world)
    assert (start.state, start.problem) == (RequestState.REJECTED, "too_old")
    world.job_api.faults = []
    await world.pass_time(3600)
    assert world.job_api.uploads == {}
    await world.press_send_again(ANA, start.id, key="p1", wait=60)
    assert files_sent(world.job_api, world.job_api.created[0]) == ["a.png"]


async def test_quick_replies_with_files_are_merged(world: CoreWorld) -> None:
    world.configure(merge_seconds=3.0)
    ts = await world.started()
    for number, file in enumerate((PICTURE, OTHER), start=1):
        at = f"{world.clock.time + number:.6f}"
        await world.receive(Reply(ANA, "C1", ts, at, f"Part {number}", Attachments((file,))))
    await world.pass_time(20)
    (sent,) = world.job_api.messages["job-1"]
    assert sent.startswith("Part 1\n\nPart 2\n")
    assert files_sent(world.job_api, sent) == ["a.png", "b.png"]


async def test_a_reply_whose_file_waits_is_not_overtaken(world: CoreWorld) -> None:
    world.reading.refused["file F2"] = FAILED
    ts = await world.started()
    await world.receive(Reply(ANA, "C1", ts, AT[1], "With it", Attachments((PICTURE,))))
    await world.receive(Reply(ANA, "C1", ts, AT[2], "And then"), wait=60)
    assert world.job_api.messages == {}
    await world.pass_time(300)
    assert [sent.partition("\n")[0] for sent in world.job_api.messages["job-1"]] == ["With it", "And then"]


async def test_an_unreadable_thread_is_reported_and_included_next_time(world: CoreWorld) -> None:
    """Nothing of it counts as read."""
    world.count_replies(ReplyMode.MENTIONS)
    world.reading.threads[AT[0]] = [ThreadMessage("Cleo", "The port is wrong", AT[0])]
    world.reading.refused["thread"] = FAILED
    mention = partial(Reply, ANA, "C1", AT[0], mentions_us=True)
    await world.receive(mention(AT[1], "Fix that"), wait=400)
    (created,) = world.job_api.created
    assert "The thread's messages could not be read." in created
    assert world.chat.posted_as(ContextCut) == [ContextCut("UANA", thread_unread=True)]
    world.reading.refused.clear()
    await world.receive(mention(AT[2], "Look again"), wait=60)
    assert "> The port is wrong" in world.job_api.messages["job-1"][0]


async def test_an_external_file_is_linked_if_it_has_a_link(world: CoreWorld) -> None:
    """Even if Slack names it only on request; without a link, the agent gets the name."""
    plan = SlackFile("F4", "plan", must_look_up=True)
    found = SlackFile("F4", "plan", permalink="https://docs.example/plan", elsewhere=True)
    world.reading.looked_up = {"F4": found}
    await asked_with(world, plan, SlackFile("F5", "gone.pdf", must_look_up=True), wait=10)
    (created,) = world.job_api.created
    assert "plan (https://docs.example/plan). You get the link only" in created
    assert "gone.pdf. You get neither the file itself nor a link." in created
    assert world.chat.posted_as(ContextCut) == [ContextCut("UANA", ("plan",), name_only=("gone.pdf",))]


async def test_files_of_a_forgotten_person_are_not_uploaded(world: CoreWorld) -> None:
    world.job_api.faults = list(AWAY)
    await asked_with(world, PICTURE, wait=30)
    await world.store.transact(lambda tx: tx.retention.forget_person(ANA.id, limit=10))
    world.job_api.faults = []
    await world.pass_time(300)
    assert world.job_api.uploads == {}
