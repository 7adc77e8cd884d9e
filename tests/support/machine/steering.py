"""Jobs by the command, and how they are steered: replies, edits, stops, and presses of questions about them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from support.fakes.slack_payloads import in_a_table
from support.machine.machine import LINKS
from support.machine.people import AT, WHICH, PeopleMachine
from support.oracles.core_verdict import Verdict, sent_again
from support.oracles.people_model import Message, Version
from support.oracles.promises import AskedFor, check, done_too_often
from support.worlds.core_world import ANA, BEN, EVA
from support.worlds.fault_traps import BAD_STARTS
from support.worlds.fault_world import Trap

from bot.domain.projects import ChannelSettings, PostMode
from bot.domain.requests.request import Person, RejectionReason, RequestKind, WayIn
from bot.notices.answers import Introduction


class Steering(PeopleMachine):
    """Rules by which people ask for jobs by the command, in one project, and steer them."""

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
        for _ in range(jobs):
            self.start("C1", 0)
        self.in_process(0, self.processes[0].settle())
        for at in range(replies if self.outside.cards() else 0):
            self.deliver_message(self.write(0, ANA), at)
        self.has_begun()

    def has_begun(self) -> None:
        """What else happens first."""

    @precondition(lambda self: len(self.people.messages) - len(self.people.replies) < 4)
    @rule(channel=st.sampled_from(["C1", "C2", "C1", "CPRIVATE"]), at=AT)
    def start(self, channel: str, at: int) -> None:
        mark, key = self.next_mark()
        self.written(Message(mark, key, ANA, WayIn.COMMAND, channel, f"Do {key}"), at)

    @rule(channel=st.sampled_from(["C1", "C2", "CPRIVATE"]), at=AT)
    def invite(self, channel: str, at: int) -> None:
        """Invites Pagehand, perhaps again; it may have been removed meanwhile."""
        recorded = self.in_process(at, self.processes[at].service.introduce("T1", channel))
        self.people.invitations[channel] = recorded or self.people.invitations.get(channel, False)

    @precondition(lambda self: self.outside.cards() and len(self.people.replies) < 8)
    @rule(
        which=WHICH,
        person=st.sampled_from([ANA, ANA, BEN, BEN, EVA]),
        pastes=st.booleans(),
        by_tool=st.booleans(),
        at=st.sampled_from([0, 1, None]),
    )
    def reply(self, *, which: int, person: Person, pastes: bool, by_tool: bool, at: int | None) -> None:
        """Replies below a card, by words or a table, perhaps by a tool; Slack delivers it at once, or later, or again
        (`deliver`).
        """
        written = self.write(which, person, pastes=pastes)
        written.by_tool = by_tool
        if at is not None:
            self.deliver_message(written, at)

    @precondition(lambda self: self.people.replies)
    @rule(
        which=WHICH,
        into=st.sampled_from(["words", "words", "words", "an aside", "nothing"]),
        at=st.sampled_from([0, 1, None]),
    )
    def edit(self, *, which: int, into: str, at: int | None) -> None:
        """Edits or deletes a reply; Slack delivers that at once, or later, or again (`deliver_edit`)."""
        written = self.people.replies[which % len(self.people.replies)]
        if written.gone:
            return
        moment = self.outside.chat.next_ts()
        version = Version(moment, f"{written.words} as of {moment}" if into == "words" else "", gone=into == "nothing")
        version.step, version.unheard = self.outside.step, self.is_unheard()
        written.versions.append(version)
        if at is not None:
            self.deliver_version(written, version, at)

    @precondition(lambda self: self.outside.cards() and len([*self.people.stops()]) < 4)
    @rule(which=WHICH, person=st.sampled_from([ANA, BEN]), at=AT)
    def stop(self, which: int, person: Person, at: int) -> None:
        """Presses the stop button of a card."""
        self.press(person, RequestKind.STOP, at, thread_id=self.card(which).key.removesuffix("/card"))

    # -- what must hold at any time -------------------------------------------------------------------------------

    @invariant()
    def nothing_is_done_twice(self) -> None:
        again = sent_again(self.rows("requests"), self.rows("notices"))
        taken = Counter(self.outside.job_api.effects)
        check(done_too_often(AskedFor(name, False, times, again[name]) for name, times in taken.items()))

    # -- the end --------------------------------------------------------------------------------------------------

    def end_well(self) -> None:
        """Ends all faults; then everything must finish by itself, and doubts by a person's press."""
        self.calm_down()
        self.verdict().check(pressed=False)
        unsure = [row for row in self.rows("requests") if _came_back(row) and not row["merged_into"]]
        for request in unsure:
            channel = next(row["channel_id"] for row in self.rows("threads") if row["id"] == request["thread_id"])
            self.press(ANA, RequestKind.SEND_AGAIN, 0, channel_id=channel, argument=request["id"])
        self.settle_down()
        self.verdict().check(pressed=True)
        self._invited_again()

    def _invited_again(self) -> None:
        """Wherever it could not introduce itself, it does at the next invitation; elsewhere it does not again."""
        invited = {*self.people.invitations}
        self.outside.chat.joined |= invited
        for channel in invited:
            self.in_process(0, self.processes[0].service.introduce("T1", channel))
        self.settle_down()
        introduced = [each.channel_id for each in self.outside.chat.messages if isinstance(each.message, Introduction)]
        assert sorted(introduced) == sorted(invited)

    def verdict(self) -> Verdict:
        """Checks the results."""
        return Verdict(self.outside, self.people, self.tables(), self.stored_threads())

    def end_jobs(self) -> None:
        """With a pull request each."""
        for job_id in self.outside.job_api.jobs:
            self.outside.job_api.show(job_id, "completed", LINKS[0])

    # -- implementation -------------------------------------------------------------------------------------------

    def write(self, which: int, person: Person, *, pastes: bool = False) -> Message:
        """Writes a reply below a card."""
        card, ts = self.card(which), self.outside.chat.next_ts()
        words = in_a_table(ts) if pastes else f"Change {ts}"
        written = Message(*self.next_mark(), person, WayIn.REPLY, card.channel_id, words, ts=ts, root=card.ts)
        written.step, written.unheard = self.outside.step, self.is_unheard()
        self.written(written, None)
        return written

    def hears(self, at: int) -> bool:
        """Returns whether Slack can bring something to a process now."""
        return True

    def is_unheard(self) -> bool:
        """Returns whether nobody hears what is written now."""
        return False

    def deliver_message(self, message: Message, at: int) -> None:
        if not message.ts or self.hears(at):
            super().deliver_message(message, at)

    def deliver_version(self, message: Message, version: Version, at: int) -> None:
        if self.hears(at):
            super().deliver_version(message, version, at)


def _came_back(row: Mapping[str, Any]) -> bool:
    return row["state"] == "uncertain" or (row["state"], row["problem"]) == ("rejected", RejectionReason.HANDED_BACK)
