"""`pagehand demo`."""

import asyncio
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from bot.cli.demo_scenario import run_scenario
from bot.cli.demo_services import CHANNEL, DemoError, Ports, running_demo
from bot.jobserver.errors import JobServerError
from bot.runtime.logging import configure_logging

EXAMPLE = 'Replace "colour" with "color" in the guides'


def browse(keep: str | None, ports: Ports) -> None:
    """Runs the demo for a browser, until Ctrl-C; its data is in `keep`, or lost. Raises PagehandError."""
    with _prepared(keep) as directory:
        asyncio.run(_browse(directory, ports))


def run_once(keep: str | None, ports: Ports, prompt: str, replies: tuple[str, ...], *, limit: float) -> None:
    """Does the whole loop within `limit` seconds, and prints it. Raises DemoError, PagehandError."""
    with _prepared(keep) as directory:
        asyncio.run(_run_once(directory, ports, prompt, replies, limit))


@contextmanager
def _prepared(keep: str | None) -> Iterator[Path]:
    """Prepares the process for a demo; gives the directory for its data."""
    # What a platform sends to stop a process shall clean up as Ctrl-C does, also where a shell's job ignores that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    configure_logging("WARNING", [])
    try:
        with _data_directory(keep) as directory:
            yield directory
    except JobServerError as error:
        raise DemoError(str(error)) from None


@contextmanager
def _data_directory(keep: str | None) -> Iterator[Path]:
    if keep is not None:
        kept = Path(keep).resolve()
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="pagehand-demo-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


async def _browse(directory: Path, ports: Ports) -> None:
    async with running_demo(directory, ports) as demo:
        click.echo(f"\nOpen  {demo.url}\n")
        click.echo(f"In #{CHANNEL}, type:\n\n    /docs {EXAMPLE}\n")
        click.echo("Then reply in the card's thread to steer the job, and click the pull request.\n")
        click.echo(
            "Or mention @Pagehand in a thread, hand over a message from its menu, open Pagehand's Home; or act as"
        )
        click.echo("Gia, who is a guest, to see a refusal. Ctrl-C ends the demo.")
        with suppress(asyncio.CancelledError):  # Ctrl-C is how a demo is to end
            await asyncio.Event().wait()
    click.echo("\nEnded.")


async def _run_once(directory: Path, ports: Ports, prompt: str, replies: tuple[str, ...], limit: float) -> None:
    async with running_demo(directory, ports) as demo:
        link = await run_scenario(demo, prompt, replies, click.echo, limit=limit)
        click.echo(f"\nPull request: {link}")
