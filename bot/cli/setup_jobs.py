"""The steps beside Slack: a job API, or a job server of one's own."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from bot.app.checks.whole import examine_part
from bot.cli.setup_dialogue import Answers, Dialogue, SetupStopped
from bot.cli.starting import require_extra
from bot.domain.findings import Finding
from bot.domain.projects import WISHES, JobApiAbilities
from bot.errors import ConfigError

_JOB_API = {"JOB_API_URL": "Base URL", "JOB_API_KEY": "API key", "JOB_API_PROJECT": "Project id"}
"""The question for each setting."""
_ABILITIES = tuple(each.name for each in fields(JobApiAbilities))
_PREFIX = "PAGEHAND_JOBSERVER_"
_OURS = {"JOB_API_URL": "http://127.0.0.1:8765", "JOB_API_PROJECT": "docs"}
_KEYS: Mapping[str, tuple[str, Sequence[str]]] = {
    "claude": (
        "Anthropic's API key, or the token that `claude setup-token` prints",
        ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
    ),
    "codex": ("OpenAI's API key", ("OPENAI_API_KEY",)),
}
"""The question for the key of each agent that has one of its own, and the variables that can hold it."""
_LOGIN_TOKEN = "sk-ant-oat"  # noqa: S105 - with which a token of `claude setup-token` begins
_OF_MACHINE = frozenset({f"job_server.{name}" for name in ("user", "data", "database", "pages", "egress", "checks")})
"""Checks whose result no other repository changes."""


@dataclass(frozen=True)
class JobSteps:
    """Sets up the job API. Each step raises SetupStopped.

    Attributes:
        dialogue: Asks.
        answers: The bot's variables.
        server: The job server's variables.
    """

    dialogue: Dialogue
    answers: Answers
    server: Answers

    def connect_job_api(self) -> None:
        """Asks for the address, the key and the project of a job API until they work together."""
        self.dialogue.head("The job API")
        given = {name: self.answers.get(name) for name in _JOB_API}
        self.dialogue.hide(given["JOB_API_KEY"])
        abilities: list[Finding] = []

        def ask(refused: Mapping[str, str] | None) -> Mapping[str, str]:
            answers = dict(refused or given)
            for name, question in _JOB_API.items():
                if not answers[name] or refused is not None:
                    is_secret, instead = name == "JOB_API_KEY", f"set {name} or {name}_FILE"
                    default = None if is_secret else answers[name] or None
                    answers[name] = self.dialogue.ask(question, instead=instead, default=default, is_secret=is_secret)
            return answers

        def check(values: Mapping[str, str]) -> Sequence[Finding]:
            found = asyncio.run(examine_part({**self.answers.values, **values}, "job_api"))
            abilities[:] = [each for each in found if _ability(each)]
            return [each for each in found if not _ability(each)]

        self.answers.keep_all(self.dialogue.until_right(ask, check))
        for finding in abilities:
            if finding.is_fault:
                name = f"JOB_API_{_ability(finding).upper()}"
                self.answers.keep(name, "false" if self.answers.get(name) == "true" else "true")
                self.dialogue.say(f"{name}={self.answers.get(name)}, as the job API has it. {finding.why}")

    def set_up_job_server(self, repository: str, agent: str) -> None:
        """Asks for a repository, an agent and reviewers, and checks each."""
        require_extra("jobserver")
        self.dialogue.head("The job server")
        key = self.server.get(f"{_PREFIX}API_KEY") or secrets.token_urlsafe(32)
        self.dialogue.hide(key)
        self.server.keep(f"{_PREFIX}API_KEY", key)
        machine = self._choose_repository(repository)
        self._choose_agent(agent)
        self._offer_reviewers()
        abilities = {f"JOB_API_{ability.upper()}": "true" for ability in _ABILITIES if ability not in WISHES}
        self.answers.keep_all(_OURS | {"JOB_API_KEY": key} | abilities)
        if self.dialogue.has_errors(machine):
            raise SetupStopped("Fix this, and run `pagehand setup` again.")

    def _choose_repository(self, given: str) -> Sequence[Finding]:
        """Asks for a repository, and for a token at GitHub, until jobs can work with them. Returns what was found about
        the machine, which no other answer changes.
        """
        name = f"{_PREFIX}REPOSITORY"
        given = given or self.server.get(name)
        machine: list[Finding] = []

        def ask(refused: Mapping[str, str] | None) -> Mapping[str, str]:
            repository = given if refused is None else ""
            if not repository:
                default = (refused[name] if refused else given) or None
                repository = self.dialogue.ask(
                    "Git repository (directory or URL)", instead="give --repository", default=default
                )
            return {name: repository, **self._github_token(repository, asks_again=refused is not None)}

        def check(values: Mapping[str, str]) -> Sequence[Finding]:
            found = self._found({**values, f"{_PREFIX}AGENT": ""}, "machine")
            machine[:] = [each for each in found if each.check in _OF_MACHINE]
            return [each for each in found if each.check not in _OF_MACHINE]

        self.server.keep_all(self.dialogue.until_right(ask, check))
        return machine

    def _github_token(self, repository: str, *, asks_again: bool) -> Mapping[str, str]:
        from bot.jobserver.settings.github import github_address  # noqa: PLC0415 - its packages may be missing

        name, address = f"{_PREFIX}GITHUB_TOKEN", github_address(repository)
        if address is None or self.server.get(f"{_PREFIX}GITHUB_APP_ID"):
            return {}
        if not asks_again and (token := self.server.get(name)):
            return {name: token}
        self.dialogue.say(
            "For pull requests at GitHub: under Settings, Developer settings, Fine-grained tokens, generate a token "
            f"for {address.full_name} that may write Contents and Pull requests. Empty: none."
        )
        token = self.dialogue.ask("GitHub token", instead=f"set {name}", default="", is_secret=True)
        return {name: token} if token else {}

    def _choose_agent(self, given: str) -> None:
        """Asks for an agent and its key until it answers."""
        name = f"{_PREFIX}AGENT"
        given = given or self.server.get(name)

        def ask(refused: Mapping[str, str] | None) -> Mapping[str, str]:
            agent = given if refused is None else ""
            if not agent:
                self.dialogue.say(
                    "An agent edits the pages: claude, codex, or the command of another (bot/docs/agents.md). builtin "
                    "is the demo's editor, and needs no key."
                )
                default = (refused[name] if refused else given) or "builtin"
                agent = self.dialogue.ask("Agent", instead="give --agent", default=default)
            if agent == "builtin":
                return {name: ""}
            return {name: agent, **self._agent_key(agent, asks_again=refused is not None)}

        self.server.keep_all(self.dialogue.until_right(ask, lambda values: self._found(values, "editor")))

    def _agent_key(self, agent: str, *, asks_again: bool) -> Mapping[str, str]:
        """Returns the agent's key, and nothing in the place of another that it might use instead."""
        if agent not in _KEYS:
            self.dialogue.say("bot/docs/agents.md says how to log this agent in.")
            return {}
        question, names = _KEYS[agent]
        known = {name: key for name in names if (key := self.server.get(name))}
        if known and not asks_again:
            for key in known.values():
                self.dialogue.hide(key)
            return known
        instead = f"set {' or '.join(names)}, or one of them with _FILE"
        key = self.dialogue.ask(question, instead=instead, is_secret=True)
        name = names[-1] if key.startswith(_LOGIN_TOKEN) else names[0]
        return dict.fromkeys(known, "") | {name: key}

    def _offer_reviewers(self) -> None:
        """Makes keys for those who may merge where pull requests are the job server's own pages."""
        name = f"{_PREFIX}REVIEWERS"
        if any(self.server.get(f"{_PREFIX}{each}") for each in ("GITHUB_TOKEN", "GITHUB_APP_ID", "REVIEWERS")):
            return

        def ask(_: Mapping[str, str] | None) -> Mapping[str, str]:
            question = "Who may merge on the job server's pages? Names, separated by commas (empty: nobody)"
            names = self.dialogue.ask(question, instead=f"set {name}", default="").split(",")
            return {name: ",".join(f"{each.strip()}:{secrets.token_urlsafe(24)}" for each in names if each.strip())}

        reviewers = self.dialogue.until_right(ask, lambda values: self._found(values) if values[name] else [])
        if reviewers[name]:
            self.server.keep(name, reviewers[name])
            self.dialogue.say(
                f"Each has a key in {self.server.file}, for which their browser asks together with the name."
            )

    def _found(self, values: Mapping[str, str], *parts: Literal["machine", "editor"]) -> Sequence[Finding]:
        """Checks the job server's settings, some of them replaced, and parts of it; without the bot's secrets."""
        from bot.cli.jobserver import find_faults  # noqa: PLC0415 - its packages may be missing

        given = {
            name: value for name, value in self.server.values.items() if not name.startswith(("SLACK_", "JOB_API_"))
        }

        async def found() -> Sequence[Finding]:
            return [each async for each in find_faults({**given, **values}, parts)]

        try:
            return asyncio.run(found())
        except ConfigError as error:
            return [Finding.error("job_server.settings", f"{fault}.", why="", fix="") for fault in error.faults]


def _ability(finding: Finding) -> str:
    """Returns the ability of a job API that a finding is about; empty for other findings."""
    last = finding.check.rpartition(".")[2]
    return last if last in _ABILITIES else ""
