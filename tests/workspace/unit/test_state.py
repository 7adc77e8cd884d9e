"""The workspace's state: its clock, its threads, and the order of its messages."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Change, Message, Timestamps, microseconds
from bot.workspace.model.errors import SlackError
from bot.workspace.model.sample_data import ANA, BEN, HOME, populate
from bot.workspace.model.state import SLACKBOT, State


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
