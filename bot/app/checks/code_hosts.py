"""Checks that a code host takes its token, with a call that it does not charge."""

from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp

from bot.app.settings.code_hosts import CodeHostSettings
from bot.codehosts.github_client import GitHubClient, NoGitHubAnswerError
from bot.domain.findings import Finding

_WHY = "The news of pull requests there is not told."
_SCOPES = "x-oauth-scopes"
"""GitHub tells the scopes of classic tokens only."""


def name_of(host: CodeHostSettings) -> str:
    """Returns the name of a code host's check."""
    return f"code_host.{urlsplit(host.url).hostname}"


async def check_code_host(host: CodeHostSettings, session: aiohttp.ClientSession) -> Sequence[Finding]:
    """Asks the code host whether it takes the token, and tells what such tokens may not read."""
    name, client = name_of(host), GitHubClient(session, host.api_url)
    try:
        answer = await client.send("GET", "/rate_limit", host.token.newest, None)
    except NoGitHubAnswerError as error:
        fix = f"Check CODE_HOST_URL ({host.url}; in a projects' file: url), and the network between."
        return [Finding.warning(name, f"{host.url} gives no answer ({error}).", why=_WHY, fix=fix)]
    if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        fix = "Give it a new token that may read pull requests (CODE_HOST_TOKEN; in a projects' file: token_file)."
        return [Finding.warning(name, f"{host.url} does not take the token.", why=_WHY, fix=fix)]
    if _SCOPES in answer.headers:
        return [Finding.ok(name, f"{host.url} takes the token.")]
    found = f"{host.url} takes the token. If it is fine-grained, it may not read checks: then runs of Actions are read."
    return [Finding.ok(name, found)]
