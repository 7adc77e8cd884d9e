"""Keeps what people type into modals, so that nothing is lost when a modal is closed."""

import logging
from dataclasses import dataclass

from bot.errors import StoreError
from bot.ports.service import ServicePort
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.sending.expiring_cache import RecentDict

logger = logging.getLogger(__name__)

_MOST_SUBMITTED = 1_000


@dataclass(frozen=True)
class DraftKey:
    """The person and the place (ModalPlace.draft_key) that a draft belongs to."""

    person_id: str
    place: str


class DraftKeeper:
    """Saves the newest text of each draft in the background, one save at a time for each draft."""

    def __init__(self, service: ServicePort, recorder: RequestRecorder) -> None:
        self._service = service
        self._recorder = recorder
        self._unsaved: dict[DraftKey, str] = {}
        self._submitted = RecentDict[str, None](_MOST_SUBMITTED)

    async def text(self, key: DraftKey) -> str:
        """Returns what was typed last, saved or not. Raises StoreError."""
        unsaved = self._unsaved.get(key)
        return await self._service.draft(key.person_id, key.place) if unsaved is None else unsaved

    def keep(self, key: DraftKey, text: str, *, view_id: str) -> None:
        """Keeps a text, unless its view has been submitted meanwhile."""
        if view_id not in self._submitted:
            self._save(key, text)

    def forget(self, key: DraftKey, *, view_id: str) -> None:
        """Forgets a draft that was submitted."""
        self._submitted[view_id] = None
        self._save(key, "")

    def _save(self, key: DraftKey, text: str) -> None:
        is_being_saved = key in self._unsaved
        self._unsaved[key] = text
        if not is_being_saved:
            self._recorder.in_background(self._save_newest(key), name="keeping a draft")

    async def _save_newest(self, key: DraftKey) -> None:
        saved: str | None = None
        try:
            while (text := self._unsaved[key]) != saved:
                await self._service.save_draft(key.person_id, key.place, text)
                saved = text
        except StoreError as error:
            logger.warning("a draft is not kept: %s", type(error).__name__)
        finally:
            del self._unsaved[key]
