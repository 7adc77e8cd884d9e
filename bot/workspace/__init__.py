"""A Slack workspace on your own machine: the server that a Slack app talks to, and a page that shows it.

It serves the part of Slack that Pagehand uses, with Slack's rules and errors, so that people can try the whole product
and tests can run it without a Slack account.
"""

from bot.workspace.delivery.deliveries import InteractionResult
from bot.workspace.model.app_config import AppConfig, Shortcut, SlashCommand
from bot.workspace.model.entities import Channel, Message, SlackError, Upload, User
from bot.workspace.model.views import View
from bot.workspace.people import Actor
from bot.workspace.server import WorkspaceServer
from bot.workspace.web_api.method import Credentials

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
