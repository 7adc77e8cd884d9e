"""Private messages in tests without Slack."""

import aiohttp

from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.web_api import SlackClient


def unreachable_ephemeral(session: aiohttp.ClientSession) -> EphemeralSender:
    """Sends nothing, as if Slack could not be reached."""
    return EphemeralSender(SlackClient("xoxb-x", session, base_url="http://127.0.0.1:9/api/"))
