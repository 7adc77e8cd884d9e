"""Uploads pictures to Slack, to be shown in a message later.

Sources: docs.slack.dev, "Working with files" and "Slack file object": a file is uploaded in three steps, and a message
can show a picture that was shared nowhere. Slack looks at a file after the last step, as for malware. Until it knows
its type, it refuses messages with it.
"""

import asyncio

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatRejected
from bot.runtime.backoff import Backoff
from bot.runtime.untrusted_json import text_at
from bot.slack.sending.web_api import call

_LOOKS = Backoff(first=0.25, longest=3.0)


async def upload_picture(client: AsyncWebClient, name: str, content: bytes, words: str) -> str:
    """Uploads a picture, and returns its id once Slack can show it. Raises ChatError."""
    uploaded = await call(client.files_upload_v2(filename=name, content=content, alt_txt=words))
    file_id, looks = text_at(uploaded, "file", "id"), 0
    while not (kind := text_at(await call(client.files_info(file=file_id)), "file", "mimetype")):
        looks += 1
        await asyncio.sleep(_LOOKS.delay(looks))
    if not kind.startswith("image/"):
        raise ChatRejected("not_a_picture")
    return file_id
