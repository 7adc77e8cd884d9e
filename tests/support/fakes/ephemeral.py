"""Words for one person in tests that have no Slack around them."""

import aiohttp

from bot.slack.sending.ephemeral import EphemeralSender, KnownResponseUrls
from bot.slack.sending.web_api import new_client


def ephemeral_to_nobody(session: aiohttp.ClientSession) -> EphemeralSender:
    """Where Slack can't be reached."""
    return EphemeralSender(
        new_client("xoxb-x", session, base_url="http://127.0.0.1:9/api/"), KnownResponseUrls(session)
    )
