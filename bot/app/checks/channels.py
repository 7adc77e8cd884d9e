"""Checks the channels that the settings name."""

import asyncio
from collections.abc import Collection, Sequence

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.findings import Finding
from bot.errors import ChatError, ChatMissingScope, ChatRejected
from bot.runtime.json_fields import object_at
from bot.slack.sending.web_api import call

CHANNELS = "channels"
MOST = 40
"""How many channels one check looks up: Slack allows about fifty look-ups a minute."""
_AT_ONCE = 8
_WHY = "Nobody can ask for a job there."
_WHERE = "Correct the channel's id in PAGEHAND_ALLOWED_CHANNELS or the file of PAGEHAND_PROJECTS"
_ID = "Slack shows it at the end of a channel's details"


async def check_channels(client: AsyncWebClient, channel_ids: Collection[str]) -> Sequence[Finding]:
    """Checks that the channels of the settings exist and that the bot is in them, or can join."""
    if not channel_ids:
        return [Finding.ok(CHANNELS, "The settings name no channels.")]
    looked_up, slots = sorted(channel_ids)[:MOST], asyncio.Semaphore(_AT_ONCE)

    async def one(channel_id: str) -> Finding | None:
        async with slots:
            return await _channel_fault(client, channel_id)

    found = [fault for fault in await asyncio.gather(*map(one, looked_up)) if fault is not None]
    well = len(looked_up) - len(found)
    return [
        Finding.ok(CHANNELS, f"Pagehand can work in {well} of the {len(channel_ids)} channels of the settings."),
        *found,
    ]


async def _channel_fault(client: AsyncWebClient, channel_id: str) -> Finding | None:
    name = f"{CHANNELS}.{channel_id}"
    try:
        answer = await call(client.conversations_info(channel=channel_id))
    except ChatMissingScope as error:
        return Finding.not_checked(
            name, f"Slack does not say what {channel_id} is: it needs {', '.join(error.scopes)}."
        )
    except ChatRejected as error:
        found = f"Slack does not show Pagehand the channel {channel_id} ({error.reason})."
        fix = f"{_WHERE} ({_ID}); if it is private, write `/invite @Pagehand` in it."
        return Finding.warning(name, found, why=_WHY, fix=fix)
    except ChatError as error:
        return Finding.not_checked(name, f"Slack could not be asked about {channel_id} ({error.reason}).")
    fields = object_at(answer, "channel")
    if fields.get("is_archived") is True:
        return Finding.warning(
            name, f"The channel {channel_id} is archived.", why=_WHY, fix=f"{_WHERE}, or restore it."
        )
    if fields.get("is_private") is True and fields.get("is_member") is False:
        found = f"Pagehand is not a member of the private channel {channel_id}."
        return Finding.warning(name, found, why=_WHY, fix="Write `/invite @Pagehand` in that channel.")
    return None
