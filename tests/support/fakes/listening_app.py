"""Pagehand's Slack app over a service, as if Slack could not be called."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.fakes.ephemeral import unreachable_ephemeral, unreachable_modals

from bot.ports.service import ServicePort
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import new_session

OURS = Identity(team_id="T1", team="Team", bot_user_id="U0BOT", bot_id="B0BOT")


@asynccontextmanager
async def listening_app(service: ServicePort, identity: Identity = OURS) -> AsyncIterator[SlackApp]:
    async with new_session() as session:
        app = SlackApp(
            service,
            identity=identity,
            message_context=MessageContext(bot_user_id=identity.bot_user_id),
            ephemeral_sender=unreachable_ephemeral(session),
            modal_edges=unreachable_modals(session, identity),
        )
        yield app
        await app.drain(1)
