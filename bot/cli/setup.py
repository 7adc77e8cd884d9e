"""`pagehand setup`: the steps in their order."""

import logging
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from bot.app.manifest import ManifestChoices
from bot.app.settings.config import CONFIGURATION_TOKEN
from bot.cli.setup_dialogue import Answers, Dialogue, SetupStopped
from bot.cli.setup_jobs import JobSteps
from bot.cli.setup_slack import SlackSteps
from bot.cli.starting import BOT_FILE, JOB_SERVER_FILE
from bot.runtime.settings import read_variable

_COMMAND = "PAGEHAND_COMMAND"


@dataclass(frozen=True)
class SetupOptions:
    """The options of the command. Empty texts are asked for."""

    choices: ManifestChoices
    app_id: str = ""
    repository: str = ""
    agent: str = ""
    no_input: bool = False


def run_setup(options: SetupOptions, environ: Mapping[str, str]) -> int:
    """Sets Pagehand up, and returns the exit code. Raises ConfigError where a file of settings cannot be read."""
    logging.basicConfig(level=logging.CRITICAL)  # the fault is reported, once
    dialogue = Dialogue(no_input=options.no_input)
    answers, server = (Answers(environ, Path(file), dialogue.say) for file in (BOT_FILE, JOB_SERVER_FILE))
    choices = replace(options.choices, command=answers.get(_COMMAND) or options.choices.command)
    slack = SlackSteps(dialogue, answers, choices, options.app_id)
    jobs = JobSteps(dialogue, answers, server)
    try:
        _take_steps(options, slack, jobs, read_variable(CONFIGURATION_TOKEN, environ))
    except (SetupStopped, click.Abort, KeyboardInterrupt) as stopped:
        is_stopped = isinstance(stopped, SetupStopped)
        dialogue.say(f"\n{stopped if is_stopped else 'Interrupted.'}")
        if kept := [str(each.file) for each in (answers, server) if each.has_new]:
            dialogue.say(
                f"All answers so far are in {' and '.join(kept)}: run `pagehand setup` again to go on from there."
            )
        return 1 if is_stopped else 128 + signal.SIGINT
    _finish(options, dialogue, server)
    return 0


def _take_steps(options: SetupOptions, slack: SlackSteps, jobs: JobSteps, configuration_token: str) -> None:
    answers = slack.answers
    answers.keep_all({name: answers.get(name) for name in ("SLACK_API_URL", _COMMAND, "PAGEHAND_WITHOUT")})
    slack.prepare_app(configuration_token)
    slack.install_app()
    slack.receive()
    if answers.get("PAGEHAND_PROJECTS"):
        slack.dialogue.say("PAGEHAND_PROJECTS names the job APIs: `pagehand doctor` checks them.")
    elif jobs.server.get("PAGEHAND_JOBSERVER_CONFIG"):
        slack.dialogue.say("PAGEHAND_JOBSERVER_CONFIG names the job server's projects: `pagehand doctor` checks them.")
        jobs.connect_job_api()
    elif options.repository or jobs.server.get("PAGEHAND_JOBSERVER_REPOSITORY") or _wants_job_server(jobs):
        jobs.set_up_job_server(options.repository, options.agent)
    else:
        jobs.connect_job_api()


def _wants_job_server(jobs: JobSteps) -> bool:
    if jobs.answers.get("JOB_API_URL"):
        return False
    jobs.dialogue.say(
        "\nPagehand hands tasks to a job API. Without one, its own job server can change your repository."
    )
    return not jobs.dialogue.confirm("Do you have a job API?", default=False, without_input=True)


def _finish(options: SetupOptions, dialogue: Dialogue, server: Answers) -> None:
    dialogue.head("Done")
    dialogue.say(f"The settings are in {BOT_FILE}, which only you can read. Next:")
    if server.has_new:  # before doctor, which asks it
        dialogue.say("  pagehand jobserver    (leave it running)")
    dialogue.say("  pagehand doctor\n  pagehand run")
    dialogue.say("Then type /invite @Pagehand in a channel, and write there: doctor shows what arrived from Slack.")
    if options.choices.address:
        dialogue.say(f"Slack sends requests to {options.choices.request_url}: pass them on to PORT (3000 by default).")
