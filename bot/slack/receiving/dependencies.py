"""What the listeners share."""

from dataclasses import dataclass, field
from typing import Any

from slack_bolt.context.async_context import AsyncBoltContext

from bot.domain.requests.request import Arrival
from bot.ports.service import ServicePort
from bot.slack.receiving.authors import Authors
from bot.slack.receiving.first_occurrences import FirstOccurrences, RecentOccurrences
from bot.slack.receiving.modal_opener import ModalOpener
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity


@dataclass(frozen=True)
class Dependencies:
    """One for all listeners of a process. `logged` remembers which kinds of payloads were logged, `told` the messages
    whose author was told something privately. Without an `opener` there are no modals.
    """

    service: ServicePort
    recorder: RequestRecorder
    ephemeral_sender: EphemeralSender
    message_context: MessageContext
    identity: Identity
    authors: Authors
    opener: ModalOpener | None = None
    logged: FirstOccurrences = field(default_factory=FirstOccurrences)
    told: RecentOccurrences = field(default_factory=RecentOccurrences)


_ARRIVAL = "arrival"


def context_with(arrival: Arrival) -> dict[str, Any]:
    """Returns what the listeners learn about a payload besides its content."""
    return {_ARRIVAL: arrival}


def arrival_in(context: AsyncBoltContext) -> Arrival:
    """Returns how a payload reached Pagehand."""
    return Arrival(context[_ARRIVAL])
