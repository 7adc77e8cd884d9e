"""Marks what was open in a restored database as uncertain, because it may have been sent since the backup."""

from collections.abc import Collection, Sequence

from sqlalchemy import and_, bindparam, false, func, or_, select, true, update

from bot.domain.requests.request import RequestKind, RequestState
from bot.notices.notice import Delivery
from bot.store.schema.tables import notices, polls, requests
from bot.store.session import Part

_NOBODY = "backup"
"""The owner of claims that no process holds."""
_OPEN = requests.c.due_at.is_not(None)
_FOR_THE_AGENT = requests.c.kind.in_((RequestKind.START, RequestKind.FOLLOW_UP))
_TO_BE_PREPARED = requests.c.state.in_((RequestState.RECEIVED, RequestState.PREPARING))
_UNTRIED = (
    update(requests)
    .where(
        _OPEN,
        _FOR_THE_AGENT,
        or_(_TO_BE_PREPARED, and_(requests.c.state == RequestState.WAITING, requests.c.uncertain == false())),
    )
    .values(uncertain=True, attempts=0, first_tried_at=None)
)
"""Requests may have been edited and merged before they were sent, so the request sender handles each separately."""
_TRIED = (
    update(requests)
    .where(
        _OPEN,
        _FOR_THE_AGENT,
        requests.c.state == RequestState.WAITING,
        requests.c.uncertain == true(),
        requests.c.attempts > 0,
    )
    .values(state=RequestState.SENDING, claimed_by=_NOBODY, claimed_until=0.0)
)
"""An uncertain notice stays uncertain, as if the process that sent it again had ended."""
_IN_DOUBT = (
    select(func.count())
    .select_from(requests)
    .where(_OPEN, _FOR_THE_AGENT, or_(requests.c.uncertain == true(), requests.c.state == RequestState.SENDING))
)
_OF_KINDS = (
    select(requests.c.id)
    .where(_OPEN, requests.c.kind.in_(bindparam("kinds", expanding=True)))
    .order_by(requests.c.recorded_at, requests.c.id)
)
_OPEN_THREADS = [
    select(table.c.thread_id).where(table.c.due_at >= 0.0).order_by(table.c.due_at)
    for table in (polls, requests, notices)
]
_NOTICES = update(notices).where(notices.c.due_at.is_not(None)).values(uncertain=True)
_SOME_NOTICES = (
    select(notices.c.id).where(notices.c.id > bindparam("after")).order_by(notices.c.id).limit(bindparam("most"))
)
_REACTIONS = (
    update(notices)
    .where(
        notices.c.id > bindparam("after"),
        notices.c.id <= bindparam("until"),
        notices.c.delivery == Delivery.REACTION,
    )
    .values(revision=notices.c.revision + 1, reactions_shown=None, reaction_added=False)
)


class Restoration(Part):
    """Marks as uncertain, in a database restored from a backup, what may have been sent since the backup."""

    async def mark_requests_in_doubt(self) -> int:
        """Marks requests that were on their way to the agent as possibly arrived; returns how many. Those not sent yet
        count as never tried (`Request.restored`).
        """
        session = self._session
        await session.execute(_TRIED)
        await session.execute(_UNTRIED)
        return int((await session.execute(_IN_DOUBT)).scalar_one())

    async def open_of_kinds(self, kinds: Collection[RequestKind]) -> Sequence[str]:
        """Returns the ids of all open requests of these kinds, oldest first."""
        rows = await self._session.rows(_OF_KINDS, kinds=list(kinds))
        return [str(row[requests.c.id]) for row in rows]

    async def open_threads(self) -> Sequence[str]:
        """Returns the ids of all threads with a poll, an open request or an open notice."""
        found = [row["thread_id"] for statement in _OPEN_THREADS for row in await self._session.rows(statement)]
        return tuple(dict.fromkeys(found))

    async def mark_notices_in_doubt(self) -> int:
        """Marks open notices to be looked for in Slack before they are posted; returns how many."""
        return (await self._session.execute(_NOTICES)).rowcount

    async def mark_reactions_in_doubt(self, *, after: int, limit: int) -> int | None:
        """Marks the replies of the next `limit` notices after an id as possibly carrying any reaction; returns the last
        of these ids, None if there are no more.
        """
        ids = [row[notices.c.id] for row in await self._session.rows(_SOME_NOTICES, after=after, most=limit)]
        if not ids:
            return None
        await self._session.execute(_REACTIONS, {"after": after, "until": ids[-1]})
        return int(ids[-1])
