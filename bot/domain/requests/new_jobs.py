"""Requests other than replies: a new job, by any way in, and a follow-up from a form."""

from dataclasses import dataclass

from bot.domain.requests.request import NO_ATTACHMENTS, Attachments, MessageVersion, Person, RequestContext, WayIn
from bot.domain.threads.thread import ThreadOrigin


@dataclass(frozen=True)
class NewJob:
    """A request for a job. In `prompt` mentions are marked (bot.domain.context.message_text).

    Attributes:
        person: The requester.
        channel_id: The channel for the card.
        prompt: The task.
        source_key: Consists of Slack's own ids, so that a redelivery is recognized.
        way_in: How it was requested.
        project_said: The project that the request names; empty: none.
        quiet: Whether the end mentions nobody; None: as the person and the channel prefer.
        thread_ts: The first message of the thread for the job; empty: its card starts one.
        message_ts: The message that gets the reactions; empty: none.
        edited_at: The `ts` of the edit by which the message came to ask for a job; empty: it did from the start.
        origin: What the thread began with.
        attachments: What the message contains besides text.
        context: The context, if the person has already seen and edited it.
        context_chosen: Whether the person chose the context, so that none is gathered, even if it is empty.
        follows: The thread of the job to replace; empty: it follows the newest job of its Slack thread.
        read_until: The `ts` before which the thread is included, if no message requests the job; empty: all of it.
        may_be_reply: Whether it could also be a follow-up; if a job is running, the person is asked.
    """

    person: Person
    channel_id: str
    prompt: str
    source_key: str
    way_in: WayIn
    project_said: str = ""
    quiet: bool | None = None
    thread_ts: str = ""
    message_ts: str = ""
    edited_at: str = ""
    origin: ThreadOrigin = ThreadOrigin.CARD
    attachments: Attachments = NO_ATTACHMENTS
    context: RequestContext | None = None
    context_chosen: bool = False
    read_until: str = ""
    follows: str = ""
    may_be_reply: bool = False

    @property
    def version(self) -> MessageVersion | None:
        """The version of the message that requests the job; None if there is no message."""
        if not self.message_ts:
            return None
        return MessageVersion(self.channel_id, self.message_ts, self.person.id, self.edited_at)


@dataclass(frozen=True)
class Written:
    """A follow-up that was typed into a modal, or is the text of a button.

    `source_key` consists of Slack's own ids, so that it counts once. Each person can press a button once.
    """

    person: Person
    thread_id: str
    text: str
    source_key: str
    way_in: WayIn = WayIn.MODAL
