"""Receives GitHub's webhooks, which only make the next reading of the pull requests that they name due now.

Nothing that they say is kept or trusted. A lost one costs the time until the next poll. A repeated one costs nothing,
because readings keep their distance, so nobody has to remember deliveries. What names a commit only (a status, most
deployments) waits for the next poll, and so does a job's link that is not written as GitHub writes it. Source: GitHub,
"Validating webhook deliveries".
"""

import hashlib
import hmac
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from http import HTTPStatus
from typing import Any

from aiohttp import web

from bot.codehosts.github import parse_link
from bot.runtime.http.server import mark_authenticated
from bot.runtime.logging import ThrottledLogger
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.untrusted_json import objects_at, text_at, value_at

logger = logging.getLogger(__name__)

WEBHOOK_PATH = "/webhooks/github"
LARGEST = 1 << 20
"""Bytes. GitHub's own limit is 25 MB, but events that name pull requests take a tenth of this."""
_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.{1,300}/pr-(\d{1,10})-[0-9a-f]{40,64}")
_API_URL = re.compile(r".{1,300}/repos/([^/]{1,100}/[^/]{1,100})/pulls/(\d{1,10})")
_WITH_PULL_REQUESTS = (("check_run",), ("check_run", "check_suite"), ("check_suite",), ("workflow_run",))


Senders = Sequence[tuple[str, RotatingSecret]]
"""Code hosts, by the address that links begin with, and the secret that each signs with."""


class GitHubWebhooks:
    """Takes the webhooks of these code hosts. `make_due` gets the links of the pull requests that one names."""

    def __init__(self, senders: Senders, make_due: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        self._senders = senders
        self._make_due = make_due
        self._throttled_log = ThrottledLogger(logger)

    async def take(self, request: web.Request) -> web.Response:
        """Answers one with 202. Raises HTTPException, without reading what its head shows not to be one of ours."""
        signature = request.headers.get("X-Hub-Signature-256", "")
        if not _SIGNATURE.fullmatch(signature):
            raise self._not_signed()
        if (announced := request.content_length or 0) > LARGEST:
            raise _closing(web.HTTPRequestEntityTooLarge(LARGEST, announced))
        try:
            body = await request.clone(client_max_size=LARGEST).read()
        except web.RequestPayloadError:
            raise web.HTTPBadRequest(text="not what its headers say") from None
        signers = [url for url, secret in self._senders if _is_signed(secret, signature, body)]
        if not signers:
            raise self._not_signed()
        mark_authenticated(request)
        payload = _payload(request, body)
        links = sorted({link for web_url in signers for link in named_links(payload, web_url)})[:100]
        if links:
            await self._make_due(links)
        return web.Response(status=HTTPStatus.ACCEPTED)

    def _not_signed(self) -> web.HTTPException:
        self._throttled_log.warning("a webhook that is not signed with CODE_HOST_WEBHOOK_SECRET is turned away")
        return _closing(web.HTTPUnauthorized(text="not signed with our secret"))


def named_links(payload: object, web_url: str) -> Iterator[str]:
    """Yields the links of the pull requests that an event names, made of the code host's own address."""
    for repository, number in _named(payload):
        link = f"{web_url}/{repository}/pull/{number}"
        if repository.count("/") == 1 and parse_link(link, web_url):
            yield link


def _named(payload: object) -> Iterator[tuple[str, Any]]:
    """Yields repositories and numbers that may be any. A fork's checks name pull requests of other repositories."""
    repository = text_at(payload, "repository", "full_name")
    yield repository, value_at(payload, "pull_request", "number")
    if queued := _QUEUED.fullmatch(text_at(payload, "merge_group", "head_ref")):
        yield repository, queued[1]
    for place in _WITH_PULL_REQUESTS:
        for each in objects_at(value_at(payload, *place), "pull_requests"):
            if found := _API_URL.fullmatch(text_at(each, "url")):
                yield found[1], found[2]


def _payload(request: web.Request, body: bytes) -> object:
    if not (request.headers.get("X-GitHub-Event") and request.headers.get("X-GitHub-Delivery")):
        raise web.HTTPBadRequest(text="X-GitHub-Event or X-GitHub-Delivery is missing")
    if request.content_type != "application/json":
        raise web.HTTPBadRequest(text="set the webhook's content type to application/json")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest(text="not JSON") from None


def _closing(refusal: web.HTTPException) -> web.HTTPException:
    refusal.force_close()
    return refusal


def _is_signed(secret: RotatingSecret, signature: str, body: bytes) -> bool:
    """Returns whether a body is signed with a current secret. All are tried, so that the time tells nothing."""
    signed = [f"sha256={hmac.new(each.encode(), body, hashlib.sha256).hexdigest()}" for each in secret.values]
    matches = [hmac.compare_digest(each, signature) for each in signed]
    return any(matches)
