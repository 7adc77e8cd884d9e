"""What people write in the threads of jobs, and how they edit it."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.fakes.slack_payloads import in_a_table
from support.machine.asking import MOST
from support.machine.people import AT, PERSON, PeopleMachine, Place
from support.oracles.people_model import Message, Version
from support.worlds.core_world import ANA

from bot.domain.commands import ThreadWord
from bot.domain.requests.request import Person, Reply, WayIn

MOST_THANKS = 3
"""Thanks in one run."""


class Writing(PeopleMachine):
    """Rules for replies, edits and deletions, which Slack delivers in any order, and again."""

    @precondition(lambda self: self.places() and len(self.people.messages) < MOST)
    @rule(
        which=st.integers(0, 9),
        person=PERSON,
        mentions=st.booleans(),
        forwards=st.sampled_from([None, None, None, None, "with words", "alone"]),
        pastes=st.booleans(),
        by_tool=st.booleans(),
        becomes=st.sampled_from([None, None, None, ThreadWord.STOP, ThreadWord.HELP]),
        at=st.sampled_from([0, 1, None]),
    )
    def reply(
        self,
        *,
        which: int,
        person: Person,
        mentions: bool,
        forwards: str | None,
        pastes: bool,
        by_tool: bool,
        becomes: ThreadWord | None,
        at: int | None,
    ) -> None:
        """Replies with words, a forwarded message, or both; or pastes a table; perhaps by a tool. It may become a word
        for Pagehand at once.
        """
        place = self.places()[which % len(self.places())]
        mark, key = self.next_mark()
        ts = self.outside.chat.next_ts()
        words = "" if forwards == "alone" else f"Change [{mark}.0]"
        if pastes and not forwards:
            words = in_a_table(f"[{mark}.0]")
        message = Message(mark, key, person, WayIn.REPLY, place.channel_id, words, ts=ts, root=place.root)
        message.mentions, message.forwarded = mentions, f"Seen [{mark}.0] elsewhere" if forwards else ""
        message.by_tool = by_tool and not forwards
        self.written(message, at)
        if becomes is not None:
            self.revise(message, becomes, at)

    @precondition(lambda self: self.places())
    @rule(which=st.integers(0, 9), mentions=st.booleans(), at=AT)
    def a_bot_replies(self, *, which: int, mentions: bool, at: int) -> None:
        """Answers a bot with nothing at all."""
        place = self.places()[which % len(self.places())]
        reply = Reply(ANA, place.channel_id, place.root, self.outside.chat.next_ts(), "Done", mentions_us=mentions)
        self.in_process(at, self.listeners_of(at).ignore(reply))

    @precondition(lambda self: self.places() and len(self.people.thanks) < MOST_THANKS)
    @rule(which=st.integers(0, 9), person=PERSON, mentions=st.booleans(), at=AT)
    def thank(self, *, which: int, person: Person, mentions: bool, at: int) -> None:
        place = self.places()[which % len(self.places())]
        self.deliver_thanks(self.thanks(person, place, mentions=mentions), at)

    @precondition(lambda self: len(self.people.thanks) < MOST_THANKS)
    @rule(person=PERSON, at=AT)
    def thank_outside_a_thread(self, person: Person, at: int) -> None:
        """Writes thanks in the direct message."""
        self.deliver_thanks(self.thanks(person, Place("D1", ""), mentions=False), at)

    @precondition(lambda self: self.people.thanks)
    @rule(which=st.integers(0, 9), at=AT)
    def thanks_come_again(self, which: int, at: int) -> None:
        self.deliver_thanks(self.people.thanks[which % len(self.people.thanks)], at)

    def thanks(self, person: Person, place: Place, *, mentions: bool) -> Reply:
        """Writes thanks in a thread."""
        ts, direct = self.outside.chat.next_ts(), place.channel_id.startswith("D")
        words = "Thanks a lot!"
        thanks = Reply(person, place.channel_id, place.root, ts, words, mentions_us=mentions, in_direct_message=direct)
        self.people.thanks.append(thanks)
        return thanks

    def deliver_thanks(self, thanks: Reply, at: int) -> None:
        """Delivers thanks, perhaps again."""
        service = self.processes[at].service
        self.answer_of(at, service.receive(thanks) if thanks.thread_ts else service.thank(thanks))

    @precondition(lambda self: self.outside.cards() and len(self.people.messages) < MOST)
    @rule(which=st.integers(0, 9), person=PERSON, presses=st.booleans(), at=AT)
    def reply_in_a_modal(self, *, which: int, person: Person, presses: bool, at: int) -> None:
        """Types a follow-up in a modal, or presses a follow-up button."""
        card = self.card(which)
        mark, key = self.next_mark()
        root = card.thread_ts or card.ts
        message = Message(mark, key, person, WayIn.REPLY, card.channel_id, f"Change [{mark}.0]", root=root)
        message.thread_id, message.pressed = card.key.removesuffix("/card"), presses
        self.written(message, at)

    @precondition(lambda self: any(message.ts for message in self.people.messages))
    @rule(
        which=st.integers(0, 9),
        into=st.sampled_from(["words", "words", "words", None, None, ThreadWord.STOP, ThreadWord.HELP]),
        at=st.sampled_from([0, 1, 0, 1, None]),
    )
    def edit(self, *, which: int, into: str | ThreadWord | None, at: int | None) -> None:
        """Edits a message, perhaps into a word for Pagehand, or deletes it."""
        messages = [message for message in self.people.messages if message.ts]
        message = messages[which % len(messages)]
        if not message.versions or message.versions[-1].words or message.versions[-1].word:
            self.revise(message, into, at)

    def revise(self, message: Message, into: str | ThreadWord | None, at: int | None) -> None:
        """Records an edit; None: a deletion."""
        mark = f"[{message.mark}.{len(message.versions) + 1}]"
        words = message.words.replace(f"[{message.mark}.0]", mark) if into == "words" else ""
        word = into if isinstance(into, ThreadWord) else None
        version = Version(self.outside.chat.next_ts(), words, mark, word)
        message.versions.append(version)
        if at is not None:
            self.deliver_version(message, version, at)
