"""Requests that wait for their person, and what is asked about them."""

from dataclasses import replace

from bot.domain.requests.held import question_about
from bot.domain.requests.request import HeldBecause, Request, RequestState, Surface
from bot.domain.threads.direct_messages import to_ask_about
from bot.domain.threads.thread import Thread
from bot.notices.notice import NewNotice
from bot.notices.questions import HeldQuestion
from bot.store.store import RecordingTransaction

MOST_ASKED = 5
"""How many of the newest replies one question covers."""
REMINDED_AFTER = 3_600.0
"""Seconds after which an unanswered question comes once more, as a direct message: the first is seen only by people who
are online.
"""


async def hold(tx: RecordingTransaction, thread: Thread, request: Request, because: HeldBecause | None = None) -> None:
    """Records a request that waits for its person's answer, and asks for it. One recorded before is asked about unless
    it was already.
    """
    held = replace(request, state=RequestState.AWAITING_PERSON, problem=because or "")
    await tx.requests.add(held)
    await ask(tx, thread.id, held)


async def hold_again(tx: RecordingTransaction, request: Request, because: HeldBecause | None = None) -> None:
    """Lets a recorded request wait for its person, and asks."""
    held = replace(request, state=RequestState.AWAITING_PERSON, problem=because or "")
    await tx.requests.save(held)
    await ask(tx, held.thread_id, held)


async def ask(tx: RecordingTransaction, thread_id: str, held: Request) -> None:
    """Asks the person of a request that waits for them, and reminds them."""
    question = question_about(held)
    reminder = replace(question, asked_on=Surface.HOME)
    await tx.notices.add(thread_id, NewNotice(HeldQuestion.key(held), question))
    await tx.notices.add(thread_id, NewNotice(HeldQuestion.reminder_key(held), reminder, REMINDED_AFTER))


async def ask_again(tx: RecordingTransaction, thread: Thread, action: Request) -> None:
    """Asks again about held replies when their writer asks for the job's status: the first question, which only they
    see, may be lost.
    """
    for held in to_ask_about(await tx.requests.held(thread.id, action.person_id))[-MOST_ASKED:]:
        await tx.notices.add(thread.id, NewNotice(HeldQuestion.key_for(held, action), question_about(held)))
