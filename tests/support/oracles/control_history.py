"""Look-ups for the verdict on people's controls, and the verdict on lines: what people write in direct messages outside
the threads. Each is a job, or is for the one above, as its author decided; until then there is a question about it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from support.oracles.core_verdict import Verdict
from support.oracles.people_model import Message, People, Press, between
from support.worlds.fault_world import Call, Outside

from bot.domain.requests.held import IN_ONE_GO
from bot.domain.requests.new_jobs import request_id
from bot.domain.requests.request import Action, RequestKind, RequestState, WayIn
from bot.domain.threads.thread import Thread

Row = Mapping[str, Any]
_NO_WORDS = ("/mark", "/cut", "/project", "/out")
"""The suffixes of keys of notices that explain nothing."""


@dataclass(frozen=True)
class Job:
    """A job of the job API, with the Slack thread that it belongs to."""

    call: Call
    thread: Thread
    root: tuple[str, str]


class ControlHistory:
    """The events of a run."""

    def __init__(
        self, outside: Outside, people: People, tables: Mapping[str, Sequence[Row]], threads: Mapping[str, Thread]
    ) -> None:
        self.outside, self.people, self.tables, self.threads = outside, people, tables, threads
        self.calls = outside.job_api.calls
        self.notices: dict[str, Row] = {row["key"]: row for row in tables["notices"]}
        self.rows: dict[str, Row] = {row["id"]: row for row in tables["requests"]}
        self.jobs = {call.job_id: self.job(call) for call in self.calls if call.operation == "create"}
        self.stored = Verdict(outside, people, tables, threads)

    def job(self, call: Call) -> Job:
        thread = self.threads[self.rows[call.key]["thread_id"]]
        return Job(call, thread, self.place(thread))

    def place(self, thread: Thread) -> tuple[str, str]:
        return thread.channel_id, thread.ts or thread.root_ts or thread.card_ts or thread.id

    def root_of(self, message: Message) -> tuple[str, str]:
        if message.root:
            return message.channel_id, message.root
        thread = self.threads.get(request_id(message.key))
        return self.place(thread) if thread else (message.channel_id, "")

    def root_of_press(self, press: Press) -> tuple[str, str]:
        row = self.rows.get(request_id(press.key))
        if row is not None:
            return self.place(self.threads[row["thread_id"]])
        return ("", "")

    def taken(self, message: Message) -> list[Call]:
        marks = [mark for mark, _ in message.marks()]
        return [call for call in self.calls if any(mark in call.prompt for mark in marks)]

    def withdrawn(self, message: Message) -> bool:
        return bool(message.versions) and not message.versions[-1].words

    def discarded(self, message: Message) -> bool:
        """Its author was asked and did not want it sent."""
        return any(
            isinstance(press.wants, Action)
            and (press.wants.kind, press.wants.argument) == (RequestKind.DISCARD_HELD, request_id(message.key))
            and self.answer(press) in {"held_discarded", "left_undone"}
            for press in self.people.presses.values()
        )

    def is_for_the_agent(self, message: Message) -> bool:
        """In mentions mode, only mentions are for the agent."""
        if message.starts or message.mentions or message.in_direct_message or message.thread_id:
            return True
        conversation = message.root not in {card.ts for card in self.outside.cards()} and message.root not in {
            other.root for other in self.people.messages if other.starts and other.root == other.ts
        }
        return not conversation and self.outside.projects.any_channel.replies != "mentions"

    def was_in_an_ordinary_thread(self, message: Message, heard: int | None) -> bool:
        """A reply without a mention, or its edit, was `heard` of in a thread that was an ordinary one as far as was
        known, even with all cards posted: Slack delivered the root message later.
        """
        began = next((each for each in self.people.messages if each.ts == message.root and each is not message), None)
        to_us = message.starts or message.mentions or message.in_direct_message
        if began is None or began.acked is None or heard is None or to_us:
            return False
        return began.acked > self.people.kept.get(message.key, heard)

    def explained(self, message: Message) -> bool:
        own = request_id(message.key)
        ends = (f"/{message.ts}/muted", f"/{message.ts}/external", f"/{message.key}")
        too_late = f"/{message.ts}/late/"
        if any(
            too_late in key or key.endswith(ends) or (f"/{own}" in key and self.explains(key)) for key in self.notices
        ):
            return True
        row = self.rows.get(own)
        return row is not None and (
            (row["kind"] == "start" and f"{row['thread_id']}/cannot_post" in self.notices)
            or (row["problem"] == "stopped" and self.stopped_it_themselves(message, row))
            or (bool(row["merged_into"]) and self.is_explained_with(row["merged_into"]))
            or self.waits_visibly(row)
        )

    def is_explained_with(self, first: str) -> bool:
        return any(f"/{first}/" in key and self.explains(key) for key in self.notices)

    def stopped_it_themselves(self, message: Message, start: Row) -> bool:
        """A person who stops their own request before it is sent is answered and needs no further explanation."""
        return any(
            press.person == message.person
            and self.answer(press) == "stopped_unsent"
            and self.rows[request_id(press.key)]["thread_id"] == start["thread_id"]
            for press in self.people.presses.values()
        )

    def waits_visibly(self, row: Row) -> bool:
        """It waits for the answer to a question, or for a start in doubt."""
        start = next(
            (r for r in self.rows.values() if (r["kind"], r["thread_id"]) == ("start", row["thread_id"])), None
        )
        asked = any(f"/{row['id']}/{what}" in key for key in self.notices for what in ("held", "project"))
        unsure = start is not None and start["state"] in {RequestState.UNCERTAIN, RequestState.AWAITING_PERSON}
        if row["state"] == RequestState.AWAITING_PERSON:
            return asked
        return row["state"] == RequestState.WAITING and unsure

    def explains(self, key: str) -> bool:
        return not key.endswith(_NO_WORDS) and "/held/" not in key and "/project" not in key

    def row_of(self, message: Message) -> object:
        row = self.rows.get(request_id(message.key))
        return {name: row[name] for name in ("state", "problem", "kind", "text", "due_at")} if row else None

    def replaced_by(self, other: Job) -> set[str]:
        """Returns the threads of the jobs that this one replaces."""
        return {other.thread.follows} if other.thread.options.way_in in {"switch", "retry"} else set()

    def told(self, thread: Thread) -> list[str]:
        """Returns everything that people were told about a job, for the error message."""
        own = (row for key, row in self.notices.items() if key.startswith(f"{thread.id}/"))
        return [thread.options.way_in, *(row["message"] for row in own)]

    def answer(self, press: Press) -> str:
        for key, row in self.notices.items():
            if key.endswith(f"/{press.key}"):
                return str(json.loads(row["message"]).get("answer", ""))
        return ""

    def was_guest(self, person_id: str, since: int, until: int) -> set[bool]:
        return between(self.people.guests.get(person_id, []), since, until, first=False)


_ANSWERS = {RequestKind.SEND_HELD, RequestKind.DISCARD_HELD}


class LineVerdict(ControlHistory):
    """Checks lines: messages without a leading project that begin their own thread."""

    def wrong_lines(self) -> Iterator[str]:
        """Returns all faults about them."""
        for message in self.people.messages:
            if self.is_line(message):
                yield from self._unasked(message)
                yield from self._both(message)
                yield from self._unsaid(message)

    @staticmethod
    def is_line(message: Message) -> bool:
        return message.way_in is WayIn.DIRECT_MESSAGE and message.root == message.ts and not message.said

    def root_of(self, message: Message) -> tuple[str, str]:
        """A line that is no job goes to the thread of the job that it was asked about."""
        row = self.rows.get(request_id(message.key))
        if row is not None and self.is_line(message) and row["kind"] == RequestKind.FOLLOW_UP:
            return self.place(self.threads[row["thread_id"]])
        return super().root_of(message)

    def became_a_job(self, press: Press) -> bool:
        """Returns whether a press made a line a job, which answers it completely."""
        wants = press.wants
        if not isinstance(wants, Action) or wants.kind is not RequestKind.DISCARD_HELD:
            return False
        line = next((each for each in self.people.messages if request_id(each.key) == wants.argument), None)
        began = [line, *self.lines_sent_with(line)] if line is not None else []
        return any(self.is_line(each) and self._kind_of(each) == RequestKind.START for each in began)

    def lines_sent_with(self, line: Message) -> list[Message]:
        """Returns the other lines of the same author shortly before or after, each a few seconds from the next."""
        own = [each for each in self.people.messages if self.is_line(each) and each.person == line.person]
        own = sorted((each for each in own if each.channel_id == line.channel_id), key=lambda each: float(each.ts))
        at = own.index(line)
        before, after = own[:at][::-1], own[at + 1 :]
        return [*_unbroken([line, *before]), *_unbroken([line, *after])]

    def is_asked_about(self, line: Message) -> bool:
        """Returns whether it is asked about by its own question or by one in its group."""
        ids = [request_id(each.key) for each in (line, *self.lines_sent_with(line))]
        return any(f"/{each}/held/" in key for each in ids for key in self.notices)

    def _kind_of(self, line: Message) -> str:
        row = self.rows.get(request_id(line.key))
        return str(row["kind"]) if row is not None else ""

    def _unasked(self, line: Message) -> Iterator[str]:
        row = self.rows.get(request_id(line.key), {"state": "", "kind": ""})
        waits = (row["state"], row["kind"]) == (RequestState.AWAITING_PERSON, RequestKind.FOLLOW_UP)
        if waits and not self.is_asked_about(line):
            yield f"unasked: {line} waits, and nobody was asked about it"

    def _both(self, line: Message) -> Iterator[str]:
        for mark, _ in line.marks():
            ways = {call.operation for call in self.calls if mark in call.prompt}
            if {"create", "message"} <= ways:
                yield f"both: {line} became a job and went to one"
            if "create" in ways and self._kind_of(line) != RequestKind.START:
                yield f"both: {line} was for a job, and became one"

    def _unsaid(self, line: Message) -> Iterator[str]:
        """It was sent nowhere before its author decided."""
        taken = [call for call in self.calls if call.key == request_id(line.key)]
        was_held = f"/{request_id(line.key)}/held/"
        if not taken or not any(was_held in key for key in self.notices):
            return
        said = {kind for each in (line, *self.lines_sent_with(line)) for kind in self._answers_about(each)}
        wanted = {RequestKind.DISCARD_HELD} if taken[0].operation == "create" else _ANSWERS
        if not said & wanted:
            yield f"unsaid: {line} was taken as a {taken[0].operation}, and its writer said {said or 'nothing'}"
        job = self.jobs[taken[0].job_id]
        if not any(
            (thread.channel_id, thread.requester_id) == (line.channel_id, line.person.id)
            for thread in self._with_followed(job.thread)
        ):
            yield f"unsaid: {line} went to {job.call.job_id}, which is not its writer's"

    def _with_followed(self, thread: Thread) -> Iterator[Thread]:
        """Yields a job's thread, and those of the jobs before it, which others may have retried."""
        threads = {job.thread.id: job.thread for job in self.jobs.values()}
        following: Thread | None = thread
        while following is not None:
            yield following
            following = threads.get(following.follows)

    def _answers_about(self, line: Message) -> set[RequestKind]:
        return {
            press.wants.kind
            for press in self.people.presses.values()
            if isinstance(press.wants, Action)
            and press.person == line.person
            and press.wants.kind in _ANSWERS
            and press.wants.argument == request_id(line.key)
        }


def _unbroken(lines: list[Message]) -> list[Message]:
    """Returns the lines after the first up to the first longer pause."""
    found: list[Message] = []
    for before, after in pairwise(lines):
        if abs(float(after.ts) - float(before.ts)) > IN_ONE_GO:
            break
        found.append(after)
    return found
