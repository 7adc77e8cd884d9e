"""What the listeners share; among it, what tells whose a post by an app is: a person's who uses a tool, or a bot's.

The post does not say: a bot's names a user, too, and only users.info knows whose account that is. Nothing on the way to
an acknowledgement may call Slack, so the first post by an unknown account is not acknowledged, whereupon Slack sends it
again, and is handled as soon as the account was looked up.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from slack_bolt.context.async_context import AsyncBoltContext

from bot.domain.people import Account
from bot.domain.requests.request import Arrival
from bot.errors import AuthorUnknown, ChatError, ChatRejected
from bot.ports.service import ServicePort
from bot.ports.slack import Members
from bot.runtime.recent import RecentSet
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.receiving.modal_opener import ModalOpener
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.identity import Identity

logger = logging.getLogger(__name__)


class Authors:
    """One per process. Without `members`, every post by an app counts as a bot's."""

    def __init__(self, members: Members | None, recorder: RequestRecorder) -> None:
        self._members = members
        self._recorder = recorder

    def account(self, message: SlackMessage, author_id: str, again: Callable[[], Awaitable[None]]) -> Account:
        """Returns whose account wrote a message. Raises AuthorUnknown if that takes a call, after which `again` runs
        in the background.
        """
        if not message.is_by_an_app:
            return Account.PERSON
        if not author_id or self._members is None:
            return Account.BOT
        account = self._members.known_account(author_id)
        if account is None:
            self._recorder.in_background(self._look_up(self._members, author_id, again), name="looking up an author")
            raise AuthorUnknown
        return account

    async def _look_up(self, members: Members, author_id: str, again: Callable[[], Awaitable[None]]) -> None:
        try:
            with suppress(ChatRejected):  # an unknown id is remembered, too
                await members.member(author_id)
        except ChatError as error:
            logger.info("%s, who posted by an app, could not be looked up: %s", author_id, error)
        if members.known_account(author_id) is not None:
            await again()


_MOST_REMEMBERED = 1_000


@dataclass(frozen=True)
class Dependencies:
    """One for all listeners of a process. `logged` remembers which kinds of payloads were logged, `told` the messages
    whose author was told something privately.
    """

    service: ServicePort
    recorder: RequestRecorder
    message_context: MessageContext
    identity: Identity
    authors: Authors
    opener: ModalOpener
    logged: RecentSet = field(default_factory=lambda: RecentSet(_MOST_REMEMBERED))
    told: RecentSet = field(default_factory=lambda: RecentSet(_MOST_REMEMBERED))


_ARRIVAL = "arrival"


def context_with(arrival: Arrival) -> dict[str, Any]:
    """Returns what the listeners learn about a payload besides its content."""
    return {_ARRIVAL: arrival}


def arrival_in(context: AsyncBoltContext) -> Arrival:
    """Returns how a payload reached Pagehand."""
    return Arrival(context[_ARRIVAL])
