"""The code hosts of the settings: whom the bot asks about which pull request."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp import web

from bot.app.settings.code_hosts import CodeHostSettings
from bot.codehosts.github import GitHub
from bot.codehosts.github_client import GitHubAnswer, GitHubClient
from bot.codehosts.github_webhook import WEBHOOK_PATH, GitHubWebhooks, Senders
from bot.codehosts.job_server import JobServer
from bot.codehosts.pull_request import CodeHost, Found, NotModified, Reason, Unreadable
from bot.domain.threads.thread import Thread
from bot.errors import StoreError
from bot.jobapi.models import Hide
from bot.runtime.rotating_secrets import RotatingSecret
from bot.store.store import Store

logger = logging.getLogger(__name__)

READ_SECONDS = 18.0
"""For one pull request, which takes several calls."""
ReadBody = Callable[[str, str], Awaitable[bytes]]
"""Reads the pull request of a project's job at its job API."""


@dataclass(frozen=True)
class _WithToken:
    """Makes calls of one GitHub with its token; while that is being replaced, with the one that it takes."""

    client: GitHubClient
    token: RotatingSecret

    async def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, etag: str = ""
    ) -> GitHubAnswer:
        newest, *before = self.token.values
        answer = await self.client.send(method, path, newest, body, etag=etag)
        for token in before:
            if answer.status == HTTPStatus.UNAUTHORIZED:
                answer = await self.client.send(method, path, token, body, etag=etag)
        return answer


def github_hosts(settings: Sequence[CodeHostSettings], session: aiohttp.ClientSession, hide: Hide) -> list[CodeHost]:
    """Returns the GitHubs of the settings, each with its own token."""
    return [
        GitHub(calls, web_url=each.url, now=time.time, hide=hide, previews=each.previews)
        for each in settings
        for calls in (_WithToken(GitHubClient(session, each.api_url), each.token),)
    ]


def webhook_routes(senders: Senders, store: Store) -> Sequence[web.RouteDef]:
    """Returns the route of the webhooks of these code hosts; none if there are none."""

    async def make_due(links: Sequence[str]) -> None:
        try:
            await store.transact(lambda tx: tx.pull_requests.make_due(links))
        except StoreError:
            raise web.HTTPServiceUnavailable from None

    return [web.post(WEBHOOK_PATH, GitHubWebhooks(senders, make_due).take)] if senders else []


@dataclass(frozen=True)
class ConfiguredCodeHosts:
    """Implements `CodeHosts`: the job API of a job that tells its pull request itself, else the host of the link."""

    hosts: Sequence[CodeHost]
    read_body: ReadBody
    tells: Callable[[str], bool]
    hide: Hide

    async def read(self, thread: Thread, link: str, known: Found | None) -> Found | NotModified | Unreadable:
        """See CodeHosts."""
        hosts = self.hosts
        if thread.state.job is not None and self.tells(thread.project):
            hosts = [JobServer(partial(self.read_body, thread.project, thread.state.job.id), self.hide)]
        try:
            async with asyncio.timeout(READ_SECONDS):
                for host in hosts:
                    seen = await host.read(link, known)
                    if not isinstance(seen, Unreadable) or seen.reason is not Reason.UNKNOWN_HOST:
                        return seen
        except TimeoutError:
            return Unreadable(Reason.OUT_OF_REACH)
        except Exception:
            logger.exception("a pull request cannot be read")
            return Unreadable(Reason.NONSENSE)
        return Unreadable(Reason.UNKNOWN_HOST)
