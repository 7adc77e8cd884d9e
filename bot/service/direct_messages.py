"""Lines of direct messages outside its threads, each a job or for the one above: while that is active, their writer is
asked which.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.requests.edits import reaction_notice
from bot.domain.requests.held import job_in_hand, lines_with, to_ask_about
from bot.domain.requests.new_jobs import NewJob, new_request, request_id
from bot.domain.requests.request import Person, Reply, Request, RequestKind, RequestState, WayIn
from bot.domain.threads.thread import Thread, ThreadOrigin
from bot.notices.notice import Reaction
from bot.service.follow_up import follow_up_of, hold
from bot.service.start import record_start
from bot.store.store import RecordingTransaction

MOST_LOOKED_AT = 10
"""How many of the newest jobs are searched for the last active one."""


async def record_line(tx: RecordingTransaction, asked: NewJob) -> bool:
    """Records a line that may be for the job above, and asks its writer. Lines written right after it share the
    question. False if the line is a job.
    """
    if not asked.may_be_reply or asked.thread_ts != asked.message_ts:
        return False
    found = job_in_hand(await _jobs_of(tx, asked.person, asked.channel_id), tx.now)
    above = await tx.threads.get(found.id) if found is not None else None
    if await tx.requests.get(request_id(asked.source_key)):
        return True  # it was recorded before, perhaps while this transaction waited for the thread
    if above is None or job_in_hand([above], tx.now) is None:
        return False
    line = _line(tx, above, asked)
    if len(lines_with(line, await tx.requests.held(above.id, asked.person.id))) > 1:
        await tx.requests.add(line)
    else:
        await hold(tx, line)
    return True


async def _jobs_of(tx: RecordingTransaction, person: Person, channel_id: str) -> list[Thread]:
    newest = await tx.threads.newest_of(channel_id, limit=MOST_LOOKED_AT)
    return [thread for thread in newest if thread.requester_id == person.id]


def _line(tx: RecordingTransaction, above: Thread, asked: NewJob) -> Request:
    way_in = WayIn.DIRECT_MESSAGE
    line = new_request(above, RequestKind.FOLLOW_UP, asked.source_key, asked.person, asked.prompt, way_in=way_in)
    line = replace(line, written_at=asked.message_ts, recorded_at=tx.now, edited_at=asked.edited_at)
    return replace(line, attachments=asked.attachments, state=RequestState.AWAITING_PERSON)


async def record_thanks(tx: RecordingTransaction, thanks: Reply) -> None:
    """Adds the reaction to thanks if there is a job they can be for; they are not sent anywhere."""
    for last in (await _jobs_of(tx, thanks.person, thanks.channel_id))[:1]:
        request = follow_up_of(tx, last, thanks, WayIn.DIRECT_MESSAGE)
        request = replace(request, state=RequestState.WITHDRAWN)
        if await tx.threads.get(last.id) and await tx.requests.add(request):
            await tx.notices.add(last.id, reaction_notice(request, Reaction.WELCOME))


async def begin_job(tx: RecordingTransaction, above: Thread, line: Request, asked: NewJob) -> None:
    """Makes a job of a line that waits in the thread of the job above. Lines written together with it become
    follow-ups of the new job.
    """
    together = lines_with(line, await tx.requests.held(above.id, line.person_id))
    await tx.requests.remove(line)  # a start has the id of its message, too
    await record_start(tx, asked)
    job = await tx.threads.get(line.id)
    if job is not None:
        others = [each for each in together if each.id != line.id]
        await add_to_job(tx, job, others)


def job_of_line(above: Thread, line: Request) -> NewJob:
    """Returns the job that a line asks for; `above` is the thread in which it waited."""
    return NewJob(
        person=line.person,
        channel_id=above.channel_id,
        prompt=line.text,
        source_key=line.source_key,
        way_in=WayIn.DIRECT_MESSAGE,
        thread_ts=line.written_at,
        message_ts=line.written_at,
        edited_at=line.edited_at,
        origin=ThreadOrigin.REQUEST,
        attachments=line.attachments,
    )


async def add_to_job(tx: RecordingTransaction, job: Thread, lines: Sequence[Request]) -> None:
    """Sends lines as follow-ups to a job, in order."""
    for line in lines:
        released = replace(line, state=RequestState.RECEIVED)
        await tx.requests.save(released)
        if job.id != line.thread_id:
            await tx.requests.move([released], job.id)
        await tx.notices.add(job.id, reaction_notice(released, Reaction.RECORDED))


async def ask_about_lines(tx: RecordingTransaction, thread: Thread, person_id: str) -> None:
    """Asks somebody about lines that shared a question with a line that was removed."""
    for line in to_ask_about(await tx.requests.held(thread.id, person_id)):
        if line.may_be_job:
            await hold(tx, line)
