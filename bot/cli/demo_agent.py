"""A demo with a coding agent that the user has installed, with their own key, in the sandbox."""

import os
import secrets
from collections.abc import Mapping

from pydantic import SecretStr

from bot.errors import CannotStart
from bot.jobserver.agents.choice import agent_launch, installed, model_finding
from bot.jobserver.agents.named import NAMED
from bot.jobserver.sandbox.own_process import close_to_others
from bot.jobserver.settings import PREFIX, JobServerSettings

REVIEWER = "You"
_AGENT_SETTINGS = (
    "MODEL", "EFFORT", "MODEL_API", "MODEL_URL", "MODEL_KEY", "MODEL_KEY_HEADER", "AGENT_ENVIRONMENT", "AGENT_HOME",
    "SANDBOX_FOLDERS", "ALLOW_ROOT",
)  # fmt: skip
"""The job server's settings that also apply to a demo. The sandbox and its closed network always stay on."""


def settings_with_agent(agent: str, **given: object) -> JobServerSettings:
    """Returns the settings of a demo's job server with an agent, given by name or command, and a reviewer's key.

    Raises ConfigError; CannotStart if the agent is not installed or has no key; JobServerError if it cannot be used.
    """
    reviewers = SecretStr(f"{REVIEWER}: {secrets.token_hex(12)}")
    overrides = {"agent": agent, "reviewers": reviewers, "private_pages": False, **given}
    settings = JobServerSettings.from_environment(_agent_variables(os.environ), (), **overrides)
    launch = agent_launch(settings, os.environ)
    findings = (installed(launch.agent.command, launch.agent.install), model_finding(launch, settings))
    if missing := next((finding.message for finding in findings if not finding.is_ok), ""):
        raise CannotStart(f"{missing}.")
    close_to_others()
    return settings


def reviewer_key(settings: JobServerSettings) -> str:
    """Returns the key to merge with on the demo's pages; empty if none is needed."""
    return next((reviewer.key.get_secret_value() for reviewer in settings.reviewer_list), "")


def agent_offer() -> str:
    """Returns a hint that a demo can run with an agent."""
    others = ", ".join(name for name in NAMED if name != "claude")
    return f"With a coding agent that you have, and its key: pagehand demo --agent claude (or {others})"


def _agent_variables(environ: Mapping[str, str]) -> dict[str, str]:
    names = [f"{PREFIX}{name}{ending}" for name in _AGENT_SETTINGS for ending in ("", "_FILE")]
    return {name: environ[name] for name in names if name in environ}
