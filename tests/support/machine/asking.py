"""How people ask for jobs: every way in, for any project, delivered at once, later, or again."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.machine.people import ALL_PROJECTS, AT, PERSON, PeopleMachine, Place
from support.oracles.people_model import Message

from bot.domain.commands import ThreadWord
from bot.domain.requests.request import Person, WayIn

MOST = 10
"""Messages in one run."""
SAID = st.sampled_from(["", "", "guides", "manual", "guidse"])
TOPIC = st.sampled_from(["", "guide", "manual", "guide and manual"])


class Asking(PeopleMachine):
    """Rules by which people ask for jobs."""

    @precondition(lambda self: len(self.people.messages) < MOST)
    @rule(
        way_in=st.sampled_from([WayIn.COMMAND, WayIn.MODAL]),
        person=PERSON,
        channel=st.sampled_from(["C1", "C2"]),
        said=SAID,
        topic=TOPIC,
        at=AT,
    )
    def ask(self, *, way_in: WayIn, person: Person, channel: str, said: str, topic: str, at: int) -> None:
        """Uses the command or its modal: the card begins a thread."""
        mark, key = self.next_mark()
        words = f"Do [{mark}.0] {topic}"
        self.written(
            Message(mark, key, person, way_in, channel, words, said=said, project=self.meant(said, channel, topic)), at
        )

    @precondition(lambda self: len(self.people.messages) < MOST)
    @rule(
        person=PERSON,
        channel=st.sampled_from(["C1", "C2", "D1"]),
        said=SAID,
        topic=TOPIC,
        at=st.sampled_from([0, 1, None]),
    )
    def mention(self, *, person: Person, channel: str, said: str, topic: str, at: int | None) -> None:
        """Mentions the bot in a root message, or writes a direct message."""
        mark, key = self.next_mark()
        ts = self.outside.chat.next_ts()
        way_in = WayIn.DIRECT_MESSAGE if channel.startswith("D") else WayIn.MENTION
        message = Message(
            mark,
            key,
            person,
            way_in,
            channel,
            f"Do [{mark}.0] {topic}",
            ts=ts,
            root=ts,
            mentions=way_in is WayIn.MENTION,
            said=said,
            project=self.meant(said, channel, topic),
        )
        self.written(message, at)

    @precondition(lambda self: self.direct_messages() and len(self.people.messages) < MOST)
    @rule(which=st.integers(0, 9), topic=TOPIC, at=st.sampled_from([0, 1, 0, 1, None]))
    def write_another_line(self, *, which: int, topic: str, at: int | None) -> None:
        """Writes on in a direct message, outside the threads."""
        earlier = self.direct_messages()
        self.write_directly(earlier[which % len(earlier)].person, topic, at)

    def direct_messages(self) -> list[Message]:
        """Returns the direct messages."""
        return [message for message in self.people.messages if message.way_in is WayIn.DIRECT_MESSAGE]

    def write_directly(self, person: Person, topic: str, at: int | None) -> None:
        """Writes a line in a direct message."""
        (mark, key), ts = self.next_mark(), self.outside.chat.next_ts()
        words, project = f"Do [{mark}.0] {topic}", self.meant("", "D1", topic)
        self.written(Message(mark, key, person, WayIn.DIRECT_MESSAGE, "D1", words, ts=ts, root=ts, project=project), at)

    @precondition(lambda self: len(self.people.messages) < MOST)
    @rule(
        way_in=st.sampled_from([WayIn.MENTION, WayIn.SHORTCUT]),
        person=PERSON,
        again=st.booleans(),
        topic=TOPIC,
        at=AT,
    )
    def ask_in_conversation(self, *, way_in: WayIn, person: Person, again: bool, topic: str, at: int) -> None:
        """Mentions the bot in an existing thread, where there may be a job already."""
        if not (again and self.conversations):
            self.conversations.append(Place("C1", self.outside.chat.next_ts()))
        place = self.conversations[-1]
        mark, key = self.next_mark()
        ts = "" if way_in is WayIn.SHORTCUT else self.outside.chat.next_ts()
        message = Message(mark, key, person, way_in, "C1", f"Do [{mark}.0] {topic}", ts=ts, root=place.root)
        message.mentions, message.likely = way_in is WayIn.MENTION, self.meant("", "C1", topic)
        self.written(message, at)

    @precondition(lambda self: self.places() and len(self.people.messages) < MOST)
    @rule(which=st.integers(0, 9), person=PERSON, said=SAID, at=st.sampled_from([0, 1, None]))
    def ask_for_another(self, *, which: int, person: Person, said: str, at: int | None) -> None:
        """Writes `!new` in the thread of a job."""
        place = self.places()[which % len(self.places())]
        mark, key = self.next_mark()
        option = f"project:{said} " if said else ""
        message = Message(
            mark,
            key,
            person,
            WayIn.WORD,
            place.channel_id,
            f"{option}Do [{mark}.0]",
            ts=self.outside.chat.next_ts(),
            root=place.root,
            word=ThreadWord.NEW,
            said=said,
            project=said if said in ALL_PROJECTS and self.several else "",
        )
        self.written(message, at)

    def meant(self, said: str, channel: str, topic: str) -> str:
        """Returns the project of a request by its text and place; empty: its person has to be asked."""
        if not self.several:
            return "docs" if said in {"", "docs"} else ""
        if said:
            return said if said in ALL_PROJECTS else ""
        if channel == "C2":
            return "api"
        named = [word for word in ("guide", "manual") if word in topic]
        return {"guide": "guides", "manual": "manual"}[named[0]] if len(named) == 1 else ""
