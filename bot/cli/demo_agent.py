"""The agent that works in a demo: one that somebody has, with their own key, in the sandbox."""

import os
import secrets
from collections.abc import Mapping

from pydantic import SecretStr

from bot.errors import CannotStart
from bot.jobserver.agents.choice import agent_launch, installed, model_finding
from bot.jobserver.agents.named import NAMED
from bot.jobserver.sandbox.job_users import close_to_others
from bot.jobserver.settings import PREFIX, JobServerSettings

REVIEWER = "You"
_OF_THE_AGENT = ("MODEL", "EFFORT", "MODEL_API", "MODEL_URL", "MODEL_KEY", "AGENT_HOME", "SANDBOX_FOLDERS")
"""What a demo takes of the settings of a job server that somebody has; the sandbox and its closed network stay."""


def settings_with_agent(agent: str, **given: object) -> JobServerSettings:
    """Returns the settings of a demo's job server, with an agent by its name or command, and a key for whoever merges.

    Raises ConfigError; CannotStart where it is not installed or has no key, JobServerError where it cannot be used.
    """
    reviewers = SecretStr(f"{REVIEWER}: {secrets.token_hex(12)}")
    asked = {"agent": agent, "reviewers": reviewers, "private_pages": False, **given}
    settings = JobServerSettings.from_environment(_of_the_agent(os.environ), (), **asked)
    launch = agent_launch(settings, os.environ)
    findings = (installed(launch.agent.command, launch.agent.install), model_finding(launch, settings))
    if missing := next((finding.words for finding in findings if not finding.is_ok), ""):
        raise CannotStart(f"{missing}.")
    close_to_others()
    return settings


def reviewer_key(settings: JobServerSettings) -> str:
    """Returns the key with which to log in at the demo's pages; empty where nobody has to."""
    return next((reviewer.key.get_secret_value() for reviewer in settings.reviewer_list), "")


def agent_offer() -> str:
    """Says that a demo can have an agent."""
    others = ", ".join(name for name in NAMED if name != "claude")
    return f"With a coding agent that you have, and its key: pagehand demo --agent claude (or {others})"


def _of_the_agent(environ: Mapping[str, str]) -> dict[str, str]:
    names = [f"{PREFIX}{name}{ending}" for name in _OF_THE_AGENT for ending in ("", "_FILE")]
    return {name: environ[name] for name in names if name in environ}
