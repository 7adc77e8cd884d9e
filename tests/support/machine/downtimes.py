"""Nobody listens for a time: what people write then is only in Slack's history, which is read afterwards."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import rule
from support.machine.steering import Steering
from support.oracles.core_verdict import Written
from support.worlds.fault_world import Process

from bot.domain.gaps.gap import DAY, WEEK, Listening, Missed
from bot.domain.gaps.past_message import PastMessage
from bot.domain.people.members import ChannelInfo
from bot.domain.requests.request import Reply
from bot.ports.slack import HistoryPage
from bot.scheduler.history_reader import HistoryReader
from bot.scheduler.worker import WorkerSettings


@dataclass(frozen=True)
class WrittenHistory:
    """Slack's history of what people wrote in a machine, and where it is handed on: one process's service."""

    machine: "Downtimes"
    process: Process

    async def messages(
        self, channel_id: str, thread_ts: str, *, oldest: str, cursor: str = ""
    ) -> HistoryPage[PastMessage]:
        there = [
            each for each in self.machine.model.replies if (each.channel_id, each.thread_ts) == (channel_id, thread_ts)
        ]
        return HistoryPage([_as_it_is(each) for each in there if _is_there(each) and each.ts > oldest])

    async def channels(self, cursor: str = "") -> HistoryPage[str]:
        return HistoryPage(["C1", "C2"])

    async def handle(self, missed: Missed, channel: ChannelInfo) -> None:
        written = next(each for each in self.machine.model.replies if each.ts == missed.message.ts)
        place = (written.person, written.channel_id, written.thread_ts, written.ts)
        reply = Reply(*place, missed.message.text)
        if missed.written:
            await self.process.service.receive(reply)
            written.acked = True
        if missed.edited:
            await self.process.service.revise(Reply(*place, missed.message.text, edited_at=missed.message.edited_at))
            newest = written.versions[-1]
            newest.acked = newest.acked or self.process.outside.step


class Downtimes(Steering):
    """Rules by which instances listen again and read what they missed, while it is delivered, too."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners = 0
        self.listened_since = 0.0

    def born(self) -> Process:
        """Starts a process that also reads Slack's history."""
        process = super().born()
        history = WrittenHistory(self, process)
        settings = WorkerSettings(process.owner, process.clock, 30.0, 8.0, on_commit=lambda _: None)
        process.also = (HistoryReader(process.store, history, history, process.reading, settings, bot_user_id="UBOT"),)
        return process

    @rule(at=st.integers(0, 1))
    def listens_again(self, at: int) -> None:
        """Nobody has listened since the last time."""
        self.listeners += 1
        store, owner = self.processes[at].store, f"listener-{self.listeners}"
        noted = self.in_process(at, store.transact(lambda tx: tx.gaps.listens(owner, Listening(0.0, 0.0))))
        if noted and not self.listened_since:
            self.listened_since = self.outside.clock.time

    def end_calm(self) -> None:
        """What was written is found without being delivered, unless its thread's card was given up: it has no job."""
        self.advance(60.0)
        self.listens_again(0)
        self.settle_down()
        assert not self.rows("gaps")
        oldest = max(self.listened_since, self.outside.clock.time - WEEK + DAY) if self.listened_since else float("inf")
        cards = {row["card_ts"] for row in self.rows("threads")}
        there = [each for each in self.model.replies if _is_there(each) and each.thread_ts in cards]
        assert not [each for each in there if not each.acked and float(each.ts) > oldest]


def _is_there(written: Written) -> bool:
    return not written.versions or bool(written.versions[-1].text)


def _as_it_is(written: Written) -> PastMessage:
    if not written.versions:
        return PastMessage(written.ts, written.person.id, written.text)
    newest = written.versions[-1]
    return PastMessage(written.ts, written.person.id, newest.text, edited_at=newest.at)
