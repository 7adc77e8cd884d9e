"""What people ask for in Slack, and whether Slack was told that it arrived."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from support.chaos.process_world import ProcessWorld
from support.oracles.notice_keys import key_in_thread

from bot.domain.requests.request import RequestKind
from bot.workspace.delivery.deliveries import DeliveryRecord
from bot.workspace.model.entities import Change, Message

_PROMPT = re.compile(r"scenario-\d+-\d+:")


class End(StrEnum):
    """What a job came to last."""

    LINK = "link"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass
class Ask:
    """What asked for a job: a slash command, or a mention. Without `acked`, Slack told the person that it failed, or
    brought the message in vain.
    """

    prompt: str
    acked: bool


@dataclass
class Reply:
    """A reply in the thread; `request_id` is what Pagehand calls it. `held`: its person is to be asked first (the
    requester, if it `is_answer`, else somebody else), and `answered` that, `discarded` with no. `edited` is what it
    says by now where that differs; `deleted`: it is gone, and `gone_at` is when Pagehand had acknowledged that for
    certain, in seconds of the loop. `pressed`: it is no message, but what a button says, which was acknowledged.
    """

    text: str
    ts: str
    request_id: str
    deliveries: Sequence[DeliveryRecord]
    held: bool = False
    is_answer: bool = False
    answered: bool = False
    discarded: bool = False
    edited: str = ""
    deleted: bool = False
    pressed: bool = False
    changes: Sequence[DeliveryRecord] = ()
    gone_at: float | None = None

    @property
    def texts(self) -> set[str]:
        """What it said at one time or another."""
        return {self.text, self.edited} - {""}

    def times_in(self, taken: Sequence[str]) -> int:
        """How often the job API took it, in whichever words."""
        return sum(words in self.texts for words in taken)

    @property
    def acked(self) -> bool | None:
        """Whether the bot acknowledged it to Slack; None while Slack is still at it."""
        return self.pressed or acked(self.deliveries)

    @property
    def at_first(self) -> bool:
        """Whether Slack had to bring it but once."""
        return not self.pressed and all(delivery.attempts == 1 for delivery in self.deliveries)


@dataclass
class PersonsAction:
    """Something that a person wants done about the job, by a button or a word: tried until it was acknowledged."""

    kind: RequestKind
    tries: int = 0
    acked: bool = False


class Cards:
    """Every card that was ever posted, by the prompt it shows."""

    def __init__(self, world: ProcessWorld) -> None:
        self.by_prompt: dict[str, list[Message]] = {}
        world.workspace.state.observers.append(self._happened)

    def _happened(self, change: Change) -> None:
        message = change.message
        if change.kind == "message_posted" and message is not None and key_in_thread(message) == "card":
            found = _PROMPT.search(message.text)
            self.by_prompt.setdefault(found[0] if found else "", []).append(message)


def changes_of(world: ProcessWorld, ts: str) -> list[DeliveryRecord]:
    """What Slack brings of the edits of a message and of its deletion."""
    events = ((record, record.envelope.payload.get("event", {})) for record in world.workspace.deliveries.records)
    return [record for record, event in events if ts in {event.get("deleted_ts"), event.get("message", {}).get("ts")}]


def deliveries_of(world: ProcessWorld, said: Message) -> list[DeliveryRecord]:
    """What Slack brings of a message: one event, or two where it mentions the app."""
    records = world.workspace.deliveries.records
    return [record for record in records if record.envelope.payload.get("event", {}).get("ts") == said.ts]


def joins_of(world: ProcessWorld, channel: str) -> list[DeliveryRecord]:
    """What Slack brings of those who joined a channel."""
    wanted = ("member_joined_channel", world.workspace.channels[channel].id)
    events = ((record, record.envelope.payload.get("event", {})) for record in world.workspace.deliveries.records)
    return [record for record, event in events if (event.get("type"), event.get("channel")) == wanted]


def acked(deliveries: Sequence[DeliveryRecord]) -> bool | None:
    """Whether all that Slack brought of a message was acknowledged; None while Slack is still at it."""
    if all(delivery.acked for delivery in deliveries):
        return True
    return False if any(delivery.given_up for delivery in deliveries) else None
