"""The home publisher: shows people their App Homes when they open them and when something there has changed."""

import logging
from collections.abc import Sequence

from bot.domain.people import JOBS_A_PAGE, HomeContent
from bot.domain.threads.thread import waits_for_person, waits_for_start
from bot.errors import ChatError, ChatNotAllowed, ChatRejected
from bot.ports.slack import HomeViews
from bot.scheduler.worker import NOTHING, SlackWorker, WorkerSettings
from bot.store.people import ClaimedHome
from bot.store.store import RequestTransaction, Store

logger = logging.getLogger(__name__)

_AGAIN_AFTER_FAILURE, _AGAIN_NOT_ALLOWED = 30.0, 300.0
"""Seconds until publishing a Home is tried again."""
_LOOKED_THROUGH = 50
"""How many of a person's newest jobs are searched for questions to them."""
_MOST_HELD = 10


class HomePublisher(SlackWorker[ClaimedHome]):
    """Publishes due Homes."""

    name = "home publisher"

    def __init__(self, store: Store, views: HomeViews, settings: WorkerSettings) -> None:
        super().__init__(store, settings, concurrency=4)
        self._views = views
        self._refusal_logged = False

    async def claim(self, limit: int) -> Sequence[ClaimedHome]:
        """Claims Homes that are due."""
        return await self._store.transact(lambda tx: tx.homes.claim(self._owner, lease=self._lease, limit=limit))

    async def process(self, item: ClaimedHome, claimed_at: float) -> None:
        """Publishes one Home. Doing it twice does no harm, so it is repeated until Slack accepts or rejects it."""
        content = await self._store.transact(lambda tx: _content(tx, item))
        if not self.lease_covers_call(claimed_at):
            return
        again_in = await self._publish(content)
        await self.record(lambda tx: tx.homes.published(item.person_id, self._owner, again_in=again_in), leaves=NOTHING)

    async def _publish(self, content: HomeContent) -> float | None:
        """Returns the seconds until the next try."""
        try:
            await self.bounded(self._views.publish_home(content))
        except ChatRejected as error:
            if not self._refusal_logged:  # no failure of the worker: the app may have no Home tab
                self._refusal_logged = True
                logger.warning(
                    "Slack does not take a Home (%s): it is shown when something changes there", error.reason
                )
            return None
        except ChatError as error:
            self.record_no_answer(error)
            again_in = _AGAIN_NOT_ALLOWED if isinstance(error, ChatNotAllowed) else _AGAIN_AFTER_FAILURE
            return error.retry_after or again_in
        self.record_answer()
        return None


async def _content(tx: RequestTransaction, item: ClaimedHome) -> HomeContent:
    person_id, page = item.person_id, max(item.page, 0)
    jobs = await tx.threads.of_person(person_id, offset=page * JOBS_A_PAGE, limit=JOBS_A_PAGE + 1)
    newest = await tx.threads.of_person(person_id, offset=0, limit=_LOOKED_THROUGH)
    return HomeContent(
        person_id=person_id,
        page=page,
        jobs=jobs[:JOBS_A_PAGE],
        has_older=len(jobs) > JOBS_A_PAGE,
        waiting=[thread for thread in newest if waits_for_person(thread) or waits_for_start(thread.state)],
        held=await tx.requests.waiting_for(person_id, limit=_MOST_HELD),
        preference=await tx.preferences.get(person_id),
        updated_at=tx.now,
    )
