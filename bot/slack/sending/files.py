"""Reads files: bot.ports.slack.Files, by Slack's files.info and a file's URL.

Source: docs.slack.dev, "Working with files": `url_private_download` needs the token in a header. Without the scope
files:read, Slack returns a sign-in page with status 200 instead of the file.
"""

import asyncio
from http import HTTPStatus
from urllib.parse import urljoin, urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.messages import FileContent, SlackFile
from bot.errors import ChatError, ChatMissingScope, ChatRejected
from bot.ports.slack import FileReader
from bot.runtime.http.bodies import read_up_to
from bot.slack.message_parts.contents import read_file
from bot.slack.message_parts.slack_message import MessageFile
from bot.slack.rendering.text import safe_url
from bot.slack.sending.web_api import CONNECT_SECONDS, call, chat_error_from, chat_error_of_status, slack_proxy

_SECONDS = 30.0
_MOST_REDIRECTS = 3
_SLACKS_OWN = ("slack.com", "slack-gov.com")
"""The second is that of GovSlack."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HTML = "text/html"


class SlackFiles(FileReader):
    """Reads files. The token is sent only to Slack's own hosts and that of the client's Web API. `seconds` is the
    timeout for one file.
    """

    def __init__(self, client: AsyncWebClient, session: aiohttp.ClientSession, *, seconds: float = _SECONDS) -> None:
        self._client = client
        self._session = session
        self._timeout = aiohttp.ClientTimeout(total=seconds, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
        self._seconds = seconds

    async def look_up(self, file: SlackFile) -> SlackFile:
        """See Files."""
        if file.url and not file.must_look_up:
            return file
        if not file.id:
            raise ChatRejected("file_not_found")
        answer = await call(self._client.files_info(file=file.id))
        return read_file(MessageFile.read(answer.get("file")))

    async def read(self, file: SlackFile, *, max_bytes: int) -> FileContent:
        """See Files."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._read_at(file.url, file, max_bytes)
        except ChatError:
            raise
        except Exception as error:  # noqa: BLE001 - every library error is translated
            raise chat_error_from(error) from None

    async def _read_at(self, url: str, file: SlackFile, max_bytes: int) -> FileContent:
        for _ in range(_MOST_REDIRECTS + 1):
            if not self._is_slacks(url):
                raise ChatRejected("file_not_at_slack")
            async with self._session.get(
                url,
                headers={"Authorization": f"Bearer {self._client.token}", "Accept-Encoding": "identity"},
                proxy=slack_proxy(url),
                timeout=self._timeout,
                allow_redirects=False,  # a redirect would send the token elsewhere
            ) as answer:
                if answer.status not in _REDIRECTS:
                    return await _content(answer, file, max_bytes)
                url = urljoin(url, answer.headers.get("Location", ""))
        raise ChatRejected("too_many_redirects")

    def _is_slacks(self, url: str) -> bool:
        if safe_url(url) is None or not (at := _origin(url)):
            return False
        host = urlsplit(url).hostname or ""
        is_slacks_own = at == f"https://{host}:443" and host.endswith(tuple(f".{own}" for own in _SLACKS_OWN))
        return is_slacks_own or at == _origin(self._client.base_url)


async def _content(answer: aiohttp.ClientResponse, file: SlackFile, max_bytes: int) -> FileContent:
    if answer.status != HTTPStatus.OK:
        unavailable = "file_not_found" if answer.status == HTTPStatus.NOT_FOUND else f"status_{answer.status}"
        raise chat_error_of_status(answer.status, answer.headers) or ChatRejected(unavailable)
    if _is_sign_in_page(answer, file):
        raise ChatMissingScope(("files:read",))
    data = await read_up_to(max_bytes, answer.content)
    return FileContent(data[:max_bytes], file.mimetype, complete=len(data) <= max_bytes)


def _is_sign_in_page(answer: aiohttp.ClientResponse, file: SlackFile) -> bool:
    """Distinguishes an HTML file from the sign-in page: it is sent as a download, or has the size that Slack gave."""
    if answer.content_type != _HTML:
        return False
    as_download = answer.headers.get("Content-Disposition", "").lower().startswith("attachment")
    own_size = bool(file.size) and answer.content_length == file.size
    return not (file.mimetype == _HTML and (as_download or own_size))


def _origin(url: str) -> str:
    """Returns the scheme, host and port for comparison; empty if it is not a web URL, or contains a user name."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
    except (KeyError, ValueError):
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname and "@" not in parts.netloc else ""
