"""Which messages in a Slack thread are meant for its job. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.domain.commands.thanks import is_only_emoji, is_only_thanks
from bot.domain.commands.thread_words import ThreadWord
from bot.domain.jobs.job import Problem
from bot.domain.people.home import waits_for_person
from bot.domain.projects import ReplyMode
from bot.domain.requests.request import Reply
from bot.domain.threads.thread import MAX_PARTICIPANTS, Thread, ThreadOrigin, ThreadState

EDITS_ASK_FOR = 600.0
"""Seconds after a message was written in which an edit of it can ask for a job; later ones are told to write anew."""
ReplyModes = Callable[[str], ReplyMode]
"""Whose replies count in a channel, by its id."""


class ReplyMeaning(StrEnum):
    """What is to be made of a message in a job's thread."""

    SEND = "send"
    ASK_FIRST = "ask_first"
    """Its person is asked whether it is for the agent."""
    MUTED = "muted"
    """It would be sent, but the job is muted: its person is told."""
    THANKS = "thanks"
    """It thanks for what was done, and is no instruction: it gets a reaction."""
    BETWEEN_PEOPLE = "between_people"
    """Nothing: it is none of our business."""


def everyone(_channel_id: str) -> ReplyMode:
    """Everyone's replies count in every channel."""
    return ReplyMode.EVERYONE


@dataclass(frozen=True)
class ReplyTerms:
    """By what replies are recorded: whose count in a channel, and within how many seconds one is written after another
    that goes out as one message with it.
    """

    modes: ReplyModes = everyone
    merge_seconds: float = 0.0


ALL_REPLIES = ReplyTerms()
"""Everyone's count, and each goes out by itself."""


def mode_of(thread: Thread, mode: ReplyMode, *, in_direct_message: bool = False) -> ReplyMode:
    """Returns whose replies count in a thread, in a channel that has this mode. In somebody else's conversation only
    mentions do; in a direct message all is meant for Pagehand.
    """
    if in_direct_message or thread.channel_id.startswith("D"):
        return ReplyMode.EVERYONE
    return ReplyMode.MENTIONS if thread.origin is ThreadOrigin.CONVERSATION else mode


def meaning(reply: Reply, thread: Thread, mode: ReplyMode) -> ReplyMeaning:
    """Returns what is to be made of a message. `mode` is that of the channel. A mention of Pagehand always counts."""
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
    if mode is ReplyMode.PARTICIPANTS and not (reply.mentions_us or takes_part(reply.person.id, thread)):
        return ReplyMeaning.ASK_FIRST
    return ReplyMeaning.SEND


def is_emoji_alone(reply: Reply) -> bool:
    """Whether a message cheers, and says nothing else; to an agent's question that can be the answer."""
    return is_only_emoji(reply.text) and not reply.attachments


def is_thanks_alone(reply: Reply) -> bool:
    """Whether a message thanks, and says and holds nothing else."""
    return reply.word is None and not reply.attachments and is_only_thanks(reply.text)


def _is_over(thread: Thread) -> bool:
    """Whether a job has ended, and its agent waits for no answer; or was taken back before it began."""
    job = thread.state.job
    return never_began(thread) if job is None else job.ended and not waits_for_person(thread)


def asks_for_a_job(reply: Reply) -> bool:
    """Whether a message where there is no job asks for one: as it was written, or as it was edited soon after."""
    if reply.withdrawn or not may_ask(reply.message_ts, reply.edited_at):
        return False
    to_us = (reply.mentions_us or in_direct_message(reply)) and not (is_emoji_alone(reply) or is_thanks_alone(reply))
    return to_us and reply.word in {None, ThreadWord.NEW} and bool(reply.text or reply.attachments.files)


def in_direct_message(reply: Reply) -> bool:
    """Whether a message is to Pagehand alone, so that nothing has to say so."""
    return reply.in_direct_message or reply.channel_id.startswith("D")


def may_be_for_us(reply: Reply) -> bool:
    """Whether a message is for Pagehand, or was before it was edited or deleted, as far as that is known."""
    said_to_us = reply.mentions_us or reply.mentioned_us_before or reply.word is not None
    return said_to_us or in_direct_message(reply) or not reply.person.id


def may_ask(message_ts: str, edited_at: str) -> bool:
    """Whether a message that was edited then (empty: never) can still ask for a job."""
    return not edited_at or float(edited_at) - float(message_ts) <= EDITS_ASK_FOR


def never_began(thread: Thread) -> bool:
    """Whether a thread's job was taken back before it was sent: a mention there asks for another one."""
    return thread.state.job is None and thread.state.failure.problem in {Problem.STOPPED, Problem.WITHDRAWN}


def takes_part(person_id: str, thread: Thread) -> bool:
    """Whether somebody asked for the job or has steered it."""
    return person_id == thread.requester_id or person_id in thread.state.people.participants


def steered_by(thread: Thread, person_id: str, *, counts: bool) -> ThreadState:
    """Returns a job's state with somebody more who steered it. `counts`: from now on all that they write here does."""
    state, people = thread.state, thread.state.people
    if person_id == thread.requester_id or (not counts and takes_part(person_id, thread)):
        return state
    if counts:
        return replace(state, people=replace(people, participants=_with_newest(people.participants, person_id)))
    return replace(state, people=replace(people, let_through=_with_newest(people.let_through, person_id)))


def _with_newest(people: tuple[str, ...], person_id: str) -> tuple[str, ...]:
    """The newest last; the oldest are forgotten."""
    others = (other for other in people if other != person_id)
    return (*others, person_id)[-MAX_PARTICIPANTS:]
