"""What each code host promises, and which one is asked for a link with which token."""

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from support.fakes.github import LINK, PULL, GitHubInMemory, pull
from support.worlds.store_world import a_thread

from bot.app.code_hosts import ConfiguredCodeHosts
from bot.app.settings.code_hosts import CodeHostSettings
from bot.codehosts.job_server import JobServer
from bot.codehosts.pull_request import CodeHost, Found, NotModified, PullRequest, Reason, Unreadable
from bot.domain.threads.thread import ThreadState
from bot.errors import JobApiBusy, JobApiError, JobApiNotAllowed, JobApiRejected, JobApiUncertain, JobGone
from bot.jobapi.models import Job
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.secrets.masking import SecretMasker

SECRET = "ghp_" + "Ab3" * 12


def hidden(text: str) -> str:
    return SecretMasker().mask(text).text


class ACodeHost(ABC):
    """A code host with one pull request, which the test changes."""

    host: CodeHost

    @abstractmethod
    def show(self, **told: Any) -> None:
        """Changes what it tells."""

    @abstractmethod
    def fail(self, reason: Reason) -> None:
        """Makes it fail so that this is the reason."""


class AGitHub(ACodeHost):
    def __init__(self) -> None:
        self._github = GitHubInMemory(is_odd=True)
        self.host = self._github.code_host

    def show(self, **told: Any) -> None:
        self._github.answers[PULL] = pull(**told)

    def fail(self, reason: Reason) -> None:
        status = {Reason.NOT_FOUND: 404, Reason.NOT_ALLOWED: 401, Reason.RATE_LIMITED: 429, Reason.OUT_OF_REACH: 502}
        self._github.status["/7"] = status[reason]


class AJobServer(ACodeHost):
    def __init__(self) -> None:
        self._told: dict[str, Any] = {"number": 7, "link": LINK, "state": "open", "head": "a"}
        self._error: JobApiError | None = None
        self.host = JobServer(self._read, hidden)

    async def _read(self) -> bytes:
        if self._error is not None:
            raise self._error
        return json.dumps(self._told).encode()

    def show(self, **told: Any) -> None:
        self._told |= told

    def fail(self, reason: Reason) -> None:
        errors: dict[Reason, JobApiError] = {
            Reason.NOT_FOUND: JobGone("gone"),
            Reason.NOT_ALLOWED: JobApiNotAllowed("refused", status=401),
            Reason.RATE_LIMITED: JobApiBusy("busy", status=429, retry_after=60.0),
            Reason.OUT_OF_REACH: JobApiUncertain("silent"),
        }
        self._error = errors[reason]


@pytest.fixture(params=[AGitHub, AJobServer])
def code_host(request: pytest.FixtureRequest) -> ACodeHost:
    made: ACodeHost = request.param()
    return made


async def found(code_host: ACodeHost, known: Found | None = None) -> Found:
    seen = await code_host.host.read(LINK, known)
    assert isinstance(seen, Found)
    return seen


class TestEachCodeHost:
    async def test_what_is_unchanged_is_not_modified(self, code_host: ACodeHost) -> None:
        first = await found(code_host)
        assert first.pull_request.link == LINK
        assert isinstance(await code_host.host.read(LINK, first), NotModified)
        code_host.show(title="Another title")
        second = await found(code_host, first)
        assert second.pull_request.title == "Another title"
        assert isinstance(await code_host.host.read(LINK, second), NotModified)

    @pytest.mark.parametrize("reason", [Reason.NOT_FOUND, Reason.NOT_ALLOWED, Reason.RATE_LIMITED, Reason.OUT_OF_REACH])
    async def test_a_failure_says_why_and_claims_nothing(self, code_host: ACodeHost, reason: Reason) -> None:
        known = await found(code_host)
        code_host.fail(reason)
        seen = await code_host.host.read(LINK, known)
        assert isinstance(seen, Unreadable)
        assert seen.reason is reason
        assert (seen.wait > 0) == (reason is Reason.RATE_LIMITED)

    @pytest.mark.parametrize("title", ["x" * 1_000_000, f"key {SECRET}", "\u202e\0\ud800", 7, None, ["x"]])
    async def test_any_title_is_bounded_and_masked(self, code_host: ACodeHost, title: object) -> None:
        code_host.show(title=title)
        told = (await found(code_host)).pull_request.title
        assert len(told) <= 200
        assert SECRET not in told

    async def test_an_unknown_state_is_no_state(self, code_host: ACodeHost) -> None:
        code_host.show(state="pondering")
        assert (await found(code_host)).pull_request.state is None


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"number": 7, "link": 7, "head": "a"}']
)
async def test_an_answer_that_is_no_pull_request_is_nonsense(body: bytes) -> None:
    async def read() -> bytes:
        return body

    assert await JobServer(read, hidden).read(LINK) == Unreadable(Reason.NONSENSE)


async def test_the_pull_request_of_another_link_is_not_taken_for_it() -> None:
    async def read() -> bytes:
        return PullRequest(number=8, link=LINK[:-1] + "8", head="a").model_dump_json(by_alias=True).encode()

    assert await JobServer(read, hidden).read(LINK) == Unreadable(Reason.MOVED)


class SilentHost:
    def __init__(self, seen: Unreadable | Exception) -> None:
        self.seen = seen
        self.asked = 0

    async def read(self, _link: str, _known: Found | None = None) -> Unreadable:
        self.asked += 1
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen


THREAD = replace(a_thread(), state=ThreadState(job=Job("j1", "completed", LINK)))
UNKNOWN = Unreadable(Reason.UNKNOWN_HOST)


def configured(*hosts: CodeHost, tells: bool = False) -> ConfiguredCodeHosts:
    async def read_body(project: str, job_id: str) -> bytes:
        raise JobApiRejected(f"{project} {job_id}")

    read: Callable[[str, str], Awaitable[bytes]] = read_body
    return ConfiguredCodeHosts(hosts, read, lambda _: tells, hidden)


async def test_each_host_is_asked_for_its_own_links_only() -> None:
    other, own, third = SilentHost(UNKNOWN), SilentHost(Unreadable(Reason.NOT_FOUND)), SilentHost(UNKNOWN)
    assert await configured(other, own, third).read(THREAD, LINK, None) == Unreadable(Reason.NOT_FOUND)
    assert (other.asked, own.asked, third.asked) == (1, 1, 0)
    assert await configured(other).read(THREAD, LINK, None) == UNKNOWN


async def test_a_job_api_that_tells_pull_requests_is_asked_instead() -> None:
    host = SilentHost(UNKNOWN)
    assert await configured(host, tells=True).read(THREAD, LINK, None) == Unreadable(Reason.NONSENSE)
    assert host.asked == 0


@pytest.mark.parametrize(
    ("error", "reason"), [(RuntimeError("a bug"), Reason.NONSENSE), (TimeoutError(), Reason.OUT_OF_REACH)]
)
async def test_reading_never_raises(error: Exception, reason: Reason) -> None:
    assert await configured(SilentHost(error)).read(THREAD, LINK, None) == Unreadable(reason)


@pytest.mark.parametrize(
    ("url", "api_url"),
    [
        ("https://github.com", "https://api.github.com"),
        ("https://acme.ghe.com", "https://api.acme.ghe.com"),
        ("https://git.acme.example", "https://git.acme.example/api/v3"),
    ],
)
def test_each_github_has_its_api(url: str, api_url: str) -> None:
    assert CodeHostSettings(url, RotatingSecret("planted-token")).api_url == api_url
