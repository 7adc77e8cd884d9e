"""All that is read of Slack before a request is sent: put together once for a process."""

from dataclasses import dataclass

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.ports import People
from bot.slack.sending.channels import SlackChannels
from bot.slack.sending.conversations import SlackConversations
from bot.slack.sending.files import SlackFiles
from bot.slack.sending.groups import SlackGroups
from bot.slack.sending.identity import Identity
from bot.slack.sending.members import SlackMembers
from bot.slack.sending.people import SlackPeople
from bot.slack.sending.user_directory import UserDirectory
from bot.slack_ports import Channels, Conversations, Files, Groups, Members


@dataclass(frozen=True)
class SlackReading:
    """The ports of bot.slack_ports, and the people's names, which come from the same look-ups as the members."""

    people: People
    members: Members
    groups: Groups
    channels: Channels
    conversations: Conversations
    files: Files


def slack_reading(client: AsyncWebClient, session: aiohttp.ClientSession, identity: Identity) -> SlackReading:
    """Returns them over one client."""
    directory = UserDirectory(client)
    people = SlackPeople(client, directory=directory)
    return SlackReading(
        people=people,
        members=SlackMembers(directory, identity),
        groups=SlackGroups(client),
        channels=SlackChannels(client),
        conversations=SlackConversations(client, identity, people),
        files=SlackFiles(client, session),
    )
