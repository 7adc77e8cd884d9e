"""Asks people an agent's questions, one at a time, while the turn's time limit is paused."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from acp.schema import (
    AcceptElicitationResponse,
    CancelElicitationResponse,
    CreateElicitationResponse,
    CreateFormSessionElicitationRequest,
    DeclineElicitationResponse,
)

from bot.jobserver.agents.elicitation import Form, form_content, read_form
from bot.jobserver.editors.interface import EditProgress
from bot.jobserver.editors.job_log import Redactor
from bot.jobserver.store.records import Question

_MOST_ASKED = 20


class TimeLimit:
    """The time limit of one turn, in seconds; waiting for a person does not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout: asyncio.Timeout | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Raises TimeoutError if the block takes longer."""
        async with asyncio.timeout(self._seconds) as timeout:
            self._timeout = timeout
            try:
                yield
            finally:
                self._timeout = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pauses the clock during the block; blocks must not overlap."""
        now, timeout = asyncio.get_running_loop().time, self._timeout
        end = timeout.when() if timeout else None
        if timeout is None or end is None:
            yield
            return
        left = end - now()
        timeout.reschedule(None)
        try:
            yield
        finally:
            if timeout is self._timeout and not timeout.expired():
                timeout.reschedule(now() + left)


class Questions:
    """The questions of a turn. `unanswered`: one that nobody answered in time; the job ends with it. `has_answer`: a
    person answered one.
    """

    def __init__(self, progress: EditProgress, redact: Redactor, time_limit: TimeLimit) -> None:
        self._progress = progress
        self._redact = redact
        self._time_limit = time_limit
        self._one_by_one = asyncio.Lock()
        self._open: set[asyncio.Task[str | None]] = set()
        self._asked = 0
        self._is_withdrawn = False
        self.unanswered: Question | None = None
        self.has_answer = False

    async def ask(self, request: CreateFormSessionElicitationRequest) -> CreateElicitationResponse:
        """Waits for a person's answer. Declines forms that must not be shown, and all forms after an unanswered one."""
        form = read_form(request)
        async with self._one_by_one:
            self._asked += 1
            if self._is_withdrawn:
                return CancelElicitationResponse(action="cancel")
            if form is None or self.unanswered or self._asked > _MOST_ASKED:
                return DeclineElicitationResponse(action="decline")
            with self._time_limit.paused():
                return await self._answered(form)

    async def withdraw(self) -> None:
        """Cancels open questions, so that the agent gets an answer before it is asked to stop."""
        self._is_withdrawn = True
        for asking in self._open:
            asking.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _answered(self, form: Form) -> CreateElicitationResponse:
        fields = tuple(field.shown.with_words(self._redact) for field in form.fields)
        question = Question(self._redact(form.in_words()), fields)
        asking = asyncio.ensure_future(
            self._progress.ask(question, lambda reply: form_content(form, reply) is not None)
        )
        self._open.add(asking)
        try:
            reply = await asking
        except asyncio.CancelledError:
            if not self._is_withdrawn:
                raise
            return CancelElicitationResponse(action="cancel")
        finally:
            asking.cancel()
            self._open.discard(asking)
        content = form_content(form, reply) if reply is not None else None
        if content is None:
            self.unanswered = question
            return DeclineElicitationResponse(action="decline")
        self.has_answer = True
        return AcceptElicitationResponse(action="accept", content=content)
