"""The commands and what each of them takes: `pagehand --help` teaches them.

What a command does is in a module of its own, which is imported when the command is called: `--help`, `--version` and
a slip in the options are answered at once. So this module and what it imports at its head stay light.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Literal, NoReturn

import click

from bot import __version__
from bot.errors import ConfigError, PagehandError

Extra = Literal["jobserver", "demo"]

_OF_JOB_SERVER = ("acp", "gidgethub", "h11", "jinja2", "mdit_py_plugins", "rapidfuzz", "yaml")
MODULES: Mapping[Extra, tuple[str, ...]] = {"jobserver": _OF_JOB_SERVER, "demo": _OF_JOB_SERVER}
"""What is imported of each extra. (The job server looks for the program `typos` when it is asked to fix spelling.)"""


def require_extra(command: Extra) -> None:
    """Ends the process with 2, and a sentence, where packages of the command's extra are missing."""
    if any(find_spec(module) is None for module in MODULES[command]):
        missing = f"`pagehand {command}` needs packages that are not installed"
        click.echo(f"{missing}: in Pagehand's directory, run pip install '.[{command}]'.", err=True)
        sys.exit(2)


@contextmanager
def exit_on_error(misconfigured: str, failed: str) -> Iterator[None]:
    """Ends the process with 2 for settings, 130 for Ctrl-C, and 1 for anything else that is expected.

    `misconfigured` begins the list of what is wrong with the settings, `failed` the sentence for all else.
    """
    if find_spec("fcntl") is None:
        _exit("Pagehand needs Linux or macOS. On Windows, run it in WSL: https://aka.ms/wsl", 1)
    try:
        yield
    except ConfigError as error:
        _exit("\n".join([f"{misconfigured}. Please set in the environment:\n", *(f"  {f}" for f in error.faults)]), 2)
    except PagehandError as error:
        _exit(f"{failed}: {error}", 1)
    except OSError as error:
        named = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        _exit(f"{failed}: {named}.", 1)
    except KeyboardInterrupt:
        _exit("\nInterrupted.", 128 + signal.SIGINT)


def _exit(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)


PORT = click.IntRange(0, 65535)


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
    _run_bot("run")


@main.command()
def web() -> None:
    """Run the part that receives Slack's signed requests at PORT, beside `worker`; the settings are those of `run`.

    It records and acknowledges, and `worker` does the work: any number of each, on one PostgreSQL. With
    SLACK_APP_TOKEN (Socket Mode) it is the worker that receives, and this only shows the health at PORT.
    """
    _run_bot("web")


@main.command()
def worker() -> None:
    """Run the part that does the work, beside `web`; the settings are those of `run`.

    With SLACK_APP_TOKEN (Socket Mode) it also receives from Slack, over two connections; Slack allows an app ten.
    """
    _run_bot("worker")


@main.command()
@click.option("--once", "prompt", metavar="PROMPT", help="Do the whole loop without a browser, print the thread, exit.")
@click.option(
    "--reply", "replies", multiple=True, metavar="TEXT", help="With --once: reply with this when the job ends."
)
@click.option(
    "--agent", default="", metavar="AGENT", help="A coding agent that you have, with your key: claude, codex, …"
)
@click.option("--keep", type=click.Path(file_okay=False), metavar="DIR", help="Keep the data there.")
@click.option("--port", type=PORT, help="Port of the page; a free one by default.")
@click.option("--job-server-port", type=PORT, help="Port of the job server; a free one by default.")
@click.option("--limit", type=click.FloatRange(min=1), default=120.0, show_default=True, help="With --once: seconds.")
def demo(  # noqa: PLR0917 - click passes options by name
    prompt: str | None,
    replies: tuple[str, ...],
    agent: str,
    keep: str | None,
    port: int | None,
    job_server_port: int | None,
    limit: float,
) -> None:
    """Try it here: a Slack workspace, a job server with a small repository, and the bot, all on this machine.

    \b
    pagehand demo                               opens a workspace for your browser
    pagehand demo --once 'Fix the spelling'     does it all at once, and prints the thread
    pagehand demo --agent claude                with an agent in the sandbox: claude, codex, gemini, opencode, goose
    """
    if replies and prompt is None:
        raise click.UsageError("--reply goes with --once.")
    if prompt is not None and not prompt.strip():
        raise click.UsageError("--once needs a task, such as --once 'Fix the spelling'.")
    with exit_on_error("The demo cannot start", "Pagehand stopped"):
        require_extra("demo")
        from bot.cli.demo import browse, run_once
        from bot.cli.demo_services import Ports

        ports = Ports(port, job_server_port)
        if prompt is not None:
            run_once(keep, ports, agent, prompt, replies, limit=limit)
        else:
            browse(keep, ports, agent)


@main.command()
@click.option("--check", is_flag=True, help="Say whether the agent answers and GitHub lets us in, and exit.")
def jobserver(*, check: bool) -> None:
    """Run the self-hosted job server: it edits a git repository and opens pull requests.

    \b
    Needed: PAGEHAND_JOBSERVER_REPOSITORY (a directory or an address of a git repository)
            PAGEHAND_JOBSERVER_API_KEY    (the key that the bot sends: choose a long one)
    """
    with exit_on_error("The job server cannot start", "The job server stopped"):
        require_extra("jobserver")
        from bot.cli.jobserver import check_job_server, run_job_server

        if check:
            sys.exit(check_job_server(os.environ))
        run_job_server(os.environ)


@main.command()
def migrate() -> None:
    """Bring the database of DATABASE_URL to this version's tables. Safe to repeat; `run` does it for a new database."""
    with exit_on_error("The database cannot be brought up to date", "The database was not brought up to date"):
        from bot.cli.migrate import migrate_database

        migrate_database(os.environ)
        click.echo("The database is up to date.")


@main.command()
@click.option("--user", metavar="U…", default="", help="A Slack user's id: jobs they started, and their replies.")
@click.option("--channel", metavar="C…", default="", help="A Slack channel's id: all jobs in it.")
@click.option("--yes", is_flag=True, help="Do not ask whether to go on.")
def forget(user: str, channel: str, *, yes: bool) -> None:
    """Delete what the database of DATABASE_URL has of a person or of a channel.

    Others' requests can quote them, and nobody notes whose words a quotation holds: so what went along with finished
    requests is deleted, too, of all people. SQLite's file and log are cleared of what was deleted.

    Out of reach are backups, what PostgreSQL's files hold till their room is used again, the messages in Slack, the
    jobs at the job API and their pull requests.
    """
    if bool(user) == bool(channel):
        raise click.UsageError("Give either --user or --channel.")
    with exit_on_error("Nothing can be deleted", "Not all was deleted"):
        from bot.cli.forget import existing_database, forget_all

        url = existing_database(os.environ)
        if not yes:
            click.confirm("This deletes from Pagehand's database for good, unfinished jobs too. Go on?", abort=True)
        click.echo(forget_all(url, person_id=user, channel_id=channel))


@main.command()
@click.option("--since", metavar="WHEN", default="", help="From then on: a date, a time in UTC, or 24h, 7d, 2w.")
@click.option("--until", metavar="WHEN", default="", help="Till then, the same; now by default.")
def export(since: str, until: str) -> None:
    """Print who did what, and when: the audit trail of DATABASE_URL as JSON lines, oldest first, while the bot runs.

    \b
    pagehand export --since 7d                            the last week
    pagehand export --since 2026-11-01 --until 2026-12-01 > november.jsonl
    pagehand export --since 24h | jq 'select(.action == "refused")'

    \b
    Each line has: at, action (asked, steered, stopped, retried, discarded, muted, unmuted, project_chosen, refused),
    person, team, channel, thread, job, project, way_in, reason. What is not known is null.
    Never what anybody wrote. Entries are kept for PAGEHAND_KEEP_DAYS.
    """
    with exit_on_error("Nothing can be exported", "Not all was exported"):
        from bot.cli import export as audit_trail

        audit_trail.export(os.environ, audit_trail.period(since, until, now=datetime.now(UTC)))


@main.command()
@click.argument("file", type=click.Path(dir_okay=False))
def backup(file: str) -> None:
    """Copy the SQLite database of DATABASE_URL to FILE, while the bot runs.

    To restore: stop the bot, put the copy in the database's place, run `pagehand restored`, start the bot. What was
    open when the copy was made is looked up, or asked about, before it is said or sent again. For PostgreSQL, use
    pg_dump.
    """
    with exit_on_error("Nothing can be copied", "Nothing was copied"):
        from bot.cli.backup import back_up_database

        back_up_database(os.environ, file)
        click.echo(f"Copied to {file}.")


@main.command()
def restored() -> None:
    """Say that the database of DATABASE_URL was restored from a backup, before the bot is started on it.

    \b
    1. Stop every instance.
    2. Restore: pg_restore, a point in time, a file system's snapshot, a copy of `pagehand backup`.
    3. pagehand migrate     where the backup is of an older version
    4. pagehand restored
    5. Start the bot.

    What was open when the backup was made may have gone out since: requests are asked about in their threads before
    they are sent again (or sent under the same key, where the job API runs a key once), and posts are looked for in
    Slack. Safe to repeat. Jobs and replies from after the backup are not known: their threads get no answer.
    """
    with exit_on_error("Nothing can be put in doubt", "Not all was put in doubt"):
        from bot.cli.restored import put_restored_in_doubt

        click.echo(put_restored_in_doubt(os.environ))


def _run_bot(role: Literal["run", "web", "worker"]) -> None:
    with exit_on_error("Pagehand cannot start", "Pagehand stopped"):
        from bot.cli.run import run_bot

        run_bot(role, os.environ)
