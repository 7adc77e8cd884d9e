"""Checks what people write in direct messages outside the threads: each line is a job, or is for the one above, as its
author decided; until then there is a question about it.
"""

from collections.abc import Iterator
from itertools import pairwise

from support.oracles.control_history import ControlHistory
from support.oracles.people_model import Message, Press

from bot.domain.requests.request import Action, RequestKind, RequestState, WayIn
from bot.domain.threads.direct_messages import IN_ONE_GO
from bot.service.start import request_id

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
        if (job.thread.channel_id, job.thread.requester_id) != (line.channel_id, line.person.id):
            yield f"unsaid: {line} went to {job.call.job_id}, which is not its writer's"

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
