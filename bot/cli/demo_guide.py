"""What to try next in a demo: on its page and in the terminal, as soon as a step is done in the workspace."""

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from bot.cli.demo_scenario import notice_key
from bot.cli.demo_services import CHANNEL
from bot.workspace.server import WorkspaceServer


class Tour(NamedTuple):
    """What a visitor can ask for: a task, a follow-up to it, and a task that leaves time to stop it."""

    task: str
    follow_up: str
    slow_task: str


class TourStep(Enum):
    """Something that a visitor does or sees, in the order in which they are proposed."""

    ASK = auto()
    SEE_THE_END = auto()
    STEER = auto()
    STOP = auto()
    MENTION = auto()
    BE_REFUSED = auto()


PROPOSALS = {
    TourStep.ASK: "In #{channel}, type `/docs {task}`, or press Try it.",
    TourStep.SEE_THE_END: "Open the card's thread: the pull request comes there.",
    TourStep.STEER: "Reply in the card's thread to change the pull request, such as `{follow_up}`",
    TourStep.STOP: "Stop a job: type `/docs {slow_task}` in #{channel}, and press Stop on its card.",
    TourStep.MENTION: "Mention @pagehand in somebody's thread: the agent gets the thread as well.",
    TourStep.BE_REFUSED: "Act as Gia, a guest, and ask for something. She is refused, and told why.",
}
END = "That's the tour. Open Pagehand's Home to see your jobs, or hand over a message from its menu."

_SHOWN_BY = {
    "card": (TourStep.ASK,),
    "completed": (TourStep.SEE_THE_END,),
    "failed": (TourStep.SEE_THE_END,),
    "stopped": (TourStep.SEE_THE_END, TourStep.STOP),
}
"""The steps that a notice shows to be done, by the end of its key."""
_LONGEST_WAIT = 30 * 86_400.0
"""Seconds; nobody looks at a demo for so long."""


def next_step(done: frozenset[TourStep]) -> TourStep | None:
    """Returns the first step that is not done; None if all are."""
    return next((step for step in TourStep if step not in done), None)


def steps_done(workspace: WorkspaceServer) -> frozenset[TourStep]:
    """Returns what has been done in the workspace so far."""
    return frozenset(_steps(workspace))


async def guide(workspace: WorkspaceServer, tour: Tour, echo: Callable[[str], None]) -> None:
    """Lets Pagehand introduce itself in the channel, and tells the next step whenever the one before is done."""
    bot = workspace.app.bot_user_id
    workspace.channels[CHANNEL].members.remove(bot)  # it is a member from the start, which is no invitation
    await workspace.people["ana"].invite(CHANNEL, bot)
    done = frozenset[TourStep]()
    while (step := next_step(done)) is not None:
        _tell(workspace, f"Next: {PROPOSALS[step].format(channel=CHANNEL, **tour._asdict())}", echo)
        done = await workspace.changes.wait_for(partial(_once_done, workspace, step), _LONGEST_WAIT)
    _tell(workspace, END, echo)


def _tell(workspace: WorkspaceServer, text: str, echo: Callable[[str], None]) -> None:
    workspace.show_tip(text)
    echo(text.replace("`", ""))


def _once_done(workspace: WorkspaceServer, step: TourStep) -> frozenset[TourStep]:
    """Returns all steps that are done once this one is; empty until then."""
    done = steps_done(workspace)
    return done if step in done else frozenset()


def _steps(workspace: WorkspaceServer) -> Iterator[TourStep]:
    state, bot = workspace.state, workspace.app.bot_user_id
    for channel in state.channels.values():
        messages = list(state.conversation(channel))
        cards = {message.ts for message in messages if notice_key(message).endswith("/card")}
        for message in messages:
            yield from _SHOWN_BY.get(notice_key(message).rpartition("/")[2], ())
            if message.user == bot:
                continue
            if message.thread_ts in cards:
                yield TourStep.STEER
            if f"<@{bot}>" in message.text and message.subtype is None:
                yield TourStep.MENTION
        for person in state.users.values():
            if any("No job was started" in message.text for message in state.ephemerals(channel, person.id)):
                yield TourStep.BE_REFUSED
