"""`pagehand demo --once`: a person starts and steers a job, and the thread is printed as it grows."""

import asyncio
from collections.abc import Callable

from bot.cli.demo_services import CHANNEL, Demo, DemoError
from bot.domain.context.message_text import unescape
from bot.domain.threads.thread import Thread
from bot.runtime.text import without_misleading
from bot.slack.rendering.blocks import SEND_EXAMPLES
from bot.workspace.model.entities import Message
from bot.workspace.server import WorkspaceServer

Echo = Callable[[str], None]
"""Prints a line."""

LONGEST_WAIT = 3600.0
"""Seconds; the scenario's own limit is shorter."""


async def run_scenario(demo: Demo, prompt: str, replies: tuple[str, ...], echo: Echo, *, limit: float) -> str:
    """Runs the whole loop as Ana and returns the pull request's link. Each reply follows the end of a round.

    Raises DemoError if there is no pull request within `limit` seconds.
    """
    printer, newest_before = ThreadPrinter(demo.workspace, echo), _newest_card(demo.workspace)
    person = demo.workspace.people["ana"]
    echo(f"#{CHANNEL}")
    echo(f"  Ana Silva: /docs {prompt}")
    answer = await person.command(CHANNEL, "/docs", prompt)
    if answer.text:
        echo(f"  (only Ana sees) {unescape(answer.text)}")
    try:
        async with asyncio.timeout(limit):
            ts = await demo.workspace.changes.wait_for(lambda: _newest_card(demo.workspace, since=newest_before), limit)
            thread = await _end_of_round(demo, ts, 0, printer)
            for number, reply in enumerate(replies, start=1):
                await person.say(CHANNEL, reply, thread_ts=ts)
                thread = await _end_of_round(demo, ts, number, printer)
    except TimeoutError:
        raise DemoError(f"There was no pull request within {limit:g} s. Use --limit to allow more time.") from None
    link = thread.state.job.pr_link if thread.state.job else None
    if not link:
        raise DemoError("The job ended without a pull request.")
    return link


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
    """Waits until the thread announces the end of a round: 0 is the first, n the one after the nth follow-up."""
    ends = tuple(f"/r{number}/{status}" for status in ("completed", "failed", "archived"))

    def has_ended() -> bool:
        printer.print(ts)
        keys = [notice_key(message) for message in demo.workspace.channels.thread(CHANNEL, ts)]
        return any(key.endswith((*ends, "/refused/1", "/unsure/1")) for key in keys)

    await demo.workspace.changes.wait_for(has_ended, LONGEST_WAIT)
    channel = demo.workspace.channels[CHANNEL]
    thread = await demo.edges.store.transact(lambda tx: tx.threads.find_by_card(channel.id, ts))
    if thread is None:
        raise DemoError("The database has no such thread.")
    return thread


def _newest_card(workspace: WorkspaceServer, *, since: str = "") -> str:
    """Returns the `ts` of the newest card; empty if there is none, or it is still `since`."""
    cards = [message.ts for message in workspace.channels.messages(CHANNEL) if notice_key(message).endswith("/card")]
    return cards[-1] if cards and cards[-1] != since else ""


def notice_key(message: Message) -> str:
    """Returns the key of a message's notice; empty if the message is not Pagehand's."""
    payload = (message.metadata or {}).get("event_payload", {})
    return str(payload.get("key", ""))
