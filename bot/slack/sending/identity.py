"""The bot's identity in the workspace."""

import logging
from dataclasses import dataclass

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatError
from bot.runtime.untrusted_json import text_at
from bot.slack.message_parts.slack_message import Signed
from bot.slack.sending.authorization import granted_scopes
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


async def identify(client: AsyncWebClient) -> Identity:
    """Asks Slack for our identity. Raises ChatError; ChatNotAllowed means that the token is bad, so do not start."""
    answer, headers = await call_with_headers(client.auth_test())
    bot_id = text_at(answer, "bot_id")
    return Identity(
        team_id=text_at(answer, "team_id"),
        team=text_at(answer, "team"),
        bot_user_id=text_at(answer, "user_id"),
        bot_id=bot_id,
        enterprise_id=text_at(answer, "enterprise_id"),
        app_id=await _app_id(client, bot_id),
        granted_scopes=granted_scopes(headers),
    )


async def _app_id(client: AsyncWebClient, bot_id: str) -> str:
    """Returns the id of the bot's app; empty if Slack does not say (without the scope users:read)."""
    if not bot_id:
        return ""
    try:
        return text_at(await call(client.bots_info(bot=bot_id)), "bot", "app_id")
    except ChatError as error:
        logger.info(
            "Slack does not say which app this is, so all payloads that are signed or on our socket are accepted: %s",
            error,
        )
        return ""
