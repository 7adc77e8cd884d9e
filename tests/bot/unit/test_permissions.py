"""Who may do what, and where: whatever is not known to be allowed is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.people.members import ChannelInfo, Member
from bot.domain.people.permissions import (
    LIMITED,
    RULES_OF,
    Allowed,
    Facts,
    MustConfirm,
    PermissionRules,
    Refusal,
    Refused,
    is_outsider,
    may,
    refusal_anywhere,
)
from bot.domain.requests.request import Person, RequestKind, WayIn
from bot.domain.threads.thread import Participation, Thread, ThreadState

ANA, BEN = Person("UANA", "T1"), Person("UBEN", "T1")
THREAD = Thread("th1", "T1", "C1", "UANA", "Do it", "docs", 0.0)
FREE = PermissionRules("T1", allow_guests=True, allow_shared_channels=True)
BOOLEANS = st.booleans()
VERBS = st.sampled_from(RequestKind)
MEMBERS = st.builds(
    Member,
    st.sampled_from(["UANA", "UBEN"]),
    st.just("Ana"),
    st.sampled_from(["", "T1", "T1", "T2"]),
    BOOLEANS,
    is_bot=BOOLEANS,
    deleted=BOOLEANS,
)
CHANNELS = st.builds(ChannelInfo, st.sampled_from(["C1", "C2"]), st.just("docs"), BOOLEANS, BOOLEANS)
RULES = st.builds(
    PermissionRules,
    st.sampled_from(["T1", "T1", ""]),
    allow_guests=BOOLEANS,
    allow_shared_channels=BOOLEANS,
    people=st.frozensets(st.sampled_from(["UANA", "UBEN"])),
    groups=st.frozensets(st.sampled_from(["S1"])),
    channels=st.frozensets(st.sampled_from(["C1", "C2"])),
)
FACTS = st.builds(
    Facts,
    RULES,
    st.just(THREAD),
    st.none() | MEMBERS,
    st.none() | CHANNELS,
    BOOLEANS,
    way_in=st.sampled_from(WayIn),
    writer_id=st.sampled_from(["", "UANA", "UBEN"]),
    free_at=st.none() | st.just(3_600.0),
)


def facts(person: Person = ANA, thread: Thread = THREAD, way_in: WayIn = WayIn.BUTTON, writer_id: str = "") -> Facts:
    """The facts about a member in an open channel."""
    member = Member(person.id, person.id, "T1", is_guest=False)
    channel = ChannelInfo("C1", "docs", is_shared_outside=False, is_private=False)
    return Facts(FREE, thread, member, channel, way_in=way_in, writer_id=writer_id)


@given(VERBS, FACTS)
def test_an_allowed_person_passes_every_rule(verb: RequestKind, known: Facts) -> None:
    """Each rule is stated independently."""
    if isinstance(may(ANA, verb, known), Refused):
        return
    member, channel, rules = known.member, known.channel, known.rules
    assert member is not None
    assert channel is not None
    assert (member.id, member.team_id) == ("UANA", rules.team_id) == ("UANA", "T1")
    assert not member.is_bot
    assert not member.deleted
    assert rules.allow_guests or not member.is_guest
    assert rules.allow_shared_channels or not channel.is_shared_outside
    listed = "UANA" in rules.people or (known.in_groups and bool(rules.groups))
    assert listed or not (rules.people or rules.groups)
    assert channel.id in rules.channels or not rules.channels
    assert known.free_at is None or verb not in LIMITED


@given(VERBS, FACTS)
def test_additional_permissions_refuse_nobody(verb: RequestKind, known: Facts) -> None:
    """Removing a rule never causes a refusal."""
    if may(ANA, verb, known) == Allowed():
        assert may(ANA, verb, replace(known, rules=FREE)) == Allowed()


def test_every_verb_has_a_row() -> None:
    assert set(RULES_OF) == set(RequestKind)
    assert {RequestKind.START, RequestKind.FOLLOW_UP, RequestKind.SEND_NEW_WORDS} == LIMITED


@pytest.mark.parametrize("verb", RequestKind)
def test_the_requester_may_do_everything_about_the_job(verb: RequestKind) -> None:
    assert may(ANA, verb, facts(writer_id="UANA")) == Allowed()


def test_only_participants_choose_the_project() -> None:
    refused = Refused(Refusal.NOT_A_PARTICIPANT)
    assert may(BEN, RequestKind.CHOOSE_PROJECT, facts(BEN)) == refused
    steered = replace(THREAD, state=ThreadState(people=Participation(participants=("UBEN",))))
    assert may(BEN, RequestKind.CHOOSE_PROJECT, facts(BEN, steered)) == Allowed()


@pytest.mark.parametrize("way_in", WayIn)
def test_anyone_allowed_may_stop_but_a_reaction_needs_confirmation(way_in: WayIn) -> None:
    """A participant needs none."""
    by_ben = may(BEN, RequestKind.STOP, facts(BEN, way_in=way_in))
    assert by_ben == (MustConfirm() if way_in is WayIn.REACTION else Allowed())
    assert may(ANA, RequestKind.STOP, facts(way_in=way_in)) == Allowed()


@pytest.mark.parametrize(
    "verb",
    [RequestKind.SEND_HELD, RequestKind.SEND_ALL_HELD, RequestKind.DISCARD_HELD, RequestKind.SEND_NEW_WORDS],
)
def test_only_its_author_decides_about_a_reply(verb: RequestKind) -> None:
    assert may(BEN, verb, facts(BEN, writer_id="UANA")) == Refused(Refusal.NOT_THE_WRITER)
    assert may(BEN, verb, facts(BEN, writer_id="UBEN")) == Allowed()


@pytest.mark.parametrize("verb", sorted(LIMITED))
def test_a_refusal_at_the_limit_says_when_there_is_room_again(verb: RequestKind) -> None:
    assert may(ANA, verb, replace(facts(), free_at=3_600.0)) == Refused(Refusal.TOO_MANY, 3_600.0)


@pytest.mark.parametrize(
    ("team_id", "reason"), [("", Refusal.PERSON_UNKNOWN), ("T2", Refusal.OTHER_ORGANIZATION), ("T1", None)]
)
def test_replies_are_for_people_of_the_jobs_workspace(team_id: str, reason: Refusal | None) -> None:
    """According to the event, whatever the profile says."""
    person = Person("UANA", team_id)
    assert may(person, RequestKind.FOLLOW_UP, facts()) == (Refused(reason) if reason else Allowed())
    assert is_outsider(person, THREAD) is (reason is not None)


def test_nobody_may_steer_a_job_without_a_workspace() -> None:
    unknown = replace(THREAD, team_id="")
    assert may(Person("UANA", ""), RequestKind.FOLLOW_UP, facts(thread=unknown)) == Refused(Refusal.PERSON_UNKNOWN)
    assert is_outsider(Person("UANA", ""), unknown)


@given(VERBS, FACTS)
def test_whoever_is_refused_at_once_is_refused_later_too(verb: RequestKind, known: Facts) -> None:
    if known.member is not None and refusal_anywhere(known.member, known.rules) is not None:
        assert isinstance(may(Person(known.member.id, "T1"), verb, known), Refused)
