"""Private messages in tests without Slack."""

import aiohttp

from bot.slack.sending.ephemeral import EphemeralSender, KnownResponseUrls
from bot.slack.sending.web_api import new_client


def unreachable_ephemeral(session: aiohttp.ClientSession) -> EphemeralSender:
    """Sends nothing, as if Slack could not be reached."""
    return EphemeralSender(
        new_client("xoxb-x", session, base_url="http://127.0.0.1:9/api/"), KnownResponseUrls(session)
    )
