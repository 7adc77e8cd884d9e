"""What people ask for in Slack, and whether Slack was told that it arrived."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from support.chaos.process_world import ProcessWorld
from support.oracles.notice_keys import key_in_thread

from bot.domain.requests.request import RequestKind
from bot.workspace.delivery.deliveries import DeliveryRecord
from bot.workspace.model.entities import Change, Message

_PROMPT = re.compile(r"scenario-\d+-\d+:")


class End(StrEnum):
    """The final outcome of a job."""

    LINK = "link"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass
class Ask:
    """A request for a job: a slash command or a mention. Without `acked`, Slack told the person that it failed, or
    delivered the message without success.
    """

    prompt: str
    acked: bool


@dataclass
class Reply:
    """A reply in the thread; `request_id` is Pagehand's id of it. `held`: its person is asked first (the requester, if
    it `is_answer`, otherwise another person). `stopped`: a stop followed, and its person is asked if that withdrew it.
    They `answered` these questions, with no if `discarded`. `edited` is its current text if that differs; `deleted`
    means that it is gone. `gone_at` is when Pagehand certainly acknowledged that it is gone, or not to be sent after a
    stop, in seconds of the loop. `pressed`: it is the text of a button, which was acknowledged, and not a message.
    """

    text: str
    ts: str
    request_id: str
    deliveries: Sequence[DeliveryRecord]
    held: bool = False
    is_answer: bool = False
    stopped: bool = False
    answered: set[str] = field(default_factory=set)
    discarded: bool = False
    edited: str = ""
    deleted: bool = False
    pressed: bool = False
    changes: Sequence[DeliveryRecord] = ()
    gone_at: float | None = None

    @property
    def texts(self) -> set[str]:
        """Every text that it had at any time."""
        return {self.text, self.edited} - {""}

    def times_in(self, taken: Sequence[str]) -> int:
        """Returns how often the job API took it, in any of its texts."""
        return sum(words in self.texts for words in taken)

    @property
    def acked(self) -> bool | None:
        """Whether the bot acknowledged it to Slack; None while Slack is still delivering."""
        return self.pressed or acked(self.deliveries)

    @property
    def at_first(self) -> bool:
        """Whether Slack delivered it only once."""
        return not self.pressed and all(delivery.attempts == 1 for delivery in self.deliveries)


@dataclass
class PersonsAction:
    """An action about the job, by button or word, repeated until it is acknowledged."""

    kind: RequestKind
    tries: int = 0
    acked: bool = False


class Cards:
    """Every card ever posted, by the prompt that it shows."""

    def __init__(self, world: ProcessWorld) -> None:
        self.by_prompt: dict[str, list[Message]] = {}
        world.workspace.state.observers.append(self._happened)

    def _happened(self, change: Change) -> None:
        message = change.message
        if change.kind == "message_posted" and message is not None and key_in_thread(message) == "card":
            found = _PROMPT.search(message.text)
            self.by_prompt.setdefault(found[0] if found else "", []).append(message)


def changes_of(world: ProcessWorld, ts: str) -> list[DeliveryRecord]:
    """Returns what Slack delivers for a message's edits and deletion."""
    events = ((record, record.envelope.payload.get("event", {})) for record in world.workspace.deliveries.records)
    return [record for record, event in events if ts in {event.get("deleted_ts"), event.get("message", {}).get("ts")}]


def deliveries_of(world: ProcessWorld, said: Message) -> list[DeliveryRecord]:
    """Returns what Slack delivers for a message: one event, or two if it mentions the app."""
    records = world.workspace.deliveries.records
    return [record for record in records if record.envelope.payload.get("event", {}).get("ts") == said.ts]


def reactions_to(world: ProcessWorld, ts: str) -> list[DeliveryRecord]:
    """Returns what Slack delivers about reactions to a message."""
    events = ((record, record.envelope.payload.get("event", {})) for record in world.workspace.deliveries.records)
    return [record for record, event in events if event.get("item", {}).get("ts") == ts]


def joins_of(world: ProcessWorld, channel: str) -> list[DeliveryRecord]:
    """Returns what Slack delivers about people who joined a channel."""
    wanted = ("member_joined_channel", world.workspace.channels[channel].id)
    events = ((record, record.envelope.payload.get("event", {})) for record in world.workspace.deliveries.records)
    return [record for record, event in events if (event.get("type"), event.get("channel")) == wanted]


def acked(deliveries: Sequence[DeliveryRecord]) -> bool | None:
    """Whether everything that Slack delivered for a message was acknowledged; None while Slack is still delivering."""
    if all(delivery.acked for delivery in deliveries):
        return True
    return False if any(delivery.given_up for delivery in deliveries) else None
