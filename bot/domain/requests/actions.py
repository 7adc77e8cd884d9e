"""What people do about a job besides writing to its agent: a button, a `!word`, a reaction on the card."""

from dataclasses import dataclass

from bot.domain.requests.request import Person, RequestKind, WayIn


@dataclass(frozen=True)
class Action:
    """What somebody wants done. The job is named by its thread's id, or by where its card is.

    Attributes:
        person: Who wants it.
        kind: What: any kind but a start and a follow-up.
        source_key: Made of Slack's own ids, so that a redelivery is refused.
        channel_id: Where it was done; empty in a modal or Home.
        thread_id: The thread of the job; empty: `card_ts` names it.
        card_ts: The card that somebody reacted to.
        argument: What the kind needs: a request's id, a project's name.
        message_ts: The message that carries the mark; empty: none does.
        way_in: How it was done.
    """

    person: Person
    kind: RequestKind
    source_key: str
    channel_id: str = ""
    thread_id: str = ""
    card_ts: str = ""
    argument: str = ""
    message_ts: str = ""
    way_in: WayIn = WayIn.BUTTON
