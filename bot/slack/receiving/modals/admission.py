"""Whether somebody may have what a form asks for: found out before the form is shown, by the table that counts."""

import asyncio
from dataclasses import dataclass

from bot.domain.notices.questions import RequestRefused
from bot.domain.people.members import Channel
from bot.domain.people.permissions import Facts, PermissionRules, Refused, may
from bot.domain.requests.request import Person, RequestKind, WayIn
from bot.domain.threads.thread import Thread
from bot.errors import ChatError
from bot.ports.slack import SlackReading
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.question_notices import refusal
from bot.slack.rendering.text import Markup

_ANYWHERE = Channel("", "", is_shared_outside=False, is_private=False, is_direct=True)
"""Where the form asks for the channel, nothing is known against one."""


@dataclass(frozen=True)
class Admission:
    """`rules` say who may, `reading` who somebody is."""

    rules: PermissionRules
    reading: SlackReading
    message_context: MessageContext

    async def refusal(self, person: Person, channel_id: str, wanted: RequestKind) -> Markup:
        """Why somebody may not, in words; empty where they may, or where Slack does not say: it is found out again when
        the request takes effect.
        """
        thread = Thread("", person.team_id, channel_id, person.id, "", "", 0.0)
        try:
            facts = await self._facts(person, thread)
        except ChatError:
            return Markup("")
        verdict = may(person, wanted, facts)
        if not isinstance(verdict, Refused):
            return Markup("")
        return refusal(RequestRefused(person.id, verdict.reason, wanted), self.message_context)

    async def _facts(self, person: Person, thread: Thread) -> Facts:
        member, channel, in_groups = await asyncio.gather(
            self.reading.members.member(person.id), self._channel(thread.channel_id), self._in_groups(person)
        )
        return Facts(self.rules, thread, member, channel, in_groups, WayIn.MODAL)

    async def _channel(self, channel_id: str) -> Channel:
        return await self.reading.channels.channel(channel_id) if channel_id else _ANYWHERE

    async def _in_groups(self, person: Person) -> bool:
        groups = self.rules.groups
        return bool(groups) and person.id in await self.reading.groups.members_of(groups)
