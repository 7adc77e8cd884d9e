"""Declares the commands of `pagehand` and their options; `pagehand --help` explains them.

Each command is implemented in a module of its own, which is imported when the command is called. `--help`, `--version`
and a mistake in the options are therefore answered at once, and this module's own imports have to stay light.
"""

import os
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import click

from bot import __version__
from bot.cli.starting import (
    BOT_FILE,
    JOB_SERVER_FILE,
    environment,
    exit_on_error,
    exit_on_interrupt,
    require_extra,
)
from bot.errors import ConfigError

if TYPE_CHECKING:
    from bot.app.manifest import ManifestChoices


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pagehand")
@click.option(
    "--env-file",
    "env_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Read settings from this file: a line NAME=value for each. Can be given more than once.  [default: .env here, "
    "if there is one; `jobserver` and `jobworker` read jobserver.env, `doctor` both]",
)
@click.pass_context
def main(context: click.Context, env_files: tuple[str, ...]) -> None:
    """Hand documentation tasks from Slack to a background agent, and bring the pull request back.

    New here? `pagehand demo` shows the whole loop on this machine. It needs no account anywhere.

    Settings come from the environment and, for what is not set there, from the file .env in the current directory.
    """
    context.obj = env_files


@main.command()
def run() -> None:
    """Run the bot. Its settings come from the environment or from .env; bot/docs/settings.md lists them.

    \b
    Needed: SLACK_BOT_TOKEN, SLACK_APP_TOKEN (or SLACK_SIGNING_SECRET),
            JOB_API_URL, JOB_API_KEY, JOB_API_PROJECT
    """
    _run_bot("run")


@main.command()
def web() -> None:
    """Run the part that receives Slack's signed requests at PORT. Settings as for `run`.

    It records and acknowledges requests, and `worker` processes them. Any number of each can share one PostgreSQL
    database. With SLACK_APP_TOKEN (Socket Mode), `worker` receives the requests, and `web` only serves health checks.
    """
    _run_bot("web")


@main.command()
def worker() -> None:
    """Run the part that processes recorded requests. Settings as for `run`.

    With SLACK_APP_TOKEN (Socket Mode), it also receives from Slack over two connections. Slack allows an app ten.
    """
    _run_bot("worker")


@main.command()
@click.option("--once", "prompt", metavar="PROMPT", help="Run the whole loop without a browser, and print the thread.")
@click.option(
    "--reply", "replies", multiple=True, metavar="TEXT", help="With --once: a reply to send when the job ends."
)
@click.option(
    "--agent", default="", metavar="AGENT", help="A coding agent that you have, with your key: claude, codex, …"
)
@click.option("--keep", hidden=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port of the workspace's page.  [default: 8420, or a free one]"
)
def demo(prompt: str | None, replies: tuple[str, ...], agent: str, keep: str | None, port: int | None) -> None:
    """Try Pagehand: a Slack workspace, a job server with a small repository, and the bot, all on this machine.

    \b
    pagehand demo                               serves a workspace for your browser
    pagehand demo --once 'Fix the spelling'     runs the whole loop and prints the thread
    pagehand demo --agent claude                with an agent in the sandbox: claude, codex, or a command
    """
    if replies and prompt is None:
        raise click.UsageError("--reply needs --once.")
    if keep is not None:
        raise click.UsageError(f"--keep is gone: each demo starts anew, and {keep} is left as it is. Omit it.")
    if prompt is not None and not prompt.strip():
        raise click.UsageError("--once needs a task, such as --once 'Fix the spelling'.")
    with exit_on_error("The demo cannot start", "Pagehand stopped"):
        exit_on_interrupt()
        require_extra("demo")
        from bot.cli.demo import browse, run_once

        if prompt is not None:
            run_once(port, agent, prompt, replies)
        else:
            browse(port, agent)


_check = click.option(
    "--check", is_flag=True, help="Check the machine, the repository, the agent and GitHub, and exit."
)
_config = click.option("--config", metavar="FILE", default="", help="A TOML file with several projects.")


@main.command()
@_check
@_config
@click.option("--log", "job_id", metavar="JOB", help="Print a job's log, and exit.")
@click.option("--without-worker", is_flag=True, help="Run no agents: `pagehand jobworker` does, on the same database.")
def jobserver(*, check: bool, config: str, job_id: str | None, without_worker: bool) -> None:
    """Run the self-hosted job server: it edits a git repository and opens pull requests.

    \b
    Needed: PAGEHAND_JOBSERVER_REPOSITORY (the directory or URL of a git repository)
            PAGEHAND_JOBSERVER_API_KEY    (the key that the bot sends: choose a long one)
    or both for each project of the file.
    """
    _run_job_server("api" if without_worker else "both", check=check, config=config, job_id=job_id)


@main.command()
@_check
@_config
def jobworker(*, check: bool, config: str) -> None:
    """Run the job server's agents only, any number of them on one PAGEHAND_JOBSERVER_DATABASE_URL.

    Settings as for `jobserver --without-worker`, with a data directory for each. With PAGEHAND_JOBSERVER_METRICS_TOKEN
    it serves /health and /metrics, without it nothing.
    """
    _run_job_server("worker", check=check, config=config)


def _run_job_server(role: str, *, check: bool, config: str, job_id: str | None = None) -> None:
    with exit_on_error("The job server cannot start", "The job server stopped"):
        require_extra("jobserver")
        from bot.runtime.process_signals import lasting_imports

        with lasting_imports():
            from bot.cli.jobserver import check_job_server, print_log, run_job_server

        environ = environment(JOB_SERVER_FILE)
        if config:
            environ["PAGEHAND_JOBSERVER_CONFIG"] = config
        if check:
            sys.exit(check_job_server(environ, role))
        if job_id is not None:
            print_log(environ, job_id)
            return
        run_job_server(environ, role)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: version, ok, findings.")
@click.option("--live", is_flag=True, help="Instead, play a job's story once in a real channel, with you.")
@click.option("--channel", metavar="#NAME", default="", help="With --live: the channel, also by its id.")
@click.option("--pull-request", "link", metavar="LINK", default="", help="With --live: one that you can merge.")
def doctor(*, as_json: bool, live: bool, channel: str, link: str) -> None:
    """Check the whole setup, and say what is wrong, why it matters and what to do about it.

    \b
    Looks at the settings, Slack (tokens, scopes, channels, clock), the database, the job API, and what has arrived
    from Slack so far. It changes nothing and starts no job; where PAGEHAND_JOBSERVER_REPOSITORY or _CONFIG is
    set, the job server's own check pushes a branch and deletes it again.

    \b
    With a configuration token (api.slack.com/apps, Your App Configuration Tokens) in PAGEHAND_CONFIGURATION_TOKEN, or a
    file that PAGEHAND_CONFIGURATION_TOKEN_FILE names, it also looks at the app's manifest: events, Socket Mode,
    command, interactivity, Home, addresses. It never keeps the token.

    \b
    Exit code: 0 no errors (there may be warnings), 1 errors, 2 wrong usage.
    --json: each finding has check (its name, which stays the same), status (ok, warning, error, not_checked), found,
    why, fix.

    \b
    --live finds out what the real services do differently from our own workspace, where it plays the story first.
    Stop the bot, and name a channel where nobody minds: it posts a card, edits it, adds a reaction and a reply, opens a
    form, and asks you for what only a person can do. With --pull-request, an open one of a throwaway repository, it
    reads that, and asks you to merge it. It deletes what it posted, also after Ctrl-C, and writes a record of keys,
    types and codes, without texts, names, ids and tokens, to pagehand-live-DATE-TIME.json: please send it to us.
    Exit code: 0 played, 1 Slack refused a step, or something is left to be deleted, 2 wrong usage.

    \b
    pagehand doctor --live --channel '#pagehand-test'
    pagehand doctor --live --pull-request https://github.com/you/throwaway/pull/1
    """
    if not live and (channel or link):
        raise click.UsageError("--channel and --pull-request need --live.")
    if live and as_json:
        raise click.UsageError("--live prints no JSON: its record is a file.")
    if live and not sys.stdin.isatty():
        raise click.UsageError("--live asks you to act in Slack: run it at a terminal (docker compose exec, ssh -t).")
    with exit_on_error("The setup cannot be checked", "The setup was not checked"):
        if live:
            from bot.cli.live import run_live

            sys.exit(run_live(channel, link))
        from bot.cli.doctor import run_doctor

        sys.exit(run_doctor(as_json=as_json))


@main.command()
@click.option("--http", "address", metavar="URL", default="", help="Receive signed HTTP requests at https://YOUR-HOST.")
@click.option("--command", metavar="/NAME", default="/docs", show_default=True, help="The slash command.")
def manifest(address: str, command: str) -> None:
    """Print the manifest of the Slack app: paste it at api.slack.com/apps, Create New App, From a manifest.

    \b
    pagehand manifest                                          for Socket Mode: the same as manifest.yml
    pagehand manifest --http https://pagehand.example.org      for signed HTTP requests
    pagehand manifest --command /write                         another command: set PAGEHAND_COMMAND to it, too
    """
    with exit_on_error("The manifest cannot be made", "The manifest was not made"):
        from bot.app.manifest import manifest_text

        click.echo(manifest_text(_choices(command, address)), nl=False)


@main.command()
def migrate() -> None:
    """Migrate the database of DATABASE_URL to this version's tables. Safe to repeat; not needed for a new database.

    With a million jobs it takes minutes.
    """
    with exit_on_error("The database cannot be brought up to date", "The database was not brought up to date"):
        from bot.cli.database import migrate_database

        migrate_database(environment(BOT_FILE))
        click.echo("The database is up to date.")


@main.command()
@click.option("--user", metavar="U…", default="", help="A Slack user's id: their jobs and replies.")
@click.option("--channel", metavar="C…", default="", help="A Slack channel's id: all jobs in that channel.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def forget(user: str, channel: str, *, yes: bool) -> None:
    """Delete what the database of DATABASE_URL has about a person or a channel.

    Other people's requests can quote them, and the database does not know whose words a quotation contains. So the
    quotations in all finished requests are deleted, too. SQLite's file and log are cleared of deleted data.

    Out of reach: backups, PostgreSQL's files until their space is reused, messages in Slack, jobs at the job API and
    their pull requests.
    """
    if bool(user) == bool(channel):
        raise click.UsageError("Give either --user or --channel.")
    if user and not re.fullmatch("[UW][A-Z0-9]+", user):
        raise click.UsageError(f"{user} is no user's id, like U0123ABCD: in a person's profile, More, Copy member ID.")
    if channel and not re.fullmatch("[CDG][A-Z0-9]+", channel):
        raise click.UsageError(f"{channel} is no channel's id, like C0123ABCD: at the end of the channel's details.")
    with exit_on_error("Nothing can be deleted", "Not all was deleted"):
        from bot.cli.personal_data import existing_database, forget_all

        url = existing_database(environment(BOT_FILE))
        if not yes:
            click.confirm("This permanently deletes data, including unfinished jobs. Continue?", abort=True)
        click.echo(forget_all(url, person_id=user, channel_id=channel))


@main.command()
@click.option("--since", metavar="WHEN", default="", help="The start: a date, a time in UTC, or 24h, 7d, 2w ago.")
@click.option("--until", metavar="WHEN", default="", help="The end, in the same form; now by default.")
def export(since: str, until: str) -> None:
    """Print the audit trail (who did what, and when) as JSON lines, oldest first. The bot can run meanwhile.

    \b
    pagehand export --since 7d                            the last week
    pagehand export --since 2026-11-01 --until 2026-12-01 > november.jsonl
    pagehand export --since 24h | jq 'select(.action == "refused")'

    \b
    Each line has: at, action (asked, steered, stopped, retried, discarded, muted, unmuted, project_chosen, refused),
    person, team, channel, thread, job, project, way_in, reason. Unknown values are null.
    It never contains what anybody wrote. Entries are kept for PAGEHAND_KEEP_DAYS.
    """
    with exit_on_error("Nothing can be exported", "Not all was exported"):
        from bot.cli.personal_data import export_audit_trail, period

        export_audit_trail(environment(BOT_FILE), *period(since, until, now=datetime.now(UTC)))


@main.command()
@click.argument("target", metavar="FILE|DIRECTORY", type=click.Path())
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="With a directory: delete all but so many backups there.",
)
def backup(target: str, keep: int | None) -> None:
    """Copy the SQLite database of DATABASE_URL. The bot can run meanwhile. For PostgreSQL, use pg_dump.

    \b
    pagehand backup FILE                   to a new file
    pagehand backup DIRECTORY --keep 7     to a file there that is named by date; deletes all but the seven newest

    Only files that this command named itself are deleted, and only after the new one is complete.

    To restore: stop the bot, put the copy in the database's place, run `pagehand restored`, and start the bot. Posts
    that were open when the copy was made are then looked for in Slack before they are repeated, and people are asked
    before open requests are sent again.
    """
    with exit_on_error("Nothing can be copied", "The backup failed"):
        from bot.cli.backup import back_up_database

        back_up_database(environment(BOT_FILE), target, keep, now=datetime.now(UTC))


@main.command()
def restored() -> None:
    """Prepare a database that was restored from a backup, before the bot is started on it.

    \b
    1. Stop every instance.
    2. Restore: pg_restore, point-in-time recovery, a file system snapshot, or a copy made by `pagehand backup`.
    3. pagehand migrate     if the backup is from an older version
    4. pagehand restored
    5. Start the bot.

    Requests and posts that were open when the backup was made may have been sent since. People are asked in the thread
    before such a request is sent again (or it is sent under the same key, if the job API runs a key only once), and
    posts are looked for in Slack. Safe to repeat. Jobs and replies newer than the backup are unknown: their threads get
    no answer.
    """
    with exit_on_error("Nothing can be put in doubt", "Not all was put in doubt"):
        from bot.cli.backup import mark_restored_in_doubt

        click.echo(mark_restored_in_doubt(environment(BOT_FILE)))


@main.command()
@click.option("--http", "address", metavar="URL", default="", help="Receive signed HTTP requests at https://YOUR-HOST.")
@click.option("--app-id", metavar="A…", default="", help="Update this app instead of creating one.")
@click.option("--repository", metavar="URL", default="", help="Set up the job server for this git repository instead.")
@click.option(
    "--agent", metavar="AGENT", default="", help="The job server's agent: builtin, claude, codex, or a command."
)
@click.option("--no-input", is_flag=True, help="Ask nothing: fail if an answer is missing.")
def setup(address: str, **given: Any) -> None:
    """Set Pagehand up: the Slack app, the job API, and the file .env with all settings.

    \b
    Asks one question at a time, and checks each answer at once. What is answered already is not asked:
      options, the environment (SLACK_BOT_TOKEN, SLACK_APP_TOKEN or SLACK_SIGNING_SECRET, JOB_API_URL, JOB_API_KEY,
      JOB_API_PROJECT, PAGEHAND_COMMAND, PAGEHAND_WITHOUT, …; each also as NAME_FILE), and .env.
    So it can be interrupted, and goes on where it was.

    \b
    Two things are yours to do, and it says where: installing the app, and making the app-level token. The app itself
    it creates or updates with a configuration token (api.slack.com/apps, Your App Configuration Tokens), which it asks
    for, or finds in PAGEHAND_CONFIGURATION_TOKEN, and never keeps.

    \b
    pagehand setup                                          for Socket Mode
    pagehand setup --http https://pagehand.example.org      for signed HTTP requests
    pagehand setup --app-id A0123                           brings an app up to date
    """
    with exit_on_error("Setup cannot begin", "Setup stopped"):
        from bot.cli.setup import SetupOptions, run_setup

        sys.exit(run_setup(SetupOptions(_choices("/docs", address), **given), os.environ))


def _choices(command: str, address: str) -> "ManifestChoices":
    from bot.app.manifest import ManifestChoices

    try:
        return ManifestChoices(command, address)
    except ConfigError as error:
        raise click.UsageError(f"{error}.") from None


def _run_bot(role: Literal["run", "web", "worker"]) -> None:
    with exit_on_error("Pagehand cannot start", "Pagehand stopped", needs_setup=True):
        from bot.runtime.process_signals import lasting_imports

        with lasting_imports():
            from bot.cli.run import run_bot

        run_bot(role, environment(BOT_FILE))
