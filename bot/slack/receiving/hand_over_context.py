"""The context of a message that is handed over: the message or its thread, with secrets masked."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.context.slack_files import ThreadMessage, people_in, with_known_names
from bot.domain.context.thread_context import ContextLimits, ContextText, characters_of, context_text
from bot.errors import ChatError
from bot.ports.slack import Conversations, DisplayNames
from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.text import in_thread_if_long
from bot.slack.message_parts.contents import thread_message
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.rendering.modals import CONTEXT_CHARACTERS, CONTEXT_WIDTH, ContextScope, ModalPlace, ShownContext
from bot.slack.rendering.text import width

_NAMED_AT_ONCE = 20


@dataclass(frozen=True)
class HandOverContext:
    """Collects the context. `people` looks up the names of authors."""

    conversations: Conversations
    people: DisplayNames
    masker: SecretMasker

    async def of_message(self, place: ModalPlace, message: SlackMessage) -> ShownContext:
        """Returns the context that is shown first: the message from the shortcut's payload."""
        read = thread_message(message)
        messages: tuple[ThreadMessage, ...] = ()
        if read is not None:
            names = await self.people.names(people_in((read,))[:_NAMED_AT_ONCE])
            messages = (with_known_names(read, names),)
        thread = await self._thread(place) if place.thread_ts else ()
        has_thread = thread is not None and len(thread) > 1
        return await self._shown(messages, place, has_thread=has_thread, unreadable=thread is None)

    async def in_scope(self, place: ModalPlace) -> ShownContext | None:
        """Returns the context that the place's scope selects; None if it can no longer be read."""
        thread = await self._thread(place)
        if thread is None:
            return None
        whole = place.scope == ContextScope.THREAD
        messages = thread if whole else [message for message in thread if message.ts == place.message_ts]
        has_thread = whole or len(thread) > 1
        return await self._shown(messages, place, has_thread=has_thread, unreadable=False) if messages else None

    async def _thread(self, place: ModalPlace) -> Sequence[ThreadMessage] | None:
        """Returns the thread; None if Pagehand cannot read it, most often because it is not a member."""
        try:
            return await self.conversations.thread(place.channel_id, place.thread_ts or place.message_ts)
        except ChatError:
            return None

    async def _shown(
        self, messages: Sequence[ThreadMessage], place: ModalPlace, *, has_thread: bool, unreadable: bool
    ) -> ShownContext:
        context = await in_thread_if_long(characters_of(messages, (), ()), lambda: self._that_fits(messages))
        return ShownContext(
            text=context.text,
            masked=context.masked,
            notes=context.notes,
            has_thread=has_thread,
            unreadable=unreadable,
            file_names=place.file_names,
        )

    def _that_fits(self, messages: Sequence[ThreadMessage]) -> ContextText:
        """Returns the context, cut further if its characters are wide."""
        mask = self.masker.mask_together
        context = context_text(messages, (), (), ContextLimits(characters=CONTEXT_CHARACTERS), mask=mask)
        if width(context.text) <= CONTEXT_WIDTH:
            return context
        return context_text(messages, (), (), ContextLimits(characters=CONTEXT_CHARACTERS // 2), mask=mask)
