"""The workspace's clock, and text as Slack stores it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.workspace.model.entities import Timestamps, microseconds
from bot.workspace.model.text import escape, stored_app_text, stored_typed_text, unescape
from bot.workspace.wire.rendering import rich_text_of


@given(st.lists(st.floats(min_value=0, max_value=4e9), min_size=2, max_size=30))
def test_timestamps_increase_even_if_the_clock_does_not(moments: list[float]) -> None:
    clock = iter(moments)
    timestamps = Timestamps(lambda: next(clock))
    given_out = [microseconds(timestamps.next()) for _ in moments]
    assert all(earlier < later for earlier, later in itertools.pairwise(given_out))


PEOPLE = {"ana": "U1", "pagehand": "U2"}
CHANNELS = {"docs": "C1"}


def typed(text: str) -> str:
    return stored_typed_text(text, PEOPLE.get, CHANNELS.get)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
        ("@ana and @nobody", "<@U1> and @nobody"),
        ("@Ana in #Docs", "<@U1> in <#C1|docs>"),
        ("ask @pagehand.", "ask <@U2>."),
        ("in #docs, not #nowhere", "in <#C1|docs>, not #nowhere"),
        ("@here @channel", "<!here> <!channel>"),
        ("mail ana@ana.org", "mail ana@ana.org"),
        ("see https://a.example/x?a=1&b=2.", "see <https://a.example/x?a=1&amp;b=2>."),
        ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
        ("<https://a.example>", "&lt;<https://a.example>&gt;"),
        ("(`https://a.example?b&`)", "(`<https://a.example?b&amp;>`)"),
    ],
)
def test_typed_text_is_encoded(text: str, stored: str) -> None:
    assert typed(text) == stored


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a & b", "a &amp; b"),
        ("a &amp; b &lt;c&gt;", "a &amp; b &lt;c&gt;"),
        ("<@U1> <!here> <#C1|docs>", "<@U1> <!here> <#C1|docs>"),
        ("<https://a.example|label>", "<https://a.example|label>"),
        ("<script>", "&lt;script&gt;"),
        ("https://a.example/x", "<https://a.example/x>"),
    ],
)
def test_app_text_is_parsed(text: str, stored: str) -> None:
    assert stored_app_text(text) == stored


@given(st.text())
def test_escaping_can_be_undone(text: str) -> None:
    assert unescape(escape(text)) == text


@given(st.text(max_size=200))
def test_typed_text_has_only_known_control_sequences(text: str) -> None:
    stored = stored_typed_text(text, lambda _: None, lambda _: None)
    bare = stored.replace("<!here>", "").replace("<!channel>", "").replace("<!everyone>", "")
    for part in bare.split("<")[1:]:
        assert part.startswith(("http://", "https://"))


@given(st.text(max_size=200))
def test_stored_app_text_is_stable(text: str) -> None:
    assert stored_app_text(stored_app_text(text)) == stored_app_text(text)


def test_rich_text_has_an_element_for_each_reference() -> None:
    (block,) = rich_text_of("hi <@U1> in <#C1|docs> see <https://a.example|it> &amp; <!here>")
    assert block["elements"][0]["elements"] == [
        {"type": "text", "text": "hi "},
        {"type": "user", "user_id": "U1"},
        {"type": "text", "text": " in "},
        {"type": "channel", "channel_id": "C1"},
        {"type": "text", "text": " see "},
        {"type": "link", "url": "https://a.example", "text": "it"},
        {"type": "text", "text": " & "},
        {"type": "broadcast", "range": "here"},
    ]
