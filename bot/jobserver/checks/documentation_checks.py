"""Runs all checks of a change, one after another; a failed check never blocks a proposal.

The checkers that the repository has settings for report what they find on new lines and not in the base. They run in a
folder that the agent has not written to: the base's files, overlaid with the changed pages. So a change cannot add
settings, rules or plugins that a checker would load.
"""

import asyncio
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

from bot.jobapi.models import CheckResult, CheckStatus
from bot.jobserver.checks import links
from bot.jobserver.checks.change import CheckedChange
from bot.jobserver.checks.checkers import CHECKERS, Checker, CheckProgram, LineFault
from bot.jobserver.documents import is_page
from bot.jobserver.errors import JobServerError
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.repository.listings import Snapshot
from bot.jobserver.text import one_line

logger = logging.getLogger(__name__)

_PAGES_A_RUN = 500
_NUMBER = re.compile(r"\d+")
_Kind = tuple[PurePosixPath | None, str]
Check = Callable[[], Awaitable[list[str]]]
"""Returns a check's problems."""
_PROBLEMS = 50
"""How many problems of a check are reported, each with at most _LENGTH characters."""
_LENGTH = 300
_BUDGET_S = 60.0
"""The time for the check of links; the largest known documentation takes a few seconds."""


@asynccontextmanager
async def _laid_out(change: CheckedChange, job_copy: Path, *, is_base: bool) -> AsyncIterator[Path]:
    """Makes a copy for one checker, since the server never writes to a folder that a program has written to."""
    folder = job_copy.with_name(f"checked-{secrets.token_hex(4)}")
    try:
        yield await asyncio.to_thread(_lay_out, change, folder, is_base=is_base)
    finally:
        await asyncio.shield(asyncio.to_thread(remove, folder))


def _lay_out(change: CheckedChange, folder: Path, *, is_base: bool) -> Path:
    copy = folder / "copy"
    try:
        copy.mkdir(mode=0o700, parents=True)
        change.before.write_files(copy)
        if not is_base:
            for path in filter(is_page, change.removed):
                (copy / path).unlink(missing_ok=True)
            for path in change.changed_pages:
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                (copy / path).write_bytes(change.after.read(path) or b"")
    except OSError as error:
        words = f"its files cannot be laid out: {error.strerror or 'unknown reason'}"
        raise JobServerError(words) from error
    return copy


def _on_new_lines(found: Sequence[LineFault], change: CheckedChange) -> list[LineFault]:
    """Skips files reported as missing that the change adds, since the copy contains only its pages."""
    new = {path: change.new_lines(path) for path in {fault.path for fault in found}.intersection(change.changed_pages)}
    return [fault for fault in found if fault.line in new.get(fault.path, ()) and fault.missing not in change.paths]


def _earlier_pages(checker: Checker, new: Sequence[LineFault], change: CheckedChange) -> list[PurePosixPath]:
    """Returns the pages of the base that may have had these faults: a new page may be one that was moved."""
    paths = {fault.path for fault in new}
    moved = change.removed if paths - change.paths_before else frozenset[PurePosixPath]()
    return sorted(filter(checker.checks, (paths & change.paths_before) | moved))


def _kind(fault: LineFault, change: CheckedChange) -> _Kind:
    """Returns what stays the same when a line is touched: the words without numbers, such as a line's length."""
    is_moved = fault.path in change.removed or fault.path not in change.paths_before
    return None if is_moved else fault.path, _NUMBER.sub("#", fault.message)


def _beyond(known: Counter[_Kind], new: Sequence[LineFault], change: CheckedChange) -> Iterator[str]:
    """Yields the faults that are more than there were before."""
    for fault in new:
        if known[_kind(fault, change)] > 0:
            known[_kind(fault, change)] -= 1
        else:
            yield f"{fault.path}:{fault.line}: {fault.message}"


@dataclass(frozen=True)
class DocumentationChecks:
    """Finds the faults that a change introduced. `commands` are the team's own, each a program with its arguments;
    `program` runs them. `checkers` runs those that the base branch has settings for.
    """

    program: CheckProgram
    checkers: CheckProgram
    commands: Collection[tuple[str, ...]] = ()

    async def run(
        self, before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], copy: Path
    ) -> tuple[CheckResult, ...]:
        """Returns a result for each check that applies. `copy` contains the same files as `after`. Never raises."""
        until = time.monotonic() + _BUDGET_S
        change = CheckedChange(before, after, changed, time_is_up=lambda: time.monotonic() > until)
        checks: list[tuple[str, Check]] = [(links.NAME, partial(asyncio.to_thread, _broken_links, change))]
        checks += await self._applying(change, copy)
        checks += [(command[0], partial(self._command, command, copy)) for command in self.commands]
        return tuple([await _result(name, check) for name, check in checks])

    async def _applying(self, change: CheckedChange, job_copy: Path) -> list[tuple[str, Check]]:
        """Returns the name of each checker that applies to this change, with a function that runs it.

        Its files are put beside the job's copy.
        """
        pages = [(checker, await asyncio.to_thread(checker.pages, change)) for checker in CHECKERS]
        return [
            (checker.name, partial(self._problems, checker, some, change, job_copy)) for checker, some in pages if some
        ]

    async def _problems(
        self, checker: Checker, pages: Sequence[PurePosixPath], change: CheckedChange, job_copy: Path
    ) -> list[str]:
        if not checker.is_installed:
            program = checker.command[0]
            words = f"the repository has settings for {checker.name}, but the program `{program}` is not installed"
            raise JobServerError(words)
        found = await self._found(checker, pages, change, job_copy, is_base=False)
        new = await asyncio.to_thread(_on_new_lines, found, change)
        known = Counter[_Kind]()
        if earlier := await asyncio.to_thread(_earlier_pages, checker, new, change):
            known.update(
                _kind(each, change) for each in await self._found(checker, earlier, change, job_copy, is_base=True)
            )
            known.subtract(_kind(each, change) for each in set(found).difference(new))  # they are where they were
        return list(dict.fromkeys(_beyond(known, new, change)))

    async def _found(
        self, checker: Checker, pages: Sequence[PurePosixPath], change: CheckedChange, job_copy: Path, *, is_base: bool
    ) -> list[LineFault]:
        """Runs a checker on pages of the change, or as they were before it."""
        found: list[LineFault] = []
        async with _laid_out(change, job_copy, is_base=is_base) as copy:
            for start in range(0, len(pages), _PAGES_A_RUN):
                done = await self.checkers.run(checker.arguments(pages[start : start + _PAGES_A_RUN]), copy)
                found += checker.read(done)
        return found

    async def _command(self, command: tuple[str, ...], copy: Path) -> list[str]:
        done = await self.program.run(command, copy)
        if done.exit_code == 0:
            return []
        lines = [line for line in (*done.output.splitlines(), *done.refused) if line.strip()][-10:]
        return lines or [f"it ended with exit code {done.exit_code}"]


def _broken_links(change: CheckedChange) -> list[str]:
    return list(islice(links.broken_links(change), _PROBLEMS + 1))


async def _result(name: str, check: Check) -> CheckResult:
    try:
        found = await check()
    except JobServerError as error:
        return CheckResult(name=name, status=CheckStatus.SKIPPED, problems=_reported([str(error)]))
    except TimeoutError:
        return CheckResult(name=name, status=CheckStatus.SKIPPED, problems=("it took too long",))
    except Exception:
        logger.exception("the check %s failed unexpectedly", name)
        return CheckResult(name=name, status=CheckStatus.SKIPPED, problems=("it failed: the server's log says why",))
    return CheckResult(name=name, status=CheckStatus.FAILED if found else CheckStatus.PASSED, problems=_reported(found))


def _reported(problems: list[str]) -> tuple[str, ...]:
    shown = [one_line(problem, _LENGTH) for problem in problems[:_PROBLEMS]]
    return (*shown, "and more") if len(problems) > _PROBLEMS else tuple(shown)
