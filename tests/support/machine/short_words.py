"""What people write that is no task: near misses of control words, and emoji alone."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.machine.people import AT, PERSON, WHICH, PeopleMachine, Place

from bot.domain.commands import ThreadWord, UnclearWord, Word, parse_reply
from bot.domain.requests.request import Person, Reply

NEARLY = (
    "!stop now",
    "!stopp",
    "! cancel",
    "!sotp it",
    "!statsu",
    "!retyr please",
    "!mute it for me",
    "\uff01\uff53\uff54\uff4f\uff50\u3000now",
)
"""Some are understood; for the others their authors are told what they probably meant."""
MOST_CHEERS = 3
"""Messages of emoji alone in one run."""


class ShortWords(PeopleMachine):
    """Rules for near misses, and for emoji, which are an answer if the agent asked a question."""

    @precondition(lambda self: self.places() and self.may_press())
    @rule(which=WHICH, person=PERSON, words=st.sampled_from(NEARLY), at=AT)
    def say_nearly_a_word(self, *, which: int, person: Person, words: str, at: int) -> None:
        place, meant = self.places()[which % len(self.places())], parse_reply(words, bot_user_id="UBOT")
        if isinstance(meant, UnclearWord):
            self.say(person, place, ThreadWord.HELP, at, text=meant.meant)
        else:
            assert isinstance(meant, Word), f"{words} would go to the agent"
            self.say(person, place, meant.word, at)

    @precondition(lambda self: self.places() and len(self.people.cheers) < MOST_CHEERS)
    @rule(which=WHICH, person=PERSON, mentions=st.booleans(), at=AT)
    def cheer(self, *, which: int, person: Person, mentions: bool, at: int) -> None:
        place = self.places()[which % len(self.places())]
        self.deliver_cheer(self.cheers(person, place, mentions=mentions), at)

    @precondition(lambda self: self.people.cheers)
    @rule(which=WHICH, at=AT)
    def a_cheer_comes_again(self, which: int, at: int) -> None:
        self.deliver_cheer(self.people.cheers[which % len(self.people.cheers)], at)

    def cheers(self, person: Person, place: Place, *, mentions: bool) -> Reply:
        """Writes emoji alone, which no other rule writes."""
        words = f":cheer-{len(self.people.cheers)}:"
        cheer = Reply(person, place.channel_id, place.root, self.outside.chat.next_ts(), words, mentions_us=mentions)
        cheer = replace(cheer, in_direct_message=place.channel_id.startswith("D"))
        self.people.cheers.append(cheer)
        return cheer

    def deliver_cheer(self, cheer: Reply, at: int) -> None:
        """Delivers emoji, perhaps again."""
        self.answer_of(at, self.processes[at].service.receive(cheer))
