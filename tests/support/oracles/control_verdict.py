"""Checks everything that people did by every way in and every control, as the specification requires.

It compares what people did (`people_model`) with what the job API took and what people were told; from the database it
takes only which job belongs to which Slack thread, and which ids belong together.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from support.oracles.control_history import Job, LineVerdict, Row
from support.oracles.people_model import Message, People, Press, Version, between
from support.oracles.stop_verdict import sent_in_spite_of_a_stop
from support.worlds.core_world import EVA
from support.worlds.fault_world import Call

from bot.domain.commands import ThreadWord
from bot.domain.jobs.stopping import STOP_WORDS
from bot.domain.requests.new_jobs import request_id
from bot.domain.requests.request import Action, Reply, RequestKind, RequestState
from bot.notices.notice import Reaction

HOUR = 3_600.0
_REPEATED = {"started_again", "project_switched", "sent_again", "new_words_sent"}
"""Answers that repeat an action."""
_SHOWN_ON_ITS_PLAN = {
    (kind, RequestState.ACCEPTED) for kind in (RequestKind.ACCEPT_PROPOSAL, RequestKind.DROP_PROPOSAL)
}
"""Presses below a plan whose answer is its post, which `Proposals` compares in the end."""


class ControlVerdict(LineVerdict):
    """Compares what people did with the results; `check` fails with all faults."""

    def check(self) -> None:
        """Fails with all broken promises."""
        found = self.found()
        assert not found, "\n".join(found)
        for notice in self.notices.values():
            self.stored.notice(notice)
        for thread in self.threads.values():
            self.stored.thread(thread)
        self.stored.nothing_is_left_open()

    def found(self) -> list[str]:
        """Returns all broken promises."""
        return [
            *self.lost(),
            *self.done_too_often(),
            *self.misdirected(),
            *self.outdated_texts(),
            *self.without_permission(),
            *self.refused_wrongly(),
            *self.over_the_limit(),
            *self.though_muted(),
            *self.stopped_without_request(),
            *self.discarded_without_request(),
            *self.unanswered(),
            *self.false_words(),
            *self.thanked_wrongly(),
            *self.cheered_wrongly(),
            *self.control_words_sent(),
            *self.forwarded_in_part(),
            *self.wrong_lines(),
            *sent_in_spite_of_a_stop(self.rows.values(), self.people.stopped, self.outside.sent),
            *self.done_though_late(),
            *unanswered_edits(self.people, self.rows.values(), self.notices),
            *edited_words_sent(self.people, (call.prompt for call in self.calls)),
        ]

    # -- 1. taken once, or explained ------------------------------------------------------------------------------

    def lost(self) -> Iterator[str]:
        """Everything acknowledged and not withdrawn was taken or explained."""
        for message in self.people.messages:
            if message.acked is None or not message.known or self.withdrawn(message) or self.taken(message):
                continue
            if not self.is_for_the_agent(message) or message.told_too_late or self.discarded(message):
                continue
            if (
                self.explained(message)
                or self.was_in_an_ordinary_thread(message, message.acked)
                or self._waits_for_its_writer(message)
            ):
                continue
            yield f"lost: {message} was acknowledged, not taken, and nothing was said ({self.row_of(message)})"

    def _waits_for_its_writer(self, message: Message) -> bool:
        row = self.rows.get(request_id(message.key))
        waits = row is not None and row["state"] == RequestState.AWAITING_PERSON
        return waits and self.is_line(message) and self.is_asked_about(message)

    def done_too_often(self) -> Iterator[str]:
        """Nothing was done more often than people asked for."""
        for message in self.people.messages:
            for mark, _ in message.marks():
                taken = [call for call in self.calls if mark in call.prompt]
                creates = [call for call in taken if call.operation == "create"]
                again = self._repeats(message)
                if len(taken) - len(creates) > 1 + again or len(creates) > 1 + again:
                    yield f"done too often: {mark} was taken {len(taken)} times, and asked for again {again} times"

    def _repeats(self, message: Message) -> int:
        """Returns how often people had something repeated in its Slack thread."""
        return self._repeats_in(self.root_of(message))

    def _repeats_in(self, root: tuple[str, str]) -> int:
        return sum(
            self.answer(press) in _REPEATED and self.root_of_press(press) == root
            for press in self.people.presses.values()
        )

    def done_though_late(self) -> Iterator[str]:
        """What was written while Pagehand was away is not taken before its author has answered the question."""
        for message in self.people.messages:
            answered = any(
                isinstance(press.wants, Action)
                and press.wants.argument.partition(".")[0] == request_id(message.key)
                and press.person == message.person
                for press in self.people.presses.values()
            )
            if message.late and not answered and not self.is_line(message) and self.taken(message):
                yield f"late: {message} was taken, and its author was not asked"

    # -- 2. for the job that it was written for -------------------------------------------------------------------

    def misdirected(self) -> Iterator[str]:
        """What is written in a thread goes to its live job, in the right project."""
        for message, call in self._sent():
            job = self.jobs[call.job_id]
            if job.root != self.root_of(message):
                yield f"misdirected: {message} went to {job.call.job_id}, of another thread"
            if call.operation == "create":
                yield from self._wrong_project(message, job)
            else:
                yield from self._wrong_job(message, call, job)

    def _sent(self) -> Iterator[tuple[Message, Call]]:
        """Returns what people wrote that the job API took, with each call."""
        return ((message, call) for message in self.people.messages for call in self.taken(message))

    def _wrong_project(self, message: Message, job: Job) -> Iterator[str]:
        chosen = {
            press.wants.argument
            for press in self.people.presses.values()
            if isinstance(press.wants, Action)
            and press.wants.kind is RequestKind.CHOOSE_PROJECT
            and self.root_of_press(press) == job.root
        }
        here = {other.call.project for other in self.jobs.values() if other.root == job.root and other is not job}
        meant = {message.project} if message.project else {message.likely, *here, self._of_the_channel()}
        if self.is_line(message):  # by the time that it is a job, others may have begun one in its thread
            meant |= here
        if job.call.project not in meant | chosen:
            yield f"misdirected: {message} was started in {job.call.project}, not {meant | chosen}"

    def _of_the_channel(self) -> str:
        return "docs" if len(self.outside.projects.all) == 1 else "api"

    def _wrong_job(self, message: Message, call: Call, job: Job) -> Iterator[str]:
        here = [other for other in self.jobs.values() if other.root == job.root]
        written = self.people.recorded[call.key]
        newer = [other for other in here if job.call.step < other.call.step < written]
        if newer and not message.thread_id and not self.is_line(message):
            yield f"misdirected: {message} went to {job.call.job_id}, when {newer[-1].call.job_id} was there already"
        sent = self.outside.sent[call.key]
        for other in here:
            if job.thread.id in self.replaced_by(other) and sent > other.call.step:
                yield f"misdirected: {message} went to {job.call.job_id}, in whose place is {other.call.job_id}"

    # -- 4. as it was when it was sent ----------------------------------------------------------------------------

    def outdated_texts(self) -> Iterator[str]:
        """What was edited or withdrawn before it was claimed is not sent in its old form. An edit of the words leaves
        what is forwarded with them as it is.
        """
        for message in self.people.messages:
            unedited = message.forwarded if message.words else ""
            for mark, version in message.marks():
                for call in self.calls:
                    if mark in call.prompt.replace(unedited, "") and self._first_of_its_words(call, message):
                        yield from self._outdated(message, version, call)

    def _outdated(self, message: Message, version: Version | None, call: Call) -> Iterator[str]:
        sent, at = self.outside.sent[call.key], version.at if version else ""
        if self.rows[call.key]["uncertain"]:
            return
        for later in message.versions:
            in_time = later.acked is not None and later.acked < sent and later.at > at
            if in_time and not self.was_in_an_ordinary_thread(message, later.acked):
                how = "edited" if later.words else "withdrawn"
                yield f"outdated: {message} was {how} in step {later.acked}, and sent in {sent} as {call.prompt!r}"

    def _first_of_its_words(self, call: Call, message: Message) -> bool:
        """A retry or a switch repeats the old words, so only the first request is checked."""
        taken = self.taken(message)
        return bool(taken) and taken[0].key == call.key

    # -- who may --------------------------------------------------------------------------------------------------

    def without_permission(self) -> Iterator[str]:
        """Nothing by an outsider is taken, nor by a person who was a guest all the time."""
        for message, call in self._sent():
            guest = self.was_guest(message.person.id, message.acked or 0, call.step) == {True}
            if (guest or message.person == EVA) and not self._repeats(message):
                yield f"who may: {message} was taken, and its person may not ask"

    def refused_wrongly(self) -> Iterator[str]:
        """A command is refused at once only if its person is an outsider or has been a guest."""
        for message in self.people.messages:
            if message.refused is None or message.person == EVA:
                continue
            if True not in self.was_guest(message.person.id, 0, message.refused):
                yield f"who may: {message} was refused, and its person may ask"

    def over_the_limit(self) -> Iterator[str]:
        """Nobody exceeds the hourly limit."""
        limit = self.outside.rules.hourly_limit
        by_person: dict[str, list[float]] = defaultdict(list)
        for request, at in self.people.passed.items():
            by_person[self.rows[request]["person_id"]].append(at)
        for person, times in by_person.items():
            times.sort()
            for first, last in zip(times, times[limit:], strict=False):
                if limit and last - first < HOUR:
                    yield f"limit: {person} had {limit + 1} requests pass within {last - first} s"

    def though_muted(self) -> Iterator[str]:
        """A message written while a job was muted is not sent to it."""
        for message, call in self._sent():
            thread, written = self.jobs[call.job_id].thread.id, self.people.recorded[call.key]
            muted = between(self._muted(thread), written - 1, written, first=False) == {True}
            if call.operation == "message" and muted:
                yield f"muted: {message} went to {call.job_id}"

    def _muted(self, thread_id: str) -> list[tuple[int, bool]]:
        """Returns from which step on a job was muted or not, as people were told."""
        told = (
            (self.people.noted[key], json.loads(row["message"]))
            for key, row in self.notices.items()
            if row["thread_id"] == thread_id
        )
        return sorted(
            (step, message["answer"] == "muted")
            for step, message in told
            if message.get("answer") in {"muted", "unmuted"}
        )

    # -- 3. a refusal changes nothing -----------------------------------------------------------------------------

    def stopped_without_request(self) -> Iterator[str]:
        """A job is stopped only if somebody stopped it, another one replaced it, or its card could not be posted."""
        for call in self.calls:
            if call.operation != "cancel" and call.prompt != STOP_WORDS:
                continue
            job = self.jobs[call.job_id]
            stopped = any(self._stops(press, job) for press in self.people.presses.values())
            if not (job.thread.state.replaced_by or stopped or f"{job.thread.id}/cannot_post" in self.notices):
                here = (each for each in self.threads.values() if each.channel_id == job.root[0])
                after = [self.told(each) for each in here if each.created_at > job.thread.created_at]
                yield f"refusal: {call.job_id} was stopped, and nobody had it stopped; after it: {after}"

    def discarded_without_request(self) -> Iterator[str]:
        """Partial work is discarded only if somebody wanted that."""
        for call in self.calls:
            if call.operation == "discard" and not any(
                self._wants(press, self.jobs[call.job_id], RequestKind.DISCARD, ThreadWord.DISCARD)
                for press in self.people.presses.values()
            ):
                yield f"refusal: what {call.job_id} got done was thrown away, and nobody wanted that"

    def _stops(self, press: Press, job: Job) -> bool:
        return self._wants(press, job, RequestKind.STOP, ThreadWord.STOP)

    def _wants(self, press: Press, job: Job, kind: RequestKind, word: ThreadWord) -> bool:
        wants = press.wants
        if isinstance(wants, Action):
            return wants.kind is kind and self.root_of_press(press) == job.root
        return wants.word is word and (wants.channel_id, wants.thread_ts) == job.root

    # -- every press has its answer -------------------------------------------------------------------------------

    def unanswered(self) -> Iterator[str]:
        """Every press has an answer or an effect."""
        for press in self.people.presses.values():
            if press.acked is not None and press.known and not self._answered(press):
                yield f"unanswered: {press} ({dict(self.rows.get(request_id(press.key), {}))})"

    def _answered(self, press: Press) -> bool:
        own = [request_id(key) for key in (press.key, *(f"{way}/{press.key}" for way in ("switch", "retry")))]
        own.append(request_id(f"{press.key}/now"))
        answers = (
            f"/{press.key}",
            f"/{press.key}/now",
            *(f"/{each}/cannot_post" for each in own),
            *(f"{each}/cannot_post" for each in own),
        )
        if any(key.endswith(answers) or any(f"/{each}/" in key for each in own) for key in self.notices):
            return True
        pressed = self.rows.get(request_id(press.key))
        if pressed is not None and (pressed["kind"], pressed["state"]) in _SHOWN_ON_ITS_PLAN:
            return True
        row = next((self.rows[each] for each in own if each in self.rows and self.rows[each]["kind"] == "stop"), None)
        if row is None:
            return self.became_a_job(press) or self._began_late(press)
        stops = {
            each["id"] for each in self.rows.values() if (each["kind"], each["thread_id"]) == ("stop", row["thread_id"])
        }
        stopped = {call.key.partition(".")[0] for call in self.calls} | self.outside.in_doubt
        return bool(stopped & stops)

    def _began_late(self, press: Press) -> bool:
        """The card of a job that was asked for while Pagehand was away is the answer."""
        start = self.rows.get(press.wants.argument) if isinstance(press.wants, Action) else None
        return start is not None and start["kind"] == "start" and start["state"] != RequestState.AWAITING_PERSON

    # -- thanks are no instruction --------------------------------------------------------------------------------

    def thanked_wrongly(self) -> Iterator[str]:
        """Thanks for a finished job get their reaction, unless their channel is archived, and are not sent; others are
        sent at most once, and not at all if their person, who was asked about them, discards them.
        """
        pressed = (press.wants for press in self.people.presses.values() if isinstance(press.wants, Action))
        discarded = {wants.argument for wants in pressed if wants.kind is RequestKind.DISCARD_HELD}
        for thanks in self.people.thanks:
            request = request_id(f"message/{thanks.channel_id}/{thanks.message_ts}")
            row, taken = self.rows.get(request), [call for call in self.calls if call.key == request]
            shown = self.outside.chat.all_reactions.get(thanks.message_ts, [])
            if len(taken) > 1:
                yield f"thanks: {thanks} were taken {len(taken)} times"
            marks = (notice for key, notice in self.notices.items() if key.endswith(f"/{request}/mark"))
            is_refused = any(mark["problem"] == "is_archived" for mark in marks)
            was_welcome = shown == [Reaction.WELCOME] or request in discarded or is_refused
            if row is not None and row["state"] == RequestState.WITHDRAWN and (taken or not was_welcome):
                yield f"thanks: {thanks} carry {shown}, and were taken {len(taken)} times"

    def cheered_wrongly(self) -> Iterator[str]:
        """Emoji alone are sent at most once, and only if their author confirmed them; until
        then the question is open.
        """
        for cheer in self.people.cheers:
            request, root = request_id(f"message/{cheer.channel_id}/{cheer.message_ts}"), cheer.thread_ts
            taken, row = [call for call in self.calls if cheer.text in call.prompt], self.rows.get(request)
            told = [self.answer(press) for press in self.people.presses.values() if press.person == cheer.person]
            if len(taken) > 1 + self._repeats_in((cheer.channel_id, root)):
                yield f"emoji: {cheer} were taken {len(taken)} times"
            if taken and not {"held_sent", "held_all_sent"} & {*told}:
                yield f"emoji: {cheer} went out, and nobody said so: {told}"
            if row is not None and not any(f"/{request}/" in key for key in self.notices):
                yield f"emoji: nobody was asked about {cheer}: {dict(row)}"

    # -- words for Pagehand, and what others wrote ----------------------------------------------------------------

    def control_words_sent(self) -> Iterator[str]:
        """No control word is an instruction. Only its author is told about a probable one."""
        for press in self.people.presses.values():
            if not isinstance(press.wants, Reply) or press.wants.word is ThreadWord.NEW:
                continue
            own, word = request_id(press.key), press.wants.word
            sent = [call for call in self.calls if call.key.partition(".")[0] == own]
            if any(call.operation != "cancel" and call.prompt != STOP_WORDS for call in sent):
                yield f"word: {press} went to the agent: {sent}"
            hints = [row for key, row in self.notices.items() if key.endswith(f"/{press.key}")]
            if word is ThreadWord.HELP and any(row["person_id"] != press.person.id for row in hints):
                yield f"word: somebody else was told what {press} means: {hints}"

    def forwarded_in_part(self) -> Iterator[str]:
        """A forwarded message is sent along with its words, unless somebody is told that it is not."""
        for message, call in self._sent():
            if message.forwarded not in call.prompt and not any("/cut" in key for key in self.notices):
                yield f"forwarded: {message} went out as {call.prompt!r}"

    # -- true words -----------------------------------------------------------------------------------------------

    def false_words(self) -> Iterator[str]:
        """What people are told is true."""
        for key, row in self.notices.items():
            message, told = json.loads(row["message"]), self.people.noted[key]
            if message.get("refusal") == "guest" and self.was_guest(message["person_id"], 0, told) == {False}:
                yield f"false: {key} tells {message['person_id']} that they are a guest"
            if message.get("refusal") == "other_organization" and message["person_id"] != EVA.id:
                yield f"false: {key} tells {message['person_id']} that they are of another organization"
            if message.get("refusal") == "too_many" and not self.outside.rules.hourly_limit:
                yield f"false: {key} tells of a limit"
            if message.get("answer") == "slack_away" and True not in between(self.people.away, 0, told, first=False):
                yield f"false: {key} says that Slack was away"
            if message.get("kind") == "request_rejected" and message["reason"] == "not_started":
                yield from self._started_after_all(key, row, message)
            if message.get("answer") == "nothing_to_stop":
                yield from self._was_at_work(key, row, told)
            if message.get("answer") in {"started_again", "project_switched"}:
                source = key.removeprefix(f"{row['thread_id']}/")
                begun = request_id(source)
                if self.people.ended.get(begun, told) < told:
                    yield f"false: {key} says {message['answer']}, and that had come to nothing before"

    def _started_after_all(self, key: str, row: Row, message: dict[str, Any]) -> Iterator[str]:
        """A reply is told that there is no job, although its thread had a live one before the reply. A reply to another
        job that was stopped before it began is told so, too.
        """
        starts = [
            each for each in self.rows.values() if (each["kind"], each["thread_id"]) == ("start", row["thread_id"])
        ]
        if any(start["problem"] == "stopped" for start in starts):
            return
        thread, request = self.threads[row["thread_id"]], message["request"]["request_id"]
        recorded = self.people.recorded[request]
        written = next(
            (each for each in self.people.messages if request_id(each.key) == request.partition(".")[0]), None
        )
        root = self.root_of(written) if written else self.place(thread)
        for job in self.jobs.values():
            lives = job.thread.state.failure.problem is None and not job.thread.state.replaced_by
            if job.root == root and job.call.step < recorded and lives:
                yield f"false: {key} says that no job was started, and {job.call.job_id} lives in that thread"

    def _was_at_work(self, key: str, row: Row, told: int) -> Iterator[str]:
        presses = {request_id(press.key): press for press in self.people.presses.values()}
        source = key.removeprefix(f"{row['thread_id']}/")
        press = self.people.presses.get(source) or presses.get(source.partition("/")[0])
        job = next((each for each in self.jobs.values() if each.thread.id == row["thread_id"]), None)
        if press is None:
            yield f"false: {key} says that there is nothing to stop to {row['person_id']}, who stopped nothing"
        if press is None or job is None or press.acked is None or job.call.job_id in self.outside.job_api.hidden:
            return
        if between(self.outside.job_api.at_work[job.call.job_id], press.acked, told, first=False) == {True}:
            yield f"false: {key} says that there is nothing to stop, and {job.call.job_id} is at work"


def unanswered_edits(people: People, requests: Iterable[Row], notices: Collection[str]) -> Iterator[str]:
    """Returns each edit into a word for Pagehand, or out of one, about which nothing was said. `notices` are their
    keys.
    """
    newest = {(row["written_at"], row["edited_at"]) for row in requests}
    for message in people.messages:
        for version in message.versions:
            recorded = version.word is not None and (message.ts, version.at) in newest
            if recorded and not _is_told(message.ts, version.at, notices):
                yield f"edit: {message} became {version.word}, and nothing was said"
    for edited in people.edited_words:
        if not _is_told(edited.message_ts, edited.edited_at, notices):
            yield f"edit: {edited} was a word for Pagehand, and nothing was said"


def edited_words_sent(people: People, prompts: Iterable[str]) -> Iterator[str]:
    """Returns each word for Pagehand that was sent to the agent after an edit made it words for it."""
    sent = "\n".join(prompts)
    yield from (f"edit: {each} was sent" for each in people.edited_words if each.text in sent)


def _is_told(message_ts: str, edited_at: str, notices: Collection[str]) -> bool:
    return any(key.endswith(f"/{message_ts}/edit/{edited_at}") for key in notices)
