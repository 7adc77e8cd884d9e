"""The current ids of channels whose id Slack has changed."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from bot.errors import StoreError

_MOST_KEPT = 1_000


async def _unchanged(channel_id: str) -> str:
    return channel_id


class NewestChannelIds:
    """The current ids, cached per process. `find` returns the newest id of a channel, and may raise StoreError."""

    def __init__(self, find: Callable[[str], Awaitable[str]] = _unchanged) -> None:
        self._find = find
        self._newest: OrderedDict[str, str] = OrderedDict()

    def newest(self, channel_id: str) -> str:
        """Returns the newest id known so far."""
        return self._newest.get(channel_id, channel_id)

    async def look_up(self, channel_id: str) -> str:
        """Looks up the newest id and caches it. If that fails, returns the cached one."""
        try:
            found = await self._find(channel_id)
        except StoreError:
            return self.newest(channel_id)
        self._newest[channel_id] = found
        self._newest.move_to_end(channel_id)
        while len(self._newest) > _MOST_KEPT:
            self._newest.popitem(last=False)
        return found
