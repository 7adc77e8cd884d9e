"""Private messages and modals in tests without Slack."""

import aiohttp

from bot.slack.receiving.modal_opener import ModalEdges
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.conversations import Permalinks, SlackConversations
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity
from bot.slack.sending.people import SlackPeople
from bot.slack.sending.views import SlackViews
from bot.slack.sending.web_api import SlackClient


def unreachable_ephemeral(session: aiohttp.ClientSession) -> EphemeralSender:
    """Sends nothing, as if Slack could not be reached."""
    return EphemeralSender(_unreachable(session))


def unreachable_modals(session: aiohttp.ClientSession, identity: Identity) -> ModalEdges:
    """Opens nothing, for the same reason."""
    client = _unreachable(session)
    people = SlackPeople(client)
    views = SlackViews(client, people, MessageContext(), Permalinks(client))
    return ModalEdges(views, SlackConversations(client, identity, people), people)


def _unreachable(session: aiohttp.ClientSession) -> SlackClient:
    return SlackClient("xoxb-x", session, base_url="http://127.0.0.1:9/api/")
