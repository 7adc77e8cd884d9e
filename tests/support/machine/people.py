"""The base of all rules about people: what is written, delivered, edited and pressed, and in which threads."""

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.fakes.ports import Posted
from support.machine.listening import Listening, is_refused_at_once
from support.oracles.people_model import Message, People, Press, Version
from support.oracles.stop_verdict import took_effect
from support.worlds.core_world import ANA, BEN, EVA

from bot.domain.commands import AgentOptions
from bot.domain.requests.new_jobs import NewJob, Written, request_id
from bot.domain.requests.request import (
    Action,
    Arrival,
    Person,
    Reply,
    RequestContext,
    RequestKind,
    RequestState,
    WayIn,
    home_key,
)
from bot.domain.threads.reply_rules import may_ask
from bot.domain.threads.thread import ThreadOrigin
from bot.notices.questions import HeldAsked, JobOrReplyAsked, ReplyEdited, ReplyHeld

PEOPLE = (ANA, ANA, ANA, ANA, BEN, BEN, BEN, EVA)
ALL_PROJECTS = ("guides", "manual", "api")
MOST_PRESSES = 14
"""Presses in one run."""
PERSON, AT, WHICH = st.sampled_from(PEOPLE), st.sampled_from([0, 1]), st.integers(0, 9)

Question: TypeAlias = ReplyEdited | ReplyHeld | HeldAsked | JobOrReplyAsked
_ANSWERS: dict[type[Question], tuple[RequestKind, ...]] = {
    ReplyEdited: (RequestKind.SEND_NEW_WORDS,),
    ReplyHeld: (RequestKind.SEND_HELD, RequestKind.SEND_ALL_HELD, RequestKind.DISCARD_HELD),
    HeldAsked: (RequestKind.SEND_HELD, RequestKind.SEND_HELD, RequestKind.DISCARD_HELD),
    JobOrReplyAsked: (RequestKind.SEND_HELD, RequestKind.DISCARD_HELD),
}


@dataclass(frozen=True)
class Place:
    """A Slack thread that has or will have a job."""

    channel_id: str
    root: str


class PeopleMachine(Listening):
    """Rules by which people ask for jobs in every way, and steer them."""

    def __init__(self) -> None:
        super().__init__()
        self.people = People()
        self.several = False
        self.late = False
        self.conversations: list[Place] = []

    # -- where ----------------------------------------------------------------------------------------------------

    def places(self) -> list[Place]:
        """Returns the threads in which people see a card or wait for one."""
        carded = [Place(card.channel_id, card.thread_ts or card.ts) for card in self.outside.cards()]
        asked = [Place(each.channel_id, each.root) for each in self.people.messages if each.starts and each.root]
        return list(dict.fromkeys([*carded, *asked]))

    def card(self, which: int) -> Posted:
        """Chooses one of the visible cards."""
        cards = self.outside.cards()
        return cards[which % len(cards)]

    @staticmethod
    def person(person_id: str) -> Person:
        """Returns the person with this id."""
        return next(person for person in (ANA, BEN, EVA) if person.id == person_id)

    # -- what is written ------------------------------------------------------------------------------------------

    def next_mark(self) -> tuple[str, str]:
        """Returns a new unique mark, and a key made of it."""
        mark = f"w{len(self.people.messages)}"
        return mark, f"key-{mark}"

    def written(self, message: Message, at: int | None) -> None:
        """Records that a person wrote this; `at` is the process that it is delivered to, None: later."""
        self.people.messages.append(message)
        if at is not None:
            self.deliver_message(message, at)

    def deliver_message(self, message: Message, at: int) -> None:
        """Delivers a message, perhaps again."""
        service = self.processes[at].service
        is_new_command = message.way_in is WayIn.COMMAND and message.acked is message.refused is None
        if is_new_command and is_refused_at_once(self.processes[at], _job(message)):
            message.refused = self.outside.step
        if message.refused is not None:
            return
        message.late = message.late or (message.acked is None and bool(message.ts) and self.late)
        if message.thread_id:
            way_in = WayIn.BUTTON if message.pressed else WayIn.MODAL
            written = Written(message.person, message.thread_id, message.words, message.key, way_in)
            work: Coroutine[Any, Any, object] = service.follow_up(written)
        elif message.way_in in {WayIn.REPLY, WayIn.WORD} or (message.root not in {"", message.ts}):
            if message.way_in is WayIn.SHORTCUT:
                work = service.start(_job(message))
            elif message.way_in is WayIn.REPLY and not message.forwarded:
                work = self.listeners_of(at).take(message.reply(), by_tool=message.by_tool)
            else:
                work = service.receive(message.reply())
        else:
            work = service.start(_job(message))
        answer = self.answer_of(at, work)
        if answer is not None:
            message.acked = message.acked or self.outside.step
            message.known = message.known or answer

    def deliver_version(self, message: Message, version: Version, at: int) -> None:
        """Delivers an edit or a deletion, perhaps again. One of an unknown message is handled like a new message if it
        came soon; later, its author is told that it asks for nothing.
        """
        revised = replace(message.revised(version), arrival=Arrival.LATE if self.late else Arrival.LIVE)
        answer = self.answer_of(at, self.processes[at].service.revise(revised))
        if answer is False and (message.mentions or message.in_direct_message):
            if version.words and may_ask(message.ts, version.at):
                answer = self.answer_of(at, self._asked_by_an_edit(message, version, at))
            elif version.words:
                message.told_too_late = True
        if answer is not None and version.acked is None:
            version.acked = self.outside.step

    def _asked_by_an_edit(self, message: Message, version: Version, at: int) -> Coroutine[Any, Any, object]:
        service = self.processes[at].service
        if message.root == message.ts:
            return service.start(replace(_job(message), prompt=version.words, edited_at=version.at))
        return service.receive(message.revised(version))

    def answer_of(self, at: int, work: Coroutine[Any, Any, object]) -> bool | None:
        """Returns the service's answer (None counts as yes); None if there was no answer."""
        answers: list[object] = []

        async def answered() -> None:
            answers.append(await work)

        return answers[0] is not False if self.in_process(at, answered()) and answers else None

    # -- what is pressed ------------------------------------------------------------------------------------------

    def may_press(self) -> bool:
        """Returns whether a run has room for another press."""
        return len(self.people.presses) < MOST_PRESSES

    def press(self, person: Person, kind: RequestKind, at: int, *, on_home: bool = False, **about: str) -> None:
        """Presses a button."""
        key = f"press-{len(self.people.presses)}"
        key = home_key(key) if on_home else key
        action = Action(person, kind, key, way_in=WayIn.BUTTON, at=self.outside.chat.next_ts(), **about)
        self._pressed(Press(key, person, action), at)

    def react(self, person: Person, card: Posted, at: int) -> None:
        """Adds an ❌ to a card."""
        key = f"reaction/press-{len(self.people.presses)}"
        action = Action(
            person, RequestKind.STOP, key, way_in=WayIn.REACTION, channel_id=card.channel_id, card_ts=card.ts
        )
        action = replace(action, at=self.outside.chat.next_ts())
        self._pressed(Press(key, person, action), at)

    def say(self, person: Person, place: Place, word: Any, at: int, *, text: str = "") -> Press:
        """Writes a control word; with HELP, `text` is the one that was probably meant, if any."""
        ts = self.outside.chat.next_ts()
        in_direct_message = place.channel_id.startswith("D")
        reply = Reply(person, place.channel_id, place.root, ts, text, word=word, in_direct_message=in_direct_message)
        reply = replace(reply, arrival=Arrival.LATE if self.late else Arrival.LIVE)
        press = Press(f"message/{place.channel_id}/{ts}", person, reply)
        self._pressed(press, at)
        return press

    def edit_a_word(self, press: Press, at: int) -> None:
        """Edits a word for Pagehand that was recorded as one into words for the agent."""
        if not isinstance(press.wants, Reply) or request_id(press.key) not in self.people.recorded:
            return
        text, edited_at = f"Instead [e{len(self.people.edited_words)}]", self.outside.chat.next_ts()
        edited = replace(press.wants, text=text, word=None, mentions_us=True, edited_at=edited_at)
        if self.answer_of(at, self.processes[at].service.revise(edited)) is not None:
            self.people.edited_words.append(edited)

    def _pressed(self, press: Press, at: int) -> None:
        self.people.presses[press.key] = press
        self.deliver_press(press, at)

    def deliver_press(self, press: Press, at: int) -> None:
        """Delivers a press, perhaps again."""
        service, wants = self.processes[at].service, press.wants
        answer = self.answer_of(at, service.act(wants) if isinstance(wants, Action) else service.receive(wants))
        if answer is not None:
            press.acked = press.acked or self.outside.step
            press.known = press.known or answer

    # -- what happens to all of it --------------------------------------------------------------------------------

    @precondition(lambda self: self.people.messages)
    @rule(which=WHICH, at=AT)
    def deliver(self, which: int, at: int) -> None:
        """Delivers a message, for the first time or again."""
        self.deliver_message(self.people.messages[which % len(self.people.messages)], at)

    @precondition(lambda self: any(message.versions for message in self.people.messages))
    @rule(which=WHICH, at=AT)
    def deliver_edit(self, which: int, at: int) -> None:
        edits = [(message, version) for message in self.people.messages for version in message.versions]
        self.deliver_version(*edits[which % len(edits)], at)

    @precondition(lambda self: self.posts_to_send_again() and self.may_press())
    @rule(which=WHICH, person=PERSON, at=AT)
    def press_send_again(self, which: int, person: Person, at: int) -> None:
        request_id, channel_id = self.posts_to_send_again()[which % len(self.posts_to_send_again())]
        self.press(person, RequestKind.SEND_AGAIN, at, channel_id=channel_id, argument=request_id)

    @precondition(lambda self: self.uncarded() and self.may_press())
    @rule(which=WHICH, person=PERSON, at=AT)
    def stop_on_home(self, *, which: int, person: Person, at: int) -> None:
        """Stops a job beside which Home offers that, because it has no card yet."""
        waiting = self.uncarded()
        self.press(person, RequestKind.STOP, at, on_home=True, thread_id=waiting[which % len(waiting)])

    @precondition(lambda self: self.questions() and self.may_press())
    @rule(which=WHICH, other=st.sampled_from([None, None, None, ANA, BEN, EVA]), answer=WHICH, at=AT)
    def answer_a_question(self, *, which: int, other: Person | None, answer: int, at: int) -> None:
        """About new words of a reply, a held one, what was written while Pagehand was away, what a stop withdrew, or a
        line in a direct message: a job of its own, or for the one above.
        """
        question = self.questions()[which % len(self.questions())]
        kinds = _ANSWERS[type(question)]
        person = other or self.person(question.person_id)
        self.press(person, kinds[answer % len(kinds)], at, argument=question.request_id)

    def questions(self) -> list[Question]:
        """Returns what people were asked about what they wrote."""
        return [question for kind in _ANSWERS for question in self.outside.chat.private_as(kind)]

    @precondition(lambda self: self.people.presses)
    @rule(which=WHICH, at=AT)
    def a_press_comes_again(self, which: int, at: int) -> None:
        """Repeats a press, however late: it has an effect only if it was not recorded before."""
        presses = list(self.people.presses.values())
        press, before = presses[which % len(presses)], {row["id"] for row in self.rows("requests")}
        acked = press.acked
        self.deliver_press(press, at)
        assert acked is None or {row["id"] for row in self.rows("requests")} == before

    # -- the end --------------------------------------------------------------------------------------------------

    def before_the_last_deliveries(self) -> None:
        """Whatever happens once no fault is left."""

    def end_jobs(self) -> None:
        """Ends the jobs once all was delivered."""
        self.all_jobs_end()

    def calm_down(self) -> None:
        """Ends all faults, and delivers what was not."""
        self.late = False
        self.outside.traps.clear()
        self.outside.chat.archived.clear()
        self.outside.reading.faults.clear()
        self.resume_all()
        self.before_the_last_deliveries()
        for message in self.people.messages:
            for _ in range(2):  # the first may only look up its author
                if message.acked is None:
                    self.deliver_message(message, 0)
            for version in reversed(message.versions):
                if version.acked is None:
                    self.deliver_version(message, version, 0)
        for press in self.people.presses.values():
            if press.acked is None:
                self.deliver_press(press, 0)
        self.end_jobs()
        self.settle_down()

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the rows that a verdict is about."""
        return {name: self.rows(name) for name in ("threads", "polls", "requests", "notices", "early_replies")}

    def after_step(self) -> None:
        """Records since when each row exists."""
        for row in self.rows("requests"):
            self.people.recorded.setdefault(row["id"], self.outside.step)
            if took_effect(row):
                self.people.stopped.setdefault(row["id"], self.outside.step)
            if row["state"] in _PASSED and row["kind"] in {"start", "follow_up"}:
                self.people.passed.setdefault(row["id"], self.outside.clock.time)
            if row["state"] in {RequestState.REJECTED, RequestState.WITHDRAWN} and row["kind"] == "start":
                self.people.ended.setdefault(row["id"], self.outside.step)
        for row in self.rows("early_replies"):
            self.people.kept[f"message/{row['channel_id']}/{row['message_ts']}"] = self.outside.step
        for row in self.rows("notices"):
            self.people.noted.setdefault(row["key"], self.outside.step)


def _job(message: Message) -> NewJob:
    """Builds what the listener of each way in builds."""
    context = RequestContext("What was said.") if message.way_in is WayIn.SHORTCUT else None
    return NewJob(
        message.person,
        message.channel_id,
        message.words,
        message.key,
        message.way_in,
        project_said=message.said,
        agent=message.agent,
        thread_ts=message.root,
        message_ts=message.ts,
        origin=_ORIGINS.get(message.way_in, ThreadOrigin.CARD),
        context=context,
        may_be_reply=message.way_in is WayIn.DIRECT_MESSAGE and not (message.said or message.agent != AgentOptions()),
        arrival=Arrival.LATE if message.late else Arrival.LIVE,
    )


_PASSED = {RequestState.WAITING, RequestState.SENDING, RequestState.ACCEPTED, RequestState.UNCERTAIN}
_ORIGINS = {
    WayIn.MENTION: ThreadOrigin.REQUEST,
    WayIn.DIRECT_MESSAGE: ThreadOrigin.REQUEST,
    WayIn.SHORTCUT: ThreadOrigin.CONVERSATION,
}
