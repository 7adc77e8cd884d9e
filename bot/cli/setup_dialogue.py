"""What `pagehand setup` says and asks, and the answers that it keeps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click

from bot.domain.findings import Finding, FindingStatus
from bot.errors import ConfigError, PagehandError
from bot.runtime.env_file import read_env_file, write_env_file
from bot.runtime.settings import read_variable

Answer = TypeVar("Answer")
_SHORTEST_SECRET = 8
COLORS = {
    FindingStatus.OK: "green",
    FindingStatus.WARNING: "yellow",
    FindingStatus.ERROR: "red",
    FindingStatus.NOT_CHECKED: "cyan",
}


class SetupStopped(PagehandError):
    """Setup cannot go on without an answer or a fix; the message says which."""


class Answers:
    """The variables of one program: those of the environment, those of its file, and new answers, which are written to
    the file at once. Raises ConfigError if the file cannot be read.

    Args:
        environ: The environment, which wins.
        file: The file.
        say: Tells that a value in the file is replaced.
    """

    def __init__(self, environ: Mapping[str, str], file: Path, say: Callable[[str], None]) -> None:
        self.file = file
        self._say = say
        self._stored = read_env_file(file) if file.exists() else {}
        self.values = self._stored | {name: value for name, value in environ.items() if value}
        self.has_new = False

    def get(self, name: str) -> str:
        """Returns a variable's value, or what is in the file that `<name>_FILE` names; empty if it is not set."""
        try:
            return read_variable(name, self.values)
        except ConfigError as error:
            raise SetupStopped(f"{error}.") from None

    def keep(self, name: str, value: str) -> None:
        """Keeps an answer. One that came from `<name>_FILE` stays in that file. Raises SetupStopped."""
        source = f"{name}_FILE"
        if not self.values.get(name) and self.values.get(source) and value == self.get(name):
            name, value = source, self.values[source]
        if name in self._stored and self._stored[name] != value:
            self._say(f"This replaces {name} in {self.file}.")
        self.values[name] = value
        try:
            if self._stored.get(name) != value:
                write_env_file(self.file, {name: value})
        except OSError as error:
            raise SetupStopped(
                f"{self.file} cannot be written ({error.strerror}). Run this in a directory that you may write in."
            ) from None
        self._stored[name], self.has_new = value, True

    def keep_all(self, values: Mapping[str, str]) -> None:
        """Keeps answers, without empty ones to what was never answered."""
        for name, value in values.items():
            if value or self.get(name):
                self.keep(name, value)


class Dialogue:
    """Talks to a person. With `no_input`, it asks nothing: what is missing is an error."""

    def __init__(self, *, no_input: bool) -> None:
        self.no_input = no_input
        self._secrets: set[str] = set()

    def hide(self, secret: str) -> None:
        """Shows stars instead of a secret from now on, such as where somebody's answer repeats it."""
        if len(secret) >= _SHORTEST_SECRET:
            self._secrets.add(secret)

    def say(self, text: str = "") -> None:
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        click.echo(text)

    def head(self, title: str) -> None:
        """Begins a step."""
        self.say()
        self.say(click.style(title, bold=True))

    def show(self, findings: Iterable[Finding]) -> None:
        """Prints findings, without what could not be checked."""
        for finding in findings:
            if finding.status is FindingStatus.NOT_CHECKED:
                continue
            self.say(f"{click.style(finding.status.value, fg=COLORS[finding.status])}: {finding.found}")
            for line in filter(None, (finding.why, finding.fix)):
                self.say(f"  {line}")

    def ask(self, question: str, *, instead: str, default: str | None = None, is_secret: bool = False) -> str:
        """Returns an answer without spaces around it. `instead` says how to give it without being asked."""
        if self.no_input:
            if default is not None:
                return default
            raise SetupStopped(f"An answer is missing, and nothing may be asked (--no-input): {instead}.")
        answer = click.prompt(question, default=default, hide_input=is_secret, show_default=bool(default))
        answer = str(answer).strip()
        if is_secret:
            self.hide(answer)
        return answer

    def confirm(self, question: str, *, default: bool = True, without_input: bool = False) -> bool:
        if self.no_input:
            return without_input
        return click.confirm(question, default=default)

    def until_right(
        self, ask: Callable[[Answer | None], Answer], check: Callable[[Answer], Sequence[Finding]]
    ) -> Answer:
        """Returns the first answer that a check finds no error in. `ask` gets the one that was refused before, if any.

        Raises SetupStopped if there is an error, and nothing can be asked.
        """
        answer = ask(None)
        while self.has_errors(findings := check(answer)):
            is_passing = all(finding.passing for finding in findings if finding.status is FindingStatus.ERROR)
            if not (is_passing and self.confirm("Try the same again?")):
                answer = ask(answer)
        return answer

    def has_errors(self, findings: Sequence[Finding]) -> bool:
        """Shows findings. Raises SetupStopped if there is an error, and nothing can be asked."""
        self.show(findings)
        if not any(finding.status is FindingStatus.ERROR for finding in findings):
            return False
        if self.no_input:
            raise SetupStopped("Fix this, and run `pagehand setup` again.")
        return True
