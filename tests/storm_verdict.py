"""What must hold once everything has come to rest: nothing lost, nothing twice, in order, and the card up to date."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from storm import Outside

from bot.domain.access import may_steer
from bot.domain.models import Mark, Person, Thread, Trouble

Row = Mapping[str, Any]
PASSING = {Trouble.OUT_OF_REACH, Trouble.NOT_ALLOWED}


@dataclass
class Written:
    """A reply that a person wrote below a card."""

    person: Person
    channel_id: str
    thread_ts: str
    ts: str
    acked: bool = False


@dataclass
class Model:
    """What people did, and what of it was acknowledged."""

    starts: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """By source key: the channel, and whether it was acknowledged."""
    replies: list[Written] = field(default_factory=list)
    presses: Counter[str] = field(default_factory=Counter)
    """By request: how often somebody had it sent again."""
    recorded: dict[str, int] = field(default_factory=dict)
    """By request: the step after which its row was seen first."""


class Verdict:
    """Compares what the database holds, what people did, and what the world outside saw."""

    def __init__(
        self, outside: Outside, model: Model, tables: Mapping[str, Sequence[Row]], threads: Mapping[str, Thread]
    ) -> None:
        self.outside = outside
        self.model = model
        self.tables = tables
        self.threads = threads
        self.requests = tables["requests"]
        self.notices: dict[str, Row] = {row["key"]: row for row in tables["notices"]}

    def check(self, *, pressed: bool) -> None:
        """`pressed`: somebody had all that was unsure sent again."""
        self._nothing_is_open(pressed=pressed)
        for request in self.requests:
            self._request(request)
        for notice in self.notices.values():
            self._notice(notice)
        for thread in self.threads.values():
            self._thread(thread)
        self._acknowledged()
        self._order()

    def _nothing_is_open(self, *, pressed: bool) -> None:
        assert not (left := [dict(row) for row in self.notices.values() if row["due_at"] is not None]), left
        assert not (left := [dict(row) for row in self.tables["watches"] if row["due_at"] is not None]), left
        assert not list(self.tables["early_replies"])
        unsure = {row["thread_id"] for row in self.requests if (row["kind"], row["state"]) == ("start", "unsure")}
        assert not (pressed and unsure)
        for row in self.requests:
            # Follow-ups wait for a start of which nobody knows whether it arrived: a person decides.
            waits = row["thread_id"] in unsure and row["state"] == "waiting"
            assert row["due_at"] is None or waits, dict(row)

    def _request(self, request: Row) -> None:
        thread_id, request_id = request["thread_id"], request["id"]
        times, presses = self.outside.job_api.effects.count(request_id), self.model.presses[request_id]
        said = [key for key in self.notices if key.startswith(f"{thread_id}/{request_id}/")]
        assert times <= 1 + presses
        match request["state"]:
            case "taken":
                mark = Mark.TAKEN
                assert times, "it was said to be taken, and was not"
            case "refused":
                mark = Mark.PROBLEM
                assert times <= presses, "it was refused, and yet carried out"
                called_off = request["kind"] == "start" and f"{thread_id}/cannot_post" in self.notices
                assert called_off or [key for key in said if "/refused/" in key], dict(request)
            case "unsure":
                mark = Mark.PROBLEM
                assert [key for key in said if "/unsure/" in key], dict(request)
            case _:
                mark = Mark.RECORDED
        if request["kind"] == "follow_up" and self.notices[f"{thread_id}/{request_id}/mark"]["state"] == "done":
            assert self.outside.chat.marks[request["written_at"]] is mark

    def _notice(self, notice: Row) -> None:
        """What is done is in the thread; what was given up in the thread was told to the person."""
        posted = [message for message in self.outside.chat.messages if message.key == notice["key"]]
        if notice["kind"] == "post":
            if notice["state"] == "done":
                assert len(posted) == 1, dict(notice)
            else:
                assert f"{notice['key']}/told" in self.notices, dict(notice)
        if notice["kind"] == "tell" and notice["state"] == "done":
            assert self.outside.chat.told_keys[notice["key"]] >= 1, dict(notice)

    def _thread(self, thread: Thread) -> None:
        known, job = thread.known, thread.known.job
        assert known.trouble is Trouble.GONE or job is None or job.ended
        assert known.trouble not in PASSING, "all answers, and yet the card says that it does not"
        assert not known.out_said or known.trouble in {Trouble.GONE, Trouble.UNSURE, Trouble.REFUSED}
        if self.notices[f"{thread.id}/card"]["state"] == "done":
            shown = self.outside.chat.cards[thread.id].known
            assert (shown.job, shown.trouble, shown.trouble_words) == (job, known.trouble, known.trouble_words)
        own = [row for row in self.notices.values() if row["thread_id"] == thread.id]
        assert known.said <= {row["key"].removeprefix(f"{thread.id}/") for row in own}
        assert all(any(link in row["facts"] for row in own) for link in known.links)
        self._posts(thread, [row for row in own if row["kind"] == "post"])

    def _posts(self, thread: Thread, posts: Sequence[Row]) -> None:
        messages = self.outside.chat.messages
        places = {message.key: place for place, message in enumerate(messages)}
        in_order = [places[row["key"]] for row in sorted(posts, key=lambda row: row["id"]) if row["key"] in places]
        assert in_order == sorted(in_order), "said in another order than it happened"
        own = [message for message in messages if message.key.startswith(f"{thread.id}/") and message.what != "card"]
        assert all(message.thread_ts == thread.ts for message in own)

    def _acknowledged(self) -> None:
        """A reply to a card that could not be recorded, because its channel was shut at once, has no job to go to."""
        sources = {row["source_key"] for row in self.requests}
        assert all(key in sources for key, (_, acked) in self.model.starts.items() if acked)
        cards = {message.ts: message.key.removesuffix("/card") for message in self.outside.cards()}
        for written in self.model.replies:
            thread = self.threads[cards[written.thread_ts]]
            if thread.known.trouble is Trouble.CANNOT_POST:
                continue
            is_request = f"message/{written.channel_id}/{written.ts}" in sources
            assert is_request == may_steer(written.person, thread)
            assert is_request or f"{thread.id}/{written.ts}/external" in self.notices

    def _order(self) -> None:
        """A follow-up overtakes an earlier one only where that came, or was sent again, once the later one was sent."""
        place = {request: index for index, request in reversed(list(enumerate(self.outside.job_api.effects)))}
        follow_ups = [row for row in self.requests if row["kind"] == "follow_up" and row["id"] in place]
        for early in follow_ups:
            for late in follow_ups:
                same = early["thread_id"] == late["thread_id"] and early["written_at"] < late["written_at"]
                if same and place[late["id"]] < place[early["id"]] and not self.model.presses[early["id"]]:
                    came, sent = self.model.recorded[early["id"]], self.outside.sent[late["id"]]
                    assert came >= sent, f"{late['id']} overtook {early['id']}"
