"""How a run with all controls begins and ends."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import initialize
from support.machine.asking import Asking
from support.machine.controlling import Controlling
from support.machine.membership import Membership
from support.machine.people import ALL_PROJECTS, Place
from support.machine.short_words import ShortWords
from support.machine.writing import Writing
from support.oracles.control_verdict import ControlVerdict
from support.oracles.people_model import Message
from support.worlds.core_world import ANA, BEN, EVA

from bot.domain.permissions import PermissionRules
from bot.domain.projects import ChannelSettings, PostMode, Project, Projects, ReplyMode
from bot.domain.requests.new_jobs import request_id
from bot.domain.requests.request import RequestKind, WayIn
from bot.domain.threads.thread import Thread
from bot.jobapi.models import JobDetails, PartialWork
from bot.notices.notice import Reaction
from bot.notices.questions import JobOrReplyAsked, ReplyHeld


class Controls(Asking, Writing, ShortWords, Controlling, Membership):
    """Every way in and every control."""

    @initialize(
        several=st.booleans(),
        mode=st.sampled_from([ReplyMode.EVERYONE, ReplyMode.EVERYONE, ReplyMode.PARTICIPANTS, ReplyMode.MENTIONS]),
        limit=st.sampled_from([0, 0, 2, 3]),
        idempotent=st.booleans(),
        cancels=st.booleans(),
        links=st.booleans(),
        slow=st.booleans(),
        merge_seconds=st.sampled_from([0.0, 3.0]),
        posts=st.sampled_from([PostMode.ALL, PostMode.ALL, PostMode.ENDS]),
        hold_back=st.sampled_from([0.0, 5.0]),
        jobs=st.sampled_from([1, 1, 2, 0]),
        channel=st.sampled_from(["C1", "C1", "D1"]),
    )
    def begin(
        self,
        *,
        several: bool,
        mode: ReplyMode,
        limit: int,
        idempotent: bool,
        cancels: bool,
        links: bool,
        slow: bool,
        merge_seconds: float,
        posts: PostMode,
        hold_back: float,
        jobs: int,
        channel: str,
    ) -> None:
        """Starts most runs with a job or two, or with a job and a line in a direct message."""
        outside = self.outside
        self.several = several
        projects = (
            (
                Project("guides", words=("guide",)),
                Project("manual", words=("manual",)),
                Project("api", frozenset({"C2"})),
            )
            if several
            else (Project("docs"),)
        )
        outside.projects = Projects(projects, any_channel=ChannelSettings(replies=mode, posts=posts))
        outside.hold_back, outside.links = hold_back, links
        outside.rules = PermissionRules(team_id="T1", hourly_limit=limit)
        outside.chat.joined |= {"D1"}
        outside.job_api.honours_keys, outside.job_api.cancels, outside.job_api.slow = idempotent, cancels, slow
        self.idempotent, self.merge_seconds = idempotent, merge_seconds
        self.processes = [self.born(), self.born()]
        for _ in range(jobs):
            if channel == "D1":
                self.write_directly(ANA, "guide", 0)
                self.in_process(0, self.processes[0].settle())
                self.advance(9.0)
                continue
            mark, key = self.next_mark()
            words = f"Do [{mark}.0] guide"
            message = Message(mark, key, ANA, WayIn.COMMAND, "C1", words, project=self.meant("", "C1", "guide"))
            self.written(message, 0)
        self.in_process(0, self.processes[0].settle())

    def end_well(self) -> None:
        self.calm_down()
        self.verdict().check()
        self._all_may_ask_again()
        self._a_known_guest_is_refused_at_once()
        self._answer_lines()
        for number, place in enumerate(self._places_with_a_job()):
            self._thank(place)
            if number == 0:
                self.a_bot_replies(which=0, mentions=True, at=0)
                self._answer_with_emoji(place)
            if number == 0:
                self._discard(place)
            self._retry_and_switch(place)
        self.verdict().check()

    def _all_may_ask_again(self) -> None:
        for person in (ANA, BEN):
            self.set_guest(person, guest=False)
        self.outside.job_api.hidden.clear()
        self.advance(3_700.0)
        self.settle_down()

    def _a_known_guest_is_refused_at_once(self) -> None:
        """And a known member is not."""
        for guest in (True, False):
            self.set_guest(BEN, guest=guest)
            self.run(self.outside.reading.member(BEN.id))
            mark, key = self.next_mark()
            message = Message(mark, key, BEN, WayIn.COMMAND, "C1", f"Do [{mark}.0]", said="nowhere")
            self.written(message, 0)
            assert (message.refused is not None) is guest
        self.settle_down()

    def _answer_lines(self) -> None:
        """Sends every waiting line to the job above if that accepts it; otherwise the line becomes a job at once. Lines
        of an outsider, who may not answer, keep waiting.
        """
        number = 0
        while number < len(asked := self.outside.chat.private_as(JobOrReplyAsked)):  # an answer may make another one
            question = asked[number]
            for kind in (RequestKind.SEND_HELD, RequestKind.DISCARD_HELD)[number % 2 :]:
                self.press(self.person(question.person_id), kind, 0, argument=question.request_id)
                self.settle_down()
                self.advance(3_700.0)
            number += 1
        waiting = [row for row in self.rows("requests") if row["state"] == "awaiting_person"]
        lines = [row for row in waiting if row["way_in"] == "direct_message" and row["kind"] == "follow_up"]
        assert not [row for row in lines if row["person_id"] != EVA.id]

    def _places_with_a_job(self) -> list[Place]:
        """Returns the threads with a live job: one that was started and that the job API knows."""
        live = [self.live_in(place) for place in self.places()]
        return [place for place, thread in zip(self.places(), live, strict=True) if thread and self._is_well(thread)]

    def _is_well(self, thread: Thread) -> bool:
        uncertain = [row for row in self.rows("requests") if row["state"] == "uncertain"]
        lives = thread.state.failure.problem is None and not thread.state.replaced_by
        return lives and not any(row["thread_id"] == thread.id for row in uncertain)

    def live_in(self, place: Place) -> Thread | None:
        """Returns the newest started job of a Slack thread."""
        created = {call.job_id for call in self.outside.job_api.calls if call.operation == "create"}
        here = [
            thread
            for thread in self.stored_threads().values()
            if (thread.channel_id, thread.ts) == (place.channel_id, place.root)
            and thread.state.job is not None
            and thread.state.job.id in created
            and thread.card_ts
        ]
        return max(here, key=lambda thread: thread.number, default=None)

    def _live_job(self, place: Place) -> tuple[Thread, str]:
        """Returns a thread that has a live job, and the job's id."""
        live = self.live_in(place)
        assert live is not None
        assert live.state.job is not None
        return live, live.state.job.id

    def _thank(self, place: Place) -> None:
        """Thanks for an ended job get their reaction and are not sent. Threads in which another job is
        about to start are skipped.
        """
        live, job_id = self._live_job(place)
        if not self._is_newest(live):
            return
        self.outside.job_api.show(job_id, "failed")
        self._look_at(live)
        before = len(self.outside.job_api.calls)
        thanks = self.thanks(ANA, place, mentions=True)
        self.deliver_thanks(thanks, 0)
        self.settle_down()
        shown = self.outside.chat.all_reactions.get(thanks.message_ts, [])
        assert shown == [Reaction.WELCOME], f"{thanks} carry {shown}"
        assert len(self.outside.job_api.calls) == before

    def _is_newest(self, live: Thread) -> bool:
        """Returns whether no other job is about to start in its Slack thread."""
        return not any(
            (other.channel_id, other.ts) == (live.channel_id, live.ts) and other.number > live.number
            for other in self.stored_threads().values()
        )

    def _answer_with_emoji(self, place: Place) -> None:
        """Emoji alone may answer the agent's question: their author confirms that, and then they are sent."""
        live, job_id = self._live_job(place)
        if live.state.people.muted_by or not self._is_newest(live):
            return
        self.outside.job_api.show(job_id, "completed", details=JobDetails(question="Is it meant?"))
        self._look_at(live)
        cheer, before = self.cheers(ANA, place, mentions=True), len(self.outside.job_api.calls)
        self.deliver_cheer(cheer, 0)
        self.settle_down()
        request = request_id(f"message/{cheer.channel_id}/{cheer.message_ts}")
        assert request in {held.request_id for held in self.outside.chat.private_as(ReplyHeld)}, f"{cheer} is not held"
        assert len(self.outside.job_api.calls) == before
        self.press(ANA, RequestKind.SEND_HELD, 0, argument=request)
        self.settle_down()
        assert [call.prompt for call in self.outside.job_api.calls[before:]] == [cheer.text]

    def _discard(self, place: Place) -> None:
        """Partial work of a failed job is discarded by one call, and its person is told once."""
        live, job_id = self._live_job(place)
        if not self._is_newest(live):
            return
        kept = JobDetails(reason="out of credit", partial_work=PartialWork(files=2))
        self.outside.job_api.show(job_id, "failed", details=kept)
        self._look_at(live)
        before = len(self.outside.job_api.calls)
        for _ in range(2):
            self.press(ANA, RequestKind.DISCARD, 0, channel_id=place.channel_id, thread_id=live.id)
            self.settle_down()
        calls = self.outside.job_api.calls[before:]
        told = list(self.outside.chat.answers())[-2:]
        assert [call.operation for call in calls] == ["discard"], f"{calls}, and {told} was told"

    def _retry_and_switch(self, place: Place) -> None:
        """Whatever was refused before: once nothing prevents it, a failed job is retried, and a job for
        another project replaces it.
        """
        failed, _ = self._live_job(place)
        self._is_done_again(place, failed, RequestKind.RETRY, "", failed.project)
        live = self.live_in(place)
        if self.several and live is not None:
            other = next(name for name in ALL_PROJECTS if name != live.project)
            self._is_done_again(place, live, RequestKind.CHOOSE_PROJECT, other, other)

    def _is_done_again(self, place: Place, live: Thread, kind: RequestKind, argument: str, project: str) -> None:
        assert live.state.job is not None
        if kind is RequestKind.RETRY:
            self.outside.job_api.show(live.state.job.id, "failed")
            self._look_at(live)
        before = len(self.outside.job_api.calls)
        self.press(ANA, kind, 0, channel_id=place.channel_id, thread_id=live.id, argument=argument)
        self.in_process(0, self.processes[0].settle())
        self.advance(3_700.0)
        self.settle_down()
        created = [call for call in self.outside.job_api.calls[before:] if call.operation == "create"]
        newest = self.live_in(place)
        assert [call.project for call in created] == [project], (
            f"{kind} did nothing: {list(self.outside.chat.answers())[-3:]}"
        )
        assert newest is not None
        assert newest.follows == live.id, f"{kind}: {newest} is not in the place of {live}"

    def _look_at(self, thread: Thread) -> None:
        """Polls the job once more, as after a webhook."""
        state = replace(thread.state, work=replace(thread.state.work, poll_until=self.outside.clock.time + 60.0))
        self.read(lambda tx: tx.threads.save_state(thread.id, state, poll_in=0.0))
        self.in_process(0, self.processes[0].settle())

    def verdict(self) -> ControlVerdict:
        """Checks the results."""
        return ControlVerdict(self.outside, self.people, self.tables(), self.stored_threads())

    def before_the_last_deliveries(self) -> None:
        if self.outside.reading.away:
            self.set_away(away=False)
