"""Holds back commits that contain secrets."""

from collections.abc import Sequence

from bot.jobserver.errors import HeldBackError, LeakScanError
from bot.jobserver.leaks.scan import Leak, Trees
from bot.jobserver.pipeline.partial_work import keep_commit
from bot.jobserver.pipeline.prepare import Prepared
from bot.jobserver.pipeline.tools import Tools
from bot.jobserver.settings import PREFIX

_SETTING = f"{PREFIX}ALLOWED_SECRETS"
_MOST_NAMED = 3


async def scan(tools: Tools, prepared: Prepared, commit: str) -> None:
    """Raises HeldBackError for a commit that adds a secret, or cannot be searched for any; the work is kept."""
    try:
        leaks = await tools.scan.leaks(Trees(prepared.start.tree, prepared.start.base, commit))
    except LeakScanError as error:
        reason = (
            f"Nothing was pushed, since the change could not be searched for keys: the search {error}. "
            f"Ask for less at once, or have the files added to {_SETTING}"
        )
    else:
        if not leaks:
            return
        reason = in_words(leaks)
    await keep_commit(tools, prepared, commit)
    raise HeldBackError(reason)


def in_words(leaks: Sequence[Leak]) -> str:
    """Says which files contain what, and what to do; values of the server itself cannot be allowed."""
    more = len(leaks) - _MOST_NAMED
    named = [_named(leak) for leak in leaks[:_MOST_NAMED]]
    found = ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])
    allowable = [f"'{leak.path}:{leak.rule}'" for leak in leaks[:_MOST_NAMED] if leak.rule]
    allow = f", or, if it is none, have {' '.join(allowable)} added to {_SETTING}" if allowable else ""
    return f"Nothing was pushed, since the change contains {found}. Reply to have it removed{allow}"


def _named(leak: Leak) -> str:
    if not leak.rule:
        return f"a key of this job server, in `{leak.path}`"
    return f"what looks like a secret ({leak.what}, rule {leak.rule}) in `{leak.path}`"
