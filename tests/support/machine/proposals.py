"""Plans that agents propose, and presses of their buttons: nothing but a press starts one, and each once."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from support.fakes.ports import Posted
from support.machine.machine import LINKS
from support.machine.people import AT, PERSON, WHICH, PeopleMachine

from bot.domain.requests.new_jobs import request_id
from bot.domain.requests.request import Action, Person, RequestKind
from bot.domain.threads.thread import waits_for_start
from bot.jobapi.models import ProposalState
from bot.notices.proposals import ProposalMade
from bot.slack.rendering.message_context import MessageContext

KIND = st.sampled_from([RequestKind.ACCEPT_PROPOSAL, RequestKind.ACCEPT_PROPOSAL, RequestKind.DROP_PROPOSAL])
PRESS = st.tuples(KIND, PERSON, AT)


class Proposals(PeopleMachine):
    """Rules by which plans are proposed, started and dropped; words and stops come by the other rules."""

    @precondition(lambda self: self.outside.job_api.jobs)
    @rule(which=WHICH, at=AT, seen=st.sampled_from([True, True, False]), presses=st.lists(PRESS, max_size=2))
    def agent_proposes(
        self, *, which: int, at: int, seen: bool, presses: list[tuple[RequestKind, Person, int]]
    ) -> None:
        """Proposes a plan, which may be seen at once, and pressed."""
        if seen:
            self.propose_and_see(which=which, at=at)
        else:
            self.outside.job_api.propose(self.job(which))
        for kind, person, pressed_at in presses:
            if self.plans() and self.may_press():
                self.press_below_a_plan(which=0, kind=kind, person=person, at=pressed_at)

    def propose_and_see(self, *, which: int, at: int) -> None:
        """Proposes a plan, and has a process poll its job."""
        self.outside.job_api.propose(self.job(which))
        self.advance(31.0)
        self.in_process(at, self.processes[at].settle())

    @precondition(lambda self: self.plans() and self.may_press())
    @rule(which=WHICH, kind=KIND, person=PERSON, at=AT)
    def press_below_a_plan(self, *, which: int, kind: RequestKind, person: Person, at: int) -> None:
        plans = self.plans()
        post, made = plans[-1 - which % len(plans)]
        thread_id = post.key.partition("/")[0]
        self.press(person, kind, at, channel_id=post.channel_id, thread_id=thread_id, argument=made.proposal_id)

    @invariant()
    def a_plan_is_started_once_and_by_a_press(self) -> None:
        started = self.outside.job_api.started
        assert all(times == 1 for times in Counter(plan for plan, _ in started).values()), started
        for plan, key in started:
            wanted = [press.wants for press in self.people.presses.values() if request_id(press.key) == key]
            assert [(each.kind, each.argument) for each in wanted if isinstance(each, Action)] == [
                (RequestKind.ACCEPT_PROPOSAL, plan)
            ]

    def plans(self) -> list[tuple[Posted, ProposalMade]]:
        """Returns the posts of plans, in order."""
        messages = self.outside.chat.messages
        return [(each, each.message) for each in messages if isinstance(each.message, ProposalMade)]

    def all_jobs_end(self) -> None:
        """No plan waits any more."""
        api = self.outside.job_api
        for job_id, plan in list(api.plans.items()):
            if plan.state is ProposalState.PROPOSED:
                api.plans[job_id] = plan.model_copy(update={"state": ProposalState.SUPERSEDED})
                api.show(job_id, "completed", LINKS[0])
        super().all_jobs_end()

    def end_jobs(self) -> None:
        super().end_jobs()
        self.all_jobs_end()

    def end_well(self) -> None:
        """In the end each post shows what became of its plan."""
        super().end_well()
        threads, show = self.stored_threads(), MessageContext()
        done = {row["key"] for row in self.rows("notices") if row["state"] == "done"}
        for post, made in self.plans():
            thread = threads[post.key.partition("/")[0]]
            assert thread.state.failure.problem or not waits_for_start(thread.state)
            if post.key in done and not waits_for_start(thread.state):
                now, then = made.tell(show, thread), made.tell(show, self.outside.chat.shown_by_key[post.key])
                assert now == then, f"{post.key} says {then.words}, and it is {now.words}"
