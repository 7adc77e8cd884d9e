"""A GitHub for tests on loopback: the REST calls that Pagehand makes, and real git over http.

Status codes, error bodies and headers are those of GitHub's REST API documentation, against which calls and answers
are checked; its paths are those of GitHub Enterprise Server, below /api/v3. People act through `merge`, `close` and
`repository`.
"""

import base64
import binascii
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt
from aiohttp import web
from support.fakes.github_answers import completed
from support.oracles.github_api import official_faults
from support.servers.github_server_faults import Faults
from support.servers.github_server_git import BareRepository
from support.servers.github_server_state import (
    ALL_PERMISSIONS,
    APP_ID,
    INSTALLATION_ID,
    REPOSITORY_ID,
    TOKEN,
    PullRequestRecord,
    RepositoryRecord,
    app_key,
    now,
)

API = "/api/v3"
_DOCUMENTATION = "https://docs.github.com/rest"
_TITLE_LIMIT, _BODY_LIMIT = 256, 65_536
Handler = Callable[[web.Request, str], Awaitable[web.Response]]


@dataclass(frozen=True)
class Asked:
    """A received call; `path` is below the API's own."""

    method: str
    path: str
    token: str


class GitHubServer:
    """One repository, `acme/docs`, one personal token and one App."""

    def __init__(self, directory: Path, files: dict[str, str] | None = None) -> None:
        git = BareRepository.make(directory / "1.git", files or {"colours.md": "Every colour has a name.\n"})
        self.repository = RepositoryRecord(git)
        self.tokens: dict[str, frozenset[str]] = {TOKEN: ALL_PERMISSIONS}
        self.installation_permissions = ALL_PERMISSIONS
        self.token_lifetime_s = 3600.0
        self.is_installed = True
        self.redirects_git = False
        """Otherwise git is served under a former name as under the new one, as GitHub mostly does."""
        self.asked: list[Asked] = []
        self.token_requests: list[dict[str, Any]] = []
        self.faults = Faults()
        self.unofficial: list[str] = []
        """What was wrong with calls and answers, according to GitHub's own description."""
        self.before_push: Callable[[], object] = lambda: None
        self.after_push: Callable[[], object] = lambda: None
        self.url = ""

    @property
    def api_url(self) -> str:
        return f"{self.url}{API}"

    @property
    def repository_url(self) -> str:
        return f"{self.url}/{self.repository.full_name}.git"

    def count(self, method: str, path: str) -> int:
        return sum(one.method == method and one.path == path for one in self.asked)

    def pull_request(self, number: int) -> PullRequestRecord:
        self.repository.refresh()
        return next(record for record in self.repository.pull_requests if record.number == number)

    # -- what people do ---------------------------------------------------------------------------------------------

    def merge(self, number: int, *, delete_branch: bool = False) -> None:
        record = self.pull_request(number)
        self.repository.git.merge(record.branch, record.base, f"Merge pull request #{number}\n\n{record.title}")
        record.state, record.merged_at = "closed", now()
        if delete_branch:
            self.repository.git.delete(record.branch)

    def close(self, number: int) -> None:
        self.pull_request(number).state = "closed"

    # -- the entry points -------------------------------------------------------------------------------------------

    def application(self) -> web.Application:
        app = web.Application(client_max_size=50_000_000)
        app.router.add_route("*", API + "/{path:.*}", self._api)
        app.router.add_route("*", "/{owner}/{repository}.git/{tail:.*}", self._git)
        return app

    async def _api(self, request: web.Request) -> web.Response:
        path = f"/{request.match_info['path']}".rstrip("/")
        self.asked.append(Asked(request.method, path, request.headers.get("Authorization", "").partition(" ")[2]))
        if request.headers.get("X-GitHub-Api-Version") != "2022-11-28":
            return _error(400, "The version of the API is missing")
        fault = self.faults.take(request.method, path)
        if fault is not None and not fault.applied:
            return fault.answer(request)
        answer = await self._route(request, path)
        await self._complete(request, path, answer)
        answer.headers.update({"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4999"})
        answer.headers["X-RateLimit-Reset"] = str(int(time.time()) + 3600)
        return fault.answer(request) if fault else answer

    async def _complete(self, request: web.Request, path: str, answer: web.Response) -> None:
        told = json.loads(answer.text or "null")
        if answer.status < 300:
            told = completed(request.method, path, told)
            answer.body = json.dumps(told).encode()
        body = await request.json() if request.can_read_body else None
        place = str(request.rel_url.raw_path_qs).removeprefix(API)
        self.unofficial += official_faults(request.method, place, body, answer.status, told)

    async def _route(self, request: web.Request, path: str) -> web.Response:
        if path.startswith("/app/") or path.endswith("/installation"):
            return await self._app_call(request, path)
        permissions = self.tokens.get(self.asked[-1].token)
        if permissions is None:
            return _error(401, "Bad credentials")
        tail = self._tail(request, path)
        if isinstance(tail, web.Response):
            return tail
        for method, pattern, permission, handler in self._routes():
            number = _matched(pattern, tail)
            if request.method == method and number is not None:
                if permission and permission not in permissions:
                    return _not_accessible(permission)
                return await handler(request, number)
        return _error(404, "Not Found")

    def _routes(self) -> tuple[tuple[str, str, str, Handler], ...]:
        return (
            ("GET", "", "", self._show),
            ("GET", "/pulls", "", self._list),
            ("POST", "/pulls", "pull_requests:write", self._create),
            ("GET", "/pulls/*", "", self._get),
            ("PATCH", "/pulls/*", "pull_requests:write", self._update),
            ("POST", "/issues/*/labels", "pull_requests:write", self._label),
            ("POST", "/pulls/*/requested_reviewers", "pull_requests:write", self._request_review),
            ("GET", "/commits/*/check-runs", "checks:read", self._check_runs),
            ("GET", "/commits/*/status", "statuses:read", self._status),
        )

    def _tail(self, request: web.Request, path: str) -> str | web.Response:
        """Returns the requested part of the repository; a redirect for a former name, 404 for any other."""
        by_id, by_name = f"/repositories/{REPOSITORY_ID}", f"/repos/{self.repository.full_name}"
        for prefix in (by_id, by_name):
            if path == prefix or path.startswith(f"{prefix}/"):
                return path.removeprefix(prefix)
        for name in self.repository.former_names:
            if path == f"/repos/{name}" or path.startswith(f"/repos/{name}/"):
                query = f"?{request.query_string}" if request.query_string else ""
                location = f"{self.api_url}{by_id}{path.removeprefix(f'/repos/{name}')}{query}"
                permanent = request.method == "GET"
                words = "Moved Permanently" if permanent else "Temporary Redirect"
                return _error(301 if permanent else 307, words, {"url": location}, {"Location": location})
        return _error(404, "Not Found")

    async def _git(self, request: web.Request) -> web.Response:
        name = f"{request.match_info['owner']}/{request.match_info['repository']}"
        permissions = self.tokens.get(_basic_password(request))
        if self.redirects_git and name in self.repository.former_names:
            return web.Response(
                status=301, headers={"Location": str(request.rel_url).replace(name, self.repository.full_name, 1)}
            )
        if permissions is None:
            headers = {"WWW-Authenticate": 'Basic realm="GitHub"'}
            words = "Invalid username or token. Password authentication is not supported for Git operations.\n"
            return web.Response(status=401, text=words, headers=headers)
        if name not in {self.repository.full_name, *self.repository.former_names}:
            return web.Response(status=404, text="Repository not found.\n")
        is_push = "git-receive-pack" in request.rel_url.path_qs
        if is_push and self.repository.archived:
            return web.Response(status=403, text="This repository was archived so it is read-only.\n")
        if is_push and "contents:write" not in permissions:
            return web.Response(status=403, text=f"Permission to {name}.git denied to pagehand-bot.\n")
        happens = (self.before_push, self.after_push) if is_push and request.method == "POST" else None
        if happens:
            happens[0]()
        answer = await self.repository.git.serve(request, request.match_info["tail"])
        if happens:
            happens[1]()
        return answer

    # -- an App's calls ---------------------------------------------------------------------------------------------

    async def _app_call(self, request: web.Request, path: str) -> web.Response:
        try:
            claims = jwt.decode(self.asked[-1].token, app_key().public_key(), algorithms=["RS256"])
        except jwt.InvalidTokenError:
            return _error(401, "A JSON web token could not be decoded")
        if claims["iss"] != APP_ID or claims["exp"] - claims["iat"] > 600:
            return _error(401, "'Issuer' claim ('iss') must be an Integer or a known client ID")
        if path.endswith("/installation"):
            tail = self._tail(request, path)
            if isinstance(tail, web.Response):
                return tail
            return web.json_response({"id": INSTALLATION_ID}) if self.is_installed else _error(404, "Not Found")
        if path != f"/app/installations/{INSTALLATION_ID}/access_tokens" or not self.is_installed:
            return _error(404, "Not Found")
        return await self._make_installation_token(request)

    async def _make_installation_token(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        known = {"repositories": [self.repository.name]}, {"repository_ids": [REPOSITORY_ID]}
        if wanted not in known:
            return _error(422, "There is at least one repository that does not exist or is not accessible")
        self.token_requests.append(wanted)
        token = f"planted-secret-installation-{len(self.token_requests)}"
        self.tokens[token] = self.installation_permissions
        ends = datetime.fromtimestamp(time.time() + self.token_lifetime_s, UTC)
        return web.json_response({"token": token, "expires_at": f"{ends:%Y-%m-%dT%H:%M:%SZ}"}, status=201)

    # -- the repository's calls -------------------------------------------------------------------------------------

    async def _show(self, request: web.Request, _: str) -> web.Response:
        return web.json_response(self.repository.payload(self.url))

    async def _list(self, request: web.Request, _: str) -> web.Response:
        self.repository.refresh()
        owner, _, branch = request.query["head"].partition(":")
        state = request.query.get("state", "open")
        found = [
            self.repository.pull_request_payload(record, self.url)
            for record in reversed(self.repository.pull_requests)
            if owner == self.repository.owner and record.branch == branch and state in {"all", record.state}
        ]
        return web.json_response(found[: int(request.query.get("per_page", "30"))])

    async def _get(self, _: web.Request, number: str) -> web.Response:
        return web.json_response(self.repository.pull_request_payload(self.pull_request(int(number)), self.url))

    async def _create(self, request: web.Request, _: str) -> web.Response:
        wanted = await request.json()
        refused = self._refused(wanted)
        if refused is not None:
            return refused
        record = PullRequestRecord(
            number=len(self.repository.pull_requests) + 1,
            title=wanted["title"],
            body=wanted.get("body") or "",
            branch=wanted["head"],
            base=wanted["base"],
            draft=wanted.get("draft", False),
            sha=self.repository.git.head(wanted["head"]) or "",
        )
        self.repository.pull_requests.append(record)
        return web.json_response(self.repository.pull_request_payload(record, self.url), status=201)

    def _refused(self, wanted: dict[str, Any]) -> web.Response | None:
        git, head, base = self.repository.git, wanted["head"], wanted["base"]
        if self.repository.archived:
            return _error(403, "Repository was archived so is read-only.")
        if git.head(head) is None or git.head(base) is None:
            return _invalid(field="head" if git.head(head) is None else "base", code="invalid")
        if git.adds_nothing(head, base):
            return _invalid(code="custom", message=f"No commits between {base} and {head}")
        if any(one.branch == head and one.state == "open" for one in self.repository.pull_requests):
            owner = self.repository.owner
            return _invalid(code="custom", message=f"A pull request already exists for {owner}:{head}.")
        return _too_long(wanted)

    async def _update(self, request: web.Request, number: str) -> web.Response:
        wanted = await request.json()
        refused = _too_long(wanted)
        if refused is not None:
            return refused
        record = self.pull_request(int(number))
        record.body = wanted.get("body", record.body)
        return web.json_response(self.repository.pull_request_payload(record, self.url))

    async def _label(self, request: web.Request, number: str) -> web.Response:
        record = self.pull_request(int(number))
        record.labels = sorted({*record.labels, *(await request.json())["labels"]})
        return web.json_response([{"name": name} for name in record.labels])

    async def _request_review(self, request: web.Request, number: str) -> web.Response:
        record, wanted = self.pull_request(int(number)), (await request.json())["reviewers"]
        if not self.repository.collaborators.issuperset(wanted):
            name = self.repository.full_name
            return _error(
                422,
                "Reviews may only be requested from collaborators. One or more of the users or teams you specified "
                f"is not a collaborator of the {name} repository.",
            )
        record.reviewers += wanted
        return web.json_response(self.repository.pull_request_payload(record, self.url), status=201)

    async def _check_runs(self, request: web.Request, ref: str) -> web.Response:
        runs = self.repository.check_runs.get(ref, [])
        return web.json_response({"total_count": len(runs), "check_runs": runs})

    async def _status(self, request: web.Request, ref: str) -> web.Response:
        statuses = self.repository.statuses.get(ref, [])
        return web.json_response({"state": "pending", "statuses": statuses, "total_count": len(statuses)})


@asynccontextmanager
async def github_server(directory: Path, files: dict[str, str] | None = None) -> AsyncIterator[GitHubServer]:
    """Starts a server with `acme/docs` as its repository."""
    server = GitHubServer(directory, files)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
        assert not server.unofficial, server.unofficial
    finally:
        await runner.cleanup()


def _matched(pattern: str, path: str) -> str | None:
    """Returns the text that the star matches; empty if there is none, and None if they do not match."""
    start, star, end = pattern.partition("*")
    if not star:
        return "" if path == pattern else None
    middle = path.removeprefix(start).removesuffix(end)
    return middle if path == f"{start}{middle}{end}" and "/" not in middle else None


def _basic_password(request: web.Request) -> str:
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    try:
        return base64.b64decode(encoded).decode().partition(":")[2] if scheme.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _error(
    status: int, message: str, more: dict[str, Any] | None = None, headers: dict[str, str] | None = None
) -> web.Response:
    body = {"message": message, "documentation_url": _DOCUMENTATION, **(more or {"status": str(status)})}
    return web.json_response(body, status=status, headers=headers)


def _invalid(**fault: str) -> web.Response:
    return _error(422, "Validation Failed", {"errors": [{"resource": "PullRequest", **fault}]})


def _too_long(wanted: dict[str, Any]) -> web.Response | None:
    for name, limit in (("title", _TITLE_LIMIT), ("body", _BODY_LIMIT)):
        if len(wanted.get(name) or "") > limit:
            return _invalid(code="custom", field=name, message=f"{name} is too long (maximum is {limit} characters)")
    return None


def _not_accessible(permission: str) -> web.Response:
    needed = permission.replace(":", "=")
    return _error(
        403, "Resource not accessible by personal access token", headers={"X-Accepted-GitHub-Permissions": needed}
    )
