"""Who may do what, where: one table for everything that people ask for, looked at when it is to take effect. Pure. What
is not known to be allowed is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.people.members import Channel, Member
from bot.domain.requests.request import Person, RequestKind, WayIn
from bot.domain.threads.reply_rules import takes_part
from bot.domain.threads.thread import Thread


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
    NOT_A_PARTICIPANT = "not_a_participant"
    """They have neither asked for the job nor steered it."""
    NOT_THE_WRITER = "not_the_writer"
    """Somebody else wrote the reply that it is about."""


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


@dataclass(frozen=True)
class Facts:
    """What is known about something that is to take effect.

    Attributes:
        rules: Who may.
        thread: The job that it is about.
        member: Who asks, as Slack says; None where it does not know them.
        channel: Where; None where Slack does not say.
        in_groups: They are in one of the groups of the rules.
        way_in: How it came.
        writer_id: Who wrote the reply that it is about; empty: it is about none.
        free_at: Where they have asked for as much as one may in an hour, when they may ask again, in seconds since the
            epoch; None where they have not.
    """

    rules: PermissionRules
    thread: Thread
    member: Member | None
    channel: Channel | None
    in_groups: bool = False
    way_in: WayIn = WayIn.REPLY
    writer_id: str = ""
    free_at: float | None = None


@dataclass(frozen=True)
class Allowed:
    """They may."""


@dataclass(frozen=True)
class Refused:
    """They may not. `free_at`: when they may, where that is only a matter of time."""

    reason: Refusal
    free_at: float | None = None


@dataclass(frozen=True)
class MustConfirm:
    """They may, once they have said that they mean it: what they did could have been meant otherwise."""


Verdict = Allowed | Refused | MustConfirm
Check = Callable[[Person, Facts], Refused | MustConfirm | None]
"""One rule: None where it has nothing against it."""


def may(person: Person, verb: RequestKind, facts: Facts) -> Verdict:
    """Returns whether a person may do something, by the first rule that has something against it."""
    for check in (*_FOR_EVERYTHING, *RULES_OF[verb]):
        if (verdict := check(person, facts)) is not None:
            return verdict
    return Allowed()


def is_outsider(person: Person, thread: Thread) -> bool:
    """Whether somebody is not known to be of the workspace that a job was started in."""
    return not person.team_id or person.team_id != thread.team_id


def _of_our_workspace(person: Person, facts: Facts) -> Refused | None:
    member, rules = facts.member, facts.rules
    if member is None or member.id != person.id or not member.team_id:
        return Refused(Refusal.PERSON_UNKNOWN)
    if not rules.team_id or member.team_id != rules.team_id:
        return Refused(Refusal.OTHER_ORGANIZATION)
    if member.is_bot or member.deleted:
        return Refused(Refusal.NOT_A_PERSON)
    return None


def _on_the_list(_: Person, facts: Facts) -> Refused | None:
    member, rules = facts.member, facts.rules
    if member is None:
        return Refused(Refusal.PERSON_UNKNOWN)
    if member.is_guest and not rules.allow_guests:
        return Refused(Refusal.GUEST)
    listed = member.id in rules.people or (bool(rules.groups) and facts.in_groups)
    return None if listed or not (rules.people or rules.groups) else Refused(Refusal.NOT_ON_THE_LIST)


def _in_the_channel(_: Person, facts: Facts) -> Refused | None:
    channel, rules = facts.channel, facts.rules
    if channel is None:
        return Refused(Refusal.CHANNEL_UNKNOWN)
    if rules.channels and channel.id not in rules.channels and not channel.is_direct:
        return Refused(Refusal.CHANNEL_NOT_ON_THE_LIST)
    shared = channel.is_shared_outside and not rules.allow_shared_channels
    return Refused(Refusal.SHARED_CHANNEL) if shared else None


def _for_a_job_of_ours(_: Person, facts: Facts) -> Refused | None:
    """Of a job that was asked for in a message that did not say of which workspace its person is, nobody may."""
    return None if facts.thread.team_id == facts.rules.team_id else Refused(Refusal.PERSON_UNKNOWN)


def _written_by_one_of_ours(person: Person, facts: Facts) -> Refused | None:
    """As its event says: in a shared channel that knows more than the person's profile."""
    if not is_outsider(person, facts.thread):
        return None
    return Refused(Refusal.OTHER_ORGANIZATION if person.team_id else Refusal.PERSON_UNKNOWN)


def _within_the_limit(_: Person, facts: Facts) -> Refused | None:
    return None if facts.free_at is None else Refused(Refusal.TOO_MANY, facts.free_at)


def _participant(person: Person, facts: Facts) -> Refused | None:
    return None if takes_part(person.id, facts.thread) else Refused(Refusal.NOT_A_PARTICIPANT)


def _writer(person: Person, facts: Facts) -> Refused | None:
    return None if facts.writer_id in {"", person.id} else Refused(Refusal.NOT_THE_WRITER)


def _meant(person: Person, facts: Facts) -> MustConfirm | None:
    """A reaction is not said to Pagehand: from somebody who takes part it is clear enough."""
    by_the_way = facts.way_in is WayIn.REACTION and not takes_part(person.id, facts.thread)
    return MustConfirm() if by_the_way else None


_FOR_EVERYTHING: tuple[Check, ...] = (_of_our_workspace, _on_the_list, _in_the_channel, _for_a_job_of_ours)
RULES_OF: Mapping[RequestKind, tuple[Check, ...]] = {
    RequestKind.START: (_within_the_limit,),
    RequestKind.FOLLOW_UP: (_written_by_one_of_ours, _within_the_limit),
    RequestKind.STOP: (_meant,),
    RequestKind.DISCARD: (_meant,),
    RequestKind.RETRY: (),
    RequestKind.MUTE: (),
    RequestKind.UNMUTE: (),
    RequestKind.SHOW_STATUS: (),
    RequestKind.SHOW_PROMPT: (),
    RequestKind.SHOW_ANSWER: (),
    RequestKind.SHOW_JOB_ID: (),
    RequestKind.SEND_AGAIN: (),
    RequestKind.SEND_NEW_WORDS: (_writer, _within_the_limit),
    RequestKind.SEND_HELD: (_writer,),
    RequestKind.SEND_ALL_HELD: (_writer,),
    RequestKind.DISCARD_HELD: (_writer,),
    RequestKind.CHOOSE_PROJECT: (_participant,),
}
"""What each verb needs besides what everything needs. A retry or a switch makes a start, which has the limit."""
LIMITED = frozenset(verb for verb, rules in RULES_OF.items() if _within_the_limit in rules)
"""What counts towards the hourly limit: what makes work for the agent."""
