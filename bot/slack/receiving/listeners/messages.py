"""Messages that people write in threads, to Pagehand, and in direct messages."""

from typing import Any, assert_never

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext

from bot.domain.commands.commands import Aside, Blank, FollowUp, NoWords, OnlyEmoji, parse_prompt, parse_reply
from bot.domain.commands.options import WrongOption
from bot.domain.commands.thread_words import ThreadWord, UnclearWord, Word
from bot.domain.people.members import Account
from bot.domain.requests.request import Reply
from bot.slack.receiving.dependencies import Dependencies, arrival_in
from bot.slack.receiving.listeners.new_jobs import handle_request, is_forwarded_alone, tell
from bot.slack.receiving.payloads.events import MessagePayload
from bot.slack.receiving.payloads.person_message import PersonMessage, read_message
from bot.slack.rendering.ephemeral_texts import (
    forwarded_alone,
    help_text,
    task_missing,
    unknown_job,
    word_meant,
    word_without_job,
    wrong_option,
)


async def handle_reply(message: PersonMessage, dependencies: Dependencies) -> None:
    """Records a reply, or tells its author that there is no job for it."""
    parsed = parse_reply(
        message.text,
        bot_user_id=dependencies.identity.bot_user_id,
        among_people=not message.in_direct_message,
        has_attachments=bool(message.attachments),
    )
    match parsed:
        case Aside():
            return
        case OnlyEmoji(words):
            await dependencies.service.receive(_reply(message, words))
        case NoWords():
            await _without_words(message, dependencies)
        case FollowUp(prompt):
            await _record(_reply(message, prompt), message, dependencies)
        case Word(ThreadWord.HELP):
            await _help(message, dependencies)
        case UnclearWord(meant):
            await _unclear(message, meant, dependencies)
        case Word(word, prompt):
            await _word(message, word, prompt, dependencies)
        case _:
            assert_never(parsed)


async def _without_words(message: PersonMessage, dependencies: Dependencies) -> None:
    if message.attachments:
        known = await _record(_reply(message, ""), message, dependencies)
        to_us = message.mentions_us or message.in_direct_message
        if not known and to_us and not message.answers_us and is_forwarded_alone(message, dependencies):
            tell(message, forwarded_alone(message.ts, message.thread_ts), dependencies)
    elif message.mentions_us:
        tell(message, help_text(dependencies.message_context), dependencies)


async def _record(reply: Reply, message: PersonMessage, dependencies: Dependencies) -> bool:
    known = await dependencies.service.receive(reply)
    if not known and message.answers_us:
        tell(message, unknown_job(dependencies.message_context), dependencies)
    return known


async def _word(message: PersonMessage, word: ThreadWord, prompt: str, dependencies: Dependencies) -> None:
    """Records a word for Pagehand. If there is no job, its author is told."""
    if word is ThreadWord.NEW and (wrong := _wrong_in(prompt, dependencies)):
        tell(message, wrong, dependencies)
        return
    reply = _reply(message, prompt, word)
    if not await dependencies.service.receive(reply):
        if message.answers_us:
            tell(message, unknown_job(dependencies.message_context), dependencies)
        elif message.mentions_us or message.in_direct_message:
            tell(message, word_without_job(word, dependencies.message_context), dependencies)


async def _help(message: PersonMessage, dependencies: Dependencies) -> None:
    """Returns help if there is no job and the message is for us; in other people's threads, the word is not for us."""
    to_us = message.mentions_us or message.in_direct_message or message.answers_us
    reply = _reply(message, "", ThreadWord.HELP)
    if not await dependencies.service.receive(reply) and to_us:
        tell(message, help_text(dependencies.message_context), dependencies)


async def _unclear(message: PersonMessage, meant: ThreadWord, dependencies: Dependencies) -> None:
    """As `_help`, about a word that was probably meant for us."""
    to_us = message.mentions_us or message.in_direct_message or message.answers_us
    reply = _reply(message, meant, ThreadWord.HELP)
    if not await dependencies.service.receive(reply) and to_us:
        tell(message, word_meant(meant), dependencies)


def _wrong_in(prompt: str, dependencies: Dependencies) -> str:
    """Returns what is wrong with a request for another job; empty if it can be started."""
    asked = parse_prompt(prompt)
    if isinstance(asked, WrongOption):
        return wrong_option(asked)
    return task_missing(dependencies.message_context) if isinstance(asked, Blank) else ""


def _reply(message: PersonMessage, text: str, word: ThreadWord | None = None) -> Reply:
    return Reply(
        person=message.person,
        channel_id=message.channel_id,
        thread_ts=message.thread_ts,
        message_ts=message.ts,
        text=text,
        attachments=message.attachments,
        edited_at=message.edited_at,
        mentions_us=message.mentions_us,
        word=word,
        in_direct_message=message.in_direct_message,
        arrival=message.arrival,
    )


EVENTS = ("message", "app_mention")
"""A message that mentions the bot comes as both events, in any order; the service recognizes it by its `ts`."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for messages. Must come after the listeners for single subtypes."""

    async def on_message(body: dict[str, Any], context: AsyncBoltContext) -> None:
        payload = MessagePayload.read(body)
        message = read_message(payload, dependencies.identity, arrival_in(context))
        if message is None or not message.may_concern_us:
            return
        match dependencies.authors.account(payload.event, message.person.id, lambda: on_message(body, context)):
            case Account.PERSON:
                await handle_message(message, dependencies)
            case Account.WORKFLOW if message.mentions_us:
                team_id, workflow_id = dependencies.identity.team_id, message.person.id
                await dependencies.service.introduce(team_id, message.channel_id, workflow_id=workflow_id)
            case Account.WORKFLOW | Account.BOT:
                return

    for event in EVENTS:
        app.event(event)(on_message)


async def handle_message(message: PersonMessage, dependencies: Dependencies) -> None:
    """Records what a message asks for, if anything."""
    if message.thread_ts:
        await handle_reply(message, dependencies)
    elif message.mentions_us or message.in_direct_message:
        await handle_request(message, dependencies)
