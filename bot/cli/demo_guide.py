"""What to try next in a demo: printed while the page is open, as soon as a step is done in the workspace."""

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from bot.cli.demo_scenario import notice_key
from bot.cli.demo_services import CHANNEL
from bot.workspace.server import WorkspaceServer


class Tour(NamedTuple):
    """What a visitor can ask for: a task, and a follow-up to it."""

    task: str
    follow_up: str


class TourStep(Enum):
    """Something that a visitor does or sees, in the order in which they are proposed."""

    ASK = auto()
    SEE_THE_END = auto()
    STEER = auto()
    MENTION = auto()
    BE_REFUSED = auto()


PROPOSALS = {
    TourStep.ASK: "In #{channel}, type:  /docs {task}",
    TourStep.SEE_THE_END: "Open the card's thread: the pull request comes there.",
    TourStep.STEER: "Reply in the card's thread to change the pull request, such as:  {follow_up}",
    TourStep.MENTION: "Mention @pagehand in somebody's thread: the agent gets the thread as well.",
    TourStep.BE_REFUSED: "Act as Gia, a guest, and ask for something. She is refused, and told why.",
}
END = "That's the tour. Open Pagehand's Home to see your jobs, or hand over a message from its menu."

_LONGEST_WAIT = 30 * 86_400.0
"""Seconds; nobody looks at a demo for so long."""


def next_step(done: frozenset[TourStep]) -> TourStep | None:
    """Returns the first step that is not done; None if all are."""
    return next((step for step in TourStep if step not in done), None)


def steps_done(workspace: WorkspaceServer) -> frozenset[TourStep]:
    """Returns what has been done in the workspace so far."""
    return frozenset(_steps(workspace))


async def guide(workspace: WorkspaceServer, tour: Tour, echo: Callable[[str], None]) -> None:
    """Prints the next step whenever the one before is done, until all are."""
    words, done = {"channel": CHANNEL, "task": tour.task, "follow_up": tour.follow_up}, frozenset[TourStep]()
    while (step := next_step(done)) is not None:
        echo(f"Next: {PROPOSALS[step].format(**words)}")
        done = await workspace.changes.wait_for(partial(_once_done, workspace, step), _LONGEST_WAIT)
    echo(END)


def _once_done(workspace: WorkspaceServer, step: TourStep) -> frozenset[TourStep]:
    """Returns all steps that are done once this one is; empty until then."""
    done = steps_done(workspace)
    return done if step in done else frozenset()


def _steps(workspace: WorkspaceServer) -> Iterator[TourStep]:
    state, bot = workspace.state, workspace.app.bot_user_id
    for channel in state.channels.values():
        messages = list(state.conversation(channel))
        cards = {message.ts for message in messages if notice_key(message).endswith("/card")}
        if cards:
            yield TourStep.ASK
        for message in messages:
            if notice_key(message).endswith(("/completed", "/failed", "/stopped")):
                yield TourStep.SEE_THE_END
            if message.user == bot:
                continue
            if message.thread_ts in cards:
                yield TourStep.STEER
            if f"<@{bot}>" in message.text and message.subtype is None:
                yield TourStep.MENTION
        for person in state.users.values():
            if any("No job was started" in message.text for message in state.ephemerals(channel, person.id)):
                yield TourStep.BE_REFUSED
