"""A Slack workspace on one's own machine: what a Slack app talks to, and a page that shows it.

It serves what Pagehand uses of Slack, with Slack's rules and errors, so that the whole product can be tried and
tested without a Slack account.
"""

from bot.workspace.delivery.interactions import InteractionResult
from bot.workspace.model.app_config import AppConfig, Shortcut, SlashCommand
from bot.workspace.model.entities import Channel, Message, User
from bot.workspace.model.errors import SlackError
from bot.workspace.model.files import Upload
from bot.workspace.model.views import View
from bot.workspace.people import Actor
from bot.workspace.server import WorkspaceServer
from bot.workspace.web_api.credentials import Credentials

__all__ = [
    "Actor",
    "AppConfig",
    "Channel",
    "Credentials",
    "InteractionResult",
    "Message",
    "Shortcut",
    "SlackError",
    "SlashCommand",
    "Upload",
    "User",
    "View",
    "WorkspaceServer",
]
