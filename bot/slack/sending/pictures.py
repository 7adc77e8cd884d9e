"""Uploads pictures to Slack, to be shown in a message later.

Sources: docs.slack.dev, "Working with files" and "Slack file object": a file is uploaded in three steps, and a message
can show a picture that was shared nowhere. Slack looks at a file after the last step, as for malware. Until it knows
its type, it refuses messages with it.
"""

import asyncio
from http import HTTPStatus

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatRejected, ChatUnreachable
from bot.runtime.backoff import Backoff
from bot.runtime.untrusted_json import text_at
from bot.slack.sending.web_api import call, chat_error_from, chat_error_of_status, slack_proxy

_LOOKS = Backoff(first=0.25, longest=3.0)


async def upload_picture(client: AsyncWebClient, name: str, content: bytes, words: str) -> str:
    """Uploads a picture, and returns its id once Slack can show it. Raises ChatError."""
    granted = await call(client.files_getUploadURLExternal(filename=name, length=len(content), alt_txt=words))
    file_id = text_at(granted, "file_id")
    await send_bytes(client, text_at(granted, "upload_url"), content)
    await call(client.files_completeUploadExternal(files=[{"id": file_id, "title": name}]))
    looks = 0
    while not (kind := text_at(await call(client.files_info(file=file_id)), "file", "mimetype")):
        looks += 1
        await asyncio.sleep(_LOOKS.delay(looks))
    if not kind.startswith("image/"):
        raise ChatRejected("not_a_picture")
    return file_id


async def send_bytes(client: AsyncWebClient, url: str, content: bytes) -> None:
    """Sends the bytes, without our token: the address is secret itself."""
    if client.session is None:
        raise ChatUnreachable("no_session")
    try:
        async with client.session.post(url, data=content, proxy=slack_proxy(url), allow_redirects=False) as answer:
            status, headers = answer.status, answer.headers
    except Exception as error:  # noqa: BLE001 - every library error is translated
        raise chat_error_from(error) from None
    if status != HTTPStatus.OK:
        raise chat_error_of_status(status, headers) or ChatRejected(f"status_{status}")
