"""Pull requests at GitHub, and the connection to it that the settings ask for."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

import aiohttp

from bot.codehosts.github import GitHub
from bot.codehosts.github_client import GitHubClient
from bot.codehosts.pull_request import CodeHost, Found, NotModified, PullRequest, Reason, Unreadable
from bot.jobapi.models import Requester
from bot.jobserver.errors import CodeHostError, NothingToProposeError
from bot.jobserver.pull_requests.github.api import (
    ATTEMPTS,
    LABEL,
    NOT_UNDERSTOOD,
    OPEN,
    READ_PULL_REQUESTS,
    REQUEST_REVIEW,
    UPDATE,
    Call,
    GitHubRestApi,
    RefusedError,
    UncertainError,
)
from bot.jobserver.pull_requests.github.repository_api import InstallationTokens, PersonalToken, RepositoryApi
from bot.jobserver.pull_requests.github.wire import PullRequestPayload, parse
from bot.jobserver.pull_requests.interface import NewPullRequest, OpenedPullRequest
from bot.jobserver.repository.credentials import GitCredentials, TokenSource
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.github import GitHubAddress, GitHubSettings, github_address
from bot.jobserver.text import BREAK, cut, without_references
from bot.runtime.clock import SteadyClock
from bot.runtime.secrets.masking import SecretMasker

LOOK_EVERY_S = 10.0
"""The shortest time between two readings of a pull request: less than the bot's own, which a webhook may have sent, and
which would miss the news otherwise. GitHub allows 5,000 calls an hour, and what is unchanged costs none.
"""
LIMIT = 60_000
"""In characters; GitHub's limit is 65,536, but it does not document how it counts."""
_TITLE_LIMIT = 256
_MOST_READ = 100
_UNREADABLE = {
    Reason.UNKNOWN_HOST: "the pull request is not at this GitHub",
    Reason.NOT_FOUND: "GitHub shows no such pull request: it may be deleted, or the token may not see it",
    Reason.MOVED: f"GitHub has another address for this repository: set {PREFIX}REPOSITORY to it",
    Reason.NOT_ALLOWED: "GitHub does not let the token or App read pull requests",
    Reason.RATE_LIMITED: "GitHub limits the rate of calls: try again later",
    Reason.OUT_OF_REACH: "GitHub cannot be reached, or has a fault of its own: try again later",
    Reason.NONSENSE: NOT_UNDERSTOOD,
}
_CUT = "\n\n*The rest is left out: GitHub takes descriptions of at most 65,536 characters.*"
_FENCE = "```"
# HTML could hide text; an image would be fetched from any address; an entity could represent an "@".
_MARKUP = re.compile(r"<(?=[A-Za-z/!?])(?!https?://)|!(?=\[)|&(?=\#|[A-Za-z][A-Za-z0-9]{1,31};)", re.VERBOSE)


class GitHubPullRequests:
    """Implements `PullRequests` with GitHub's API."""

    def __init__(self, repository: RepositoryApi, settings: GitHubSettings, base: str, *, web_url: str) -> None:
        self._repository = repository
        self._settings = settings
        self._base = base
        self._web_url = web_url
        now, hide, previews = repository.api.now, SecretMasker().hide, settings.previews
        self._host: CodeHost = GitHub(repository, web_url=web_url, now=now, hide=hide, previews=previews)
        self._read: dict[int, tuple[float, Found]] = {}
        """What was read last, and until when it is new enough."""

    def picture_link(self, link: str, commit: str, path: str) -> str:
        """See PullRequests."""
        return f"{link.rpartition('/pull/')[0]}/blob/{commit}/{quote(path)}"

    async def find(self, branch: str) -> OpenedPullRequest | None:
        found = await self._newest(branch, state="all")
        return found.opened() if found else None

    async def read(self, number: int) -> PullRequest:
        until, known = self._read.pop(number, (0.0, None))
        if known is None or self._repository.api.now() >= until:
            known = await self._read_again(number, known)
            until = self._repository.api.now() + max(LOOK_EVERY_S, known.wait)
        self._read[number] = until, known
        if len(self._read) > _MOST_READ:
            del self._read[next(iter(self._read))]
        return known.pull_request

    async def _read_again(self, number: int, known: Found | None) -> Found:
        link = f"{self._web_url}/{self._repository.full_name}/pull/{number}"
        match await self._host.read(link, known):
            case Found() as found:
                return found
            case NotModified() if known is not None:
                return known
            case Unreadable(reason):
                raise CodeHostError(_UNREADABLE[reason])
            case _:
                raise CodeHostError(_UNREADABLE[Reason.NONSENSE])

    async def open(self, new: NewPullRequest) -> OpenedPullRequest:
        text = description(new.description)
        found, is_new = await self._create(new, text)
        if not is_new:
            await self._add(found, text)
        return found.opened()

    async def add_extras(self, pull_request: OpenedPullRequest, requester: Requester | None) -> tuple[str, ...]:
        number = pull_request.number
        return tuple(filter(None, (await self._add_labels(number), await self._request_review(number, requester))))

    async def update(self, pull_request: OpenedPullRequest, addition: str) -> None:
        answer = await self._repository.call(Call("GET", f"/pulls/{pull_request.number}", READ_PULL_REQUESTS))
        await self._add(parse(PullRequestPayload, answer), description(addition))

    async def _newest(self, branch: str, *, state: str) -> PullRequestPayload | None:
        head = f"{self._repository.owner}:{quote(branch, safe='')}"
        path = f"/pulls?head={head}&state={state}&sort=created&direction=desc&per_page=10"
        answer = await self._repository.call(Call("GET", path, READ_PULL_REQUESTS))
        # GitHub has been seen to ignore a filter that it does not understand.
        found = (one for one in parse(list[PullRequestPayload], answer) if one.head.ref == branch)
        return max(found, key=lambda one: one.number, default=None)

    async def _create(self, new: NewPullRequest, text: str) -> tuple[PullRequestPayload, bool]:
        """Returns the pull request, and whether it is new.

        If an answer was lost, searches for the pull request before trying to open it again.
        """
        failures = 0
        while True:
            try:
                return await self._post(new, text), True
            except RefusedError as error:
                if "already exists" not in error.said or not (found := await self._newest(new.branch, state="open")):
                    if "No commits between" in error.said:
                        words = f"{new.branch} holds nothing that the base branch does not hold"
                        raise NothingToProposeError(f"there is nothing to propose: {words}") from None
                    raise
                return found, False
            except UncertainError:
                if found := await self._newest(new.branch, state="open"):
                    return found, False
                failures += 1
                if failures >= ATTEMPTS:
                    raise
                await self._repository.api.pause(failures)

    async def _post(self, new: NewPullRequest, text: str) -> PullRequestPayload:
        texts, draft = {"title": title(new.title), "body": text}, self._settings.draft
        body = {"head": new.branch, "base": self._base, "draft": draft, **texts}
        call = Call("POST", "/pulls", OPEN, body, is_repeatable=False)
        return parse(PullRequestPayload, await self._repository.call(call))

    async def _add(self, found: PullRequestPayload, addition: str) -> None:
        before = found.body or ""
        body = with_addition(before, addition)
        if body != before.replace("\r\n", "\n"):
            await self._repository.call(Call("PATCH", f"/pulls/{found.number}", UPDATE, {"body": body}))

    async def _add_labels(self, number: int) -> str | None:
        """Returns why the labels could not be added, or None."""
        if not self._settings.labels:
            return None
        body = {"labels": list(self._settings.labels)}
        try:
            await self._repository.call(Call("POST", f"/issues/{number}/labels", LABEL, body))
        except CodeHostError as error:
            return f"it has no labels: {error}"
        return None

    async def _request_review(self, number: int, requester: Requester | None) -> str | None:
        """Requests a review if the reviewer is known; GitHub requires a collaborator other than the author."""
        users = {name.casefold(): login for name, login in self._settings.github_users.items()}
        keys = (requester.id, requester.name) if requester else ()
        login = next((users[key.casefold()] for key in keys if key and key.casefold() in users), None)
        if login is None:
            return None
        path, body = f"/pulls/{number}/requested_reviewers", {"reviewers": [login]}
        try:
            await self._repository.call(Call("POST", path, REQUEST_REVIEW, body))
        except CodeHostError as error:
            return f"{login} was not asked for a review: {error}"
        return None


def title(text: str) -> str:
    """Returns a text as a valid title: one line without references."""
    line = " ".join(without_references(text).split()) or "Change the documentation"
    return cut(line, _TITLE_LIMIT)


def description(text: str) -> str:
    """Returns foreign Markdown without effects, at most half as long as GitHub allows.

    It notifies nobody, and links or closes no issues. HTML is shown as source, and images become links. Code blocks
    may contain an invisible character.
    """
    return _cut(_MARKUP.sub(lambda match: match[0] + BREAK, without_references(text)).strip(), LIMIT // 2)


def with_addition(body: str, addition: str) -> str:
    """Returns a description with a paragraph appended, unless it already contains that."""
    body = body.replace("\r\n", "\n")  # as GitHub's own page writes it
    if addition in body:
        return body
    whole = f"{body}\n\n{addition}".strip()
    return whole if len(whole) <= LIMIT else f"{_cut(body, LIMIT - len(addition) - 2)}\n\n{addition}"


def _cut(text: str, limit: int) -> str:
    """Cuts a text between lines with a note, and closes a block of code that is cut."""
    if len(text) <= limit:
        return text
    kept = text[: limit - len(_CUT) - len(_FENCE) - 2]
    kept = kept[: kept.rfind("\n") if "\n" in kept else len(kept)].rstrip()
    is_in_code = sum(line.lstrip("> ").startswith(_FENCE) for line in kept.splitlines()) % 2
    return f"{kept}\n{_FENCE}{_CUT}" if is_in_code else f"{kept}{_CUT}"


@dataclass(frozen=True)
class GitHubConnection:
    """An identity at GitHub for its API and for git. `credentials` is None if git does not use https."""

    repository: RepositoryApi = field(repr=False)
    credentials: GitCredentials | None
    settings: GitHubSettings
    web_url: str

    def pull_requests(self, base: str) -> GitHubPullRequests:
        return GitHubPullRequests(self.repository, self.settings, base, web_url=self.web_url)


@contextlib.asynccontextmanager
async def connect(
    settings: JobServerSettings,
    *,
    now: Callable[[], float] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[GitHubConnection | None]:
    """Provides a connection, or None if the settings do not use GitHub. Makes no calls yet.

    `now` is in seconds since the epoch.
    """
    has_credentials = settings.github_token or settings.github_app_id
    address = github_address(settings.repository) if has_credentials else None
    if address is None:
        yield None
        return
    async with aiohttp.ClientSession(trust_env=True) as session:
        api = GitHubRestApi(GitHubClient(session, address.api_url), now or SteadyClock().now, sleep)
        yield _connection(settings, address, api)


def _connection(settings: JobServerSettings, address: GitHubAddress, api: GitHubRestApi) -> GitHubConnection:
    tokens: TokenSource
    if settings.github_token is not None:
        tokens = PersonalToken(settings.github_token.get_secret_value())
    else:
        key = settings.github_app_private_key
        tokens = InstallationTokens(
            api,
            app_id=settings.github_app_id or "",  # the settings require both
            private_key=key.get_secret_value() if key else "",
            owner=address.owner,
            repository=address.name,
        )
    return GitHubConnection(
        RepositoryApi(api, tokens, owner=address.owner, repository=address.name),
        _credentials(settings.repository, tokens),
        settings,
        f"{address.scheme}://{address.host}",
    )


def _credentials(repository: str, tokens: TokenSource) -> GitCredentials | None:
    """Takes the origin and the user as they are written in the address, since git compares them like that."""
    parts = urlsplit(repository)
    if parts.scheme not in {"http", "https"}:
        return None
    user, _, host = parts.netloc.rpartition("@")
    origin = f"{parts.scheme}://{host}"
    return GitCredentials(origin, tokens, user) if user else GitCredentials(origin, tokens)
