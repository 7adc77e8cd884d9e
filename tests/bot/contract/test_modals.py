"""Modals, shortcuts and Home with real Bolt, over Socket Mode, with the workspace in Slack's place."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from support.worlds.slack_world import SlackWorld, slack_world

from bot.domain.commands import AgentOptions
from bot.domain.jobs.job import QuestionField
from bot.domain.people import Preference
from bot.domain.projects import JobApiAbilities, Project
from bot.domain.requests.new_jobs import Written
from bot.errors import StoreUnavailable
from bot.jobapi.models import FieldKind, Mode
from bot.slack.rendering.blocks import Block
from bot.slack.rendering.ephemeral_texts import NO_RECORD, NOT_RECORDED, STILL_RECORDING
from bot.slack.rendering.home import HOME_DEFAULTS
from bot.slack.rendering.modals import (
    ANSWER_MISSING,
    COULD_NOT_OPEN,
    NO_PLAN,
    NOT_RECORDED_HERE,
    OPTIONS_IN_FORM,
    encoded_fields,
)
from bot.workspace.model.views import View
from bot.workspace.people import Actor
from bot.workspace.web_api.endpoint import CallRecord


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[SlackWorld]:
    """Its parameter are the projects."""
    async with slack_world(names_within=2.0, ack_timeout=2.0) as made:
        made.projects = getattr(request, "param", ("guides", "api"))
        receiver = made.receiver()
        await receiver.start()
        await made.workspace.changes.wait_for(lambda: len(made.workspace.socket_mode.connections) == 2)
        yield made
        await receiver.stop(2)


@pytest.fixture
def ana(world: SlackWorld) -> Actor:
    return world.workspace.people["ana"]


async def shown(world: SlackWorld, person: Actor, title: str) -> View:
    """The modal with this title, once it is there."""
    await world.workspace.changes.wait_for(lambda: person.views.top is not None and person.views.top.title == title)
    assert person.views.top is not None
    return person.views.top


async def fill_in_job(world: SlackWorld, person: Actor) -> None:
    assert (await person.global_shortcut("new_task")).ok
    await shown(world, person, "New job")
    await person.views.enter("prompt", "Fix it", dispatch=False)
    await person.views.enter("channel", "docs")


def ids(view: View) -> list[str]:
    return [block["block_id"] for block in view.blocks if block["type"] == "input"]


def value(view: View, block_id: str) -> Any:
    return view.values[block_id][block_id].get("value")


def words(blocks: list[Block]) -> str:
    return str(blocks)


async def until_asked(world: SlackWorld, condition: Callable[[], bool]) -> None:
    """Polls a condition that cannot be awaited; the test's time limit bounds it."""
    while not condition():  # noqa: ASYNC110 - a recorded call has no event to wait on
        await asyncio.sleep(0.01)


# -- a new job --------------------------------------------------------------------------------------------------------


async def test_a_recording_failure_is_reported_at_its_field_and_can_be_retried(world: SlackWorld, ana: Actor) -> None:
    """The second time succeeds."""
    await fill_in_job(world, ana)
    world.service.fault = StoreUnavailable("away")
    assert (await ana.views.submit()).errors == {"prompt": NOT_RECORDED_HERE}
    assert value(await shown(world, ana, "New job"), "prompt") == "Fix it"
    world.service.fault = None
    assert (await ana.views.submit()).ok
    assert len(world.service.started) == 1


async def test_slow_recording_is_reported_and_continues(world: SlackWorld, ana: Actor) -> None:
    """If it finally fails, the person is told."""
    await fill_in_job(world, ana)
    world.service.gate, world.service.fault = asyncio.Event(), StoreUnavailable("away")
    await ana.views.submit()
    assert STILL_RECORDING in words((ana.views.top or never()).blocks)
    world.service.gate.set()
    await world.workspace.changes.wait_for(lambda: bool(ana.ephemerals("docs")))
    assert ana.ephemerals("docs")[0].text == NOT_RECORDED


PLANS = JobApiAbilities(modes=True)
AS_SAID = (Project("guides", abilities=PLANS),)
PLAN_FIRST = (Project("guides", abilities=PLANS, mode=Mode.PLAN),)


@pytest.mark.parametrize(
    ("world", "typed", "ticked", "tick", "asked"),
    [
        (AS_SAID, "", False, None, AgentOptions()),
        (AS_SAID, "", False, ["plan"], AgentOptions(Mode.PLAN)),
        (PLAN_FIRST, "", True, None, AgentOptions(Mode.PLAN)),
        (PLAN_FIRST, "", True, [], AgentOptions(Mode.EDIT)),
        (AS_SAID, "plan: model:opus-5 effort:high", True, None, AgentOptions(Mode.PLAN, "opus-5", "high")),
        (PLAN_FIRST, "mode:edit", False, None, AgentOptions(Mode.EDIT)),
        (PLAN_FIRST, "ask:", None, None, AgentOptions(Mode.ASK)),
    ],
    indirect=["world"],
)
async def test_the_form_has_a_box_for_a_plan_first(
    world: SlackWorld, ana: Actor, typed: str, asked: AgentOptions, *, ticked: bool | None, tick: Any
) -> None:
    """It begins as the command or the settings say. Who leaves it unticked leaves it to the chosen project."""
    assert (await ana.command("docs", "/docs", typed)).ok
    view = await shown(world, ana, "New job")
    assert ("plan" in ids(view)) is (ticked is not None)
    if ticked is not None:
        assert bool(view.values["plan"]["plan"]["selected_options"]) is ticked
    if tick is not None:
        await ana.views.enter("plan", tick)
    await ana.views.enter("prompt", "Fix it", dispatch=False)
    assert (await ana.views.submit()).ok
    (job,) = world.service.started
    assert job.agent == asked


@pytest.mark.parametrize("world", [(*AS_SAID, "api")], indirect=True)
async def test_a_plan_is_offered_only_where_it_can_be_had(world: SlackWorld, ana: Actor) -> None:
    """Of a project that cannot, there is no box, or an error where it is chosen; a wish from the command is kept."""
    assert (await ana.command("docs", "/docs", "project:api plan:")).ok
    view = await shown(world, ana, "New job")
    assert "plan" not in ids(view)
    await ana.views.enter("prompt", "Fix it", dispatch=False)
    assert (await ana.views.submit()).ok
    assert world.service.started[0].agent == AgentOptions(Mode.PLAN)
    message = await ana.say("docs", "Who knows about ports?")
    await handed_over(world, ana, message.ts)
    await ana.views.enter("prompt", "Fix it", dispatch=False)
    await ana.views.enter("plan", ["plan"])
    await ana.views.enter("project", "api")
    assert (await ana.views.submit()).errors == {"plan": NO_PLAN}
    await ana.views.enter("project", "guides")
    assert (await ana.views.submit()).ok
    assert world.service.started[1].agent == AgentOptions(Mode.PLAN)


@pytest.mark.parametrize("world", [AS_SAID], indirect=True)
async def test_options_that_are_typed_into_a_form_are_an_error(world: SlackWorld, ana: Actor) -> None:
    """The agent would get them as mere words, and do at once what somebody wanted to be shown first."""
    assert (await ana.command("docs", "/docs")).ok
    await shown(world, ana, "New job")
    await ana.views.enter("prompt", "Plan: Fix it", dispatch=False)
    assert (await ana.views.submit()).errors == {"prompt": OPTIONS_IN_FORM}
    assert world.service.started == []


async def test_a_modal_that_cannot_be_opened_is_reported(world: SlackWorld, ana: Actor) -> None:
    """Nothing else happens."""
    world.workspace.faults.server_error(method="views.open")
    assert (await ana.command("docs", "/docs")).ok
    await world.workspace.changes.wait_for(lambda: bool(ana.ephemerals("docs")))
    assert ana.ephemerals("docs")[0].text == COULD_NOT_OPEN


# -- handing over a message -------------------------------------------------------------------------------------------


async def handed_over(world: SlackWorld, ana: Actor, ts: str, channel: str = "docs") -> View:
    assert (await ana.shortcut(channel, ts, "hand_to_pagehand")).ok
    return await shown(world, ana, "Hand to Pagehand")


async def test_the_last_choice_of_context_is_remembered(world: SlackWorld, ana: Actor) -> None:
    """Even if reading the earlier choice takes longer."""
    root = await ana.say("docs", "Who knows about ports?")
    reply = await ana.say("docs", "I do", thread_ts=root.ts)
    view = await handed_over(world, ana, reply.ts)
    slow = world.workspace.faults.delay(1.0, method="conversations.replies")
    await ana.views.enter("scope", "thread")
    await until_asked(world, lambda: slow.hits == 1)
    before = view.hash
    await ana.views.enter("scope", "message")
    await world.workspace.changes.wait_for(lambda: view.hash != before)
    updates = len(updates_of(world))
    await until_asked(world, lambda: len(updates_of(world)) > updates)
    assert updates_of(world)[-1].error == "hash_conflict"
    assert "context/message/0" in ids(view)
    assert "context/thread/0" not in ids(view)


def updates_of(world: SlackWorld) -> list[CallRecord]:
    return [call for call in world.workspace.web_api.calls if call.method == "views.update"]


def never() -> View:
    raise AssertionError("the modal was closed")


async def test_where_pagehand_is_not_a_member_only_the_message_is_included(world: SlackWorld, ana: Actor) -> None:
    """The modal says so."""
    root = await ana.say("general", "Who knows?")
    reply = await ana.say("general", "The port is wrong", thread_ts=root.ts)
    view = await handed_over(world, ana, reply.ts, "general")
    assert "scope" not in ids(view)
    assert "> The port is wrong" in value(view, "context/message/0")
    assert "I'm not in this channel" in words(view.blocks)


# -- a follow-up ------------------------------------------------------------------------------------------------------


async def test_a_follow_up_to_a_missing_job_is_reported_at_its_field(world: SlackWorld, ana: Actor) -> None:
    """The text is still there."""
    button = {"type": "button", "text": {"type": "plain_text", "text": "Follow up…"}, "value": "th1"}
    blocks = [{"type": "actions", "elements": [button | {"action_id": "follow_up"}]}]
    card = await world.client.chat_postMessage(channel="C0DOCS001", text="card", blocks=blocks)
    assert (await ana.press("docs", str(card["ts"]), "follow_up")).ok
    await shown(world, ana, "Follow up")
    world.service.knows = False
    await ana.views.enter("prompt", "And the manual")
    assert (await ana.views.submit()).errors == {"prompt": NO_RECORD}


FIELDS = (
    QuestionField("Which pages?", FieldKind.CHOICES, ("Install, in short", "Set up"), own_words=True, required=True),
    QuestionField("Sure?", FieldKind.YES_OR_NO, required=True),
    QuestionField("How many?", FieldKind.NUMBER),
)


async def asked_in_thread(world: SlackWorld, ana: Actor, fields: Sequence[QuestionField]) -> None:
    """A question with a button that opens its modal, and the press."""
    button = {"type": "button", "text": {"type": "plain_text", "text": "Answer"}, "action_id": "fill_in_answer"}
    blocks = [{"type": "actions", "elements": [button | {"value": f"th1/{encoded_fields(fields)}"}]}]
    question = await world.client.chat_postMessage(channel="C0DOCS001", text="Which?", blocks=blocks)
    assert (await ana.press("docs", str(question["ts"]), "fill_in_answer")).ok


async def test_a_form_of_the_agent_is_answered_in_a_modal(world: SlackWorld, ana: Actor) -> None:
    """Missing answers are reported at their input; typed text takes precedence over a choice."""
    await asked_in_thread(world, ana, FIELDS)
    view = await shown(world, ana, "Your answer")
    assert ids(view) == ["required_answer/1", "other_answer/1", "required_answer/2", "answer/3"]
    await ana.views.enter("required_answer/2", "Yes")
    assert (await ana.views.submit()).errors == {"required_answer/1": ANSWER_MISSING}
    await ana.views.enter("required_answer/1", ["Install, in short", "Set up"])
    assert (await ana.views.submit()).ok
    (call,) = [call for call in world.service.calls if call[0] == "follow_up"]
    written = call[1]
    assert isinstance(written, Written)
    assert (written.thread_id, written.text) == ("th1", "Which pages?: Install, in short; Set up\nSure?: Yes")


# -- Home -------------------------------------------------------------------------------------------------------------


async def test_opening_home_is_recorded(world: SlackWorld, ana: Actor) -> None:
    """Opening the Messages tab is not."""
    await ana.views.open_home("messages")
    await ana.views.open_home()
    await world.workspace.deliveries.settled()
    assert [call for call in world.service.calls if call[0] == "open_home"] == [("open_home", ana.id, 0)]


def home_with(action_id: str, value: str) -> Block:
    button = {"type": "button", "text": {"type": "plain_text", "text": "B"}, "action_id": action_id, "value": value}
    return {"type": "home", "blocks": [{"type": "actions", "elements": [button]}]}


async def test_personal_defaults_include_a_project(world: SlackWorld, ana: Actor) -> None:
    await world.client.views_publish(user_id=ana.id, view=home_with(HOME_DEFAULTS, "change"))
    await ana.views.press(HOME_DEFAULTS)
    assert ids(await shown(world, ana, "Your defaults")) == ["project", "telling"]
    await ana.views.enter("project", "guides")
    await ana.views.enter("telling", "quiet")
    assert (await ana.views.submit()).ok
    assert world.service.preferences[ana.id] == Preference("guides", quiet=True)


# -- payloads as Slack never sends them -------------------------------------------------------------------------------
