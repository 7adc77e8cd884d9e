"""What the listeners work with."""

from dataclasses import dataclass, field

from bot.ports.service import ServicePort
from bot.slack.receiving.first_occurrences import FirstOccurrences, RecentOccurrences
from bot.slack.receiving.modals.opener import ModalOpener
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity


@dataclass(frozen=True)
class Dependencies:
    """The same for all listeners of a process. `logged` is what the log has told of, `told` the messages whose writer
    was told something privately: both come more than once. Without an `opener` there are no modals.
    """

    service: ServicePort
    recorder: RequestRecorder
    ephemeral_sender: EphemeralSender
    message_context: MessageContext
    identity: Identity
    opener: ModalOpener | None = None
    logged: FirstOccurrences = field(default_factory=FirstOccurrences)
    told: RecentOccurrences = field(default_factory=RecentOccurrences)
