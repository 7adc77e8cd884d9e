"""What the demo prints: a thread, and what to try next."""

import asyncio

from bot.cli.demo_guide import PROPOSALS, Tour, TourStep, guide, next_step
from bot.cli.demo_scenario import ThreadPrinter
from bot.cli.demo_services import CHANNEL, manifest
from bot.workspace.model.entities import Message
from bot.workspace.server import WorkspaceServer


async def test_the_printed_thread_hides_misleading_characters() -> None:
    workspace, printed = WorkspaceServer(manifest()), list[str]()
    await workspace.start()
    try:
        ts = (await workspace.people["ana"].say(CHANNEL, "see \u202egnp.exe\u202c @ben \u200bthere")).ts
        ThreadPrinter(workspace, printed.append).print(ts)
    finally:
        await workspace.stop()
    (line,) = printed
    assert line.endswith(": see gnp.exe @Ben Okafor there")


async def test_the_next_step_is_printed_after_the_previous_is_done() -> None:
    workspace, printed = WorkspaceServer(manifest()), list[str]()
    await workspace.start()
    guiding = asyncio.create_task(guide(workspace, Tour("Do it", "More", "Rest"), printed.append))
    try:
        ana = workspace.people["ana"]
        await asyncio.sleep(0)
        assert printed == ["Next: In #docs, type /docs Do it, or press Try it."]
        await ana.say(CHANNEL, "no step at all")
        card = workspace.state.post(_notice(workspace, "t1/card"))
        await workspace.changes.wait_for(lambda: len(printed) == 2)
        await ana.say(CHANNEL, "More", thread_ts=card.ts)
        workspace.state.post(_notice(workspace, "t1/r0/completed", card.ts))
        await workspace.changes.wait_for(lambda: len(printed) == 3)
        workspace.state.post(_notice(workspace, "t2/r0/stopped"))
        await workspace.changes.wait_for(lambda: len(printed) == 4)
        assert printed[1:] == [
            f"Next: {PROPOSALS[TourStep.SEE_THE_END]}",
            "Next: Stop a job: type /docs Rest in #docs, and press Stop on its card.",
            f"Next: {PROPOSALS[TourStep.MENTION]}",
        ]
    finally:
        guiding.cancel()
        await workspace.stop()


def test_a_step_done_out_of_turn_is_not_proposed_again() -> None:
    assert next_step(frozenset({TourStep.ASK, TourStep.STEER})) is TourStep.SEE_THE_END
    assert next_step(frozenset(TourStep)) is None


def _notice(workspace: WorkspaceServer, key: str, thread_ts: str | None = None) -> Message:
    metadata = {"event_type": "pagehand_notice", "event_payload": {"key": key}}
    return Message(
        workspace.channels[CHANNEL].id,
        workspace.state.timestamps.next(),
        workspace.app.bot_user_id,
        "a notice",
        thread_ts=thread_ts,
        metadata=metadata,
    )
