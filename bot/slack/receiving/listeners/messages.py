"""Messages that people write in threads, to Pagehand, and in direct messages; their edits and deletions.

It is read from top to bottom: what Slack reports, whose message it is, and what a message asks for, in a thread or at
the beginning of one.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, assert_never

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext

from bot.domain import commands
from bot.domain.commands import NO_OPTIONS, Options, ThreadWord
from bot.domain.people import Account
from bot.domain.requests.new_jobs import job_of_reply, source_key_of
from bot.domain.requests.request import Reply
from bot.domain.threads.reply_rules import may_ask
from bot.errors import StoreError
from bot.notices.answers import word_meant
from bot.slack.receiving.dependencies import Dependencies, arrival_in
from bot.slack.receiving.payloads.payload import MessagePayload, RevisionPayload
from bot.slack.receiving.payloads.person_message import deleted_reply, is_deletion, read_edit, read_message
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.rendering.ephemeral_texts import (
    EDITED_TOO_LATE,
    TASK_MISSING,
    UNKNOWN_JOB,
    WRONG_OPTION,
    forwarded_alone,
    help_text,
    word_without_job,
)

EVENTS = ("message", "app_mention")
"""A message that mentions the bot comes as both events, in any order; the service recognizes it by its `ts`."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for messages."""
    listeners = MessageListeners(dependencies)
    # The first listener that matches gets an event, so those for single subtypes come before that for all messages.
    app.event({"type": "message", "subtype": "message_changed"})(listeners.on_edit)
    app.event({"type": "message", "subtype": "message_deleted"})(listeners.on_deletion)
    for event in EVENTS:
        app.event(event)(listeners.on_message)


@dataclass(frozen=True)
class MessageListeners:
    """The listeners and their dependencies."""

    dependencies: Dependencies

    async def on_message(self, body: dict[str, Any], context: AsyncBoltContext) -> None:
        """Handles a message that was just written."""
        payload = MessagePayload.read(body)
        message = read_message(payload, self.dependencies.identity, arrival_in(context))
        if message is None or not (message.thread_ts or message.is_to_us):
            return
        author = self.dependencies.authors.account(
            payload.event, message.person.id, lambda: self.on_message(body, context)
        )
        if author is Account.PERSON:
            await self._handle(message)

    async def on_edit(self, body: dict[str, Any], context: AsyncBoltContext) -> None:
        """Records an edit. If it concerns no job we know, it is handled like a new message while the message is recent,
        or if it is a word for Pagehand now; later its author is told that an edit asks for nothing.
        """
        payload = RevisionPayload.read(body)
        if is_deletion(payload):
            await self.on_deletion(body)
            return
        edit = read_edit(payload, self.dependencies.identity, arrival_in(context))
        if edit is None:
            return
        message, reply = edit
        author = self.dependencies.authors.account(
            payload.event.message, reply.person.id, lambda: self.on_edit(body, context)
        )
        if author is not Account.PERSON or await self.dependencies.service.revise(reply) or not message.is_to_us:
            return
        if reply.word is not None or may_ask(message.message_ts, message.edited_at):
            await self._handle(message)
        elif not reply.withdrawn and (reply.text or reply.attachments):
            self._tell(message, self.dependencies.message_context(EDITED_TOO_LATE))

    async def on_deletion(self, body: dict[str, Any]) -> None:
        """Records a deletion."""
        payload = RevisionPayload.read(body)
        reply, before = deleted_reply(payload, self.dependencies.identity), payload.event.previous_message
        if reply is None:
            return
        again = partial(self.on_deletion, body)
        if before is None or self.dependencies.authors.account(before, reply.person.id, again) is Account.PERSON:
            await self.dependencies.service.revise(reply)

    # -- what a message asks for ---------------------------------------------------------------------------------------

    async def _handle(self, message: Reply) -> None:
        if message.thread_ts:
            await self._reply(message)
        elif message.is_to_us:
            await self._request(message)

    async def _reply(self, message: Reply) -> None:
        """Records a reply in a thread, or tells its author that there is no job for it."""
        context = self.dependencies.message_context
        parsed = commands.parse_reply(
            message.text,
            bot_user_id=self.dependencies.identity.bot_user_id,
            among_people=not message.in_direct_message,
            has_attachments=bool(message.attachments),
        )
        match parsed:
            case commands.OnlyEmoji(words):
                await self.dependencies.service.receive(replace(message, text=words))
            case commands.NoWords() if message.attachments:
                alone = self._is_forwarded_alone(message)
                await self._record(
                    message, "", no_job=forwarded_alone(message.message_ts, message.thread_ts) if alone else ""
                )
            case commands.NoWords() if message.mentions_us:
                self._tell(message, help_text(context))
            case commands.Aside() | commands.NoWords():
                return
            case commands.FollowUp(prompt):
                wrong = commands.has_wrong_option(prompt)
                await self._record(message, prompt, no_job=context(WRONG_OPTION) if wrong else "")
            case commands.Word(ThreadWord.HELP):
                await self._record(message, "", ThreadWord.HELP, no_job=help_text(context))
            case commands.UnclearWord(meant):
                await self._record(message, meant, ThreadWord.HELP, no_job=word_meant(meant))
            case commands.Word(word, prompt):
                await self._word(message, word, prompt)
            case _:
                assert_never(parsed)

    async def _word(self, message: Reply, word: ThreadWord, prompt: str) -> None:
        context, asked = self.dependencies.message_context, commands.parse_prompt(prompt)
        if word is ThreadWord.NEW and isinstance(asked, commands.WrongOption | commands.Blank):
            self._tell(message, context(WRONG_OPTION if isinstance(asked, commands.WrongOption) else TASK_MISSING))
        else:
            await self._record(message, prompt, word, no_job=word_without_job(word, context))

    async def _record(
        self, message: Reply, text: str, word: ThreadWord | None = None, *, no_job: str | ChatMessage = ""
    ) -> None:
        """Records a reply, or a word for Pagehand in it. `no_job` is what its author is told if there is no job and it
        was written to us; help is given under messages of ours, too, elsewhere that the job is unknown.
        """
        if await self.dependencies.service.receive(replace(message, text=text, word=word)):
            return
        if message.answers_us and word is not ThreadWord.HELP:
            self._tell(message, self.dependencies.message_context(UNKNOWN_JOB))
        elif no_job and (message.is_to_us or message.answers_us):
            self._tell(message, no_job)

    async def _request(self, message: Reply) -> None:
        """Records the job that a message at the beginning of a thread asks for, or tells its author why there is none.
        Thanks in a direct message get a reaction; elsewhere nobody knows what they are for.
        """
        context, bot_user_id = self.dependencies.message_context, self.dependencies.identity.bot_user_id
        asked = commands.parse_request(message.text, bot_user_id=bot_user_id, has_attachments=bool(message.attachments))
        match asked:
            case commands.Thanks() if message.in_direct_message:
                await self.dependencies.service.thank(message)
            case commands.Aside() | commands.Thanks():
                return
            case commands.Start(prompt, options):
                await self._start(message, prompt, options)
            case commands.Blank(options):
                await self._without_task(message, options)
            case commands.Help():
                self._tell(message, help_text(context))
            case commands.WrongOption():
                self._tell(message, context(WRONG_OPTION))
            case commands.UnclearWord(meant):
                self._tell(message, word_meant(meant))
            case commands.Word(word):
                self._tell(message, word_without_job(word, context))
            case _:
                assert_never(asked)

    async def _without_task(self, message: Reply, options: Options) -> None:
        """Starts a job for a file without text; otherwise asks the author what to do."""
        context = self.dependencies.message_context
        if self._is_forwarded_alone(message):
            self._tell(message, forwarded_alone(message.message_ts))
        elif message.attachments:
            await self._start(message, "", options)
        else:
            self._tell(message, help_text(context) if options == NO_OPTIONS else context(TASK_MISSING))

    async def _start(self, message: Reply, prompt: str, options: Options) -> None:
        is_new = commands.says_new(message.text, self.dependencies.identity.bot_user_id)
        reply = replace(message, text=prompt, word=ThreadWord.NEW if is_new else None, options=options)
        await self.dependencies.service.start(job_of_reply(reply, None))

    def _is_forwarded_alone(self, message: Reply) -> bool:
        """Returns whether a message was forwarded without text or a file, so the author has to be asked what to do with
        it.
        """
        held = message.attachments
        return bool(held.forwarded) and not held.files

    # -- answers -------------------------------------------------------------------------------------------------------

    def _tell(self, message: Reply, words: str | ChatMessage) -> None:
        """Tells a message's author something privately, once, even if Slack sends it again to another process."""
        if self.dependencies.told.add(f"{source_key_of(message)}/{message.edited_at}"):
            self.dependencies.recorder.in_background(self._tell_once(message, words), name="answering a message")

    async def _tell_once(self, message: Reply, words: str | ChatMessage) -> None:
        with suppress(StoreError):  # then rather twice than not at all
            if not await self.dependencies.service.is_first_answer(message.version):
                return
        recorder, thread_ts = self.dependencies.recorder, message.thread_ts
        recorder.tell_in_background(message.person, message.channel_id, words, thread_ts=thread_ts)
