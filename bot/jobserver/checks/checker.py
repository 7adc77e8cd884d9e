"""Checkers: programs that run in the sandbox, the settings that enable them, and what they find."""

import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from bot.jobserver import subprocesses
from bot.jobserver.checks.change import CheckedChange, text_of
from bot.jobserver.documents.pages import is_page
from bot.jobserver.egress.refusals import EgressRefusals
from bot.jobserver.egress.run_egress import Egress
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.interface import Program, Sandbox, Workspace
from bot.jobserver.sandbox.limits import ProgramFailedError, RunLimits

_OUTPUT_BYTES = 2_000_000
_NONE = re.compile(r"(?!)")
_LAST_CHARACTERS = 250


class CheckCouldNotRunError(JobServerError):
    """The program of a check could not run to its end; the message says why."""


@dataclass(frozen=True)
class Finished:
    """How a program ended, the last 2 MB of its output, and the connections that it was refused.

    `copy` is the path of the folder that it ran in, as the program saw it.
    """

    exit_code: int
    output: str
    refused: tuple[str, ...] = ()
    copy: Path = Path()


@dataclass(frozen=True)
class CheckProgram:
    """Runs programs in the sandbox, each with a temporary HOME; `time_limit` is in seconds."""

    sandbox: Sandbox
    limits: RunLimits
    egress: Egress
    time_limit: float
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def run(self, arguments: tuple[str, ...], copy: Path) -> Finished:
        """Runs a program in the copy.

        Raises:
            CheckCouldNotRunError: it cannot be started, took too long, or used too many resources.
        """
        with tempfile.TemporaryDirectory(dir=copy.parent, prefix="check-") as home:
            workspace, refusals = Workspace(copy, Path(home)), EgressRefusals()
            try:
                async with self.egress.opened(refusals) as connected:
                    program = self.sandbox.prepare(connected(Program(arguments, self.environment)), workspace)
                    command = subprocesses.Command(
                        program.arguments, program.directory, program.environment, self.time_limit
                    )
                    output = subprocesses.LastBytes(_OUTPUT_BYTES)
                    code = await self.limits.run(command, workspace, stdout=output)
            except EditError as error:
                raise CheckCouldNotRunError(str(error)) from error
            except ProgramFailedError as error:
                raise CheckCouldNotRunError(f"it {error}") from error
        text = output.getvalue().decode(errors="replace")
        return Finished(code, text, tuple(refusals.in_words), program.copy)


@dataclass(frozen=True)
class LineFault:
    """A fault in a line, counted from 1."""

    path: PurePosixPath
    line: int
    message: str
    missing: PurePosixPath | None = None
    """The file that was not found, if that is the fault."""


@dataclass(frozen=True)
class SharedSettings:
    """A file with settings of many programs; `mark` matches if it has any for this program."""

    name: str
    mark: re.Pattern[str]


@dataclass(frozen=True)
class Checker:
    """A program that a repository can have settings for.

    It applies if there is a file whose path matches `settings` or, in a folder above a changed page or at the root, one
    whose name matches `beside`; or wherever it is installed, if it `needs_no_settings`. `command` returns its arguments
    for the paths of pages. `read` parses its output into findings and may raise `CheckCouldNotRunError`. `endings` are
    the file types that it checks; if empty, all.
    """

    name: str
    program: str
    command: Callable[[Sequence[PurePosixPath]], tuple[str, ...]]
    read: Callable[[Finished], Iterable[LineFault]]
    settings: re.Pattern[str] = _NONE
    beside: re.Pattern[str] = _NONE
    shared: Collection[SharedSettings] = ()
    endings: frozenset[str] = frozenset()
    needs_no_settings: bool = False

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.program) is not None

    def checks(self, path: PurePosixPath) -> bool:
        """Tells by its name whether a file is a page of a type that it checks."""
        return is_page(path) and (not self.endings or path.suffix.lower() in self.endings)

    def pages(self, change: CheckedChange) -> list[PurePosixPath]:
        """Returns the changed pages that it checks according to the settings in the base branch."""
        pages = list(filter(self.checks, change.changed_pages))
        if not pages:
            return []
        folders = {path.parent for path in change.paths_before if self.beside.fullmatch(path.name)}
        if PurePosixPath() in folders or self._is_set_up_at_the_root(change):
            return pages
        if self.needs_no_settings and self.is_installed:
            return pages
        return [page for page in pages if not folders.isdisjoint(page.parents)]

    def _is_set_up_at_the_root(self, change: CheckedChange) -> bool:
        if any(self.settings.fullmatch(str(path)) for path in change.paths_before):
            return True
        texts = ((file, text_of(change.before, PurePosixPath(file.name))) for file in self.shared)
        return any(text is not None and file.mark.search(text) for file, text in texts)


def could_not_run(done: Finished) -> CheckCouldNotRunError:
    """Returns the error for a program that failed, with the end of its output."""
    words = " ".join(done.output.split())[-_LAST_CHARACTERS:]
    return CheckCouldNotRunError(f"it ended with exit code {done.exit_code}{f': {words}' if words else ''}")
