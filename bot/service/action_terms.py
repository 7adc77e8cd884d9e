"""The terms for actions, and saving a job that somebody steers. Each function runs inside a transaction in
which the thread is locked.
"""

from dataclasses import dataclass

from bot.domain.jobs.poll_pace import Polling, next_poll_in
from bot.domain.projects import Projects
from bot.domain.requests.request import RequestState
from bot.domain.threads.reply_rules import steered_by
from bot.domain.threads.thread import Thread, ThreadState
from bot.store.store import RequestTransaction

NOT_SENT = frozenset(
    {RequestState.RECEIVED, RequestState.PREPARING, RequestState.WAITING, RequestState.AWAITING_PERSON}
)
"""States of a start that can still be changed or withdrawn before the job API gets it."""


@dataclass(frozen=True)
class ActionTerms:
    """The terms for actions: the projects, how jobs are polled, and a random number from 0 to 1."""

    projects: Projects
    polling: Polling
    jitter: float = 0.5


async def note_steering(
    tx: RequestTransaction, thread: Thread, person_id: str, terms: ActionTerms, *, counts: bool
) -> None:
    """Records that somebody steers a job. `counts`: from now on, everything they write in its thread counts."""
    state = steered_by(thread, person_id, counts=counts)
    if state != thread.state:
        await keep_polling(tx, thread, state, terms)


async def keep_polling(tx: RequestTransaction, thread: Thread, state: ThreadState, terms: ActionTerms) -> None:
    """Saves the state of a job, and continues to poll it if it is polled."""
    poll_in = next_poll_in(state, tx.now, terms.polling, jitter=terms.jitter)
    await tx.threads.save_state(thread.id, state, poll_in=poll_in)
