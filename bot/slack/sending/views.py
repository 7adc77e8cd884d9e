"""Modals and Homes: bot.ports.slack.Views over Slack's views.* methods."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.messages import with_names
from bot.domain.people import HomeContent
from bot.domain.threads.thread import Thread
from bot.errors import ChatUncertain
from bot.ports.slack import DisplayNames, HomeViews
from bot.runtime.untrusted_json import text_at
from bot.slack.rendering.home import home_view
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import View
from bot.slack.sending.conversations import Permalinks
from bot.slack.sending.people import names_in
from bot.slack.sending.web_api import call

_LINKS_PATIENCE = 3.0
"""Seconds that a Home waits for the links to its threads."""


@dataclass(frozen=True)
class ShownView:
    """A view that is shown. `hash` is Slack's hash of its content; empty if unknown."""

    id: str
    hash: str = ""


@dataclass(frozen=True)
class SlackViews(HomeViews):
    """One per process. `projects` are the names of all projects."""

    client: AsyncWebClient
    people: DisplayNames
    message_context: MessageContext
    permalinks: Permalinks
    projects: Sequence[str] = field(default=(), kw_only=True)

    async def open(self, trigger_id: str, view: View) -> ShownView:
        """Opens a modal. A trigger can be used once, within three seconds. Raises ChatError."""
        answer = await call(self.client.views_open(trigger_id=trigger_id, view=view))
        opened = ShownView(text_at(answer, "view", "id"), text_at(answer, "view", "hash"))
        if not opened.id:
            raise ChatUncertain("answer_without_view")
        return opened

    async def update(self, shown: ShownView, view: View) -> None:
        """Updates a modal. Raises ChatError: ChatRejected if it was closed or changed meanwhile."""
        await call(self.client.views_update(view_id=shown.id, hash=shown.hash or None, view=view))

    async def publish_home(self, content: HomeContent) -> None:
        """See Views."""
        jobs, waiting = await self._named(content.jobs), await self._named(content.waiting)
        threads = await self._named([thread for _, thread in content.held])
        names = await names_in((request.text for request, _ in content.held), self.people)
        asked = [replace(request, text=with_names(request.text, names)) for request, _ in content.held]
        links = await self._links_to({thread.id: thread for thread in (*jobs, *waiting, *threads)}.values())
        shown = replace(content, jobs=jobs, waiting=waiting, held=list(zip(asked, threads, strict=True)))
        view = home_view(shown, links, self.message_context, projects=self.projects)
        await call(self.client.views_publish(user_id=content.person_id, view=view))

    async def _named(self, threads: Sequence[Thread]) -> Sequence[Thread]:
        names = await names_in((thread.prompt for thread in threads), self.people)
        return [replace(thread, prompt=with_names(thread.prompt, names)) for thread in threads]

    async def _links_to(self, threads: Iterable[Thread]) -> Mapping[str, str]:
        """Returns the links to the cards that are available quickly."""
        posted = [(thread, thread.card_ts) for thread in threads if thread.card_ts]
        soon = (self.permalinks.soon(thread.channel_id, ts, seconds=_LINKS_PATIENCE) for thread, ts in posted)
        links = await asyncio.gather(*soon)
        return {thread.id: link for (thread, _), link in zip(posted, links, strict=True) if link}
