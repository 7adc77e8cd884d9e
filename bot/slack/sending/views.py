"""Modals and Homes: bot.slack_ports.Views over Slack's views.* methods."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.home import HomeContent
from bot.domain.mentions import mentioned, with_names
from bot.domain.threads import Thread
from bot.errors import ChatError, ChatUncertain
from bot.ports import People
from bot.runtime.json_fields import object_at, text_at
from bot.slack.rendering.home import home_view
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import View
from bot.slack.sending.expiring_cache import ExpiringCache
from bot.slack.sending.web_api import call
from bot.slack_ports import Views

_LINKS_KEPT, _LINKS_PATIENCE = 86_400.0, 3.0
"""Seconds for which the address of a message counts as known, and for which a Home waits for all of them."""


@dataclass(frozen=True)
class ShownView:
    """A view as it is shown. `hash` is Slack's mark of this content; empty where Slack did not tell."""

    id: str
    hash: str = ""


class SlackViews(Views):
    """One for a process. `projects` are the names of all projects."""

    def __init__(
        self, client: AsyncWebClient, people: People, message_context: MessageContext, *, projects: Sequence[str] = ()
    ) -> None:
        self._client = client
        self._people = people
        self._message_context = message_context
        self._projects = projects
        self._links = ExpiringCache[str](seconds=_LINKS_KEPT)

    async def open(self, trigger_id: str, view: View) -> ShownView:
        """Opens a modal. A trigger is good once, for three seconds. Raises ChatError."""
        opened = object_at(await call(self._client.views_open(trigger_id=trigger_id, view=view)), "view")
        shown = ShownView(text_at(opened, "id"), text_at(opened, "hash"))
        if not shown.id:
            raise ChatUncertain("answer_without_view")
        return shown

    async def update(self, shown: ShownView, view: View) -> None:
        """Gives a modal new content. Raises ChatError: ChatRejected where it was closed meanwhile, or has got other
        content since it was shown so.
        """
        await call(self._client.views_update(view_id=shown.id, hash=shown.hash or None, view=view))

    async def publish_home(self, content: HomeContent) -> None:
        """See Views."""
        jobs, waiting = await self._named(content.jobs), await self._named(content.waiting)
        undecided = await self._named(content.undecided)
        links = await self._permalinks({thread.id: thread for thread in (*jobs, *waiting)}.values())
        shown = replace(content, jobs=jobs, waiting=waiting, undecided=undecided)
        view = home_view(shown, links, self._message_context, projects=self._projects)
        await call(self._client.views_publish(user_id=content.person_id, view=view))

    async def _named(self, threads: Sequence[Thread]) -> Sequence[Thread]:
        ids = [user_id for thread in threads for user_id in mentioned(thread.prompt)]
        names = await self._people.names(ids) if ids else {}
        return [replace(thread, prompt=with_names(thread.prompt, names)) for thread in threads]

    async def _permalinks(self, threads: Iterable[Thread]) -> Mapping[str, str]:
        """Returns the addresses of the cards; what cannot be had in a moment is left out."""
        links: dict[str, str] = {}
        with contextlib.suppress(ChatError, TimeoutError):
            async with asyncio.timeout(_LINKS_PATIENCE):
                for thread in threads:
                    if thread.card_ts:
                        place = f"{thread.channel_id}/{thread.card_ts}"
                        links[thread.id] = await self._links.get(place, self._fetch_permalink)
        return links

    async def _fetch_permalink(self, place: str) -> str:
        channel_id, _, ts = place.partition("/")
        return text_at(await call(self._client.chat_getPermalink(channel=channel_id, message_ts=ts)), "permalink")
