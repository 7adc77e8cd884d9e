"""The steps beside Slack: a job API, or a job server of one's own."""

import asyncio
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.app.checks.job_api import check_job_api
from bot.app.checks.settings import check_settings
from bot.cli.setup.dialogue import Answers, Dialogue, SetupStopped
from bot.cli.setup.slack_steps import setting_faults
from bot.cli.starting import require_extra
from bot.domain.findings import Finding

_JOB_API = ("JOB_API_URL", "JOB_API_KEY", "JOB_API_PROJECT")
_ABILITIES = ("cancel", "files", "idempotent", "instruction", "requester")
_PREFIX = "PAGEHAND_JOBSERVER_"
_OURS = {"JOB_API_URL": "http://127.0.0.1:8765", "JOB_API_PROJECT": "docs"}
AGENT_KEYS: Mapping[str, str] = {
    "builtin": "",
    "claude": "ANTHROPIC_API_KEY",
    "codex": "OPENAI_API_KEY",
}
"""The agents, and the variable for the key of each that has one of its own."""
_CHECK_SECONDS = 180.0


@dataclass(frozen=True)
class _Found:
    """What was found at a job API; `abilities` by their names."""

    findings: Sequence[Finding]
    abilities: Mapping[str, Finding] = field(default_factory=dict)


@dataclass(frozen=True)
class JobSteps:
    """Sets up the job API. Each step raises SetupStopped.

    Attributes:
        dialogue: Asks.
        answers: The bot's variables.
        server: The job server's variables.
        environ: The environment of the job server's check.
    """

    dialogue: Dialogue
    answers: Answers
    server: Answers
    environ: Mapping[str, str]

    def connect_job_api(self, url: str, project: str) -> None:
        """Asks for the address, the key and the project of a job API until they work together."""
        self.dialogue.head("The job API")
        given = {"JOB_API_URL": url, "JOB_API_KEY": "", "JOB_API_PROJECT": project}
        given = {name: value or self.answers.get(name) for name, value in given.items()}
        self.dialogue.hide(given["JOB_API_KEY"])
        while self.dialogue.has_errors((found := self._look(self._completed(given))).findings):
            given = {
                "JOB_API_URL": self._ask_url(given["JOB_API_URL"]),
                "JOB_API_KEY": self._ask_key(),
                "JOB_API_PROJECT": self._ask_project(given["JOB_API_PROJECT"]),
            }
        for name, value in given.items():
            self.answers.keep(name, value)
        self._keep_abilities(found.abilities)

    def set_up_job_server(self, repository: str, agent: str) -> None:
        """Asks for a repository, an agent and a code host, and checks the job server with them."""
        require_extra("jobserver")
        self.dialogue.head("The job server")
        repository = repository or self.server.get(f"{_PREFIX}REPOSITORY")
        self._keep_server(
            "REPOSITORY",
            repository or self.dialogue.ask("Git repository (directory or URL)", instead="give --repository"),
        )
        self._choose_agent(agent)
        self._connect_code_host()
        key = self.server.get(f"{_PREFIX}API_KEY") or secrets.token_urlsafe(32)
        self.dialogue.hide(key)
        self._keep_server("API_KEY", key)
        for name, value in (_OURS | {"JOB_API_KEY": key}).items():
            self.answers.keep(name, value)
        for ability in _ABILITIES:
            self.answers.keep(f"JOB_API_{ability.upper()}", "true")
        self._check_job_server()

    def _completed(self, given: dict[str, str]) -> dict[str, str]:
        given["JOB_API_URL"] = given["JOB_API_URL"] or self._ask_url("")
        given["JOB_API_KEY"] = given["JOB_API_KEY"] or self._ask_key()
        given["JOB_API_PROJECT"] = given["JOB_API_PROJECT"] or self._ask_project("")
        return given

    def _ask_url(self, default: str) -> str:
        return self.dialogue.ask("Base URL", instead="give --job-api-url", default=default or None)

    def _ask_key(self) -> str:
        return self.dialogue.ask("API key", instead="set JOB_API_KEY or JOB_API_KEY_FILE", is_secret=True)

    def _ask_project(self, default: str) -> str:
        return self.dialogue.ask("Project id", instead="give --job-api-project", default=default or None)

    def _look(self, given: dict[str, str]) -> _Found:
        """Checks a job API, and separates its abilities from the other findings."""
        values = self.answers.values | given
        if faults := setting_faults(_JOB_API, values):
            return _Found(faults)
        config = check_settings(values).config
        if config is None:
            raise SetupStopped("Other settings are wrong: `pagehand doctor` lists them.")
        findings = asyncio.run(check_job_api(config.projects[0]))
        names = {f"job_api.{given['JOB_API_PROJECT']}.{ability}": ability for ability in _ABILITIES}
        abilities = {names[each.check]: each for each in findings if each.check in names}
        return _Found([each for each in findings if each.check not in names], abilities)

    def _keep_abilities(self, abilities: Mapping[str, Finding]) -> None:
        """Corrects what the settings say that the job API can do."""
        for ability, finding in abilities.items():
            if finding.is_fault:
                name = f"JOB_API_{ability.upper()}"
                self.answers.keep(name, "false" if self.answers.get(name) == "true" else "true")
                self.dialogue.say(f"{name}={self.answers.get(name)}, as the job API has it. {finding.why}")

    def _keep_server(self, name: str, value: str) -> None:
        self.server.keep(f"{_PREFIX}{name}", value)

    def _choose_agent(self, agent: str) -> None:
        agent = agent or self.server.get(f"{_PREFIX}AGENT")
        if not agent:
            self.dialogue.say(
                f"An agent edits the pages: {', '.join(AGENT_KEYS)}. builtin is the demo's editor, and needs no key."
            )
            agent = self.dialogue.ask("Agent", instead="give --agent", default="builtin")
        if agent == "builtin":
            return
        self._keep_server("AGENT", agent)
        name = AGENT_KEYS.get(agent, "")
        if name:
            key = self.server.get(name) or self.dialogue.ask(name, instead=f"set {name} or {name}_FILE", is_secret=True)
            self.dialogue.hide(key)
            self.server.keep(name, key)
        else:
            self.dialogue.say("bot/jobserver/README.md says how to log this agent in.")

    def _connect_code_host(self) -> None:
        from bot.jobserver.settings.github import github_address  # noqa: PLC0415 - its packages may be missing

        address = github_address(self.server.get(f"{_PREFIX}REPOSITORY"))
        if address is None or self.server.get(f"{_PREFIX}GITHUB_APP_ID"):
            return
        self.dialogue.say(
            "For pull requests at GitHub: under Settings, Developer settings, Fine-grained tokens, generate a token "
            f"for {address.full_name} that may write Contents and Pull requests. Empty: none."
        )
        name = f"{_PREFIX}GITHUB_TOKEN"
        token = self.server.get(name) or self.dialogue.ask(
            "GitHub token", instead=f"set {name}", default="", is_secret=True
        )
        if token:
            self.dialogue.hide(token)
            self.server.keep(name, token)

    def _check_job_server(self) -> None:
        """Runs `pagehand jobserver --check` in a process that knows nothing of the bot's secrets."""
        environ = {name: value for name, value in self.environ.items() if not name.startswith(("SLACK_", "JOB_API_"))}
        command = [sys.executable, "-m", "bot", "jobserver", "--check"]
        try:
            ended = subprocess.run(
                command,
                env=environ | self.server.kept,
                capture_output=True,
                text=True,
                timeout=_CHECK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SetupStopped("`pagehand jobserver --check` does not come to an end.") from None
        self.dialogue.say(f"{ended.stdout}{ended.stderr}".strip())
        if ended.returncode:
            raise SetupStopped("Fix this (bot/jobserver/README.md has what it needs), and run `pagehand setup` again.")
