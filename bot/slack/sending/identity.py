"""The bot's identity in the workspace."""

import logging
from dataclasses import dataclass

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatError
from bot.runtime.untrusted_json import LenientModel, Text
from bot.slack.message_parts.slack_message import Signed
from bot.slack.sending.scopes import granted_scopes
from bot.slack.sending.web_api import call, call_with_headers

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Identity:
    """The bot's identity, from `auth.test`.

    `enterprise_id` is the organization of the workspace, on Enterprise Grid; `app_id` comes from `bots.info`. Both can
    be empty. `granted_scopes` is None if Slack's response does not include them.
    """

    team_id: str
    team: str
    bot_user_id: str
    bot_id: str
    enterprise_id: str = ""
    app_id: str = ""
    granted_scopes: frozenset[str] | None = None

    def wrote(self, message: Signed) -> bool:
        """Returns whether a message is ours."""
        by_bot = bool(self.bot_id) and message.bot_id == self.bot_id
        return by_bot or (bool(self.bot_user_id) and message.user == self.bot_user_id)


class AuthAnswer(LenientModel):
    """The answer of auth.test."""

    team_id: Text = ""
    team: Text = ""
    user_id: Text = ""
    bot_id: Text = ""
    enterprise_id: Text = ""


class DescribedBot(LenientModel):
    """A bot as Slack describes it."""

    app_id: Text = ""


class BotAnswer(LenientModel):
    """The answer of bots.info."""

    bot: DescribedBot = DescribedBot()


async def identify(client: AsyncWebClient) -> Identity:
    """Asks Slack for our identity. Raises ChatError; ChatNotAllowed means that the token is bad, so do not start."""
    data, headers = await call_with_headers(client.auth_test())
    answer = AuthAnswer.read(data)
    return Identity(
        team_id=answer.team_id,
        team=answer.team,
        bot_user_id=answer.user_id,
        bot_id=answer.bot_id,
        enterprise_id=answer.enterprise_id,
        app_id=await _app_id(client, answer.bot_id),
        granted_scopes=granted_scopes(headers),
    )


async def _app_id(client: AsyncWebClient, bot_id: str) -> str:
    """Returns the id of the bot's app; empty if Slack does not say (without the scope users:read)."""
    if not bot_id:
        return ""
    try:
        return BotAnswer.read(await call(client.bots_info(bot=bot_id))).bot.app_id
    except ChatError as error:
        logger.info(
            "Slack does not say which app this is, so all payloads that are signed or on our socket are accepted: %s",
            error,
        )
        return ""
