"""Which messages in a Slack thread are meant for its job. Pure."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from bot.domain.commands import ThreadWord, asks_for_another_way, has_wrong_option, is_only_emoji, is_only_thanks
from bot.domain.jobs.job import Problem
from bot.domain.projects import ReplyMode
from bot.domain.requests.request import Reply
from bot.domain.threads.thread import MAX_PARTICIPANTS, Thread, ThreadOrigin, ThreadState, waits_for_person

EDITS_ASK_FOR = 600.0
"""Seconds after which editing a message can no longer start a job; the writer is asked to write a new one."""
ReplyModes = Callable[[str], ReplyMode]
"""Returns whose replies are sent in a channel, by its id."""


class ReplyMeaning(StrEnum):
    """How a message in a job's thread is handled."""

    SEND = "send"
    ASK_FIRST = "ask_first"
    """Its writer is asked whether it is for the agent."""
    MUTED = "muted"
    """It is not sent, because the job is muted; its writer is told."""
    FOR_A_NEW_JOB = "for_a_new_job"
    """It is not sent, because it begins with options that only a new job can have; its writer is told."""
    THANKS = "thanks"
    """It only says thanks, and gets a reaction."""
    BETWEEN_PEOPLE = "between_people"
    """It is ignored."""


def everyone(_channel_id: str) -> ReplyMode:
    """Lets everyone's replies be sent in every channel."""
    return ReplyMode.EVERYONE


def mode_of(thread: Thread, mode: ReplyMode, *, in_direct_message: bool = False) -> ReplyMode:
    """Returns whose replies are sent in a thread of a channel with this mode. In somebody else's conversation, only
    mentions are; in a direct message, everything is.
    """
    if in_direct_message or thread.channel_id.startswith("D"):
        return ReplyMode.EVERYONE
    return ReplyMode.MENTIONS if thread.origin is ThreadOrigin.CONVERSATION else mode


def meaning(reply: Reply, thread: Thread, mode: ReplyMode) -> ReplyMeaning:
    """Returns how a message is handled. `mode` is the channel's. Mentions of Pagehand are always sent."""
    mode = mode_of(thread, mode, in_direct_message=reply.in_direct_message)
    if mode is ReplyMode.MENTIONS and not reply.mentions_us:
        return ReplyMeaning.BETWEEN_PEOPLE
    if is_emoji_alone(reply):
        asks = waits_for_person(thread) and not thread.state.people.muted_by
        return ReplyMeaning.ASK_FIRST if asks else ReplyMeaning.BETWEEN_PEOPLE
    if is_thanks_alone(reply) and _is_over(thread):
        return ReplyMeaning.THANKS
    if thread.state.people.muted_by:
        return ReplyMeaning.MUTED
    if asks_for_another_way(reply.text) and not (never_began(thread) and asks_for_a_job(reply)):
        return ReplyMeaning.FOR_A_NEW_JOB
    asks_first = mode is ReplyMode.PARTICIPANTS and not (reply.mentions_us or takes_part(reply.person.id, thread))
    return ReplyMeaning.ASK_FIRST if asks_first else ReplyMeaning.SEND


def is_emoji_alone(reply: Reply) -> bool:
    """Returns whether a message consists of emoji only, which can still be the answer to an agent's question."""
    return is_only_emoji(reply.text) and not reply.attachments


def is_thanks_alone(reply: Reply) -> bool:
    """Returns whether a message only says thanks, and has no attachments."""
    return reply.word is None and not reply.attachments and is_only_thanks(reply.text)


def _is_over(thread: Thread) -> bool:
    """Returns whether a job has ended without an open question, or was withdrawn before it started."""
    job = thread.state.job
    return never_began(thread) if job is None else job.ended and not waits_for_person(thread)


def asks_for_a_job(reply: Reply) -> bool:
    """Returns whether a message outside of any job asks for one, originally or after an early edit."""
    if reply.withdrawn or not may_ask(reply.message_ts, reply.edited_at) or has_wrong_option(reply.text):
        return False
    to_us = (reply.mentions_us or in_direct_message(reply)) and not (is_emoji_alone(reply) or is_thanks_alone(reply))
    return to_us and reply.word in {None, ThreadWord.NEW} and bool(reply.text or reply.attachments.files)


def in_direct_message(reply: Reply) -> bool:
    """Returns whether a message is in a direct message to Pagehand, where no mention is needed."""
    return reply.in_direct_message or reply.channel_id.startswith("D")


def may_be_for_us(reply: Reply) -> bool:
    """Returns whether a message is, or was before an edit or deletion, for Pagehand, as far as is known."""
    said_to_us = reply.mentions_us or reply.mentioned_us_before or reply.word is not None
    return said_to_us or in_direct_message(reply) or not reply.person.id


def may_ask(message_ts: str, edited_at: str) -> bool:
    """Returns whether a message with this last edit (empty: none) can still ask for a job."""
    return not edited_at or float(edited_at) - float(message_ts) <= EDITS_ASK_FOR


def never_began(thread: Thread) -> bool:
    """Returns whether a thread's job was withdrawn before it was sent, so that a mention there asks for another."""
    return thread.state.job is None and thread.state.failure.problem in {Problem.STOPPED, Problem.WITHDRAWN}


def takes_part(person_id: str, thread: Thread) -> bool:
    """Returns whether somebody is a participant: requested the job, or has steered it."""
    return person_id == thread.requester_id or person_id in thread.state.people.participants


def steered_by(thread: Thread, person_id: str, mode: ReplyMode, *, for_good: bool = False) -> ThreadState:
    """Returns a job's state after somebody steered it, who becomes a participant. Where the channel's `mode` only lets
    participants' replies be sent, one of them does not suffice: only `for_good`, having asked for all to be sent.
    """
    state, people = thread.state, thread.state.people
    joins = for_good or mode_of(thread, mode) is not ReplyMode.PARTICIPANTS
    if person_id == thread.requester_id or not joins:
        return state
    return replace(state, people=replace(people, participants=_with_newest(people.participants, person_id)))


def _with_newest(people: tuple[str, ...], person_id: str) -> tuple[str, ...]:
    """Puts the newest last, and drops the oldest."""
    others = (other for other in people if other != person_id)
    return (*others, person_id)[-MAX_PARTICIPANTS:]
