"""Faults that tests inject: each matches some calls or envelopes, a number of times."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal, TypeVar

CallFaultKind = Literal["delay", "drop", "status", "ratelimited", "error"]
EnvelopeFaultKind = Literal["duplicate", "reorder", "drop_ack", "lose"]


@dataclass(eq=False)
class CallFault:
    """A fault of Web API calls.

    Args:
        kind: What goes wrong.
        method: The method it is for, such as ``chat.postMessage``; None for every one.
        channel: The channel it is for, by id or name; None for every one.
        remaining: How many more calls it is for; None for all until it is removed.
        applied: Whether the call is carried out before its answer is late or lost.
        seconds: How late the answer is; for ``ratelimited`` what Retry-After says.
        status: The HTTP status, for ``status``.
        code: Slack's error code, for ``error``.
        hits: How many calls it has met.
    """

    kind: CallFaultKind
    method: str | None = None
    channel: str | None = None
    remaining: int | None = 1
    applied: bool = False
    seconds: float = 0
    status: int = 500
    code: str = ""
    hits: int = 0

    def matches(self, method: str, channels: frozenset[str]) -> bool:
        if self.remaining == 0 or self.method not in {None, method}:
            return False
        return self.channel is None or self.channel.removeprefix("#") in channels


@dataclass(eq=False)
class EnvelopeFault:
    """A fault of deliveries.

    Args:
        kind: What goes wrong.
        type: The envelope's type that it is for (``slash_commands``, ``events_api``, ``interactive``); None for all.
        remaining: How many more envelopes it is for; None for all until it is removed.
        hits: How many envelopes it has met.
    """

    kind: EnvelopeFaultKind
    type: str | None = None
    remaining: int | None = 1
    hits: int = 0

    def matches(self, kind: str, envelope_type: str) -> bool:
        return self.remaining != 0 and self.kind == kind and self.type in {None, envelope_type}


AnyFault = TypeVar("AnyFault", CallFault, EnvelopeFault)


@dataclass
class Faults:
    """What is to go wrong. The methods that add a fault return it; its ``hits`` tell how often it has struck."""

    calls: list[CallFault] = field(default_factory=list)
    envelopes: list[EnvelopeFault] = field(default_factory=list)
    refused_handshakes: int = 0
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def delay(
        self,
        seconds: float,
        *,
        applied: bool = False,
        method: str | None = None,
        channel: str | None = None,
        count: int | None = 1,
    ) -> CallFault:
        """Answers late. The call is carried out after the delay, or before it."""
        return self._add(CallFault("delay", method, channel, count, applied, seconds=seconds))

    def drop(
        self, *, applied: bool = False, method: str | None = None, channel: str | None = None, count: int | None = 1
    ) -> CallFault:
        """Closes the connection without an answer, before or after carrying the call out."""
        return self._add(CallFault("drop", method, channel, count, applied))

    def server_error(
        self,
        *,
        applied: bool = False,
        status: int = 500,
        method: str | None = None,
        channel: str | None = None,
        count: int | None = 1,
    ) -> CallFault:
        """Answers with a 5xx status, before or after carrying the call out."""
        return self._add(CallFault("status", method, channel, count, applied, status=status))

    def rate_limit(
        self, retry_after: int = 1, *, method: str | None = None, channel: str | None = None, count: int | None = 1
    ) -> CallFault:
        """Answers 429 with a Retry-After of whole seconds."""
        return self._add(CallFault("ratelimited", method, channel, count, seconds=retry_after))

    def error(
        self, code: str, *, method: str | None = None, channel: str | None = None, count: int | None = 1
    ) -> CallFault:
        """Refuses with one of Slack's error codes."""
        return self._add(CallFault("error", method, channel, count, code=code))

    def duplicate_envelope(self, envelope_type: str | None = None, count: int | None = 1) -> EnvelopeFault:
        """Delivers an envelope twice, at once."""
        return self._add_envelope(EnvelopeFault("duplicate", envelope_type, count))

    def reorder_envelope(self, envelope_type: str | None = None, count: int | None = 1) -> EnvelopeFault:
        """Holds an envelope back until the next one has gone out, or for half a second."""
        return self._add_envelope(EnvelopeFault("reorder", envelope_type, count))

    def drop_ack(self, envelope_type: str | None = None, count: int | None = 1) -> EnvelopeFault:
        """Behaves as though an envelope's acknowledgement had not come."""
        return self._add_envelope(EnvelopeFault("drop_ack", envelope_type, count))

    def lose_envelope(self, envelope_type: str | None = None, count: int | None = 1) -> EnvelopeFault:
        """Loses one sending of an envelope on its way to the app."""
        return self._add_envelope(EnvelopeFault("lose", envelope_type, count))

    def refuse_handshake(self, count: int = 1) -> None:
        """Refuses the next WebSocket handshakes, as for an expired ticket."""
        self.refused_handshakes += count

    def remove(self, fault: CallFault | EnvelopeFault) -> None:
        """Switches one fault off; calls that it holds back go on."""
        fault.remaining = 0
        self._release()

    def clear(self) -> None:
        """Switches every fault off; calls that are held back go on."""
        self.calls.clear()
        self.envelopes.clear()
        self.refused_handshakes = 0
        self._release()

    def take_call_fault(self, method: str, channels: frozenset[str]) -> CallFault | None:
        """Returns the fault that this call meets, and counts it as having struck."""
        return self._counted(next((f for f in self.calls if f.matches(method, channels)), None))

    def take_envelope_fault(self, kind: EnvelopeFaultKind, envelope_type: str) -> EnvelopeFault | None:
        return self._counted(next((f for f in self.envelopes if f.matches(kind, envelope_type)), None))

    def take_handshake_refusal(self) -> bool:
        refused = self.refused_handshakes > 0
        self.refused_handshakes -= refused
        return refused

    async def hold(self, seconds: float) -> None:
        """Waits a delay out, or until the faults are switched off."""
        try:
            await asyncio.wait_for(self._released.wait(), seconds)
        except TimeoutError:
            return

    def _release(self) -> None:
        self._released.set()
        self._released = asyncio.Event()

    def _counted(self, fault: AnyFault | None) -> AnyFault | None:
        if fault is not None:
            fault.hits += 1
            fault.remaining = None if fault.remaining is None else fault.remaining - 1
        return fault

    def _add(self, fault: CallFault) -> CallFault:
        self.calls.append(fault)
        return fault

    def _add_envelope(self, fault: EnvelopeFault) -> EnvelopeFault:
        self.envelopes.append(fault)
        return fault
