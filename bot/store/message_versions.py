"""Which version of a message for Pagehand was seen and answered last: Slack can bring it again, or an older one."""

from typing import Any

from sqlalchemy import Executable, case, or_

from bot.domain.requests.request import MessageVersion
from bot.store.schema.tables import message_versions
from bot.store.session import InsertInto, Session, for_each_dialect


def _keep_newest(into: InsertInto) -> Executable:
    insert = into(message_versions)
    known, came = message_versions.c.edited_at, insert.excluded.edited_at
    return insert.on_conflict_do_update(
        index_elements=[message_versions.c.channel_id, message_versions.c.message_ts],
        set_={"edited_at": case((came > known, came), else_=known)},
    ).returning(known)


def _answer_newest(into: InsertInto) -> Executable:
    insert = into(message_versions)
    answered = message_versions.c.answered
    return insert.on_conflict_do_update(
        index_elements=[message_versions.c.channel_id, message_versions.c.message_ts],
        set_={"answered": insert.excluded.answered, "noted_at": insert.excluded.noted_at},
        where=or_(answered.is_(None), answered < insert.excluded.answered),
    )


_ANSWER = for_each_dialect(_answer_newest)
_NOTE = for_each_dialect(_keep_newest)


class MessageVersions:
    """ports.MessageVersions."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def note(self, version: MessageVersion) -> bool:
        newest = await self._session.execute(_NOTE[self._session.dialect], self._values(version))
        return bool(newest.scalar_one() == version.edited_at)

    async def answer(self, version: MessageVersion) -> bool:
        values = self._values(version) | {"answered": version.edited_at}
        return (await self._session.execute(_ANSWER[self._session.dialect], values)).rowcount == 1

    def _values(self, version: MessageVersion) -> dict[str, Any]:
        return {
            "channel_id": version.channel_id,
            "message_ts": version.message_ts,
            "person_id": version.person_id,
            "edited_at": version.edited_at,
            "noted_at": self._session.now,
        }
