"""Whether something stands in a Slack thread below its first message, as far as the database knows."""

from sqlalchemy import case, false, or_, select

from bot.domain.notices.posts import Delivery
from bot.domain.requests.request import RequestKind, WayIn
from bot.store.schema.tables import notices, requests, threads

_POSTED = notices.alias("posted")
# One row each, not EXISTS: of that PostgreSQL makes a hash of the whole table.
_WRITTEN = select(requests.c.id).where(
    requests.c.thread_id == threads.c.id,
    requests.c.kind != RequestKind.START,
    requests.c.way_in.in_([WayIn.REPLY, WayIn.MENTION, WayIn.WORD]),
)
_SAID = select(_POSTED.c.id).where(
    _POSTED.c.thread_id == threads.c.id, _POSTED.c.delivery == Delivery.POST, _POSTED.c.posted_ts.is_not(None)
)
HAS_REPLIES = case(
    (
        notices.c.delivery == Delivery.EPHEMERAL,
        or_(*(one.limit(1).scalar_subquery().is_not(None) for one in (_WRITTEN, _SAID))),
    ),
    else_=false(),
).label("has_replies")
"""Of the thread of a notice for one person; not looked up for any other."""
