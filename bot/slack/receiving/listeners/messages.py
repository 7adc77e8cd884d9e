"""What people write where Pagehand reads: in threads, to it, and in direct messages."""

from typing import Any

from slack_bolt.app.async_app import AsyncApp

from bot.slack.receiving.dependencies import Dependencies
from bot.slack.receiving.listeners.new_jobs import handle_request
from bot.slack.receiving.listeners.replies import handle_reply
from bot.slack.receiving.payloads.person_message import PersonMessage, read_message

EVENTS = ("message", "app_mention")
"""A message that mentions the bot comes as both, in any order; the service takes the two for one by its `ts`."""


def register(app: AsyncApp, dependencies: Dependencies) -> None:
    """Listens for messages. Has to come after whatever listens for those of one subtype."""

    async def on_message(body: dict[str, Any]) -> None:
        message = read_message(body, dependencies.identity)
        if message is not None:
            await handle_message(message, dependencies)

    for event in EVENTS:
        app.event(event)(on_message)


async def handle_message(message: PersonMessage, dependencies: Dependencies) -> None:
    """Records what a message asks for, if anything. Raises NotRecorded where Slack has to bring it again."""
    if message.thread_ts:
        await handle_reply(message, dependencies)
    elif message.mentions_us or message.in_direct_message:
        await handle_request(message, dependencies)
