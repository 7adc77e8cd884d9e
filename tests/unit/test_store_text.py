"""What the store makes of text and of values, without a database."""

from hypothesis import example, given
from hypothesis import strategies as st

from bot.domain.models import Job, Known, Trouble
from bot.store.rows import _KNOWN, facts_text, known_text
from bot.store.text import LONGEST_KEY, bounded_key, clean, cleaned

any_text = st.text(st.characters(), max_size=40)
"""Lone surrogates and NUL are among these."""
times = st.floats(min_value=0, max_value=1e10)
jobs = st.builds(Job, any_text, any_text, *([st.none() | any_text] * 6))
knowns = st.builds(
    Known,
    job=st.none() | jobs,
    round=st.integers(0, 1000),
    said=st.frozensets(any_text),
    links=st.lists(any_text).map(tuple),
    trouble=st.none() | st.sampled_from(Trouble),
    trouble_words=any_text,
    misses=st.integers(0, 10),
    out_since=st.none() | times,
    out_said=st.booleans(),
    outages=st.integers(0, 10),
    changed_at=times,
    watch_until=times,
)


@given(any_text)
@example("\0")
@example("\ud83d\ude00")
@example("\ude00\ud83d")
def test_clean_text_can_be_kept_and_is_left_alone_from_then_on(text: str) -> None:
    once = clean(text)
    assert "\0" not in once
    once.encode()
    assert clean(once) == once


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_text_that_can_be_kept_is_not_touched(text: str) -> None:
    assert clean(text) == text


def test_two_halves_of_a_character_are_made_whole() -> None:
    assert clean("\ud83d\ude00") == "\U0001f600"


@given(knowns)
def test_what_is_known_comes_back_clean_and_otherwise_the_same(known: Known) -> None:
    text = known_text(known)
    text.encode()
    expected = cleaned(_KNOWN.dump_python(known, mode="json"))
    assert _KNOWN.validate_json(text) == _KNOWN.validate_python(expected)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), any_text))
def test_facts_are_one_line_of_json_that_any_database_takes(facts: dict[str, str]) -> None:
    text = facts_text(facts)
    text.encode()
    assert "\0" not in text
    assert "\n" not in text


def test_fields_of_a_newer_version_are_passed_over_and_missing_ones_filled() -> None:
    assert _KNOWN.validate_json('{"round": 3, "mood": "good"}') == Known(round=3)


@given(st.text(max_size=LONGEST_KEY * 2), st.text(max_size=5))
def test_keys_are_bounded_and_stay_different(key: str, end: str) -> None:
    bounded = bounded_key(key)
    assert len(bounded) <= LONGEST_KEY
    assert bounded_key(bounded) == bounded
    if len(key) <= LONGEST_KEY and "\0" not in key:
        assert bounded == key
    if end:
        assert bounded_key("x" * LONGEST_KEY + key + clean(end)) != bounded_key("x" * LONGEST_KEY + key)
