"""What happened in the state machine's world, for the oracle, and what only the tables can show: nothing is left open,
the newest words of each reply were sent, and each thread's state is current.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, assert_never

from support.fakes.ports import Posted
from support.oracles.people_model import Message, People, Version
from support.oracles.promises import AskedFor, History, Said, Shown, Turn, broken, check
from support.oracles.stop_verdict import sent_in_spite_of_a_stop
from support.worlds.core_world import EVA
from support.worlds.fault_world import Outside

from bot.domain.jobs.job import Problem
from bot.domain.permissions import is_outsider
from bot.domain.projects import PostMode
from bot.domain.requests.request import SENT_KINDS, RejectionReason, RequestKind, RequestState, WayIn
from bot.domain.threads.thread import Thread, ThreadState, owes_question, owes_status
from bot.jobapi.models import Mode
from bot.notices.answers import Introduction
from bot.notices.job import JobActiveAgain, JobEnd, JobStarted, JobStopped, PullRequestFound
from bot.notices.notice import Delivery, Notice, Reaction
from bot.scheduler.rereading import SHARED_FOR
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.notices import messages
from bot.store.schema.rows import message_from

Row = Mapping[str, Any]
_BEGINNINGS = ("started", "/active")
_STATUS = "/status/"
_ENDS = ("/completed", "/failed", "/stopped", "/archived")
PASSING = {Problem.OUT_OF_REACH, Problem.RATE_LIMITED, Problem.BUSY, Problem.FAULTY, Problem.NOT_ALLOWED}
REFUSALS = {"not_in_channel", "restricted_action", "invalid_blocks"}
"""Why Slack does not take a message to one person; to give it up for a doubt takes more faults than there are here."""
FINAL = {Problem.GONE, Problem.UNCERTAIN, Problem.REJECTED, Problem.STOPPED, Problem.WITHDRAWN}
"""After these, the end of an outage concerns nobody."""
REACTIONS = {
    RequestState.WAITING: Reaction.RECORDED,
    RequestState.SENDING: Reaction.RECORDED,
    RequestState.ACCEPTED: Reaction.ACCEPTED,
    RequestState.REJECTED: Reaction.PROBLEM,
    RequestState.UNCERTAIN: Reaction.PROBLEM,
    RequestState.WITHDRAWN: None,
    RequestState.AWAITING_PERSON: None,
}
KEYS = {
    RequestState.REJECTED: "refused",
    RequestState.UNCERTAIN: "unsure",
    RequestState.AWAITING_PERSON: "held",
}
"""The names of these in notice keys: they do not change, since messages in Slack carry them."""


class Verdict:
    """Compares the database, what people did, and what the world outside saw."""

    def __init__(
        self, outside: Outside, people: People, tables: Mapping[str, Sequence[Row]], threads: Mapping[str, Thread]
    ) -> None:
        self.outside = outside
        self.people = people
        self.tables = tables
        self.threads = {thread.id: thread for thread in threads.values() if thread.requester_id}
        self.introduced = Counter(thread.channel_id for thread in threads.values() if not thread.requester_id)
        self.requests = [row for row in tables["requests"] if row["kind"] in SENT_KINDS]
        self.actions = [row for row in tables["requests"] if row["kind"] not in SENT_KINDS]
        self.notices: dict[str, Row] = {row["key"]: row for row in tables["notices"]}
        self.sent_again = sent_again(tables["requests"], tables["notices"])

    def check(self, *, pressed: bool) -> None:
        """`pressed`: a person had all requests in doubt sent again."""
        check(broken(self.history()))
        self._nothing_is_open(pressed=pressed)
        for notice in self.notices.values():
            self.notice(notice)
        for thread in self.threads.values():
            self.thread(thread)
        for written in self.people.replies:
            self._recorded(written)
        acknowledged = [channel_id for channel_id, acked in self.people.invitations.items() if acked]
        unasked = [each for each in self.people.replies if each.found_late and self._was_sent_unasked(each)]
        assert not unasked, f"{unasked} were sent, and nobody said so"
        overtaken = list(sent_in_spite_of_a_stop(self.tables["requests"], self.people.stopped, self.outside.sent))
        assert not overtaken, "\n".join(overtaken)
        assert all(self.introduced[channel_id] == 1 for channel_id in acknowledged), "no introduction, or more"

    # -- for the oracle -------------------------------------------------------------------------------------------

    def history(self) -> History:
        """Returns what happened, at rest."""
        return History(
            requests=[*self._not_recorded(), *map(self._asked_for, self.requests)],
            posts=[message.key for message in self.outside.chat.messages],
            threads=[self._said(thread) for thread in self.threads.values()],
            shown=[*self._cards(), *self._reactions()],
        )

    def _not_recorded(self) -> Iterator[AskedFor]:
        """Returns what was acknowledged and has no row. A reply to a card that could not be recorded because its
        channel was archived at once has no job to go to.
        """
        sources = {row["source_key"] for row in self.requests}
        for message in self.people.messages:
            has_no_job = message.ts and self._was_called_off(self._thread_of(message).id)
            if message.key not in sources and not has_no_job:
                yield AskedFor(message.words, bool(message.acked), taken=0)
        yield from (
            AskedFor(press.key, bool(press.acked), taken=0)
            for press, _ in self.people.stops()
            if press.key not in sources
        )

    def _asked_for(self, row: Row) -> AskedFor:
        return AskedFor(
            row["id"],
            acknowledged=True,
            taken=self._stopped(row) if row["kind"] == "stop" else self.outside.job_api.effects.count(_sent_as(row)),
            sent_again=self.sent_again[_sent_as(row)],
            explained=self._explained(row),
            state=RequestState(row["state"]),
            turn=self._turn(row),
        )

    def _stopped(self, row: Row) -> int:
        """Returns how often the agent was asked to stop; once, however often the job was cancelled, since a cancel may
        be repeated. If several people stopped a job, the first one's cancel counts for all. Pagehand alone stops a job
        that was not sent, and answers. If a cancel may have arrived and the job has ended, the truth is unknown.
        """
        if f"{row['thread_id']}/{row['source_key']}" in self.notices:
            return 1
        asked = self.outside.job_api.effects.count(row["id"])
        stops = [
            other["id"] for other in self.requests if (other["kind"], other["thread_id"]) == ("stop", row["thread_id"])
        ]
        cancelled = any(key.rpartition(".")[0] in stops for key in self.outside.job_api.effects)
        cancelled = cancelled or bool(self.outside.in_doubt.intersection(stops))
        return asked or int(cancelled and row["state"] != "rejected")

    def _explained(self, row: Row) -> bool:
        """It was explained by its end, or it waits for a start in doubt."""
        thread_id, state = row["thread_id"], RequestState(row["state"])
        if state is RequestState.WAITING:
            return thread_id in self._uncertain_starts()
        called_off = row["kind"] == "start" and self._was_called_off(thread_id)
        in_vain = {"stop": f"{row['id']}/nothing", "accept_proposal": row["source_key"]}
        if f"{thread_id}/{in_vain.get(row['kind'])}" in self.notices:
            return True
        if row["kind"] == "stop" and row["way_in"] == WayIn.SWITCH:
            return self._was_called_off(thread_id)  # nobody asked for it
        if row["problem"] == RejectionReason.NOT_PERMITTED:
            version = f"/{row['edited_at']}" if row["edited_at"] else ""
            return f"{thread_id}/{row['id']}/refused{version}" in self.notices
        if row["problem"] == RejectionReason.STOPPED and any(
            self._answers_a_stop(key, thread_id) for key in self.notices
        ):
            return True
        own = [key for key in self.notices if key.startswith(f"{thread_id}/{_sent_as(row)}/")]
        in_words = any(f"/{KEYS[state]}/" in key for key in own if state in KEYS)
        return in_words or (called_off and state is RequestState.REJECTED)

    def _turn(self, row: Row) -> Turn | None:
        """A withdrawn request may be sent after all when its turn is over."""
        request_id, written_at = _sent_as(row), row["written_at"]
        withdrawn = {written.ts for written in self.people.replies if not all(v.words for v in written.versions)}
        if row["kind"] != "follow_up" or request_id not in self.outside.job_api.effects or written_at in withdrawn:
            return None
        if request_id.partition(".")[0] in self._released():
            return None
        place = self.outside.job_api.effects.index(request_id)
        recorded, sent = self.people.recorded[row["id"]], self.outside.sent[request_id]
        return Turn(row["thread_id"], written_at, place, recorded, sent)

    def _released(self) -> set[str]:
        """Returns the requests that their person had sent after they were asked."""
        return {row["text"] for row in self.actions if row["kind"] == RequestKind.SEND_HELD}

    def _said(self, thread: Thread) -> Said:
        posts = [row for row in self.tables["notices"] if (row["thread_id"], row["delivery"]) == (thread.id, "post")]
        of_channels = {"card_changed", "introduction"}
        messages = [message for message in self.outside.chat.messages if message.kind not in of_channels]
        return Said(
            thread.id,
            seen=[message.key for message in messages if message.thread_ts == thread.ts],
            meant=[row["key"] for row in sorted(posts, key=lambda row: int(row["id"]))],
            delivered=[row["key"] for row in posts if row["state"] == "done"],
        )

    def _cards(self) -> Iterator[Shown]:
        for thread in self.threads.values():
            card = self.notices.get(f"{thread.id}/card")  # none if the job was stopped before it was prepared
            if card is not None and card["state"] == "done":
                shown = self.outside.chat.cards[thread.id].state
                yield Shown(f"{thread.id}/card", _on_card(shown), {_on_card(thread.state)})

    def _reactions(self) -> Iterator[Shown]:
        """If edited words were sent, or the reply was sent again to another job, it may be that of either request. It
        moved along with the reply.
        """
        marks = {key.partition("/")[2]: notice for key, notice in self.notices.items()}
        of_reply = Counter(row["written_at"] for row in self.requests)
        for row in self.requests:
            if row["kind"] in {"stop", "accept_proposal"} or row["mode"] == Mode.EDIT:
                continue  # a button has no marks
            notice = marks.get(f"{row['id'].partition('.')[0]}/mark")
            refused = row["problem"] == RejectionReason.NOT_PERMITTED
            right = None if refused else REACTIONS[RequestState(row["state"])]
            assert notice or row["kind"] == "start" or right is None
            if notice and notice["state"] == "done":
                shown = self.outside.chat.all_reactions.get(row["written_at"], [])
                assert len(shown) <= 1, f"{row['id']} shows {shown}"
                if of_reply[row["written_at"]] == 1:
                    yield Shown(f"{row['id']}/mark", shown[0] if shown else None, {right})

    # -- what only the tables can show ----------------------------------------------------------------------------

    def _nothing_is_open(self, *, pressed: bool) -> None:
        self.nothing_is_left_open()
        unsure = self._uncertain_starts()
        assert not (pressed and unsure)
        for row in self.requests:
            # Follow-ups wait for a start in doubt: a person decides.
            waits = row["thread_id"] in unsure and row["state"] == "waiting"
            assert row["due_at"] is None or waits, dict(row)
        for row in self.actions:
            if row["problem"] == RejectionReason.NOT_PERMITTED:
                assert f"{row['thread_id']}/{row['id']}/refused" in self.notices, dict(row)
            else:
                assert row["state"] == "accepted", dict(row)

    def nothing_is_left_open(self) -> None:
        """Everything was delivered, every job has ended, and no reply waits for a card."""
        assert not (left := [dict(row) for row in self.notices.values() if row["due_at"] is not None]), left
        assert not (left := [dict(row) for row in self.tables["polls"] if row["due_at"] is not None]), left
        assert not list(self.tables["early_replies"])

    def _answers_a_stop(self, key: str, thread_id: str) -> bool:
        stops = (row for row in self.requests if (row["kind"], row["thread_id"]) == ("stop", thread_id))
        return any(key == f"{thread_id}/{row['source_key']}" for row in stops)

    def _was_called_off(self, thread_id: str) -> bool:
        """Returns whether its card could not be posted, which its person was told."""
        return f"{thread_id}/cannot_post" in self.notices

    def _uncertain_starts(self) -> set[str]:
        """Returns the threads whose start is in doubt."""
        return {row["thread_id"] for row in self.requests if (row["kind"], row["state"]) == ("start", "uncertain")}

    def _recorded(self, written: Message) -> None:
        """Every reply is a request; that of a person who may not steer is refused, or was withdrawn before."""
        thread = self._thread_of(written)
        request = next((row for row in self.requests if row["source_key"] == written.key), None)
        allowed = not is_outsider(written.person, thread)
        if not self._was_called_off(thread.id):
            assert request, written
            assert allowed or request["state"] in {"rejected", "withdrawn"}, request
        self._newest(written)

    def _was_sent_unasked(self, written: Message) -> bool:
        own = [row for row in self.actions if row["person_id"] == written.person.id]
        released = {row["text"] for row in own if row["kind"] == RequestKind.SEND_HELD}
        return written.request_id in self.outside.job_api.effects and written.request_id not in released

    def _newest(self, written: Message) -> None:
        """The final text of a reply is sent, offered to its author, or withdrawn; the newest text was sent."""
        of_reply = [row for row in self.requests if row["written_at"] == written.ts]
        if not of_reply:
            return
        last = max(of_reply, key=lambda row: (row["recorded_at"], row["id"]))
        text = written.newest_words
        if text:
            offer = f"{last['thread_id']}/{last['id']}/edited/{last['edited_at']}"
            assert last["text"] == text or (last["latest_text"] == text and offer in self.notices), dict(last)
        else:
            assert last["state"] == "withdrawn" or last["latest_text"] == "", dict(last)
        for row in of_reply:
            self._up_to_date(written, row)

    def _up_to_date(self, written: Message, request: Row) -> None:
        """Everything acknowledged before a request was claimed is in it, unless an earlier version may have arrived."""
        words = self.outside.job_api.words.get(_sent_as(request))
        if words is None or request["uncertain"]:
            return
        assert words == self._words_of(_sent_as(request))
        sent, at = self.outside.sent[_sent_as(request)], written.made_at(request["text"])
        newer = [version for version in written.versions if version.at > at]
        late = [version for version in newer if version.acked is not None and version.acked < sent]
        late += [version for version in newer if self._is_read_again(version, request, sent)]
        assert not late, f"{request['id']} went out as {words!r}, after {late}"

    def _is_read_again(self, version: Version, request: Row, sent: int) -> bool:
        """Returns whether a request that waited is read again because nobody heard of an edit. A look-up is shared for
        some seconds.
        """
        waited = self.people.recorded[request["id"]] < version.step < sent
        now, heard_since = self.people.heard.get(sent, (0.0, 0.0))
        return waited and version.unheard and float(version.at) + SHARED_FOR + 1.0 < min(now, heard_since)

    def _words_of(self, request_id: str) -> str:
        """Returns the words of a request with all requests merged into it, in written order."""
        together = [row for row in self.requests if _sent_as(row) == request_id]
        together.sort(key=lambda row: (row["written_at"], row["recorded_at"], row["id"]))
        return "\n\n".join(row["text"] for row in together)

    def notice(self, notice: Row) -> None:
        """A notice given up in the thread was sent to the person; delivered ones have the right content."""
        delivery, done = Delivery(notice["delivery"]), notice["state"] == "done"
        message = message_from(notice["message"], delivery)
        match delivery:
            case Delivery.POST if done:
                posted = [posted for posted in self.outside.chat.messages if posted.key == notice["key"]]
                assert [each.message for each in posted] == [message], dict(notice)
            case Delivery.POST if isinstance(message, Introduction):
                pass  # given up silently; the next invitation counts
            case Delivery.POST:
                left_out = isinstance(message, JobStarted | JobStopped) and self._was_called_off(notice["thread_id"])
                left_out |= bool(notice["posted_ts"])  # people have seen it
                assert left_out or f"{notice['key']}/told" in self.notices, dict(notice)
            case Delivery.EPHEMERAL:
                told = self.outside.chat.told_keys[notice["key"]] >= 1 or "/held/reminder/" in notice["key"]
                assert told or not done, dict(notice)
                assert done or notice["problem"] in REFUSALS, dict(notice)
                assert notice["person_id"] == message.about, "a message for an unknown person"
            case Delivery.CARD | Delivery.REACTION:
                pass  # they may have been updated since
            case _:
                assert_never(delivery)

    def thread(self, thread: Thread) -> None:
        state, job = thread.state, thread.state.job
        assert job is None or job.details is None, "an agent's text is kept"
        assert state.failure.problem is Problem.GONE or job is None or job.ended
        assert state.failure.problem not in PASSING, "all answers, and yet the card says that it does not"
        assert not state.failure.outage_announced or state.failure.problem in FINAL
        assert state.failure.problem is Problem.GONE or not owes_question(state), "a question was never asked"
        own = [row for row in self.notices.values() if row["thread_id"] == thread.id]
        assert state.announcements.unexplained == (), "a refusal without an explanation"
        silenced = bool(state.people.muted_by) or any('"muted"' in row["message"] for row in own)
        told = {row["key"].removeprefix(f"{thread.id}/") for row in own}
        assert silenced or self._may_be_left_out(state.announcements.announced - told, told), (
            state.announcements.announced - told
        )
        assert silenced or not owes_status(state), f"{thread.id} was last told of {state.announcements.last_status!r}"
        untold = [link for link in state.announcements.links if not any(link in row["message"] for row in own)]
        assert not untold, f"{untold} of {thread.id} were not told: {[(row['key'], row['message']) for row in own]}"
        messages = [message for message in self.outside.chat.messages if message.key.startswith(f"{thread.id}/")]
        posts = [message for message in messages if message.kind != "card_changed"]
        assert all(message.thread_ts == thread.ts for message in posts)
        wrong = list(
            wrong_announcements(thread, posts, self.outside.projects.posts(thread.channel_id), self._ends_of(thread))
        )
        assert not wrong, "\n".join(wrong)

    def _ends_of(self, thread: Thread) -> int:
        """Returns how often the jobs of a thread ended, by themselves or by a cancel."""
        starts = {row["id"] for row in self.requests if (row["kind"], row["thread_id"]) == ("start", thread.id)}
        calls, at_work = self.outside.job_api.calls, self.outside.job_api.at_work
        jobs = {call.job_id for call in calls if call.operation == "create" and call.key in starts}
        by_itself = sum(not works for job_id in jobs for _, works in at_work[job_id])
        return by_itself + sum(call.operation == "cancel" and call.job_id in jobs for call in calls)

    def _may_be_left_out(self, keys: Collection[str], told: Collection[str]) -> bool:
        """A start may be left out if lines are held and the end of its round or a later one was announced, or a plan,
        which ends a round, too; an end never. A channel in ends-only mode gets no starts.
        """
        ended = max((_round(key) for key in told if key.endswith(_ENDS)), default=-1)
        last = ended + sum(key.startswith("plan/") for key in told) if self.outside.hold_back else -1
        begins = [key.endswith(_BEGINNINGS) or _STATUS in key for key in keys]
        return all(begins) and all(_round(key) <= last for key in keys)

    def _thread_of(self, written: Message) -> Thread:
        cards = {message.ts: message.key.removesuffix("/card") for message in self.outside.cards()}
        return self.threads[cards[written.root]]


def _sent_as(row: Row) -> str:
    """Returns the id of the request that this one is sent as: its own, or that of the first merged one."""
    return str(row["merged_into"] or row["id"])


def sent_again(requests: Sequence[Row], notices: Sequence[Row]) -> Counter[str]:
    """Returns by request how often a person had it sent again, as people were told."""
    answered = {row["key"]: row["message"] for row in notices if row["delivery"] == "ephemeral"}
    presses = [row for row in requests if row["kind"] == RequestKind.SEND_AGAIN]
    told = [row for row in presses if '"sent_again"' in answered.get(f"{row['thread_id']}/{row['source_key']}", "")]
    assert not [row for row in told if row["person_id"] == EVA.id]
    return Counter(row["text"] for row in told)


def _on_card(state: ThreadState) -> object:
    """Returns the part of a thread's state that its card shows."""
    times = state.work.work_began_at, state.work.work_ended_at
    told = (
        state.failure.problem,
        state.failure.problem_text,
        state.work.progress,
        bool(state.work.question),
        state.people.stopped_by,
        state.people.muted_by,
    )
    return state.job, *told, *times


def _round(key: str) -> int:
    """Returns the round of its job that a start or an end belongs to."""
    return int(key.partition("/")[0].removeprefix("r")) if "/" in key else 0


def wrong_announcements(thread: Thread, posts: Sequence[Posted], mode: PostMode, ends: int) -> Iterator[str]:
    """Checks the posts about one job. `mode` is that of its channel; `ends` is how often the job ended."""
    of_ends = [post.key for post in posts if isinstance(post.message, JobEnd)]
    if len(of_ends) > ends:
        yield f"{ends} ends were told in {len(of_ends)} posts: {of_ends}"
    for link, times in Counter(_new_links(posts)).items():
        if times > 1:
            yield f"{link} was told as new {times} times in {thread.id}"
    for post in posts:
        begins, mentioned = isinstance(post.message, JobStarted | JobActiveAgain), _mentions(thread, post)
        if begins and mode is PostMode.ENDS:
            yield f"{post.key} tells of a beginning, where only ends are wanted"
        if mentioned > (0 if begins else 1):
            yield f"{post.key} mentions {mentioned} people"


def _new_links(posts: Sequence[Posted]) -> Iterator[str]:
    for post in posts:
        if isinstance(post.message, PullRequestFound) or (isinstance(post.message, JobEnd) and post.message.new):
            yield post.message.link


def _mentions(thread: Thread, post: Posted) -> int:
    """Returns how many people a start or end notice mentions, as Slack gets it."""
    if not isinstance(post.message, JobStarted | JobActiveAgain | PullRequestFound | JobEnd):
        return 0
    notice = Notice(0, post.key, thread.id, post.message, 0.0)
    return sum(str(made.text).count("<@") for made in messages(thread, notice, MessageContext()))
