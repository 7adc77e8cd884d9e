"""`pagehand demo` shows the whole loop on one machine, in a browser or as text."""

import asyncio
import os
import signal
import sys
import tempfile
import termios
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from bot.cli.demo_services import CHANNEL, REVIEWER, Demo, DemoError, agent_offer, running_demo
from bot.cli.terminal import typed_line
from bot.domain.messages import unescape
from bot.domain.threads.thread import Thread
from bot.jobapi.models import Mode
from bot.jobserver.errors import JobServerError
from bot.notices.said import ButtonId
from bot.runtime.logging import configure_logging
from bot.runtime.process_signals import ending_signals
from bot.runtime.text import without_misleading
from bot.slack.rendering.blocks import SEND_EXAMPLES
from bot.workspace.model.entities import Message
from bot.workspace.server import WorkspaceServer


class Tour(NamedTuple):
    """What a visitor can ask for: a task, a follow-up to it, and a task that leaves time to stop it."""

    task: str
    follow_up: str
    slow_task: str


TOUR = Tour(
    'Replace "colour" with "color"',
    "Also add a page called FAQ with the text: Ask us anything.",
    "Fix the typos slowly",
)
AGENT_TOUR = Tour("Make the intro of the README shorter", "Shorter still", "Rewrite all guides")
_LIMIT, _AGENT_LIMIT = 120.0, 3600.0
"""Seconds until the whole loop gives up."""
_PATIENCE = 5.0
"""Seconds after the first signal in which others are ignored, because they would disturb the cleanup."""


def browse(port: int | None, agent: str) -> None:
    """Runs the demo for a browser until Ctrl-C. Raises PagehandError. `agent` may be empty."""
    with _prepared() as directory:
        _run(_browse(directory, port, agent))


def run_once(port: int | None, agent: str, prompt: str, replies: tuple[str, ...]) -> None:
    """Runs the whole loop once, and prints the thread. Raises DemoError, PagehandError."""
    with _prepared() as directory:
        _run(_run_once(directory, port, agent, prompt, replies))


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Runs the demo until it ends or a signal ends it: SIGTERM and SIGHUP clean up like Ctrl-C, even in a background
    job of a shell, which ignores SIGINT. Raises KeyboardInterrupt.
    """
    try:
        asyncio.run(_cancelled_by_signal(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in ending_signals():
            signal.signal(number, signal.SIG_IGN)  # it ends now


async def _cancelled_by_signal(work: Coroutine[Any, Any, None]) -> None:
    loop, task, cancelled_at = asyncio.get_running_loop(), asyncio.current_task(), list[float]()

    def cancel(*_: object) -> None:
        if not cancelled_at and task is not None:
            cancelled_at.append(loop.time())
            loop.call_soon_threadsafe(task.cancel)  # which wakes the loop, too
        elif cancelled_at and loop.time() - cancelled_at[0] > _PATIENCE:
            raise KeyboardInterrupt

    for number in ending_signals():
        signal.signal(number, cancel)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending_signals())
    await work


@contextmanager
def _prepared() -> Iterator[Path]:
    """Prepares the process for a demo; yields the directory for its data, which is deleted at the end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())  # until they can clean up
    configure_logging("WARNING", [])
    try:
        with tempfile.TemporaryDirectory(prefix="pagehand-demo-", ignore_cleanup_errors=True) as directory:
            yield Path(directory)
    except JobServerError as error:
        raise DemoError(str(error)) from None


async def _browse(directory: Path, port: int | None, agent: str) -> None:
    async with running_demo(directory, port, agent) as demo:
        click.echo(f"\nOpen  {demo.url}\n")
        if key := demo.merge_key:
            click.echo(f"To merge it, press *Merge* on its page; your name there is {REVIEWER}, your key {key}")
        else:
            click.echo(f"The demo's editor knows four things; ask it: What can you do?\n{agent_offer()}")
        click.echo("\nTry the steps below; Ctrl-C ends the demo.\n")
        tour = AGENT_TOUR if agent else TOUR
        with suppress(asyncio.CancelledError):  # Ctrl-C is the normal end of a demo
            await guide(demo.workspace, tour, click.echo)
            await asyncio.Event().wait()
    click.echo("\nEnded.")


async def _run_once(directory: Path, port: int | None, agent: str, prompt: str, replies: tuple[str, ...]) -> None:
    async with running_demo(directory, port, agent) as demo:
        link = await run_scenario(demo, prompt, replies, click.echo, limit=_AGENT_LIMIT if agent else _LIMIT)
        if not _is_at_terminal():
            click.echo(f"\nThe demo ends, and with it the page of this:\nPull request: {link}")
            return
        click.echo(f"\nPull request: {link}\nIts page stays until you press Enter.")
        with suppress(asyncio.CancelledError):  # Ctrl-C ends it as well
            termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before
            await typed_line()


def _is_at_terminal() -> bool:
    """Returns whether a person sees the output and can press Enter: not in a pipe, nor in the background."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return at_terminal and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


class TourStep(Enum):
    """Something that a visitor does or sees, in the order in which they are proposed, each in these words."""

    ASK = "In #{channel}, type `/docs {task}`, or press Try it."
    SEE_THE_END = "Open the card's thread: the pull request comes there."
    REVIEW = "Open the pull request's page. Press Failed, then Request changes: the thread soon reports both."
    STEER = "Reply in the card's thread to change the pull request, such as `{follow_up}`"
    MERGE = "When the thread says Done, reload the page and press Merge: the card and the thread report it."
    STOP = "Stop a job: type `/docs {slow_task}` in #{channel}, and press Stop on its card."
    MENTION = "Mention @pagehand in a reply to any message: the agent gets that thread, too."
    BE_REFUSED = "Act as Gia, a guest, and ask for something. She is refused, and told why."


END = "That's the tour. Begin a task with `plan:` to see a plan first, open Pagehand's Home, or hand over a message."

_SHOWN_BY = {
    "card": (TourStep.ASK,),
    "completed": (TourStep.SEE_THE_END,),
    "failed": (TourStep.SEE_THE_END,),
    "stopped": (TourStep.SEE_THE_END, TourStep.STOP),
    "changes": (TourStep.REVIEW,),
    "merged": (TourStep.REVIEW, TourStep.MERGE),
}
"""The steps that a notice shows to be done, by a part of its key."""
LONGEST_WAIT = 30 * 86_400.0
"""Seconds; nobody looks at a demo for so long, and a scenario has a limit of its own."""


async def guide(workspace: WorkspaceServer, tour: Tour, echo: Callable[[str], None]) -> None:
    """Lets Pagehand introduce itself in the channel, and tells the next step whenever the one before is done."""
    bot = workspace.app.bot_user_id
    workspace.channels[CHANNEL].members.remove(bot)  # it is a member from the start, which is no invitation
    await workspace.people["ana"].invite(CHANNEL, bot)
    for step in TourStep:
        if not is_done(workspace, step):
            _tell(workspace, f"Next: {step.value.format(channel=CHANNEL, **tour._asdict())}", echo)
            await workspace.changes.wait_for(partial(is_done, workspace, step), LONGEST_WAIT)
    _tell(workspace, END, echo)


def _tell(workspace: WorkspaceServer, text: str, echo: Callable[[str], None]) -> None:
    workspace.show_tip(text)
    echo(text.replace("`", ""))


def is_done(workspace: WorkspaceServer, step: TourStep) -> bool:
    """Returns whether a step has been done in the workspace."""
    return step in _steps_done(workspace)


def _steps_done(workspace: WorkspaceServer) -> Iterator[TourStep]:
    state, bot = workspace.state, workspace.app.bot_user_id
    for channel in state.channels.values():
        messages = list(state.conversation(channel))
        cards = {message.ts for message in messages if notice_key(message).endswith("/card")}
        for message in messages:
            for part in notice_key(message).split("/"):
                yield from _SHOWN_BY.get(part, ())
            if message.user == bot:
                continue
            if message.thread_ts in cards:
                yield TourStep.STEER
            if f"<@{bot}>" in message.text and message.subtype is None:
                yield TourStep.MENTION
        for person in state.users.values():
            if any("No job was started" in message.text for message in state.ephemerals(channel, person.id)):
                yield TourStep.BE_REFUSED


Echo = Callable[[str], None]
"""Prints a line."""


async def run_scenario(demo: Demo, prompt: str, replies: tuple[str, ...], echo: Echo, *, limit: float) -> str:
    """Runs the whole loop as Ana and returns the pull request's link, or why there is none. A plan is started, and each
    reply follows the end of a round.

    Raises DemoError if there is no pull request within `limit` seconds.
    """
    printer = ThreadPrinter(demo.workspace, echo)
    person = demo.workspace.people["ana"]
    echo(f"#{CHANNEL}")
    echo(f"  Ana Silva: /docs {prompt}")
    answer = await person.command(CHANNEL, "/docs", prompt)
    if answer.text:
        echo(f"  (only Ana sees) {unescape(answer.text)}")
    try:
        async with asyncio.timeout(limit):
            ts = await demo.workspace.changes.wait_for(lambda: _newest_card(demo.workspace), limit)
            rounds, thread = 1, await _end_of_round(demo, ts, 0, printer)
            if plan := _plan_to_start(demo.workspace, ts):
                echo("    (Ana Silva presses Start)")
                await person.press(CHANNEL, plan, ButtonId.ACCEPT_PROPOSAL)
                rounds, thread = 2, await _end_of_round(demo, ts, 1, printer)
            for number, reply in enumerate(replies, start=rounds):
                await person.say(CHANNEL, reply, thread_ts=ts)
                thread = await _end_of_round(demo, ts, number, printer)
    except TimeoutError:
        raise DemoError(f"There was no pull request within {limit:g} s.") from None
    link = thread.state.job.pr_link if thread.state.job else None
    if not link and thread.mode is not Mode.ASK:
        raise DemoError("The job ended without a pull request.")
    return link or "none, as it was only asked for an answer"


class ThreadPrinter:
    """Prints a thread as text: each message once, and again whenever it changes."""

    def __init__(self, workspace: WorkspaceServer, echo: Echo) -> None:
        self._workspace = workspace
        self._echo = echo
        self._printed: dict[str, str] = {}

    def print(self, ts: str) -> None:
        """Prints what is new or changed in the thread."""
        for message in self._workspace.channels.thread(CHANNEL, ts):
            offered = "".join(f"\nYou could try: {prompt}" for prompt in _examples(message))
            text = f"{self._read(message.text)}{''.join(f'  :{name}:' for name in message.reactions)}{offered}"
            if self._printed.get(message.ts) != text:
                indent = "  " if message.ts == ts else "    "
                again = " (changed)" if message.ts in self._printed else ""
                self._echo(f"{indent}{self._author(message)}{again}: {text.replace(chr(10), chr(10) + indent + '  ')}")
                self._printed[message.ts] = text

    def _read(self, text: str) -> str:
        for person in self._workspace.state.users.values():
            text = text.replace(f"<@{person.id}>", f"@{person.real_name}")
        return without_misleading(unescape(text))

    def _author(self, message: Message) -> str:
        return self._workspace.state.users[message.user].real_name


def _examples(message: Message) -> list[str]:
    """Returns the texts of the buttons that send a prompt."""
    elements = (element for block in message.blocks or () for element in block.get("elements", ()))
    return [element["text"]["text"] for element in elements if element.get("action_id") in SEND_EXAMPLES]


async def _end_of_round(demo: Demo, ts: str, number: int, printer: ThreadPrinter) -> Thread:
    """Waits until the thread announces the end of a round: 0 is the first, which can also end with a plan; n is the one
    after the nth follow-up.
    """
    ends = tuple(f"/r{number}/{status}" for status in ("completed", "failed", "archived"))

    def has_ended() -> bool:
        printer.print(ts)
        keys = [notice_key(message) for message in demo.workspace.channels.thread(CHANNEL, ts)]
        has_plan = number == 0 and _plan_to_start(demo.workspace, ts)
        return bool(has_plan) or any(key.endswith((*ends, "/refused/1", "/unsure/1")) for key in keys)

    await demo.workspace.changes.wait_for(has_ended, LONGEST_WAIT)
    channel = demo.workspace.channels[CHANNEL]
    thread = await demo.edges.store.transact(lambda tx: tx.threads.find_by_card(channel.id, ts))
    if thread is None:
        raise DemoError("The database has no such thread.")
    return thread


def _plan_to_start(workspace: WorkspaceServer, ts: str) -> str:
    """Returns the `ts` of a plan that waits in a thread; empty if there is none."""
    for message in workspace.channels.thread(CHANNEL, ts):
        elements = (element for block in message.blocks or () for element in block.get("elements", ()))
        if any(element.get("action_id") == ButtonId.ACCEPT_PROPOSAL for element in elements):
            return message.ts
    return ""


def _newest_card(workspace: WorkspaceServer) -> str:
    """Returns the `ts` of the newest card; empty if there is none."""
    cards = [message.ts for message in workspace.channels.messages(CHANNEL) if notice_key(message).endswith("/card")]
    return cards[-1] if cards else ""


def notice_key(message: Message) -> str:
    """Returns the key of a message's notice; empty if the message is not Pagehand's."""
    payload = (message.metadata or {}).get("event_payload", {})
    return str(payload.get("key", ""))
