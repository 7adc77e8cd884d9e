"""What is asked for by something other than a reply: a new job, by whatever way in, and a follow-up from a form."""

from dataclasses import dataclass

from bot.domain.requests.request import NO_ATTACHMENTS, Attachments, MessageVersion, Person, RequestContext, WayIn
from bot.domain.threads.thread import ThreadOrigin


@dataclass(frozen=True)
class NewJob:
    """What somebody asks for. In `prompt` mentions are marked (bot.domain.context.message_text).

    Attributes:
        person: Who asks.
        channel_id: Where the card goes.
        prompt: What the agent is to do.
        source_key: Made of Slack's own ids, so that a redelivery is refused.
        way_in: How it came.
        project_said: The project that was named; empty: none.
        quiet: Nobody is mentioned at the end; None: as this person and the channel have it.
        thread_ts: The first message of the thread in which the job answers; empty: its card begins one.
        message_ts: The message that carries the marks; empty: none does.
        edited_at: The `ts` of the edit by which that message came to ask for it; empty: it was written so.
        origin: With what the thread began.
        attachments: What the message holds besides words.
        context: What goes to the agent beside the prompt, where the person has seen and edited that already.
        context_chosen: It is not to be gathered, even where there is none.
        follows: The thread of the job that it is to replace; empty: it comes after the newest of its Slack thread.
        read_until: The `ts` before which what was said in the thread goes along, where no message asks for the job;
            empty: all of it.
        may_be_reply: It does not say that it is a job: where one is at work, its person is asked.
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
        """Which version of the message that asks for it this is; None where none does."""
        if not self.message_ts:
            return None
        return MessageVersion(self.channel_id, self.message_ts, self.person.id, self.edited_at)


@dataclass(frozen=True)
class Written:
    """What was typed into a modal, or what a button says that was pressed.

    `source_key` is made of Slack's own ids, so that it counts once; of a button each person has one.
    """

    person: Person
    thread_id: str
    text: str
    source_key: str
    way_in: WayIn = WayIn.MODAL
