"""Pictures of a job's pages come into its thread: each once, and nothing waits long for them."""

import asyncio
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.worlds.core_world import CoreWorld

from bot.domain.jobs.pictures import MOST_SHOWN
from bot.domain.requests.request import RequestKind
from bot.errors import (
    ChatMissingScope,
    ChatNotAllowed,
    ChatRateLimited,
    ChatRejected,
    ChatUncertain,
    ChatUnreachable,
    JobApiBusy,
    JobApiNotAllowed,
    JobApiUncertain,
    JobGone,
)
from bot.jobapi.models import LARGEST_PICTURE, JobDetails, Picture
from bot.notices.pictures import PicturesShown
from bot.scheduler.outbox import MOST_TRIES_OF_PICTURES, MOST_UPLOADING

LINK = "https://git.example/1"
PNG = b"\x89PNG\r\n\x1a\n"


def picture(world: CoreWorld, name: str, content: bytes = PNG, **fields: Any) -> Picture:
    """A picture that the job API can send."""
    content += name.encode()
    world.job_api.pictures[sha256(content).hexdigest()] = content
    told = {"alt": f"About {name}", "mimetype": "image/png", "size": len(content)}
    return Picture(id=sha256(content).hexdigest(), path=f"docs/{name}", **told | fields)


async def finished(world: CoreWorld, *pictures: Picture, link: str | None = LINK, wait: float = 30) -> None:
    await world.show("completed", link, JobDetails(pictures=pictures), wait=wait)


def shown(world: CoreWorld) -> list[list[tuple[str, str]]]:
    """Returns the name and the file of each picture, by post."""
    posts = world.chat.posted_as(PicturesShown)
    return [[(each.path.removeprefix("docs/"), each.file) for each in post.pictures] for post in posts]


async def test_two_pictures_are_shown_and_the_others_named(world: CoreWorld) -> None:
    ts = await world.started()
    large = picture(world, "large.png", size=LARGEST_PICTURE + 1_000_000)
    others = [picture(world, f"{number}.png") for number in range(49)]
    await finished(world, large, picture(world, "web.webp", mimetype="image/webp"), *others)
    assert world.chat.said(ts) == ["job_started", "job_finished", "pictures_shown"]
    (post,) = world.chat.posted_as(PicturesShown)
    assert (post.link, post.count) == (LINK, 51)
    assert shown(world)[0][:5] == [("large.png", ""), ("web.webp", ""), ("0.png", "F1"), ("1.png", "F2"), ("2.png", "")]
    assert world.chat.uploaded == [(f"{n}.png", PNG + f"{n}.png".encode(), f"About {n}.png") for n in range(MOST_SHOWN)]


async def test_each_picture_comes_once_into_a_thread(world: CoreWorld) -> None:
    ts = await world.started()
    await finished(world, first := picture(world, "first.png"))
    await world.reply(ts, "more", "5.1", wait=5)
    await finished(world, first, picture(world, "second.png"), wait=60)
    await world.reply(ts, "and more", "6.1", wait=5)
    await finished(world, first.model_copy(update={"path": "docs/moved.png"}), wait=60)
    assert shown(world) == [[("first.png", "F1")], [("second.png", "F2")]]
    world.restart("two")
    await world.pass_time(600)
    assert len(shown(world)) == 2


async def test_pictures_wait_for_the_pull_request_and_for_a_job_that_is_not_muted(world: CoreWorld) -> None:
    ts = await world.started()
    told = picture(world, "x.png")
    await finished(world, told, link=None)
    assert shown(world) == []
    await world.press_card(RequestKind.MUTE, ts, key="m1")
    await finished(world, told, wait=60)
    assert (shown(world), world.chat.uploaded) == ([], [])
    await world.press_card(RequestKind.UNMUTE, ts, key="m2", wait=20)
    assert shown(world) == [[("x.png", "F1")]]


SLACKS = [
    ChatMissingScope(("files:write",)), ChatRateLimited("ratelimited", retry_after=30.0), ChatRejected("no"),
    ChatUncertain("timeout"), ChatUnreachable("down"), ChatNotAllowed("token_expired"), TimeoutError(),
]  # fmt: skip
OF_THE_JOB_API = [
    JobGone("no such picture"), JobApiBusy("busy", words="", status=429, retry_after=30.0), JobApiUncertain("slow"),
    JobApiNotAllowed("key", status=401),
]  # fmt: skip


@pytest.mark.first(error=4)
@pytest.mark.parametrize("error", [*SLACKS, *OF_THE_JOB_API], ids=repr)
async def test_what_does_not_arrive_in_slack_is_named_at_once(world: CoreWorld, error: Exception) -> None:
    ts = await world.started()
    if error in SLACKS:
        world.chat.fail(upload=error)
    else:
        world.job_api.faults_of["picture"] = [error, error]  # type: ignore[list-item]
    await world.show("completed", LINK, JobDetails(pictures=(picture(world, "x.png"), picture(world, "y.png"))), wait=5)
    assert shown(world) == [[("x.png", ""), ("y.png", "")]]
    assert world.chat.said(ts)[-1] == "pictures_shown"
    await world.pass_time(300)
    assert len(shown(world)) == 1
    assert world.outbox.status().failing_seconds == 0


@pytest.mark.first(content=2)
@pytest.mark.parametrize("content", [b"<html><script>", PNG + bytes(LARGEST_PICTURE), b"", b"RIFF1234WEBP"], ids=len)
async def test_what_is_no_small_picture_is_not_uploaded(world: CoreWorld, content: bytes) -> None:
    """Whatever the job API said of it."""
    await world.started()
    told = picture(world, "x.png")
    world.job_api.pictures[told.id] = content
    await finished(world, told)
    assert (shown(world), world.chat.uploaded) == ([[("x.png", "")]], [])


@pytest.mark.promise("posted once")
@pytest.mark.parametrize(
    ("call", "after", "uploads"), [("upload", False, 1), ("upload", True, 2), ("post", False, 1), ("post", True, 1)]
)
async def test_after_a_kill_nothing_comes_twice(world: CoreWorld, call: str, uploads: int, *, after: bool) -> None:
    """A file that was uploaded, but not recorded, stays in Slack where nobody sees it."""
    ts = await world.started()
    faults: Any = [None, asyncio.CancelledError()] if call == "post" else [asyncio.CancelledError()]  # after the end
    (world.chat.lose if after else world.chat.fail)(**{call: faults})
    with pytest.raises(asyncio.CancelledError):
        await finished(world, picture(world, "x.png"))
    assert world.chat.said(ts)[1:2] == ["job_finished"]
    world.restart("two")
    await world.pass_time(60)
    assert len(world.chat.uploaded) == uploads
    assert shown(world) == [[("x.png", f"F{uploads}")]]


@pytest.mark.promise("posted once")
async def test_two_processes_post_pictures_once(world: CoreWorld, sqlite_template: Path) -> None:
    """Even if one was paused while it uploaded, for longer than its claim."""
    other, upload = CoreWorld("two").on(world.store, world.clock, beside=world), world.chat.upload

    async def paused(name: str, content: bytes, *, words: str) -> str:
        file = await upload(name, content, words=words)
        if len(world.chat.uploaded) == 1:
            world.clock.advance(40)
            await other.pass_time(5)
        return file

    ts = await world.started()
    world.chat.upload = paused  # type: ignore[method-assign]
    await finished(world, picture(world, "x.png"))
    assert world.chat.said(ts) == ["job_started", "job_finished", "pictures_shown"]
    assert shown(world) == [[("x.png", "F2")]]


@pytest.mark.promise("paused")
async def test_a_process_that_was_paused_while_it_uploaded_leaves_the_post_to_its_next_claim(world: CoreWorld) -> None:
    posted_at, upload = dict[str, float](), world.chat.upload

    async def paused(name: str, content: bytes, *, words: str) -> str:
        file = await upload(name, content, words=words)
        posted_at["upload"] = world.clock.time
        world.clock.advance(25)
        return file

    await world.started()
    world.chat.upload = paused  # type: ignore[method-assign]
    world.chat.after = lambda call, _: posted_at.update({call: world.clock.time})
    await finished(world, picture(world, "x.png"), wait=60)
    assert shown(world) == [[("x.png", "F1")]], "what was uploaded is known"
    assert posted_at["post"] - posted_at["upload"] >= 30


async def test_a_slow_slack_holds_up_a_thread_for_a_moment_only(world: CoreWorld) -> None:
    async def hang(*_: object, **__: object) -> str:
        await asyncio.Event().wait()
        return ""

    world.configure(upload_patience=0.05)
    ts = await world.started()
    world.chat.upload = hang  # type: ignore[method-assign]
    await finished(world, picture(world, "x.png"), picture(world, "y.png"))
    await world.reply(ts, "more", "5.1", wait=5)
    assert world.chat.said(ts) == ["job_started", "job_finished", "pictures_shown", "job_active_again"]
    assert shown(world) == [[("x.png", ""), ("y.png", "")]]


async def test_a_few_threads_upload_at_a_time_and_none_waits_for_ever(world: CoreWorld) -> None:
    """The rest of the outbox is free for others."""
    free, upload = asyncio.Event(), world.chat.upload

    async def waiting(name: str, content: bytes, *, words: str) -> str:
        await free.wait()
        return await upload(name, content, words=words)

    world.chat.upload = waiting  # type: ignore[method-assign]
    jobs = [f"job-{number}" for number in range(1, MOST_UPLOADING + 2)]
    for job_id in jobs:
        await world.start(job_id, key=job_id, wait=0)
        world.job_api.show(job_id, "completed", f"{LINK}/{job_id}", JobDetails(pictures=(picture(world, job_id),)))
    world.clock.advance(10)
    await world.step(world.job_poller)
    assert await world.step(world.outbox) > len(jobs), "the ends and the cards"
    uploading = list[asyncio.Task[None]]()
    for turn in range(MOST_TRIES_OF_PICTURES + 1):
        claimed = [item for item in await world.outbox.claim(100) if isinstance(item.notice.message, PicturesShown)]
        assert len(claimed) == (1 if turn else len(jobs))
        uploading += [asyncio.create_task(world.outbox.process(item, world.clock.monotonic())) for item in claimed]
        await asyncio.wait(uploading[MOST_UPLOADING:])
        world.clock.advance(2.5)
    assert [file for [(_, file)] in shown(world)] == [""], "one goes without after a quarter of a minute"
    free.set()
    await asyncio.gather(*uploading)
    assert sorted(file for [(_, file)] in shown(world)) == ["", *(f"F{n}" for n in range(1, MOST_UPLOADING + 1))]
