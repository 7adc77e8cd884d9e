"""Who may ask, by every way in; what the others are told; and the audit trail."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable

import pytest
from support.worlds.ways_in_world import OpenWorld, WaysInWorld

from bot.notices.said import ButtonId
from bot.slack.rendering.blocks import FOLLOW_UP, RETRY_JOB
from bot.workspace.people import Actor

Asking = Callable[[WaysInWorld, Actor, str], Awaitable[object]]


async def _by_command(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.command("docs", "/docs", prompt)


async def _by_mention(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.say("docs", f"{world.bot} {prompt}")


async def _by_direct_message(world: WaysInWorld, person: Actor, prompt: str) -> None:
    await person.say("pagehand", prompt)


WAYS = [_by_command, _by_mention, _by_direct_message]


@pytest.mark.parametrize("ask", WAYS, ids=lambda ask: ask.__name__.removeprefix("_by_"))
async def test_a_guest_is_refused_by_every_way_in(world: WaysInWorld, ask: Asking) -> None:
    """Privately, with whom to ask and with the text; nothing is visible in the channel."""
    await ask(world, world.gia, "Fix it as a guest")
    told = await world.private_message(world.gia, "guests")
    assert "No job was started" in told.text
    assert "Fix it as a guest" in told.text
    await world.begun("Fix it as a member")
    assert [created.prompt for created in world.job_api.created] == ["Fix it as a member"]
    assert len(world.cards()) == 1


@pytest.mark.parametrize("form", ["job", "hand over", "follow up"])
async def test_a_guest_gets_no_form(world: WaysInWorld, form: str) -> None:
    """The reason is shown instead, before anything is typed in vain."""
    job = await world.begun("Fix it as a member")
    match form:
        case "job":
            await world.gia.command("docs", "/docs")
        case "hand over":
            await world.gia.shortcut("docs", (await world.ana.say("docs", "It is wrong")).ts, "hand_to_pagehand")
        case _:
            await world.gia.press("docs", job.ts, FOLLOW_UP)
    view = await world.until(lambda: _said_in_view(world.gia), "a view that says why")
    assert "guests" in view
    assert len(world.job_api.created) == 1


def _said_in_view(person: Actor) -> str:
    """Returns the text of the open view once it has loaded."""
    words = str(person.views.top.blocks) if person.views.top else ""
    return "" if "One moment" in words else words


async def test_a_guest_can_do_nothing_in_a_jobs_thread(open_world: OpenWorld) -> None:
    """Not steer, stop, mute or retry it."""
    world = await open_world(JOB_API_CANCEL="true")
    job = await world.begun()
    for words in ("And the manual", "!stop", "!mute", "!retry", "!new Another"):
        await world.gia.say("docs", words, thread_ts=job.ts)
    await world.gia.press("docs", job.ts, ButtonId.STOP_JOB)
    await world.gia.react("docs", job.ts, "x")
    await world.until(lambda: len(_refusals(world, world.gia)) >= 6, "a refusal of each")
    await world.ana.say("docs", "Go on", thread_ts=job.ts)
    await world.steered(job.id, "Go on")
    assert world.job_api.cancelled == []
    assert len(world.job_api.created) == 1
    assert "Muted" not in job.card.text


def _refusals(world: WaysInWorld, person: Actor) -> list[str]:
    return [message.text for message in world.private(person) if "guests" in message.text]


async def test_guests_are_admitted_by_a_setting(open_world: OpenWorld) -> None:
    """Like everybody else."""
    world = await open_world(PAGEHAND_ALLOW_GUESTS="true")
    await world.begun(person=world.gia)


async def test_a_person_of_another_organization_is_refused(open_world: OpenWorld) -> None:
    """Even if shared channels are allowed: they can neither ask nor steer."""
    world = await open_world(PAGEHAND_ALLOW_SHARED_CHANNELS="true")
    await world.emil.say("partners", f"{world.bot} Fix it from outside")
    await world.private_message(world.emil, "only members of ")
    job = await world.begun(channel="partners")
    await world.emil.say("partners", "And the manual", thread_ts=job.ts)
    await world.emil.press("partners", job.ts, ButtonId.STOP_JOB)
    await world.ana.say("partners", "Go on", thread_ts=job.ts)
    await world.steered(job.id, "Go on")
    assert len(world.job_api.created) == 1


async def test_a_shared_channel_is_off_until_it_is_allowed(world: WaysInWorld) -> None:
    """For members, too."""
    await world.ana.command("partners", "/docs", "Fix it")
    assert "other organizations" in (await world.private_message(world.ana, "No job was started")).text
    await world.begun("Fix it elsewhere")
    assert len(world.job_api.created) == 1


@pytest.mark.full
async def test_only_listed_people_are_admitted(open_world: OpenWorld) -> None:
    """Members of the named groups are included."""
    world = await open_world(PAGEHAND_ALLOWED_PEOPLE="U0GIA0001", PAGEHAND_ALLOWED_GROUPS="S0WRITERS")
    await world.begun("By a writer", person=world.ben)
    world = await _again(world, PAGEHAND_ALLOWED_PEOPLE="U0ANA0001", PAGEHAND_ALLOWED_GROUPS="")
    await world.ben.command("docs", "/docs", "By nobody on the list")
    await world.private_message(world.ben, "only certain people can")
    await world.begun("By Ana")
    assert [created.prompt for created in world.job_api.created] == ["By a writer", "By Ana"]


async def _again(world: WaysInWorld, **settings: str) -> WaysInWorld:
    """The same with a bot that has other settings."""
    await world.app.stop()
    world.app.settings |= settings
    await world.app.start()
    return world


@pytest.mark.full
async def test_only_listed_channels_count(open_world: OpenWorld) -> None:
    """Direct messages count, too."""
    world = await open_world(PAGEHAND_ALLOWED_CHANNELS="C0GENERAL")
    await world.ana.command("docs", "/docs", "Fix it here")
    await world.private_message(world.ana, "Pagehand is for certain channels")
    await world.begun("Fix it there", channel="general")
    await world.ana.say("pagehand", "Fix it directly")
    await world.job("Fix it directly")
    assert len(world.job_api.created) == 2


@pytest.mark.full
async def test_the_hourly_limit_applies_in_slack(open_world: OpenWorld) -> None:
    """Jobs and follow-ups together, for each person separately."""
    world = await open_world(PAGEHAND_HOURLY_LIMIT="2")
    job = await world.begun()
    await world.ana.say("docs", "And the manual", thread_ts=job.ts)
    await world.steered(job.id, "And the manual")
    await world.ana.command("docs", "/docs", "One too many")
    assert "hourly limit (2)" in (await world.private_message(world.ana, "No job was started")).text
    await world.ben.say("docs", "And the index", thread_ts=job.ts)
    await world.steered(job.id, "And the manual", "And the index")
    assert len(world.job_api.created) == 1


async def test_actions_are_audited_and_logged_without_their_words(
    open_world: OpenWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """`pagehand export` prints who, what, when, and the job."""
    caplog.set_level("INFO")
    world = await open_world(JOB_API_CANCEL="true")
    job = await world.begun("Words of a request")
    await world.ben.say("docs", "Words of a reply", thread_ts=job.ts)
    await world.steered(job.id, "Words of a reply")
    await world.gia.say("docs", "Words of a guest", thread_ts=job.ts)
    await world.private_message(world.gia, "guests")
    await world.ben.say("docs", "!mute", thread_ts=job.ts)
    await world.card("Muted: by")
    await world.ben.say("docs", "!unmute", thread_ts=job.ts)
    await world.until(lambda: "Muted: by" not in job.card.text, "the card without it")
    await world.ana.press("docs", job.ts, ButtonId.STOP_JOB)
    await world.said("Stopped by", thread_ts=job.ts)
    await world.until(lambda: RETRY_JOB in str(job.card.blocks), "the card with a retry")
    await world.ana.press("docs", job.ts, RETRY_JOB)
    await world.job_api.until(lambda: len(world.job_api.created) == 2)
    entries = await _exported(world)
    done = [(entry["action"], entry["person"]) for entry in entries]
    ana, ben, gia = world.ana.id, world.ben.id, world.gia.id
    assert done == [
        ("asked", ana),
        ("steered", ben),
        ("refused", gia),
        ("muted", ben),
        ("unmuted", ben),
        ("stopped", ana),
        ("asked", ana),
        ("retried", ana),
    ]
    assert {entry["job"] for entry in entries if entry["action"] in {"steered", "stopped"}} == {job.id}
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert logged.count("audit: ") == len(entries)
    assert "Words of a" not in f"{entries} {[line for line in logged.splitlines() if 'audit' in line]}"


async def _exported(world: WaysInWorld) -> list[dict[str, str]]:
    """Returns the command's output, while the bot is running."""
    exporting = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "export", "--since", "1h"),
        env={"DATABASE_URL": world.app.database_url, "PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await exporting.communicate()
    assert exporting.returncode == 0
    return [json.loads(line) for line in out.splitlines()]
