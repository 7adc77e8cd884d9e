"""How the store handles text and values, without a database."""

from typing import get_type_hints

from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import from_json
from support.worlds.any_notices import any_messages
from support.worlds.thread_states import PARTS, thread_state

from bot.domain.jobs.job import Problem
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import Job
from bot.notices.notice import NoticeContent, NoticeKey
from bot.store.schema.rows import adapter, message_from, message_text, state_from, state_json
from bot.store.schema.tables import LONGEST_KEY, shortened_key, storable, storable_json

any_text = st.text(st.characters(), max_size=40)
"""Lone surrogates and NUL are among these."""
times = st.floats(min_value=0, max_value=1e10)
jobs = st.builds(Job, any_text, any_text, *([st.none() | any_text] * 6))
states = st.builds(
    thread_state,
    job=st.none() | jobs,
    round=st.integers(0, 1000),
    announced=st.frozensets(any_text.map(NoticeKey)),
    links=st.lists(any_text).map(tuple),
    problem=st.none() | st.sampled_from(Problem),
    problem_text=any_text,
    not_found_count=st.integers(0, 10),
    outage_since=st.none() | times,
    outage_announced=st.booleans(),
    outage_count=st.integers(0, 10),
    changed_at=times,
    poll_until=times,
    participants=st.lists(any_text).map(tuple),
)


@given(any_text)
@example("\0")
@example("\ud83d\ude00")
@example("\ude00\ud83d")
def test_cleaned_text_can_be_stored_and_cleaning_is_idempotent(text: str) -> None:
    once = storable(text)
    assert "\0" not in once
    once.encode()
    assert storable(once) == once


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_storable_text_is_unchanged(text: str) -> None:
    assert storable(text) == text


def test_a_split_surrogate_pair_is_joined() -> None:
    assert storable("\ud83d\ude00") == "\U0001f600"


@given(states)
def test_a_stored_state_is_loaded_clean_and_otherwise_unchanged(state: ThreadState) -> None:
    text = state_json(state)
    text.encode()
    expected = storable_json(adapter(ThreadState).dump_python(state, mode="json"))
    assert state_from(text) == adapter(ThreadState).validate_python(expected)


@given(any_messages())
def test_any_message_round_trips_as_one_line_of_json(message: NoticeContent) -> None:
    text = message_text(message)
    text.encode()
    assert "\0" not in text
    assert "\n" not in text
    kept = message_from(text, message.delivery)
    assert type(kept) is type(message)
    assert message_text(kept) == text


def test_fields_of_newer_versions_are_ignored_and_missing_ones_filled() -> None:
    assert state_from('{"round": 3, "mood": "good"}') == ThreadState(round=3)


def test_the_fields_of_a_state_are_stored_flat() -> None:
    names = [name for name in ThreadState.__dataclass_fields__ if name not in PARTS]
    names += [name for part in PARTS.values() for name in get_type_hints(part)]
    assert len(set(names)) == len(names)
    assert from_json(state_json(ThreadState())).keys() == set(names)


@given(st.text(max_size=LONGEST_KEY * 2), st.text(max_size=5))
def test_long_keys_are_shortened_and_stay_distinct(key: str, end: str) -> None:
    bounded = shortened_key(key)
    assert len(bounded) <= LONGEST_KEY
    assert shortened_key(bounded) == bounded
    if len(key) <= LONGEST_KEY and "\0" not in key:
        assert bounded == key
    if end:
        assert shortened_key("x" * LONGEST_KEY + key + storable(end)) != shortened_key("x" * LONGEST_KEY + key)
