"""Edits and deletions of replies, and of messages that asked for a job or now do."""

from collections.abc import Awaitable, Callable
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext

from bot.domain.people.members import Account
from bot.domain.requests.request import Reply
from bot.domain.threads.reply_rules import may_ask
from bot.slack.message_parts.slack_message import SlackMessage
from bot.slack.receiving.dependencies import Dependencies, arrival_in
from bot.slack.receiving.listeners.messages import handle_message
from bot.slack.receiving.listeners.new_jobs import tell
from bot.slack.receiving.payloads.edited_message import Edit, deleted_reply, is_deletion, read_edit
from bot.slack.receiving.payloads.events import RevisionPayload
from bot.slack.rendering.ephemeral_texts import edited_too_late


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for edits and deletions. Must come before the listener for all messages."""

    async def on_edit(body: dict[str, Any], context: AsyncBoltContext) -> None:
        payload = RevisionPayload.read(body)
        if is_deletion(payload):
            await on_deletion(body)
            return
        edit = read_edit(payload, dependencies.identity, arrival_in(context))
        if edit is not None and by_a_person(payload.event.message, edit.reply, lambda: on_edit(body, context)):
            await _handle_edit(edit, dependencies)

    async def on_deletion(body: dict[str, Any]) -> None:
        payload = RevisionPayload.read(body)
        reply, before = deleted_reply(payload, dependencies.identity), payload.event.previous_message
        if reply is not None and (before is None or by_a_person(before, reply, lambda: on_deletion(body))):
            await dependencies.service.revise(reply)

    def by_a_person(message: SlackMessage, reply: Reply, again: Callable[[], Awaitable[None]]) -> bool:
        return dependencies.authors.account(message, reply.person.id, again) is Account.PERSON

    app.event({"type": "message", "subtype": "message_changed"})(on_edit)
    app.event({"type": "message", "subtype": "message_deleted"})(on_deletion)


async def _handle_edit(edit: Edit, dependencies: Dependencies) -> None:
    """Records an edit. If it concerns no job we know, it is handled like a new message while the message is recent, or
    if it is a word for Pagehand now; later its author is told that an edit asks for nothing.
    """
    message, reply = edit.message, edit.reply
    known = await dependencies.service.revise(reply)
    if known or not (message.mentions_us or message.in_direct_message):
        return
    if reply.word is not None or may_ask(message.ts, message.edited_at):
        await handle_message(message, dependencies)
    elif not reply.withdrawn and (reply.text or reply.attachments):
        tell(message, edited_too_late(dependencies.message_context), dependencies)
