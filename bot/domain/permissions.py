"""Who may do what where. Pure. What is not known to be allowed is refused."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.channels import Channel
from bot.domain.members import Member
from bot.domain.requests import Person
from bot.domain.threads import Thread


class Refusal(StrEnum):
    """Why somebody may not. Databases hold these words."""

    GUEST = "guest"
    OTHER_ORGANIZATION = "other_organization"
    NOT_A_PERSON = "not_a_person"
    """An app, or an account that is switched off."""
    SHARED_CHANNEL = "shared_channel"
    """People of other organizations are in the channel."""
    NOT_ON_THE_LIST = "not_on_the_list"
    """Neither they nor a user group of theirs is named in the settings."""
    CHANNEL_NOT_ON_THE_LIST = "channel_not_on_the_list"
    TOO_MANY = "too_many"
    """They have asked for as much as one may in an hour."""
    PERSON_UNKNOWN = "person_unknown"
    """Slack does not say who they are."""
    CHANNEL_UNKNOWN = "channel_unknown"
    """Slack does not say what the channel is."""


@dataclass(frozen=True)
class PermissionRules:
    """Who may. Of the lists, an empty one lets everybody pass; `people` and `groups` are one list.

    Attributes:
        team_id: The workspace whose members may.
        allow_guests: Its guests may, too.
        allow_shared_channels: Also where people of other organizations read along.
        people: Ids of the only people who may.
        groups: Ids of user groups, whose members may as well.
        channels: Ids of the only channels in which one may.
        hourly_limit: How much one person may ask for in an hour; 0: no limit.
    """

    team_id: str
    allow_guests: bool = False
    allow_shared_channels: bool = False
    people: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    hourly_limit: int = 0


def refusal(
    person: Person,
    member: Member | None,
    channel: Channel | None,
    rules: PermissionRules,
    *,
    in_groups: bool,
    asked_last_hour: int,
) -> Refusal | None:
    """Returns why a person may not ask for something here; None where they may.

    Args:
        person: Who asks, as the event said.
        member: Who that is, as Slack says; None where it does not know them.
        channel: Where; None where Slack does not say.
        rules: Who may.
        in_groups: They are in one of the groups of the rules.
        asked_last_hour: How much they asked for within the last hour.
    """
    if rules.hourly_limit and asked_last_hour >= rules.hourly_limit:
        return _who(person, member, rules, in_groups=in_groups) or _where(channel, rules) or Refusal.TOO_MANY
    return _who(person, member, rules, in_groups=in_groups) or _where(channel, rules)


def _who(person: Person, member: Member | None, rules: PermissionRules, *, in_groups: bool) -> Refusal | None:
    if member is None or member.id != person.id or not member.team_id:
        return Refusal.PERSON_UNKNOWN
    if not rules.team_id or member.team_id != rules.team_id:
        return Refusal.OTHER_ORGANIZATION
    if member.is_bot or member.deleted:
        return Refusal.NOT_A_PERSON
    if member.is_guest and not rules.allow_guests:
        return Refusal.GUEST
    listed = member.id in rules.people or (bool(rules.groups) and in_groups)
    return None if listed or not (rules.people or rules.groups) else Refusal.NOT_ON_THE_LIST


def _where(channel: Channel | None, rules: PermissionRules) -> Refusal | None:
    if channel is None:
        return Refusal.CHANNEL_UNKNOWN
    if rules.channels and channel.id not in rules.channels and not channel.is_direct:
        return Refusal.CHANNEL_NOT_ON_THE_LIST
    return Refusal.SHARED_CHANNEL if channel.is_shared_outside and not rules.allow_shared_channels else None


def may_steer(person: Person, thread: Thread) -> bool:
    """Whether a person may steer a thread's job: people of its own workspace may. Others, and whoever is not known to
    be one of them, may not.
    """
    return bool(person.team_id) and person.team_id == thread.team_id
