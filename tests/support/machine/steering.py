"""Jobs by the command, and how they are steered: replies, edits, stops, and presses of questions about them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from support.machine.listening import Listening
from support.machine.machine import LINKS
from support.oracles.core_verdict import Model, Verdict, Version, Written
from support.oracles.promises import AskedFor, check, done_too_often
from support.oracles.stop_verdict import took_effect
from support.worlds.core_world import ANA, BEN, EVA
from support.worlds.fault_traps import BAD_STARTS
from support.worlds.fault_world import Trap

from bot.domain.projects import ChannelSettings, PostMode
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Action, Person, RejectionReason, Reply, RequestKind, WayIn, home_key
from bot.notices.answers import Introduction
from bot.notices.questions import HeldAsked, ReplyEdited


class Steering(Listening):
    """Rules by which people ask for jobs by the command, in one project, and steer them."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    @initialize(
        idempotent=st.booleans(),
        cancels=st.booleans(),
        links=st.booleans(),
        merge_seconds=st.sampled_from([0.0, 3.0]),
        jobs=st.sampled_from([1, 1, 2, 0]),
        replies=st.integers(0, 2),
        hold_back=st.sampled_from([0.0, 5.0]),
        posts=st.sampled_from([PostMode.ALL, PostMode.ALL, PostMode.ENDS]),
        traps=st.sampled_from(BAD_STARTS),
    )
    def begin(
        self,
        *,
        idempotent: bool,
        cancels: bool,
        links: bool,
        merge_seconds: float,
        jobs: int,
        replies: int,
        hold_back: float,
        posts: PostMode,
        traps: tuple[Trap, ...],
    ) -> None:
        """Starts most runs with a job or two: failures at the start are a small part of what can fail."""
        self.outside.job_api.honours_keys = idempotent
        self.outside.job_api.cancels, self.outside.hold_back, self.outside.links = cancels, hold_back, links
        self.outside.projects = replace(self.outside.projects, any_channel=ChannelSettings(posts=posts))
        self.idempotent, self.merge_seconds = idempotent, merge_seconds
        self.processes = [self.born(), self.born()]
        self.outside.traps += traps
        for number in range(jobs):
            self._deliver_start(f"start-{number}", "C1", 0)
        self.in_process(0, self.processes[0].settle())
        for at in range(replies if self.outside.cards() else 0):
            self._deliver_reply(self.write(0, ANA), at)

    @precondition(lambda self: len(self.model.starts) < 4)
    @rule(channel=st.sampled_from(["C1", "C2", "C1", "CPRIVATE"]), at=st.integers(0, 1))
    def start(self, channel: str, at: int) -> None:
        self._deliver_start(f"start-{len(self.model.starts)}", channel, at)

    @precondition(lambda self: self.model.starts)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def start_again(self, which: int, at: int) -> None:
        key = list(self.model.starts)[which % len(self.model.starts)]
        self._deliver_start(key, self.model.starts[key][0], at)

    @rule(channel=st.sampled_from(["C1", "C2", "CPRIVATE"]), at=st.integers(0, 1))
    def invite(self, channel: str, at: int) -> None:
        """Invites Pagehand, perhaps again; it may have been removed meanwhile."""
        recorded = self.in_process(at, self.processes[at].service.introduce("T1", channel))
        self.model.invitations[channel] = recorded or self.model.invitations.get(channel, False)

    @precondition(lambda self: self.outside.cards() and len(self.model.replies) < 8)
    @rule(
        which=st.integers(0, 9),
        person=st.sampled_from([ANA, ANA, BEN, BEN, EVA]),
        pastes=st.booleans(),
        by_tool=st.booleans(),
        at=st.sampled_from([0, 1, None]),
    )
    def reply(self, *, which: int, person: Person, pastes: bool, by_tool: bool, at: int | None) -> None:
        """Replies below a card, by words or a table, perhaps by a tool; Slack delivers it at once, or later, or again
        (`deliver`).
        """
        written = self.write(which, person)
        written.pasted, written.by_tool = pastes, by_tool
        if at is not None:
            self._deliver_reply(written, at)

    @precondition(lambda self: self.model.replies)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def deliver(self, which: int, at: int) -> None:
        self._deliver_reply(self.model.replies[which % len(self.model.replies)], at)

    @precondition(lambda self: self.model.replies)
    @rule(
        which=st.integers(0, 9),
        into=st.sampled_from(["words", "words", "words", "an aside", "nothing"]),
        at=st.sampled_from([0, 1, None]),
    )
    def edit(self, *, which: int, into: str, at: int | None) -> None:
        """Edits or deletes a reply; Slack delivers that at once, or later, or again (`deliver_edit`)."""
        written = self.model.replies[which % len(self.model.replies)]
        if written.gone:
            return
        moment = self.outside.chat.next_ts()
        version = Version(moment, f"{written.text} as of {moment}" if into == "words" else "", gone=into == "nothing")
        version.step, version.unheard = self.outside.step, self.is_unheard()
        written.versions.append(version)
        if at is not None:
            self._deliver_edit(written, version, at)

    @precondition(lambda self: self._edits())
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def deliver_edit(self, which: int, at: int) -> None:
        edits = self._edits()
        self._deliver_edit(*edits[which % len(edits)], at)

    @precondition(lambda self: self.posts_to_send_again())
    @rule(which=st.integers(0, 9), person=st.sampled_from([ANA, BEN, EVA]), at=st.integers(0, 1))
    def press_send_again(self, which: int, person: Person, at: int) -> None:
        posts = self.posts_to_send_again()
        request_id, channel = posts[which % len(posts)]
        self._press(request_id, channel, person, at)

    @precondition(lambda self: self.model.pressed)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def a_press_comes_again(self, which: int, at: int) -> None:
        """Repeats a press, however late: it has an effect only if it was not recorded before."""
        key = list(self.model.pressed)[which % len(self.model.pressed)]
        request, channel, person, acked = self.model.pressed[key]
        before = [row["id"] for row in self.rows("requests")]
        self._press(request, channel, person, at, key=key)
        assert not acked or [row["id"] for row in self.rows("requests")] == before

    @precondition(lambda self: self.outside.cards() and len(self.model.stops) < 4)
    @rule(which=st.integers(0, 9), person=st.sampled_from([ANA, BEN]), at=st.integers(0, 1))
    def stop(self, which: int, person: Person, at: int) -> None:
        """Presses the stop button of a card."""
        card = self.outside.cards()[which % len(self.outside.cards())]
        self._deliver_stop(f"stop-{len(self.model.stops)}", card.key.removesuffix("/card"), person, at)

    @precondition(lambda self: self.uncarded() and len(self.model.stops) < 4)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def stop_on_home(self, which: int, at: int) -> None:
        """Presses the stop button beside a job on Home."""
        waiting = self.uncarded()
        self._deliver_stop(home_key(f"stop-{len(self.model.stops)}"), waiting[which % len(waiting)], ANA, at)

    @precondition(lambda self: self.model.stops)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def a_stop_comes_again(self, which: int, at: int) -> None:
        key = list(self.model.stops)[which % len(self.model.stops)]
        thread, person, *_ = self.model.stops[key]
        self._deliver_stop(key, thread, person, at)

    @precondition(lambda self: self._questions())
    @rule(
        which=st.integers(0, 9),
        person=st.sampled_from([None, None, ANA, BEN, EVA]),
        sends=st.sampled_from([True, True, False]),
        at=st.integers(0, 1),
    )
    def answer_a_question(self, *, which: int, person: Person | None, sends: bool, at: int) -> None:
        """About new words of a reply, or what a stop withdrew."""
        question = self._questions()[which % len(self._questions())]
        by = person or next(each for each in (ANA, BEN, EVA) if each.id == question.person_id)
        kind = RequestKind.SEND_HELD if sends else RequestKind.DISCARD_HELD
        if isinstance(question, ReplyEdited):
            kind = RequestKind.SEND_NEW_WORDS
        press = Action(by, kind, f"press-{self.outside.step}", argument=question.request_id)
        self.in_process(at, self.processes[at].service.act(press))

    # -- what must hold at any time -------------------------------------------------------------------------------

    @invariant()
    def nothing_is_done_twice(self) -> None:
        taken = Counter(self.outside.job_api.effects)
        for name, times in taken.items():
            sent_again = self.model.presses[name]
            request = AskedFor(name, acknowledged=False, taken=times, sent_again=sent_again)
            check(done_too_often([request]))

    # -- the end --------------------------------------------------------------------------------------------------

    def end_well(self) -> None:
        """Ends all faults; then everything must finish by itself, and doubts by a person's press."""
        self._calm()
        self.verdict().check(pressed=False)
        unsure = [row for row in self.rows("requests") if _came_back(row) and not row["merged_into"]]
        for request in unsure:
            channel = next(row["channel_id"] for row in self.rows("threads") if row["id"] == request["thread_id"])
            self._press(request["id"], channel, ANA, 0)
        self.settle_down()
        self.verdict().check(pressed=True)
        self._invited_again()

    def _invited_again(self) -> None:
        """Wherever it could not introduce itself, it does at the next invitation; elsewhere it does not again."""
        invited = {*self.model.invitations}
        self.outside.chat.joined |= invited
        for channel in invited:
            self.in_process(0, self.processes[0].service.introduce("T1", channel))
        self.settle_down()
        introduced = [each.channel_id for each in self.outside.chat.messages if isinstance(each.message, Introduction)]
        assert sorted(introduced) == sorted(invited)

    def verdict(self) -> Verdict:
        """Checks the results."""
        tables = {name: self.rows(name) for name in ("threads", "polls", "requests", "notices", "early_replies")}
        return Verdict(self.outside, self.model, tables, self.stored_threads())

    def end_calm(self) -> None:
        """Whatever happens before what was not delivered is."""

    def _calm(self) -> None:
        self.outside.traps.clear()
        self.outside.chat.archived.clear()
        self.resume_all()
        self.end_calm()
        for written in self.model.replies:
            for _ in range(2):  # the first may only look up its author
                if not written.acked:
                    self._deliver_reply(written, 0)
            for version in reversed(written.versions):
                if version.acked is None:
                    self._deliver_edit(written, version, 0)
        for job_id in self.outside.job_api.jobs:
            self.outside.job_api.show(job_id, "completed", LINKS[0])
        self.settle_down()

    def after_step(self) -> None:
        for row in self.rows("requests"):
            self.model.recorded.setdefault(row["id"], self.outside.step)
            if took_effect(row):
                self.model.stopped.setdefault(row["id"], self.outside.step)
        self._count_presses()

    # -- implementation -------------------------------------------------------------------------------------------

    def _count_presses(self) -> None:
        """Counts the presses that sent a request again, whose people were told so."""
        answered = {row["key"]: row["message"] for row in self.rows("notices") if row["delivery"] == "ephemeral"}
        self.model.presses.clear()
        for row in self.rows("requests"):
            answer = answered.get(f"{row['thread_id']}/{row['source_key']}", "")
            if row["kind"] == "send_again" and '"sent_again"' in answer:
                assert row["person_id"] != EVA.id
                self.model.presses[row["text"]] += 1

    def _deliver_start(self, key: str, channel: str, at: int) -> None:
        service = self.processes[at].service
        acked = self.in_process(at, service.start(NewJob(ANA, channel, f"Do {key}", key, WayIn.COMMAND)))
        self.model.starts[key] = (channel, acked or self.model.starts.get(key, ("", False))[1])

    def write(self, which: int, person: Person) -> Written:
        """Writes a reply below a card."""
        card = self.outside.cards()[which % len(self.outside.cards())]
        written = Written(person, card.channel_id, card.ts, self.outside.chat.next_ts())
        written.step, written.unheard = self.outside.step, self.is_unheard()
        self.model.replies.append(written)
        return written

    def hears(self, at: int) -> bool:
        """Returns whether Slack can bring something to a process now."""
        return True

    def is_unheard(self) -> bool:
        """Returns whether nobody hears what is written now."""
        return False

    def _deliver_reply(self, written: Written, at: int) -> None:
        if not self.hears(at):
            return
        reply = Reply(written.person, written.channel_id, written.thread_ts, written.ts, written.text)
        steering = self.listeners_of(at).take(reply, by_tool=written.by_tool)
        written.acked = self.in_process(at, steering) or written.acked

    def _deliver_stop(self, key: str, thread: str, person: Person, at: int) -> None:
        known = self.model.stops.get(key)
        pressed_at = known[3] if known else self.outside.chat.next_ts()
        stop = Action(person, RequestKind.STOP, key, thread_id=thread, at=pressed_at)
        acked = self.in_process(at, self.processes[at].service.act(stop)) or (known is not None and known[2])
        self.model.stops[key] = (thread, person, acked, pressed_at)

    def _deliver_edit(self, written: Written, version: Version, at: int) -> None:
        if not self.hears(at):
            return
        place = (written.person, written.channel_id, written.thread_ts, written.ts)
        reply = Reply(*place, version.text, edited_at=version.at, withdrawn=not version.text)
        acked = self.in_process(at, self.processes[at].service.revise(reply))
        if acked and version.acked is None:
            version.acked = self.outside.step

    def _press(self, request: str, channel: str, person: Person, at: int, *, key: str = "") -> None:
        key = key or f"press-{len(self.model.pressed)}"
        press = Action(person, RequestKind.SEND_AGAIN, key, channel_id=channel, argument=request)
        pressing = self.processes[at].service.act(press)
        acked = self.in_process(at, pressing) or self.model.pressed.get(key, ("", "", person, False))[3]
        self.model.pressed[key] = (request, channel, person, acked)

    def _edits(self) -> list[tuple[Written, Version]]:
        return [(written, version) for written in self.model.replies for version in written.versions]

    def _questions(self) -> list[ReplyEdited | HeldAsked]:
        return [*self.outside.chat.private_as(ReplyEdited), *self.outside.chat.private_as(HeldAsked)]


def _came_back(row: Mapping[str, Any]) -> bool:
    return row["state"] == "uncertain" or (row["state"], row["problem"]) == ("rejected", RejectionReason.HANDED_BACK)
