"""What all messages for one person have in common."""

from dataclasses import dataclass, field
from typing import ClassVar

from bot.domain.notices.posts import Delivery
from bot.domain.threads.surfaces import Surface


@dataclass(frozen=True)
class ToPerson:
    """A message for one person only, told where they asked for it."""

    delivery: ClassVar = Delivery.EPHEMERAL
    person_id: str
    asked_on: Surface = field(default=Surface.CONVERSATION, kw_only=True)
