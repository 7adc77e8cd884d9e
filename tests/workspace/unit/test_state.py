"""The workspace's state: its clock, its threads, the order of its messages, and text as Slack stores it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Change, Message, SlackError, Timestamps, microseconds
from bot.workspace.model.sample_data import ANA, BEN, HOME, populate
from bot.workspace.model.state import SLACKBOT, State
from bot.workspace.model.text import escape, stored_app_text, stored_typed_text, unescape
from bot.workspace.wire.rendering import rich_text_of


@given(st.lists(st.floats(min_value=0, max_value=4e9), min_size=2, max_size=30))
def test_timestamps_increase_even_if_the_clock_does_not(moments: list[float]) -> None:
    clock = iter(moments)
    timestamps = Timestamps(lambda: next(clock))
    given_out = [microseconds(timestamps.next()) for _ in moments]
    assert all(earlier < later for earlier, later in itertools.pairwise(given_out))


class Threads(RuleBasedStateMachine):
    """Posting, replying, reacting and deleting, compared with plain lists."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State(HOME, lambda: 1_700_000_000.0)
        populate(self.state, AppConfig())
        self.docs = self.state.channels["C0DOCS001"]
        self.changes: list[Change] = []
        self.state.observers.append(self.changes.append)
        self.roots: list[str] = []
        self.replies: dict[str, list[str]] = {}
        self.reacted: set[tuple[str, str]] = set()

    @rule()
    def post(self) -> None:
        ts = self.state.post(Message(self.docs.id, "", ANA.id, "root")).ts
        self.roots.append(ts)
        self.replies[ts] = []

    @precondition(lambda self: self.roots)
    @rule(data=st.data())
    def reply(self, data: st.DataObject) -> None:
        root = data.draw(st.sampled_from(self.roots))
        above = data.draw(st.sampled_from([root, *self.replies[root]]))
        message = self.state.post(Message(self.docs.id, "", BEN.id, "reply", thread_ts=above))
        assert message.thread_ts == root
        self.replies[root].append(message.ts)

    @precondition(lambda self: self.roots)
    @rule(data=st.data(), who=st.sampled_from([ANA.id, BEN.id]))
    def react(self, data: st.DataObject, who: str) -> None:
        ts = data.draw(st.sampled_from(self.roots))
        try:
            self.state.react(self.state.message(self.docs, ts), who, "eyes")
        except SlackError as error:
            assert error.code == "already_reacted"  # noqa: PT017 - both ends are right
            assert (ts, who) in self.reacted
        else:
            assert (ts, who) not in self.reacted
            self.reacted.add((ts, who))

    @precondition(lambda self: any(self.replies.values()))
    @rule(data=st.data())
    def delete_reply(self, data: st.DataObject) -> None:
        root = data.draw(st.sampled_from([root for root, replies in self.replies.items() if replies]))
        ts = data.draw(st.sampled_from(self.replies[root]))
        self.state.delete(self.state.message(self.docs, ts), BEN.id)
        self.replies[root].remove(ts)

    @precondition(lambda self: self.roots)
    @rule(data=st.data())
    def delete_root(self, data: st.DataObject) -> None:
        ts = data.draw(st.sampled_from(self.roots))
        message = self.state.message(self.docs, ts)
        self.state.delete(message, ANA.id)
        self.reacted = {(root, who) for root, who in self.reacted if root != ts}
        if self.replies[ts]:
            assert (message.subtype, message.user) == ("tombstone", SLACKBOT)
        else:
            self.roots.remove(ts)

    @invariant()
    def matches_the_model(self) -> None:
        conversation = self.state.conversation(self.docs)
        every = sorted([*self.roots, *(ts for replies in self.replies.values() for ts in replies)])
        assert [message.ts for message in conversation] == every
        for root in self.roots:
            assert [message.ts for message in conversation.replies(root)] == self.replies[root]

    @invariant()
    def each_change_has_a_later_moment(self) -> None:
        moments = [microseconds(change.at) for change in self.changes]
        assert moments == sorted(set(moments))


TestThreads = Threads.TestCase

PEOPLE = {"ana": "U1", "pagehand": "U2"}
CHANNELS = {"docs": "C1"}


def typed(text: str) -> str:
    return stored_typed_text(text, PEOPLE.get, CHANNELS.get)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
        ("@ana and @nobody", "<@U1> and @nobody"),
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
