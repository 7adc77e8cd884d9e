"""What commits leave to be done at once: whoever does it is woken, and nobody else, since an empty claim is a
transaction, too. Whatever is left besides is found within the claim interval.
"""

from enum import StrEnum

from bot.domain.notices.posts import Delivery
from bot.domain.requests.request import RequestKind
from bot.ports.store import ClaimedNotice, ClaimedRequest


class Work(StrEnum):
    """Each is for one worker."""

    PREPARE = "prepare"
    UPLOAD = "upload"
    SEND = "send"
    DELIVER = "deliver"


NOTHING: frozenset[Work] = frozenset()
ANYTHING = frozenset({Work.PREPARE, Work.SEND, Work.DELIVER})
"""Files to upload are left by preparing alone."""


def left_by_preparing(item: ClaimedRequest, *, uploads: bool) -> frozenset[Work]:
    """Of a start that waits for its card first, that card. `uploads`: files go along."""
    waits_for_card = item.request.kind is RequestKind.START and item.thread.card_ts is None
    left = frozenset({Work.DELIVER}) if waits_for_card else ANYTHING
    return left | {Work.UPLOAD} if uploads else left


def left_by_sending() -> frozenset[Work]:
    """The next of the thread, and what is told."""
    return frozenset({Work.SEND, Work.DELIVER})


def left_by_delivering(item: ClaimedNotice) -> frozenset[Work]:
    """A start, and early replies, may have waited for the first card; otherwise the next notice of the thread did."""
    is_first_card = item.notice.delivery is Delivery.CARD and item.thread.card_ts is None
    return ANYTHING if is_first_card else frozenset({Work.DELIVER})
