"""Which messages in a Slack thread are meant for its job: the common rules."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.worlds.thread_states import thread_state

from bot.domain.jobs.job import Problem
from bot.domain.projects import ReplyMode
from bot.domain.requests.request import Person, Reply
from bot.domain.threads.reply_rules import ReplyMeaning, asks_for_a_job, meaning, steered_by, takes_part
from bot.domain.threads.thread import MAX_PARTICIPANTS, Failure, Thread, ThreadOrigin, ThreadState

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


@given(THREADS, PEOPLE)
def test_a_person_who_steers_becomes_a_participant_and_the_list_is_bounded(thread: Thread, person_id: str) -> None:
    """Nobody is listed twice, and the requester is not listed."""
    after = steered_by(thread, person_id, counts=True).people.participants
    assert len(after) == len(set(after)) <= MAX_PARTICIPANTS
    assert person_id == thread.requester_id or after[-1] == person_id
    assert set(after) == set(thread.state.people.participants) | ({person_id} - {thread.requester_id})


@given(THREADS, PEOPLE)
def test_a_single_approved_reply_makes_no_participant(thread: Thread, person_id: str) -> None:
    after = steered_by(thread, person_id, counts=False)
    assert after.people.participants == thread.state.people.participants
    assert (person_id in after.people.let_through) != takes_part(person_id, thread)
    assert steered_by(replace(thread, state=after), person_id, counts=False) == after


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
