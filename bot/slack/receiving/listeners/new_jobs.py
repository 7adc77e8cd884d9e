"""Messages that begin a thread and ask for a job: mentions, and direct messages."""

from contextlib import suppress
from dataclasses import replace
from typing import assert_never

from bot.domain.commands.commands import Aside, Blank, Help, Start, Thanks, parse_request, says_new
from bot.domain.commands.options import NO_OPTIONS, Options, WrongOption
from bot.domain.commands.thread_words import UnclearWord, Word
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import MessageVersion, Reply, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.errors import StoreError
from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.payloads.person_message import PersonMessage
from bot.slack.rendering.blocks import ChatMessage
from bot.slack.rendering.ephemeral_texts import (
    forwarded_alone,
    help_text,
    task_missing,
    word_meant,
    word_without_job,
    wrong_option,
)


async def handle_request(message: PersonMessage, dependencies: Dependencies) -> None:
    """Records the job that a message asks for, or tells its author why there is none."""
    context = dependencies.message_context
    asked = parse_request(
        message.text, bot_user_id=dependencies.identity.bot_user_id, has_attachments=bool(message.attachments)
    )
    match asked:
        case Aside():
            return
        case Thanks():
            await _thank(message, dependencies)
        case Start(prompt, options):
            await _start(message, prompt, options, dependencies)
        case Blank(options):
            await _without_task(message, options, dependencies)
        case Help(meant):
            tell(message, help_text(context, meant), dependencies)
        case WrongOption():
            tell(message, wrong_option(asked), dependencies)
        case UnclearWord(meant):
            tell(message, word_meant(meant), dependencies)
        case Word(word):
            tell(message, word_without_job(word, context), dependencies)
        case _:
            assert_never(asked)


async def _without_task(message: PersonMessage, options: Options, dependencies: Dependencies) -> None:
    """Starts a job for a file without text; otherwise asks the author what to do."""
    context = dependencies.message_context
    if is_forwarded_alone(message, dependencies):
        tell(message, forwarded_alone(message.ts), dependencies)
    elif message.attachments:
        await _start(message, "", options, dependencies)
    else:
        tell(message, help_text(context) if options == NO_OPTIONS else task_missing(context), dependencies)


def is_forwarded_alone(message: PersonMessage, dependencies: Dependencies) -> bool:
    """Returns whether a message was forwarded without text or a file, so the author has to be asked what to do with it.
    Without modals, they cannot be asked.
    """
    held = message.attachments
    return bool(held.forwarded) and not held.files and dependencies.opener is not None


def tell(message: PersonMessage, words: str | ChatMessage, dependencies: Dependencies) -> None:
    """Tells a message's author something privately, once, even if Slack sends the message again to another process."""
    if dependencies.told.is_first(f"{message.key}/{message.edited_at}"):
        dependencies.recorder.in_background(_tell_once(message, words, dependencies), name="answering a message")


async def _tell_once(message: PersonMessage, words: str | ChatMessage, dependencies: Dependencies) -> None:
    version = MessageVersion(message.channel_id, message.ts, message.person.id, message.edited_at)
    with suppress(StoreError):  # then rather twice than not at all
        if not await dependencies.service.is_first_answer(version):
            return
    dependencies.recorder.tell_in_background(message.person, message.channel_id, words, thread_ts=message.thread_ts)


async def _thank(message: PersonMessage, dependencies: Dependencies) -> None:
    """Records thanks in a direct message, which get a reaction; elsewhere nobody knows what they are for."""
    if message.in_direct_message:
        thanks = Reply(message.person, message.channel_id, "", message.ts, message.text, edited_at=message.edited_at)
        await dependencies.service.thank(replace(thanks, arrival=message.arrival))


async def _start(message: PersonMessage, prompt: str, options: Options, dependencies: Dependencies) -> None:
    job = NewJob(
        person=message.person,
        channel_id=message.channel_id,
        prompt=prompt,
        source_key=message.key,
        way_in=WayIn.DIRECT_MESSAGE if message.in_direct_message else WayIn.MENTION,
        project_said=options.project,
        quiet=options.quiet or None,
        thread_ts=message.ts,
        message_ts=message.ts,
        edited_at=message.edited_at,
        origin=ThreadOrigin.REQUEST,
        attachments=message.attachments,
        may_be_reply=message.in_direct_message
        and options == NO_OPTIONS
        and not says_new(message.text, dependencies.identity.bot_user_id),
        arrival=message.arrival,
    )
    await dependencies.service.start(job)
