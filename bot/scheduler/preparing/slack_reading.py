"""Reads from Slack for the preparer: who asks, and where."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from bot.domain.context.fetched_parts import FetchedParts, ThreadPart
from bot.domain.people.members import ChannelInfo, Member, Preference
from bot.domain.people.permissions import PermissionRules
from bot.domain.projects import Route
from bot.errors import ChatError, ChatNotInChannel, ChatRejected
from bot.ports.slack import Groups, SlackReading
from bot.runtime.backoff import Backoff
from bot.scheduler.preparing.context import Gathered

T = TypeVar("T")

MAX_TRIES = 14
"""How often Slack is asked about a request in vain; with BACKOFF, that takes about ten minutes."""
BACKOFF = Backoff(first=2.0, longest=60.0, spread=(0.75, 1.25))


def retry_delay(attempts: int, failure: ChatError, *, jitter: float) -> float:
    """Returns the seconds until the next attempt, given their number. `jitter` is a random number from 0 to 1."""
    return max(BACKOFF.delay(attempts, jitter=jitter), failure.retry_after or 0.0)


@dataclass(frozen=True)
class PersonAndPlace:
    """Who asks, and where; None if Slack does not say. `in_groups`: they are in one of the rules' groups."""

    member: Member | None
    channel: ChannelInfo | None
    in_groups: bool = False


async def person_and_place(
    reading: SlackReading, rules: PermissionRules, person_id: str, channel_id: str
) -> PersonAndPlace:
    """Asks Slack about a person and a channel. Raises ChatError."""
    member, channel, groups = await asyncio.gather(
        answer_or_none(reading.members.member(person_id)),
        answer_or_none(reading.channels.channel(channel_id)),
        answer_or_none(_members_of(reading.groups, rules.groups)),
    )
    return PersonAndPlace(member, channel, in_groups=person_id in (groups or frozenset()))


async def _members_of(groups: Groups, group_ids: frozenset[str]) -> frozenset[str]:
    return await groups.members_of(group_ids) if group_ids else frozenset()


async def answer_or_none(asked: Awaitable[T]) -> T | None:
    """Returns Slack's answer; None if Slack permanently refuses to give one. Raises ChatError."""
    try:
        return await asked
    except (ChatRejected, ChatNotInChannel):
        return None


@dataclass(frozen=True)
class RequestFacts:
    """The results of the look-ups for a request. `route` is set for a start. If the request may be sent, `project` is
    its project, `part` the part of the Slack thread for its context, and `kept` the parts fetched before; others that
    share that part's reading may follow within `wait` seconds.
    """

    who_and_where: PersonAndPlace
    preference: Preference
    now: float
    route: Route | None = None
    project: str = ""
    part: ThreadPart | None = None
    kept: FetchedParts | None = None
    gathered: Gathered | None = None
    wait: float = 0.0
