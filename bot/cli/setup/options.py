"""Declares `pagehand setup` and its options. Imported with each command, it has to stay light."""

import os
import sys
from typing import Any

import click

from bot.cli.starting import BOT_FILE, FEATURES, exit_on_error
from bot.errors import ConfigError


@click.command()
@click.option("--http", "address", metavar="URL", default="", help="Receive signed HTTP requests at https://YOUR-HOST.")
@click.option(
    "--command", metavar="/NAME", default="", help="The slash command.  [default: PAGEHAND_COMMAND, or /docs]"
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(FEATURES),
    help="Leave a feature out; `pagehand manifest --help` explains them. Can be given more than once.  "
    "[default: PAGEHAND_WITHOUT]",
)
@click.option("--app-id", metavar="A…", default="", help="Update this app instead of creating one.")
@click.option(
    "--configuration-token-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A file with the configuration token that creates or updates the app. The token is never kept.",
)
@click.option(
    "--channel", "channel_id", metavar="#NAME", default="", help="Post a message there (or in C…), to see that it can."
)
@click.option("--job-api-url", metavar="URL", default="", help="The job API's base URL.")
@click.option("--job-api-project", metavar="ID", default="", help="The project's id at the job API.")
@click.option("--repository", metavar="URL", default="", help="Set up the job server for this git repository instead.")
@click.option(
    "--agent", metavar="AGENT", default="", help="The job server's agent: builtin, claude, codex, or a command."
)
@click.option(
    "--write",
    "file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    default=BOT_FILE,
    show_default=True,
    help="The file for the settings.",
)
@click.option("--no-input", is_flag=True, help="Ask nothing: fail if an answer is missing.")
def setup(
    address: str,
    command: str,
    without: tuple[str, ...],
    configuration_token_file: str | None,
    file: str,
    **given: Any,
) -> None:
    """Set Pagehand up: the Slack app, a first message, the job API, and the file .env with all settings.

    \b
    Asks one question at a time, and checks each answer at once. What is answered already is not asked:
      options, the environment (SLACK_BOT_TOKEN, SLACK_APP_TOKEN or SLACK_SIGNING_SECRET, JOB_API_URL, JOB_API_KEY,
      JOB_API_PROJECT, PAGEHAND_CONFIGURATION_TOKEN; each also as NAME_FILE), and .env.
    So it can be interrupted, and goes on where it was.

    \b
    Two things are yours to do, and it says where: installing the app, and making the app-level token. The app itself
    it creates or updates if you give it a configuration token (api.slack.com/apps, Your App Configuration Tokens).

    \b
    pagehand setup                                          for Socket Mode
    pagehand setup --http https://pagehand.example.org      for signed HTTP requests
    pagehand setup --app-id A0123 --configuration-token-file FILE    brings an app up to date
    """
    with exit_on_error("Setup cannot begin", "Setup stopped"):
        from pathlib import Path

        from bot.app.settings.features import Feature
        from bot.app.setup.manifest import ManifestChoices
        from bot.cli.setup.command import SetupOptions, run_setup

        try:
            choices = ManifestChoices(command or "/docs", address, frozenset(map(Feature, without)))
        except ConfigError as error:
            raise click.UsageError(f"{error}.") from None
        token = Path(configuration_token_file).read_text(encoding="utf-8").strip() if configuration_token_file else ""
        options = SetupOptions(choices, Path(file), keeps_command=not command, configuration_token=token, **given)
        sys.exit(run_setup(options, os.environ))
