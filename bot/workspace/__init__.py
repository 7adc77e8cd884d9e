"""A Slack workspace on one's own machine: what a Slack app talks to, and a page that shows it.

It serves what Pagehand uses of Slack, with Slack's rules and errors, so that the whole product can be tried and
tested without a Slack account.
"""

from bot.workspace.app_config import AppConfig, SlashCommand
from bot.workspace.errors import SlackError
from bot.workspace.faults import Faults
from bot.workspace.interactions import Answer
from bot.workspace.models import Channel, Message, Person
from bot.workspace.people import Actor
from bot.workspace.server import WorkspaceServer

__all__ = [
    "Actor",
    "Answer",
    "AppConfig",
    "Channel",
    "Faults",
    "Message",
    "Person",
    "SlackError",
    "SlashCommand",
    "WorkspaceServer",
]
