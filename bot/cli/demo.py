"""`pagehand demo` shows the whole loop on one machine, in a browser or as text."""

import asyncio
import os
import signal
import sys
import tempfile
import termios
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from bot.cli.demo_guide import Tour, guide
from bot.cli.demo_scenario import run_scenario
from bot.cli.demo_services import REVIEWER, Demo, DemoError, Ports, agent_offer, running_demo
from bot.jobserver.errors import JobServerError
from bot.runtime.logging import configure_logging
from bot.runtime.process_signals import ending_signals

TOUR = Tour(
    'Replace "colour" with "color"',
    "Also add a page called FAQ with the text: Ask us anything.",
    "Fix the typos slowly",
)
AGENT_TOUR = Tour("Make the intro of the README shorter", "Shorter still", "Rewrite all guides")
_PATIENCE = 5.0
"""Seconds after the first signal in which others are ignored, because they would disturb the cleanup."""


def browse(ports: Ports, agent: str) -> None:
    """Runs the demo for a browser until Ctrl-C. Raises PagehandError. `agent` may be empty."""
    with _prepared() as directory:
        _run(_browse(directory, ports, agent))


def run_once(ports: Ports, agent: str, prompt: str, replies: tuple[str, ...], *, limit: float) -> None:
    """Runs the whole loop once, within `limit` seconds, and prints the thread. Raises DemoError, PagehandError."""
    with _prepared() as directory:
        _run(_run_once(directory, ports, agent, prompt, replies, limit=limit))


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


async def _browse(directory: Path, ports: Ports, agent: str) -> None:
    async with running_demo(directory, ports, agent) as demo:
        click.echo(f"\nOpen  {demo.url}\n")
        click.echo(_editor_hint(demo))
        click.echo("Try the steps below; Ctrl-C ends the demo.\n")
        tour = AGENT_TOUR if agent else TOUR
        with suppress(asyncio.CancelledError):  # Ctrl-C is the normal end of a demo
            await guide(demo.workspace, tour, click.echo)
            await asyncio.Event().wait()
    click.echo("\nEnded.")


def _editor_hint(demo: Demo) -> str:
    if demo.merge_key:
        return f"To merge it, press *Merge* on its page; your name there is {REVIEWER}, your key {demo.merge_key}\n"
    return f"The demo's editor knows four things; ask it: What can you do?\n{agent_offer()}\n"


async def _run_once(
    directory: Path, ports: Ports, agent: str, prompt: str, replies: tuple[str, ...], *, limit: float
) -> None:
    async with running_demo(directory, ports, agent) as demo:
        link = await run_scenario(demo, prompt, replies, click.echo, limit=limit)
        if not _is_at_terminal():
            click.echo(f"\nThe demo ends, and with it the page of this:\nPull request: {link}")
            return
        click.echo(f"\nPull request: {link}\nIts page stays until you press Enter.")
        with suppress(asyncio.CancelledError):  # Ctrl-C ends it as well
            await _enter()


def _is_at_terminal() -> bool:
    """Returns whether a person sees the output and can press Enter: not in a pipe, nor in the background."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return at_terminal and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


async def _enter() -> None:
    """Waits for a line, or the end of the input, at the terminal."""
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before
    loop.add_reader(sys.stdin, typed.set)
    try:
        await typed.wait()
        sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin)
