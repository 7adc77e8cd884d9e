"""Decides whether a look at a job needs no decision: it shows what an earlier one did, of which nothing came. Pure."""

from bot.domain.jobs.observe import Decision, JobObserved, decide
from bot.domain.jobs.poll_pace import Polling
from bot.domain.threads.thread import ThreadState

_EVER = 1e9
"""Seconds: longer than anything that is held back waits."""


def means_nothing_for_good(
    state: ThreadState, seen: JobObserved, decision: Decision, now: float, polling: Polling
) -> bool:
    """Whether the same look at the same state comes to nothing at any later time, but for when the next one is due.

    Args:
        state: The thread's.
        seen: What the job API showed.
        decision: What followed from it now.
        now: When it was decided, on the store's clock.
        polling: How often jobs are polled.

    What time alone brings, like progress that was held back, comes at some moment and does not go away again. So what
    is nothing now, and nothing after ages, is nothing all the time between.
    """
    if not _is_nothing(state, decision):
        return False
    return _is_nothing(state, decide(state, seen, now + _EVER, polling))


def _is_nothing(state: ThreadState, decision: Decision) -> bool:
    return not decision.notices and not decision.card_changed and decision.state == state
