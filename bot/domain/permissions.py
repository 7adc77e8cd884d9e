"""Who may do what, and where: one table for all kinds of requests, checked when a request takes effect. Pure.

Anything that is not known to be allowed is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.people import Account, ChannelInfo, Member
from bot.domain.requests.request import Person, RequestKind, WayIn
from bot.domain.threads.reply_rules import takes_part
from bot.domain.threads.thread import Thread
from bot.jobapi.models import Mode


class Refusal(StrEnum):
    """Why somebody may not do something. The database stores these values."""

    GUEST = "guest"
    OTHER_ORGANIZATION = "other_organization"
    NOT_A_PERSON = "not_a_person"
    """An app, or a deactivated account."""
    SHARED_CHANNEL = "shared_channel"
    """People of other organizations are in the channel."""
    NOT_ON_THE_LIST = "not_on_the_list"
    """The settings name neither them nor one of their user groups."""
    CHANNEL_NOT_ON_THE_LIST = "channel_not_on_the_list"
    TOO_MANY = "too_many"
    """They have reached the hourly limit."""
    PERSON_UNKNOWN = "person_unknown"
    """Slack does not say who they are."""
    CHANNEL_UNKNOWN = "channel_unknown"
    """Slack does not say what the channel is."""
    NOT_A_PARTICIPANT = "not_a_participant"
    """They have neither requested the job nor steered it."""
    NOT_THE_WRITER = "not_the_writer"
    """Somebody else wrote the reply in question."""
    NO_MODES = "no_modes"
    """The project's job API cannot work in the way that is asked for."""


@dataclass(frozen=True)
class PermissionRules:
    """The settings about permissions. An empty list allows everybody; `people` and `groups` count as one list.

    Attributes:
        team_id: The workspace whose members are allowed.
        allow_guests: Whether its guests are, too.
        allow_shared_channels: Whether channels shared with other organizations are.
        people: Ids of the people who are allowed.
        groups: Ids of the user groups whose members are allowed.
        channels: Ids of the allowed channels.
        hourly_limit: How many requests one person may make in an hour; 0: no limit.
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
    """What is known about a request when its permission is checked.

    Attributes:
        rules: The settings.
        thread: The thread of the job in question.
        member: The person, as Slack describes them; None if Slack does not know them.
        channel: The channel; None if Slack does not describe it.
        in_groups: Whether the person is in one of the rules' groups.
        way_in: How the request was made.
        writer_id: Who wrote the reply in question; empty if there is none.
        free_at: If the person has reached the hourly limit, when they may ask again, in seconds since the epoch.
        lacks_modes: Whether the project's job API has no modes, and no choice of a model or effort.
    """

    rules: PermissionRules
    thread: Thread
    member: Member | None
    channel: ChannelInfo | None
    in_groups: bool = False
    way_in: WayIn = WayIn.REPLY
    writer_id: str = ""
    free_at: float | None = None
    lacks_modes: bool = False


@dataclass(frozen=True)
class Allowed:
    """The person may do it."""


@dataclass(frozen=True)
class Refused:
    """The person may not do it. `free_at`: when they may, if it is only a matter of time."""

    reason: Refusal
    free_at: float | None = None


@dataclass(frozen=True)
class MustConfirm:
    """The person may do it after confirming, because what they did could have meant something else."""


Verdict = Allowed | Refused | MustConfirm
Check = Callable[[Person, Facts], Refused | MustConfirm | None]
"""One rule. None: no objection."""


def may(person: Person, verb: RequestKind, facts: Facts) -> Verdict:
    """Returns whether a person may do something. The first rule that objects decides."""
    for check in (*_FOR_EVERYTHING, *RULES_OF[verb]):
        if (verdict := check(person, facts)) is not None:
            return verdict
    return Allowed()


def refusal_in(channel: ChannelInfo, rules: PermissionRules) -> Refusal | None:
    """Returns why nobody may use Pagehand in a channel; None if people may."""
    if rules.channels and channel.id not in rules.channels and not channel.is_direct:
        return Refusal.CHANNEL_NOT_ON_THE_LIST
    return Refusal.SHARED_CHANNEL if channel.is_shared_outside and not rules.allow_shared_channels else None


def refusal_anywhere(member: Member, rules: PermissionRules) -> Refusal | None:
    """Returns why a guest or somebody of another organization may not use Pagehand anywhere; None: they may."""
    if member.team_id and rules.team_id and member.team_id != rules.team_id:
        return Refusal.OTHER_ORGANIZATION
    return Refusal.GUEST if member.is_guest and not rules.allow_guests else None


def is_outsider(person: Person, thread: Thread) -> bool:
    """Returns whether somebody is not known to belong to the workspace in which the job was started."""
    return not person.team_id or person.team_id != thread.team_id


def _of_our_workspace(person: Person, facts: Facts) -> Refused | None:
    member, rules = facts.member, facts.rules
    if member is None or member.id != person.id or not member.team_id:
        return Refused(Refusal.PERSON_UNKNOWN)
    if not rules.team_id or member.team_id != rules.team_id:
        return Refused(Refusal.OTHER_ORGANIZATION)
    if member.account is not Account.PERSON or member.deleted:
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
    if facts.channel is None:
        return Refused(Refusal.CHANNEL_UNKNOWN)
    refusal = refusal_in(facts.channel, facts.rules)
    return None if refusal is None else Refused(refusal)


def _for_a_job_of_ours(_: Person, facts: Facts) -> Refused | None:
    """Nobody may do anything about a job whose requester's workspace was not known."""
    return None if facts.thread.team_id == facts.rules.team_id else Refused(Refusal.PERSON_UNKNOWN)


def _written_by_one_of_ours(person: Person, facts: Facts) -> Refused | None:
    """Checks the workspace in the message's event, which in a shared channel is more reliable than the profile."""
    if not is_outsider(person, facts.thread):
        return None
    return Refused(Refusal.OTHER_ORGANIZATION if person.team_id else Refusal.PERSON_UNKNOWN)


def _within_the_limit(_: Person, facts: Facts) -> Refused | None:
    return None if facts.free_at is None else Refused(Refusal.TOO_MANY, facts.free_at)


def _as_the_agent_can(_: Person, facts: Facts) -> Refused | None:
    agent = facts.thread.options.agent
    plain = facts.thread.mode is Mode.EDIT and not (agent.model or agent.effort)
    return Refused(Refusal.NO_MODES) if facts.lacks_modes and not plain else None


def _participant(person: Person, facts: Facts) -> Refused | None:
    return None if takes_part(person.id, facts.thread) else Refused(Refusal.NOT_A_PARTICIPANT)


def _writer(person: Person, facts: Facts) -> Refused | None:
    return None if facts.writer_id in {"", person.id} else Refused(Refusal.NOT_THE_WRITER)


def _meant(person: Person, facts: Facts) -> MustConfirm | None:
    """A reaction is not addressed to Pagehand, so only a participant's is unambiguous."""
    ambiguous = facts.way_in is WayIn.REACTION and not takes_part(person.id, facts.thread)
    return MustConfirm() if ambiguous else None


_FOR_EVERYTHING: tuple[Check, ...] = (_of_our_workspace, _on_the_list, _in_the_channel, _for_a_job_of_ours)
RULES_OF: Mapping[RequestKind, tuple[Check, ...]] = {
    RequestKind.START: (_as_the_agent_can, _within_the_limit),
    RequestKind.FOLLOW_UP: (_written_by_one_of_ours, _as_the_agent_can, _within_the_limit),
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
    RequestKind.ACCEPT_PROPOSAL: (_written_by_one_of_ours, _within_the_limit),
    RequestKind.DROP_PROPOSAL: (_written_by_one_of_ours,),
}
"""The checks of each kind, in addition to those for everything. A retry or switch creates a start, which is limited."""
LIMITED = frozenset(verb for verb, rules in RULES_OF.items() if _within_the_limit in rules)
"""The kinds that count towards the hourly limit, because they create work for the agent."""
HOUR = 3600.0
"""Seconds for which a request counts."""
ABOUT_REPLIES = frozenset(verb for verb, rules in RULES_OF.items() if _writer in rules)
"""The kinds whose text is the id of a reply's request, because only its writer may ask for them."""
