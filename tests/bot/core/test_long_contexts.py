"""Secrets in long texts are searched for outside the event loop: the worst megabyte takes seconds."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from support.fakes.ports import FakeJobApi, FakePeople
from support.fakes.slack_reading import FakeSlackReading

from bot.domain.context.fetched_parts import FetchedFile, FetchedParts, FetchedThread, ThreadPart
from bot.domain.context.slack_files import ForwardedMessage, QuotedFile, SlackFile, ThreadMessage
from bot.domain.requests.request import Attachments, Request, RequestKind
from bot.runtime.secrets.masking import Masked, SecretMasker
from bot.runtime.text import LONG
from bot.scheduler.preparing.context import ContextComposer
from bot.slack.receiving.modals.hand_over_context import HandOverContext
from bot.slack.rendering.modals import ContextScope, ModalPlace

PART = ThreadPart("1.1")
FILE = SlackFile("F1", "plan.md")


@dataclass(frozen=True)
class WatchedMasker(SecretMasker):
    """Records where it was called."""

    in_loop: list[bool] = field(default_factory=list)

    def mask_together(self, texts: Sequence[str]) -> Masked:
        if any(texts):
            self.in_loop.append(threading.current_thread() is threading.main_thread())
        return super().mask_together(texts)


def of(text: str, where: str) -> tuple[Request, FetchedParts]:
    """Returns a request with a text as context."""
    request = Request("r1", "t1", RequestKind.START, "k1", "UANA", "Do it", "", 0.0)
    message = ThreadMessage("Ben", text if where == "thread" else "", "1.1")
    files = (FetchedFile(FILE, QuotedFile(FILE, text)),) if where == "file" else ()
    shares = (ForwardedMessage("Ben", text),) if where == "forwarded" else ()
    attachments = Attachments((FILE,) if files else (), shares)
    return replace(request, attachments=attachments), FetchedParts(FetchedThread(PART, (message,)), files)


@pytest.mark.parametrize(("length", "in_loop"), [(10, True), (LONG + 1, False)])
@pytest.mark.parametrize("where", ["thread", "file", "forwarded"])
async def test_a_long_request_context_is_masked_outside_the_event_loop(
    where: str, length: int, *, in_loop: bool
) -> None:
    masker = WatchedMasker()
    request, parts = of("x" * length, where)
    gathered = await ContextComposer(FakeJobApi(), None, masker).compose(request, "docs", PART, parts)
    assert gathered.context is not None
    assert "x" * 10 in gathered.context.text
    assert masker.in_loop == [in_loop]


@pytest.mark.parametrize(("length", "in_loop"), [(10, True), (LONG + 1, False)])
async def test_a_long_handed_over_context_is_masked_outside_the_event_loop(length: int, *, in_loop: bool) -> None:
    masker, reading = WatchedMasker(), FakeSlackReading()
    reading.threads["1.1"] = [ThreadMessage("Ben", "x" * length, "1.1")]
    context = HandOverContext(reading.ports.conversations, FakePeople(), masker)
    shown = await context.in_scope(ModalPlace("C1", "1.1", "1.1", scope=ContextScope.THREAD))
    assert shown is not None
    assert "x" * 10 in shown.text
    assert set(masker.in_loop) == {in_loop}
