"""The buttons and control words that people use."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.machine.people import ALL_PROJECTS, AT, PERSON, WHICH, PeopleMachine
from support.worlds.core_world import ANA, BEN

from bot.domain.commands import ThreadWord
from bot.domain.requests.request import Person, RequestKind
from bot.notices.questions import ProjectAsked


class Controlling(PeopleMachine):
    """Rules by which jobs are stopped, muted, retried and switched, and questions answered."""

    @precondition(lambda self: self.outside.cards() and self.may_press())
    @rule(
        which=WHICH,
        person=PERSON,
        kind=st.sampled_from(
            [
                RequestKind.STOP,
                RequestKind.STOP,
                RequestKind.RETRY,
                RequestKind.RETRY,
                RequestKind.DISCARD,
                RequestKind.MUTE,
                RequestKind.UNMUTE,
            ]
        ),
        at=AT,
    )
    def press_on_a_card(self, *, which: int, person: Person, kind: RequestKind, at: int) -> None:
        card = self.card(which)
        self.press(person, kind, at, channel_id=card.channel_id, thread_id=card.key.removesuffix("/card"))

    @precondition(lambda self: self.several and self.outside.cards() and self.may_press())
    @rule(which=WHICH, person=PERSON, project=st.sampled_from(ALL_PROJECTS), at=AT)
    def switch(self, *, which: int, person: Person, project: str, at: int) -> None:
        """Chooses another project in the menu of a card."""
        card = self.card(which)
        thread_id = card.key.removesuffix("/card")
        self.press(
            person,
            RequestKind.CHOOSE_PROJECT,
            at,
            channel_id=card.channel_id,
            thread_id=thread_id,
            argument=project,
        )

    @precondition(lambda self: self.places() and self.may_press())
    @rule(
        which=WHICH,
        person=PERSON,
        word=st.sampled_from(
            [
                ThreadWord.STOP,
                ThreadWord.STOP,
                ThreadWord.RETRY,
                ThreadWord.DISCARD,
                ThreadWord.MUTE,
                ThreadWord.UNMUTE,
                ThreadWord.STATUS,
            ]
        ),
        at=AT,
        edited=st.sampled_from([None, None, 0, 1]),
    )
    def say_a_word(self, *, which: int, person: Person, word: ThreadWord, at: int, edited: int | None) -> None:
        """Says a word for Pagehand, and may make it words for the agent at once."""
        press = self.say(person, self.places()[which % len(self.places())], word, at)
        if edited is not None:
            self.edit_a_word(press, edited)

    @precondition(lambda self: self.people.presses)
    @rule(which=WHICH, at=AT)
    def edit_a_word_later(self, which: int, at: int) -> None:
        presses = list(self.people.presses.values())
        self.edit_a_word(presses[which % len(presses)], at)

    @precondition(lambda self: self.outside.cards() and self.may_press())
    @rule(which=WHICH, person=PERSON, at=AT)
    def react_to_a_card(self, which: int, person: Person, at: int) -> None:
        self.react(person, self.card(which), at)

    @precondition(lambda self: self.outside.chat.private_as(ProjectAsked) and self.may_press())
    @rule(which=WHICH, other=st.sampled_from([None, None, ANA, BEN]), project=st.sampled_from(ALL_PROJECTS), at=AT)
    def choose_the_project(self, *, which: int, other: Person | None, project: str, at: int) -> None:
        """Chooses the project, as the person asked or as another one."""
        asked = self.outside.chat.private_as(ProjectAsked)
        question = asked[which % len(asked)]
        person = other or self.person(question.person_id)
        self.press(person, RequestKind.CHOOSE_PROJECT, at, thread_id=question.thread_id, argument=project)

    @rule(late=st.booleans())
    def what_is_delivered_now_is_late(self, *, late: bool) -> None:
        self.late = late
