"""What message listeners decide before the service is called: whose a post by a tool is, and what a message says."""

from dataclasses import dataclass, replace
from typing import Any, cast

from slack_bolt.context.async_context import AsyncBoltContext
from support.fakes.slack_payloads import event_of
from support.machine.machine import Machine
from support.worlds.fault_world import Process

from bot.domain.people import Account, Member
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Reply, RequestKind
from bot.errors import AuthorUnknown
from bot.runtime.health import RecordingHealth
from bot.slack.receiving.dependencies import Authors, Dependencies, context_with
from bot.slack.receiving.listeners.messages import MessageListeners
from bot.slack.receiving.modal_opener import Admission
from bot.slack.receiving.request_recorder import RequestRecorder
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.identity import Identity

IDENTITY = Identity(team_id="T1", team="Team", bot_user_id="UBOT", bot_id="BBOT")
BOT = Member("UECHO", "echo", "T1", is_guest=False, account=Account.BOT)


@dataclass
class _Directory:
    """The accounts that a process knows: those that it was asked about."""

    process: Process

    def __post_init__(self) -> None:
        self._known: dict[str, Account] = {}

    def known_account(self, user_id: str) -> Account | None:
        return self._known.get(user_id)

    def known_member(self, person_id: str) -> Member | None:
        return self.process.reading.known_member(person_id)

    async def member(self, person_id: str) -> Member:
        member = await self.process.reading.member(person_id)
        self._known[person_id] = member.account
        return member


class Listeners:
    """The message listeners of one process, as Bolt calls them."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._received: list[tuple[Reply, bool]] = []
        self._recorder = RequestRecorder(cast("Any", None), RecordingHealth(process.clock.monotonic))
        dependencies = Dependencies(
            service=cast("Any", self),
            recorder=self._recorder,
            message_context=MessageContext(),
            identity=IDENTITY,
            authors=Authors(_Directory(process), self._recorder),
            opener=cast("Any", None),
        )
        self._listeners = MessageListeners(dependencies)

    async def receive(self, reply: Reply) -> bool:
        """Hands a reply to the process's service."""
        known = await self._process.service.receive(reply)
        self._received.append((reply, known))
        return known

    async def take(self, reply: Reply, *, by_tool: bool) -> bool:
        """Takes the event of a reply; returns the service's answer. Raises AuthorUnknown for one that Slack sends
        again, although it may have been handled by then.
        """
        self._received.clear()
        try:
            await self._hear(reply, by_tool=by_tool)
        except AuthorUnknown:
            await self._recorder.drain(5.0)
            assert {received for received, _ in self._received} <= {reply}
            raise
        assert [received for received, _ in self._received] == [reply]
        return self._received[0][1]

    async def ignore(self, reply: Reply) -> None:
        """Takes a bot's reply, and again, since nobody knows at first that it is a bot's."""
        with_bot = replace(reply, person=replace(reply.person, id=BOT.id))
        self._received.clear()
        for _ in range(2):
            try:
                await self._hear(with_bot, by_tool=True)
            except AuthorUnknown:
                await self._recorder.drain(5.0)
        assert self._received == []

    async def _hear(self, reply: Reply, *, by_tool: bool) -> None:
        body = event_of(reply, IDENTITY.bot_user_id, by_tool=by_tool)
        await self._listeners.on_message(body, AsyncBoltContext(context_with(reply.arrival)))


def is_refused_at_once(process: Process, command: NewJob) -> bool:
    """Returns whether the answer to a command is a refusal, so that nothing is recorded; Slack does not repeat one."""
    admission = Admission(process.rules, process.reading.ports, MessageContext())
    return bool(admission.known_refusal(command.person, RequestKind.START))


class Listening(Machine):
    """A machine whose processes have listeners."""

    def __init__(self) -> None:
        super().__init__()
        self._listeners: dict[str, Listeners] = {}
        self.outside.reading.members[BOT.id] = BOT

    def listeners_of(self, at: int) -> Listeners:
        """Returns a process's listeners."""
        process = self.processes[at]
        return self._listeners.setdefault(process.owner, Listeners(process))
