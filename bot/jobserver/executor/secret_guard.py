"""Nothing is pushed that gives a secret away, or that cannot be looked through: it is held back, and told."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.jobserver.errors import HeldBackError, LeakScanError
from bot.jobserver.leaks.interface import Leak, LeakScan, Trees
from bot.jobserver.repository.interface import StartingPoint
from bot.jobserver.settings import PREFIX

_SETTING = f"{PREFIX}ALLOWED_SECRETS"
_NAMED_AT_MOST = 3


@dataclass(frozen=True)
class SecretGuard:
    """Stands before every push."""

    scan: LeakScan

    async def check(self, start: StartingPoint, commit: str) -> None:
        """Raises HeldBackError for a commit that holds a secret which was nowhere before."""
        try:
            leaks = await self.scan.leaks(Trees(start.tree, start.base, commit))
        except LeakScanError as error:
            raise HeldBackError(
                f"Nothing was pushed, since the change could not be looked through for keys, which {error}. "
                f"Ask for less at once, or have the files added to {_SETTING}"
            ) from None
        if leaks:
            raise HeldBackError(in_words(leaks))


def in_words(leaks: Sequence[Leak]) -> str:
    """Returns which files hold what, and what can be done; a value of the server's own cannot be allowed."""
    more = len(leaks) - _NAMED_AT_MOST
    named = [_named(leak) for leak in leaks[:_NAMED_AT_MOST]]
    told = ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])
    allowable = [f"'{leak.path}:{leak.rule}'" for leak in leaks[:_NAMED_AT_MOST] if leak.rule]
    allow = f", or have {' '.join(allowable)} added to {_SETTING} where it is none" if allowable else ""
    return f"Nothing was pushed, since the change holds {told}. Reply to have it taken out{allow}"


def _named(leak: Leak) -> str:
    if not leak.rule:
        return f"a key that this job server works with, in `{leak.path}`"
    return f"what looks like a secret ({leak.what}, rule {leak.rule}) in `{leak.path}`"
