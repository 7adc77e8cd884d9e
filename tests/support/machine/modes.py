"""Jobs that begin with a plan or a question, and answers that are made a change: each call is in its job's mode."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from support.machine.people import AT, PERSON, WHICH, PeopleMachine
from support.oracles.people_model import Message
from support.worlds.core_world import ANA

from bot.domain.commands import AgentOptions
from bot.domain.requests.new_jobs import MAKE_IT_A_CHANGE, Written, request_id
from bot.domain.requests.request import Person, RequestKind, WayIn
from bot.jobapi.models import Mode

MODES = st.sampled_from([Mode.PLAN, Mode.ASK, Mode.ASK])


class Modes(PeopleMachine):
    """Rules by which people ask for a plan or an answer, and press below that; replies and stops come by the others."""

    def __init__(self) -> None:
        super().__init__()
        self.outside.job_api.modes = True
        self.changes: dict[str, str] = {}
        """By the id of a press's request: its thread."""

    @precondition(lambda self: len(self.people.messages) - len(self.people.replies) < 5)
    @rule(mode=MODES, at=AT)
    def start_in_a_mode(self, mode: Mode, at: int) -> None:
        mark, key = self.next_mark()
        agent = AgentOptions(mode, "opus-5")
        self.written(Message(mark, key, ANA, WayIn.COMMAND, "C1", f"Do {key}", agent=agent), at)

    @precondition(lambda self: self.asking() and len(self.changes) < 4)
    @rule(which=WHICH, person=PERSON, at=AT)
    def make_it_a_change(self, which: int, person: Person, at: int) -> None:
        thread_id = self.asking()[which % len(self.asking())]
        key = f"change-{len(self.changes)}"
        self.changes[request_id(key)] = thread_id
        written = Written(person, thread_id, MAKE_IT_A_CHANGE, key, WayIn.BUTTON, Mode.EDIT)
        self.answer_of(at, self.processes[at].service.follow_up(written))

    @invariant()
    def each_call_is_in_the_mode_of_its_job(self) -> None:
        """From a change or a started plan on in `edit`, before that in the one in which the job began."""
        begun = {message.request_id: message.agent for message in self.people.messages if message.starts}
        rows = {row["id"]: row for row in self.rows("requests")}
        edits = set[str]()
        for call in self.outside.job_api.prompt_calls:
            row = rows[call.idempotency_key]
            agent, thread_id = begun[row["thread_id"]], row["thread_id"]
            turns = row["id"] in self.changes or row["kind"] == RequestKind.ACCEPT_PROPOSAL
            edits |= {thread_id} if turns else set()
            allowed = {Mode.EDIT} if turns else {agent.mode or Mode.EDIT, *([Mode.EDIT] if thread_id in edits else [])}
            assert call.mode in allowed, f"{call} of {agent}"
            assert (call.model, call.effort) == (agent.model, agent.effort)

    @invariant()
    def an_answer_is_made_a_change_once(self) -> None:
        taken = set(self.outside.job_api.effects) & self.changes.keys()
        assert not [thread for thread, times in Counter(self.changes[each] for each in taken).items() if times > 1]

    def asking(self) -> list[str]:
        """Returns the threads of jobs that began with a question and have a card."""
        carded = {card.key.removesuffix("/card") for card in self.outside.cards()}
        asked = [each.request_id for each in self.people.messages if each.agent.mode is Mode.ASK]
        return [each for each in asked if each in carded]
