"""Runs the checkers that the repository has settings for, and reports what they find on new lines.

They run in a folder that the agent has not written to: the base's files, overlaid with the changed pages. So a change
cannot add settings, rules or plugins that a checker would load.
"""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from bot.jobserver.checks.change import CheckedChange
from bot.jobserver.checks.checker import CheckCouldNotRunError, Checker, CheckProgram, LineFault
from bot.jobserver.checks.known_checkers import CODESPELL, CSPELL, LYCHEE, MARKDOWNLINT, VALE
from bot.jobserver.documents.parsing import is_page
from bot.jobserver.file_owners import hand_over, owner
from bot.jobserver.repository.foreign_files import remove

CHECKERS = (VALE, MARKDOWNLINT, CSPELL, CODESPELL, LYCHEE)
_PAGES_A_RUN = 500
Check = Callable[[], Awaitable[list[str]]]
"""Returns a check's problems."""


@dataclass(frozen=True)
class RepositoryCheckers:
    """Runs the checkers that the base branch has settings for."""

    program: CheckProgram
    checkers: Sequence[Checker] = CHECKERS

    async def applying(self, change: CheckedChange, job_copy: Path) -> list[tuple[str, Check]]:
        """Returns the name of each checker that applies to this change, with a function that runs it.

        The files that it checks are put beside the job's copy and belong to the copy's owner.
        """
        pages = [(checker, await asyncio.to_thread(checker.pages, change)) for checker in self.checkers]
        return [
            (checker.name, partial(self._problems, checker, some, change, job_copy)) for checker, some in pages if some
        ]

    async def _problems(
        self, checker: Checker, pages: Sequence[PurePosixPath], change: CheckedChange, job_copy: Path
    ) -> list[str]:
        if shutil.which(checker.program) is None:
            raise CheckCouldNotRunError(
                f"the repository has settings for {checker.name}, but the program `{checker.program}` is not installed"
            )
        findings: list[LineFault] = []
        async with _laid_out(change, job_copy) as copy:
            for start in range(0, len(pages), _PAGES_A_RUN):
                done = await self.program.run(checker.command(pages[start : start + _PAGES_A_RUN]), copy)
                findings += checker.read(done)
        return await asyncio.to_thread(_of_new_lines, findings, change)


@asynccontextmanager
async def _laid_out(change: CheckedChange, job_copy: Path) -> AsyncIterator[Path]:
    """Makes a copy for one checker, since the server never writes to a folder that a program has written to."""
    folder = job_copy.with_name(f"checked-{secrets.token_hex(4)}")
    try:
        yield await asyncio.to_thread(_lay_out, change, folder, owner(job_copy))
    finally:
        await asyncio.shield(asyncio.to_thread(remove, folder))


def _lay_out(change: CheckedChange, folder: Path, user: int) -> Path:
    copy = folder / "copy"
    try:
        copy.mkdir(mode=0o700, parents=True)
        change.before.write_files(copy)
        for path in filter(is_page, change.removed):
            (copy / path).unlink(missing_ok=True)
        for path in change.changed_pages:
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_bytes(change.after.read(path) or b"")
        hand_over(copy, user)
    except OSError as error:
        words = f"its files cannot be laid out: {error.strerror or 'unknown reason'}"
        raise CheckCouldNotRunError(words) from error
    return copy


def _of_new_lines(findings: Sequence[LineFault], change: CheckedChange) -> list[str]:
    """Skips files reported as missing that the change adds, since the copy contains only its pages."""
    paths = {finding.path for finding in findings}.intersection(change.changed_pages)
    new = {path: change.new_lines(path) for path in paths}
    problems = [
        f"{finding.path}:{finding.line}: {finding.message}"
        for finding in findings
        if finding.line in new.get(finding.path, ()) and finding.missing not in change.paths
    ]
    return list(dict.fromkeys(problems))
