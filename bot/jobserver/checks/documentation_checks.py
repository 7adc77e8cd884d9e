"""Runs all checks of a change, one after another; a failed check never blocks a proposal."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

from bot.jobapi.models import CheckResult, CheckStatus
from bot.jobserver.checks import links
from bot.jobserver.checks.change import CheckedChange
from bot.jobserver.checks.checker import CheckCouldNotRunError, CheckProgram
from bot.jobserver.checks.repository_checkers import Check, RepositoryCheckers
from bot.jobserver.repository.snapshot import Snapshot
from bot.jobserver.text import one_line

logger = logging.getLogger(__name__)
_PROBLEMS = 50
"""How many problems of a check are reported, each with at most _LENGTH characters."""
_LENGTH = 300
_LAST_LINES = 10
_BUDGET_S = 60.0
"""The time for the check of links; the largest known documentation takes a few seconds."""


@dataclass(frozen=True)
class DocumentationChecks:
    """Implements `Checks`. `commands` are the team's own, each a program with its arguments; `program` runs them."""

    program: CheckProgram
    checkers: RepositoryCheckers
    commands: Collection[tuple[str, ...]] = ()
    monotonic: Callable[[], float] = time.monotonic

    async def run(
        self, before: Snapshot, after: Snapshot, changed: Collection[PurePosixPath], copy: Path
    ) -> tuple[CheckResult, ...]:
        until = self.monotonic() + _BUDGET_S
        change = CheckedChange(before, after, changed, time_is_up=lambda: self.monotonic() > until)
        checks: list[tuple[str, Check]] = [(links.NAME, partial(asyncio.to_thread, _broken_links, change))]
        checks += await self.checkers.applying(change, copy)
        checks += [(command[0], partial(self._command, command, copy)) for command in self.commands]
        return tuple([await _result(name, check) for name, check in checks])

    async def _command(self, command: tuple[str, ...], copy: Path) -> list[str]:
        done = await self.program.run(command, copy)
        if done.exit_code == 0:
            return []
        lines = [line for line in (*done.output.splitlines(), *done.refused) if line.strip()][-_LAST_LINES:]
        return lines or [f"it ended with exit code {done.exit_code}"]


def _broken_links(change: CheckedChange) -> list[str]:
    return list(islice(links.broken_links(change), _PROBLEMS + 1))


async def _result(name: str, check: Check) -> CheckResult:
    try:
        found = await check()
    except CheckCouldNotRunError as error:
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
