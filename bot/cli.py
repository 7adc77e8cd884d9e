"""The commands: `pagehand --help` teaches them."""

import asyncio
import logging
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from pydantic import ValidationError

from bot import __version__, app, demo, log
from bot.config import Config, load, passwords
from bot.errors import ConfigError, PagehandError
from bot.jobserver import JobServer, JobServerError, JobServerSettings
from bot.jobserver.settings import PREFIX
from bot.store.backup import backup as backup_database
from bot.store.schema import migrate as migrate_database
from bot.store.store import open_store

logger = logging.getLogger(__name__)

FORGET_STEP = 200
Ports = tuple[int | None, int | None]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pagehand")
def main() -> None:
    """Hands documentation tasks from Slack to a background agent, and brings the pull request back.

    New here? `pagehand demo` shows the whole loop on this machine, with no account anywhere.
    """


@main.command()
def run() -> None:
    """Run the bot: the settings come from the environment, and the README lists them.

    \b
    Needed: SLACK_BOT_TOKEN, SLACK_APP_TOKEN (or SLACK_SIGNING_SECRET),
            JOB_API_URL, JOB_API_KEY, JOB_API_PROJECT
    """
    with _in_words():
        config = load(os.environ)
        log.set_up(config.log_level, config.secrets)
        asyncio.run(app.run(config))


@main.command("demo")
@click.option("--once", "prompt", metavar="PROMPT", help="Do the whole loop without a browser, print the thread, exit.")
@click.option(
    "--reply", "replies", multiple=True, metavar="TEXT", help="With --once: reply with this when the job ends."
)
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Keep the data there.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the page; a free one by default.")
@click.option("--job-server-port", type=click.IntRange(0, 65535), help="Port of the job server; a free one by default.")
@click.option("--limit", type=click.FloatRange(min=1), default=120.0, show_default=True, help="With --once: seconds.")
def show_demo(  # noqa: PLR0917 - click passes options by name
    prompt: str | None,
    replies: tuple[str, ...],
    keep: Path | None,
    port: int | None,
    job_server_port: int | None,
    limit: float,
) -> None:
    """Try it here: a Slack workspace, a job server with a small repository, and the bot, all on this machine.

    \b
    pagehand demo                               opens a workspace for your browser
    pagehand demo --once 'Fix the spelling'     does it all at once, and prints the thread
    """
    if replies and not prompt:
        raise click.UsageError("--reply goes with --once.")
    # What a platform sends to stop a process shall clean up as Ctrl-C does, also where a shell's job ignores that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    with _in_words(), _directory(keep) as directory:
        log.set_up("WARNING", [])
        ports = (port, job_server_port)
        asyncio.run(_once(directory, ports, prompt, replies, limit) if prompt else _browse(directory, ports))


@main.command()
def jobserver() -> None:
    """Run the self-hosted job server: it edits a git repository and opens pull requests.

    \b
    Needed: PAGEHAND_JOBSERVER_REPOSITORY (a directory or an address of a git repository)
            PAGEHAND_JOBSERVER_API_KEY    (the key that the bot sends: choose a long one)
    """
    with _in_words():
        settings = _job_server_settings()
        log.set_up("INFO", [settings.api_key.get_secret_value()])
        asyncio.run(JobServer(settings).serve_forever())


@main.command()
def migrate() -> None:
    """Bring the database of DATABASE_URL to this version's tables. Safe to repeat; `run` does it for a new database."""
    with _in_words():
        asyncio.run(migrate_database(_database_url()))
        click.echo("The database is up to date.")


@main.command()
@click.option("--user", metavar="U…", default="", help="A Slack user's id: jobs they started, and their replies.")
@click.option("--channel", metavar="C…", default="", help="A Slack channel's id: all jobs in it.")
@click.option("--yes", is_flag=True, help="Don't ask whether to go on.")
def forget(user: str, channel: str, *, yes: bool) -> None:
    """Delete what the database of DATABASE_URL has of a person or of a channel.

    The messages in Slack, the jobs at the job API and their pull requests stay as they are.
    """
    if bool(user) == bool(channel):
        raise click.UsageError("Give either --user or --channel.")
    if not yes:
        click.confirm("This deletes from Pagehand's database for good, unfinished jobs too. Go on?", abort=True)
    with _in_words():
        log.set_up("INFO", passwords(_database_url()))
        for table, count in asyncio.run(_forget(user, channel)).items():
            click.echo(f"{count} {table.replace('_', ' ')} deleted")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Copy the SQLite database of DATABASE_URL to FILE, while the bot runs.

    To restore: stop the bot, put the copy in the database's place, start the bot. What was open when the copy was made
    is looked up, or asked about, before it is said or sent again. For PostgreSQL, use pg_dump.
    """
    with _in_words():
        asyncio.run(backup_database(_database_url(), file))
        click.echo(f"Copied to {file}.")


async def _forget(user: str, channel: str) -> Counter[str]:
    """Deletes in steps till nothing is left; returns how many rows of each table. The log has that too, not whose."""
    store, deleted = await open_store(_database_url()), Counter[str]()
    try:
        while True:
            step = await store.transact(lambda tx: tx.forget(person_id=user, channel_id=channel, limit=FORGET_STEP))
            deleted.update(step)
            if not any(step.values()):
                return deleted
    finally:
        counts = ", ".join(f"{count} {table.replace('_', ' ')}" for table, count in deleted.items())
        logger.info("forgotten: %s", counts or "nothing")
        await store.close()


def _database_url() -> str:
    return os.environ.get("DATABASE_URL", "") or Config.model_fields["database_url"].default.get_secret_value()


async def _browse(directory: Path, ports: Ports) -> None:
    async with demo.running(directory, *ports) as shown:
        click.echo(f"\nOpen  {shown.url}\n")
        click.echo(f"In #{demo.CHANNEL}, type:\n\n    /docs {demo.PROMPT}\n")
        click.echo(
            "Then reply in the card's thread to steer the job, and click the pull request. Ctrl-C ends the demo."
        )
        with suppress(asyncio.CancelledError):  # Ctrl-C is how a demo is to end
            await asyncio.Event().wait()
    click.echo("\nEnded.")


async def _once(directory: Path, ports: Ports, prompt: str, replies: tuple[str, ...], limit: float) -> None:
    async with demo.running(directory, *ports) as shown:
        link = await demo.once(shown, prompt, replies, click.echo, limit=limit)
        click.echo(f"\nPull request: {link}")


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="pagehand-demo-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@contextmanager
def _in_words() -> Iterator[None]:
    """Ends with a sentence instead of a traceback: 2 for settings, 130 for Ctrl-C, 1 for anything else expected."""
    try:
        yield
    except ConfigError as error:
        click.echo("Pagehand can't start. Please set in the environment:\n", err=True)
        for fault in error.faults:
            click.echo(f"  {fault}", err=True)
        sys.exit(2)
    except (PagehandError, JobServerError, OSError) as error:
        click.echo(f"Pagehand stopped: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        click.echo("\nInterrupted.", err=True)
        sys.exit(128 + signal.SIGINT)


def _job_server_settings() -> JobServerSettings:
    try:
        return JobServerSettings()
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        faults = [_job_server_fault(str(fault["loc"][0]) if fault["loc"] else "", fault["msg"]) for fault in found]
        if (
            any(fault["loc"] for fault in found)
            and not {f"{PREFIX}API_KEY", f"{PREFIX}API_KEY_FILE"} & os.environ.keys()
        ):
            faults.append(_job_server_fault("api_key", "Field required"))
        raise ConfigError(faults) from None


def _job_server_fault(name: str, message: str) -> str:
    message = message.removeprefix("Value error, ")
    if not name:
        return message
    what = "is missing" if message == "Field required" else message
    return f"{PREFIX}{name.upper()} {what}: {JobServerSettings.model_fields[name].description}"
