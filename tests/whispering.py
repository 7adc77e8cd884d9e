"""Words for one person in tests that have no Slack around them."""

import aiohttp

from bot.slack.response_urls import ResponseUrls
from bot.slack.web_api import new_client
from bot.slack.whispers import Whispers


def whispers_to_nobody(session: aiohttp.ClientSession) -> Whispers:
    """Where Slack can't be reached."""
    return Whispers(new_client("xoxb-x", session, base_url="http://127.0.0.1:9/api/"), ResponseUrls(session))
