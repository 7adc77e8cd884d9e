"""Which version of a message for Pagehand was seen last: Slack can bring an older one later."""

from sqlalchemy import Executable, case

from bot.domain.requests import MessageVersion
from bot.store.schema.tables import message_versions
from bot.store.session import InsertInto, Session, for_each_dialect


def _keep_newest(into: InsertInto) -> Executable:
    insert = into(message_versions)
    known, came = message_versions.c.edited_at, insert.excluded.edited_at
    return insert.on_conflict_do_update(
        index_elements=[message_versions.c.channel_id, message_versions.c.message_ts],
        set_={"edited_at": case((came > known, came), else_=known)},
    ).returning(known)


_NOTE = for_each_dialect(_keep_newest)


class MessageVersions:
    """ports.MessageVersions."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def note(self, version: MessageVersion) -> bool:
        session = self._session
        values = {
            "channel_id": version.channel_id,
            "message_ts": version.message_ts,
            "person_id": version.person_id,
            "edited_at": version.edited_at,
            "noted_at": session.now,
        }
        newest = await session.execute(_NOTE[session.dialect], values)
        return bool(newest.scalar_one() == version.edited_at)
