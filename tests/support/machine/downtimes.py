"""Nobody hears what people write for a time: they are disconnected, or a connection is half open. What was written then
is only in Slack's history, which is read afterwards, and messages that wait to be sent are read again.
"""

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.machine.steering import Steering
from support.oracles.people_model import Message
from support.worlds.core_world import ANA, BEN
from support.worlds.fault_world import Process

from bot.domain.gaps import BEAT, DAY, LIVE_SECONDS, WEEK, Listening, Missed, PastMessage
from bot.domain.people import ChannelInfo
from bot.domain.requests.request import Arrival, Person, Reply
from bot.domain.threads.thread import Thread
from bot.notices.questions import StopAsked
from bot.ports.slack import HistoryPage
from bot.scheduler.history_reader import HistoryReader
from bot.scheduler.worker import WorkerSettings


@dataclass
class Connection:
    """A process's connection to Slack: since when it is open, and until when it certainly brought everything."""

    since: float
    heard_until: float = inf

    @property
    def half_open(self) -> bool:
        """Whether it brings nothing any more, which the process does not know."""
        return self.heard_until < inf


@dataclass(frozen=True)
class WrittenHistory:
    """Slack's history of what people wrote in a machine, and where it is handed on: one process's service."""

    machine: "Downtimes"
    process: Process

    async def messages(
        self, channel_id: str, thread_ts: str, *, oldest: str, cursor: str = ""
    ) -> HistoryPage[PastMessage]:
        if not thread_ts:
            return HistoryPage(self._cards(channel_id)[::-1])
        written = [each for each in self.machine.people.replies if each.place == (channel_id, thread_ts)]
        there = [_as_it_is(each) for each in written if each.newest_words and each.ts > oldest]
        return HistoryPage([*(card for card in self._cards(channel_id) if card.ts == thread_ts), *there])

    def _cards(self, channel_id: str) -> list[PastMessage]:
        cards = [card for card in self.machine.outside.cards() if card.channel_id == channel_id]
        return [
            PastMessage(card.ts, "UBOT", "a card", "", self._newest_in(card.ts), self._stops(card.ts)) for card in cards
        ]

    def _newest_in(self, thread_ts: str) -> str:
        return max((each.ts for each in self.machine.people.replies if each.root == thread_ts), default="")

    def _stops(self, card_ts: str) -> tuple[str, ...]:
        return tuple(sorted(self.machine.reactions.get(card_ts, ())))

    async def channels(self, cursor: str = "") -> HistoryPage[str]:
        return HistoryPage(["C1", "C2"])

    async def handle(self, missed: Missed, channel: ChannelInfo) -> None:
        late = missed.arrival is Arrival.LATE
        written = next(each for each in self.machine.people.replies if each.ts == missed.message.ts)
        reply = replace(written.reply(), text=missed.message.text, arrival=missed.arrival)
        known = await self.process.store.transact(lambda tx: tx.requests.get(written.request_id))
        is_new = known is None and not written.is_delivered
        if is_new and written.unheard and written.step <= self.machine.restored_in:
            assert late, f"{written} was written before the database was restored"
        if missed.written:
            await self.process.service.receive(reply)
            written.acked = written.acked or self.process.outside.step
            written.found_late = written.found_late or (is_new and late)
        if missed.edited:
            newest = written.versions[-1]
            await self.process.service.revise(_edited(written, missed.arrival))
            newest.acked = newest.acked or self.process.outside.step


class Downtimes(Steering):
    """Rules by which instances lose what Slack sends, listen again, and read what they missed."""

    def __init__(self) -> None:
        super().__init__()
        self.connections: dict[str, Connection] = {}
        """By process."""
        self.reactions: dict[str, set[str]] = {}
        """By card: whose reaction for a stop nobody heard of."""
        self.restored_in = -1
        """The step in which the database was restored last."""

    def born(self) -> Process:
        """Starts a process that also reads Slack's history. It knows of nothing before its connection."""
        process = super().born()
        history = WrittenHistory(self, process)
        settings = WorkerSettings(process.owner, process.clock, 30.0, 8.0, on_commit=lambda _: None)
        process.also = (HistoryReader(process.store, history, history, process.reading, settings, bot_user_id="UBOT"),)
        process.heard_since = inf
        return process

    def in_process(self, at: int, work: Coroutine[Any, Any, Any]) -> bool:
        """Runs something in a process, to which Slack shows the messages as they are."""
        shown: dict[tuple[str, str], dict[str, Reply | None]] = {}
        for each in self.people.replies:
            now = {} if each.gone else {each.ts: _edited(each) if each.versions else None}
            shown.setdefault(each.place, {}).update(now)
        self.outside.reading.messages = shown
        self.people.heard[self.outside.step + 1] = (self.outside.clock.time, self.processes[at].heard_since)
        return super().in_process(at, work)

    @rule(at=st.integers(0, 1))
    def connects(self, at: int) -> None:
        """Opens a connection, perhaps instead of one that broke, and says so."""
        process, now = self.processes[at], self.outside.clock.time
        self.connections[process.owner] = Connection(now)
        process.heard_since = now
        self.says_that_it_listens(at)

    @rule(at=st.integers(0, 1))
    def says_that_it_listens(self, at: int) -> None:
        process, now = self.processes[at], self.outside.clock.time
        connection = self.connections.get(process.owner)
        if connection is not None:
            listening = Listening(connection.since - now, min(connection.heard_until, now) - now)
            self.in_process(at, process.store.transact(lambda tx: tx.gaps.listens(process.owner, listening)))

    @precondition(lambda self: self.connections)
    @rule(at=st.sampled_from([0, 1, None]), notices=st.booleans())
    def connections_break(self, *, at: int | None, notices: bool) -> None:
        """Those of one process or of both, which may notice it at once."""
        for process in self.processes if at is None else [self.processes[at]]:
            connection = self.connections.get(process.owner)
            if notices:
                self.connections.pop(process.owner, None)
                process.heard_since = inf
            elif connection is not None:
                connection.heard_until = min(connection.heard_until, self.outside.clock.time)

    @precondition(lambda self: self.connections and self.outside.cards() and len(self.people.replies) < 8)
    @rule(which=st.integers(0, 9), person=st.sampled_from([ANA, BEN]), away=st.sampled_from([0.0, LIVE_SECONDS]))
    def loses_a_reply(self, *, which: int, person: Person, away: float) -> None:
        """Each connection is half open for longer than clocks differ, and says that it listens; then nobody does."""
        self.connections_break(at=None, notices=False)
        self.write(which, person)
        for at in (0, 1) * 8:
            self.advance(BEAT)
            self.says_that_it_listens(at)
        self.advance(away)

    @rule()
    def is_restored(self) -> None:
        """The operator says so of the database while nothing runs."""
        for at in (0, 1):
            self.dies(at)
            self.processes[at] = self.born()
        self.read(lambda tx: tx.gaps.restored())
        self.restored_in = self.outside.step

    @precondition(lambda self: self.outside.cards() and self.is_unheard())
    @rule(which=st.integers(0, 9), person=st.sampled_from([ANA, BEN]))
    def reacts_unheard(self, which: int, person: Person) -> None:
        """Adds the reaction for a stop to a card."""
        card = self.outside.cards()[which % len(self.outside.cards())]
        self.reactions.setdefault(card.ts, set()).add(person.id)

    def hears(self, at: int) -> bool:
        """Connects a process to which Slack is about to bring something, unless it believes that it is connected."""
        if self.processes[at].owner not in self.connections:
            self.connects(at)
        connection = self.connections.get(self.processes[at].owner)
        return connection is not None and not connection.half_open

    def is_unheard(self) -> bool:
        """Returns whether nobody hears what is written now, although somebody did before."""
        open_ones = [self.connections.get(process.owner) for process in self.processes]
        return bool(self.rows("listening")) and all(each is None or each.half_open for each in open_ones)

    def before_the_last_deliveries(self) -> None:
        """What nobody heard is found without being delivered, and a reaction to the card of a job at work is asked
        about. A reply to a card that was given up has no job.
        """
        self.connections_break(at=None, notices=True)
        asked = self._react_at_work() if self.is_unheard() else set()
        oldest = self.outside.clock.time - WEEK + DAY
        self.advance(60.0)
        self.connects(0)
        self.settle_down()
        assert not self.rows("gaps")
        cards = {row["card_ts"] for row in self.rows("threads")}
        there = [each for each in self.people.replies if each.newest_words and each.root in cards]
        unheard = [each for each in there if each.unheard and not each.acked and not self._is_known_by_an_edit(each)]
        assert not (lost := [each for each in unheard if float(each.ts) > oldest]), lost
        told = {row["key"] for row in self.rows("notices")}
        assert asked <= told, asked - told

    def _is_known_by_an_edit(self, written: Message) -> bool:
        """Returns whether Slack brought an edit of it, which was recorded: for other people, so that the history that
        was read then did not have it, and perhaps later into words.
        """
        return written.is_delivered and written.request_id in self.people.recorded

    def _react_at_work(self) -> set[str]:
        """Reacts to the cards of jobs at work that nobody stopped; returns the keys of the questions about that."""
        asked = set[str]()
        for thread in self.stored_threads().values():
            people = self.reactions.setdefault(thread.card_ts or "", set())
            if BEN.id not in people and self._is_at_work(thread):
                people.add(BEN.id)
                asked.add(f"{thread.id}/{StopAsked.key(BEN.id)}")
        return asked

    def _is_at_work(self, thread: Thread) -> bool:
        job, job_api = thread.state.job, self.outside.job_api
        stopped = thread.id in {stop.thread_id for _, stop in self.people.stops()}
        if job is None or not thread.card_ts or thread.state.failure.problem or stopped or job.id in job_api.hidden:
            return False
        return job.status == job_api.jobs[job.id].status == "active"


def _as_it_is(written: Message) -> PastMessage:
    edited_at = written.versions[-1].at if written.versions else ""
    return PastMessage(written.ts, written.person.id, written.newest_words, edited_at=edited_at)


def _edited(written: Message, arrival: Arrival = Arrival.LIVE) -> Reply:
    """Returns the event of the last edit; without words, the message is for other people now."""
    return replace(written.revised(written.versions[-1]), arrival=arrival)
