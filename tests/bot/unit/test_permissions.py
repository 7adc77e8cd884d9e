"""Who may do what, and where: whatever is not known to be allowed is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.thread_states import thread_state

from bot.domain.jobs.job import Problem
from bot.domain.people import Account, ChannelInfo, Member
from bot.domain.permissions import (
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
from bot.domain.projects import ReplyMode
from bot.domain.requests.request import Person, Reply, RequestKind, WayIn
from bot.domain.threads.reply_rules import ReplyMeaning, asks_for_a_job, meaning, mode_of, steered_by, takes_part
from bot.domain.threads.thread import MAX_PARTICIPANTS, Failure, Participation, Thread, ThreadOrigin, ThreadState

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
    account=st.sampled_from(Account),
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
    assert member.account is Account.PERSON
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


@pytest.mark.parametrize(
    ("rules", "in_groups"),
    [
        (PermissionRules("T1", people=frozenset({"UANA"})), False),
        (PermissionRules("T1", people=frozenset({"UBEN"}), groups=frozenset({"S1"})), True),
    ],
)
def test_who_is_on_the_list_is_allowed(rules: PermissionRules, *, in_groups: bool) -> None:
    assert may(ANA, RequestKind.START, replace(facts(), rules=rules, in_groups=in_groups)) == Allowed()


def test_every_verb_has_a_row() -> None:
    assert set(RULES_OF) == set(RequestKind)
    starts_work = {RequestKind.START, RequestKind.FOLLOW_UP, RequestKind.SEND_NEW_WORDS, RequestKind.ACCEPT_PROPOSAL}
    assert starts_work == LIMITED


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


PEOPLE = st.sampled_from(["UANA", "UBEN", "UCLEO", "UDORA"])
MODES = st.sampled_from(ReplyMode)
REPLIES = st.builds(
    Reply,
    st.builds(Person, PEOPLE, st.just("T1")),
    st.sampled_from(["C1", "D1"]),
    st.just("1.1"),
    st.just("2.1"),
    st.sampled_from(["", "words"]),
    mentions_us=st.booleans(),
    in_direct_message=st.booleans(),
)
THREADS = st.builds(
    Thread,
    st.just("t1"),
    st.just("T1"),
    st.sampled_from(["C1", "D1"]),
    PEOPLE,
    st.just("Do it"),
    st.just("docs"),
    st.just(0.0),
    origin=st.sampled_from(ThreadOrigin),
    state=st.builds(
        thread_state,
        muted_by=st.sampled_from(["", "", "UANA"]),
        participants=st.lists(PEOPLE, unique=True).map(tuple),
    ),
)


@given(REPLIES, THREADS, MODES)
def test_a_mention_always_counts(reply: Reply, thread: Thread, mode: ReplyMode) -> None:
    """It is sent, unless the job is muted: that is explained."""
    if reply.mentions_us:
        expected = ReplyMeaning.MUTED if thread.state.people.muted_by else ReplyMeaning.SEND
        assert meaning(reply, thread, mode) is expected


@given(REPLIES, THREADS, MODES)
def test_in_an_existing_thread_only_mentions_count(reply: Reply, thread: Thread, mode: ReplyMode) -> None:
    """In any mode of the channel, and without a question or an answer."""
    elsewhere = not (reply.in_direct_message or thread.channel_id == "D1")
    if thread.origin is ThreadOrigin.CONVERSATION and elsewhere and not reply.mentions_us:
        assert meaning(reply, thread, mode) is ReplyMeaning.BETWEEN_PEOPLE


@given(REPLIES, THREADS, MODES)
def test_nothing_is_sent_while_a_job_is_muted(reply: Reply, thread: Thread, mode: ReplyMode) -> None:
    """Nobody is asked about it either."""
    if thread.state.people.muted_by:
        assert meaning(reply, thread, mode) in {ReplyMeaning.MUTED, ReplyMeaning.BETWEEN_PEOPLE}


@given(REPLIES, THREADS, MODES)
def test_strangers_are_asked_only_in_participants_mode(reply: Reply, thread: Thread, mode: ReplyMode) -> None:
    """The requester and people who have steered the job are never asked."""
    if meaning(reply, thread, mode) is ReplyMeaning.ASK_FIRST:
        assert mode is ReplyMode.PARTICIPANTS
        assert not takes_part(reply.person.id, thread)


@given(THREADS, PEOPLE, MODES)
def test_who_steers_becomes_a_participant_in_a_bounded_list(thread: Thread, person_id: str, mode: ReplyMode) -> None:
    """Nobody is listed twice, and the requester is not listed."""
    after = steered_by(thread, person_id, mode, for_good=mode is ReplyMode.PARTICIPANTS).people.participants
    assert len(after) == len(set(after)) <= MAX_PARTICIPANTS
    assert person_id == thread.requester_id or after[-1] == person_id
    assert set(after) == set(thread.state.people.participants) | ({person_id} - {thread.requester_id})


@given(THREADS, PEOPLE)
def test_a_single_approved_reply_makes_no_participant(thread: Thread, person_id: str) -> None:
    """If only participants' replies are sent."""
    after = steered_by(thread, person_id, ReplyMode.PARTICIPANTS)
    if mode_of(thread, ReplyMode.PARTICIPANTS) is ReplyMode.PARTICIPANTS:
        assert after == thread.state


@given(REPLIES)
def test_a_mention_needs_words_to_request_a_job(reply: Reply) -> None:
    """Or a direct message with words. A lone mention, or words for nobody, request none."""
    to_us = reply.mentions_us or reply.in_direct_message or reply.channel_id == "D1"
    assert asks_for_a_job(reply) == (to_us and bool(reply.text))


def test_thanks_after_a_job_withdrawn_before_its_start_are_thanks() -> None:
    """There is nothing that they could answer."""
    thanks = Reply(Person("UANA", "T1"), "C1", "1.1", "2.1", "Thanks!", mentions_us=True)
    thread = Thread(
        "t1", "T1", "C1", "UANA", "Do it", "docs", 0.0, state=ThreadState(failure=Failure(problem=Problem.STOPPED))
    )
    assert meaning(thanks, thread, ReplyMode.EVERYONE) is ReplyMeaning.THANKS
    assert meaning(thanks, replace(thread, state=ThreadState()), ReplyMode.EVERYONE) is ReplyMeaning.SEND
