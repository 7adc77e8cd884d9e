"""The keys of notices. The same fact always has the same key, so that it is announced once.

The database stores these keys, and messages in Slack carry them: if a key changed, its fact would be announced again.
"""

from hashlib import sha256
from typing import NewType

from bot.domain.requests.request import Reply, Request

NoticeKey = NewType("NoticeKey", str)
"""Unique within a thread."""

CARD = NoticeKey("card")
JOB_STARTED = NoticeKey("started")
RECORD_DAMAGED = NoticeKey("damaged")
CARD_NOT_POSTED = NoticeKey("cannot_post")
INTRODUCTION = NoticeKey("introduction")

_FINISHED, _FAILED, _STOPPED = "/completed", "/failed", "/stopped"


def _in_round(round_: int, nth: int, fact: str) -> NoticeKey:
    """The key of what can happen `nth` times in a round."""
    return NoticeKey(f"r{round_}{fact}" if nth == 1 else f"r{round_}/{nth}{fact}")


def job_active_again(round_: int, nth: int = 1) -> NoticeKey:
    """Told once each time."""
    return _in_round(round_, nth, "/active")


def job_status(round_: int, status: str, nth: int = 1) -> NoticeKey:
    """Told once each time, for a status that is no end. It can be any text."""
    return _in_round(round_, nth, f"/status/{_digest(status)}")


def job_silent(round_: int) -> NoticeKey:
    """Told once a round."""
    return NoticeKey(f"r{round_}/silent")


def history_unread(until: float) -> NoticeKey:
    """Told once per time in which nobody listened."""
    return NoticeKey(f"unread/{until:.0f}")


def stop_found(person_id: str) -> NoticeKey:
    """Each person is asked once about their reaction on a card."""
    return NoticeKey(f"stop_found/{person_id}")


def job_finished(round_: int, nth: int = 1) -> NoticeKey:
    """Told once each time."""
    return _in_round(round_, nth, _FINISHED)


def job_failed(round_: int, nth: int = 1) -> NoticeKey:
    """Told once each time."""
    return _in_round(round_, nth, _FAILED)


def job_stopped(round_: int, nth: int = 1) -> NoticeKey:
    """Told once each time, instead of the end that a stop causes."""
    return _in_round(round_, nth, _STOPPED)


def question_asked(round_: int, digest: str) -> NoticeKey:
    """Told once per round for each question that the agent asks while it works."""
    return NoticeKey(f"r{round_}/question/{digest}")


def job_archived(round_: int, nth: int = 1) -> NoticeKey:
    """Told once each time."""
    return _in_round(round_, nth, "/archived")


def tells_of_a_finish(key: NoticeKey) -> bool:
    """Returns whether this is the key of a `job_finished` of any round."""
    return key.endswith(_FINISHED)


def tells_of_an_end(key: NoticeKey) -> bool:
    """Returns whether this is the key of any end."""
    return key.endswith((_FINISHED, _FAILED, _STOPPED))


def pull_request_found(link: str) -> NoticeKey:
    """Told once for each link, which can have any length."""
    return NoticeKey(f"link/{_digest(link)}")


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def job_disappeared(count: int) -> NoticeKey:
    """`count`: the number of outages announced in the thread, of which this is the newest."""
    return NoticeKey("gone" if count == 1 else f"gone/{count}")


def outage_started(count: int) -> NoticeKey:
    """`count`: the number of outages announced in the thread, including this one."""
    return NoticeKey(f"out/{count}")


def outage_ended(count: int) -> NoticeKey:
    """`count`: the same as when it started."""
    return NoticeKey(f"back/{count}")


def request_delayed(request: Request) -> NoticeKey:
    """Told once for a request that is delayed although its job can be read."""
    return NoticeKey(f"{request.id}/out")


def request_rejected(request: Request) -> NoticeKey:
    """Told once for each attempt."""
    return NoticeKey(f"{request.id}/refused/{request.attempts}")


def request_uncertain(request: Request) -> NoticeKey:
    """Told once for each attempt."""
    return NoticeKey(f"{request.id}/unsure/{request.attempts}")


def stop_reported(request: Request) -> NoticeKey:
    """Sent once for a stop that the job's end does not announce."""
    return NoticeKey(f"{request.id}/stop")


def nothing_to_stop(request: Request) -> NoticeKey:
    """Sent once for a stop."""
    return NoticeKey(f"{request.id}/nothing")


def request_unreadable(request_id: str) -> NoticeKey:
    """Told once for a request whose record is damaged."""
    return NoticeKey(f"{request_id}/unreadable")


def reply_edited(request: Request) -> NoticeKey:
    """Told once for each edit."""
    return NoticeKey(f"{request.id}/edited/{request.edited_at}")


def reply_taken_back(request: Request) -> NoticeKey:
    """Told once for a request whose reply was deleted."""
    return NoticeKey(f"{request.id}/taken_back")


def reply_not_fully_sent(request: Request) -> NoticeKey:
    """Told once for a reply, however it is handled."""
    return NoticeKey(f"{request.reply_id}/not_carried")


def reaction(request: Request) -> NoticeKey:
    """The one reaction on a reply."""
    return NoticeKey(f"{request.reply_id}/mark")


def reply_muted(reply: Reply) -> NoticeKey:
    """Told once for a reply that came while the job was muted."""
    return NoticeKey(f"{reply.message_ts}/muted")


def edited_too_late(reply: Reply) -> NoticeKey:
    """Told once for an edit."""
    return NoticeKey(f"{reply.message_ts}/late/{reply.edited_at}")


def edit_without_effect(reply: Reply) -> NoticeKey:
    """Told once for an edit."""
    return NoticeKey(f"{reply.message_ts}/edit/{reply.edited_at}")


def reply_held(request: Request) -> NoticeKey:
    """Asked once for each version of a reply, and each time that it comes to wait for its person."""
    again = f"/{request.held_because}/{request.recorded_at:.6f}" if request.held_because else ""
    return NoticeKey(f"{request.id}/held/{request.edited_at}{again}")


def held_reminder(request: Request) -> NoticeKey:
    """Asked once more each time that a request comes to wait for its person."""
    return NoticeKey(f"{request.id}/held/reminder/{request.problem}/{request.recorded_at:.6f}")


def reply_asked_again(request: Request, action: Request) -> NoticeKey:
    """Asked once more whenever its writer asks what is waiting."""
    return NoticeKey(f"{request.id}/held/{request.edited_at}/{action.id}")


def reply_expired(person_id: str, at: float) -> NoticeKey:
    """Told at most once a day."""
    return NoticeKey(f"{person_id}/expired/{at // 86_400:.0f}")


def request_refused(request: Request) -> NoticeKey:
    """Told once for each version of a request that is not permitted."""
    version = f"/{request.edited_at}" if request.edited_at else ""
    return NoticeKey(f"{request.id}/refused{version}")


def project_asked(request: Request) -> NoticeKey:
    """Asked once for each version of the message that requested a job."""
    version = f"/{request.edited_at}" if request.edited_at else ""
    return NoticeKey(f"{request.id}/project{version}")


def project_too_late(request: Request) -> NoticeKey:
    """Told once for an edit."""
    return NoticeKey(f"{request.id}/project/late/{request.edited_at}")


def context_cut(request: Request) -> NoticeKey:
    """Told once for a request."""
    return NoticeKey(f"{request.reply_id}/cut")


def files_not_sent(request: Request) -> NoticeKey:
    """Told once for a request whose files could not be uploaded."""
    return NoticeKey(f"{request.reply_id}/files")


def action_answered(source_key: str) -> NoticeKey:
    """Told once for each click, even if Slack redelivers it: `source_key` consists of Slack's own ids."""
    return NoticeKey(source_key)


def sent_privately(key: NoticeKey) -> NoticeKey:
    """The key of a post that was given up and is sent to one person instead."""
    return NoticeKey(f"{key}/told")


def in_database(thread_id: str, key: NoticeKey) -> str:
    """Returns the key as it is stored, unique among all threads."""
    return f"{thread_id}/{key}"


def within_thread(thread_id: str, stored: str) -> NoticeKey:
    """Returns the key within its thread from a stored one."""
    return NoticeKey(stored.removeprefix(f"{thread_id}/"))
