"""Pull requests at GitHub, as GitHub documents its answers; an App's tokens; and what the check says of an identity."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import SecretStr
from support.servers import github_server_faults as faults
from support.servers.github_server import GitHubServer, github_server
from support.servers.github_server_state import TOKEN
from support.worlds.github_world import KEY, PassingTime, as_app, branch_with_a_commit, connected, settings_for

from bot.cli.main import main
from bot.jobapi.models import PullRequestState, Requester
from bot.jobserver.errors import CodeHostError
from bot.jobserver.pull_requests.github.github_pull_requests import LOOK_EVERY_S, GitHubPullRequests
from bot.jobserver.pull_requests.interface import NewPullRequest
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.setup_check import check_github
from bot.scheduler.pull_request_poller import AT_LEAST

pytestmark = pytest.mark.promise("github")

BRANCH = "pagehand/1"
NEW = NewPullRequest(BRANCH, "Add a page", "> Add a page\n\nAdded new.md.")
PULLS = "/repos/acme/docs/pulls"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitHubServer]:
    async with github_server(tmp_path / "github") as running:
        branch_with_a_commit(running)
        yield running


@pytest.fixture
def passing() -> PassingTime:
    return PassingTime(time.time())


@asynccontextmanager
async def keeping(
    server: GitHubServer, time: PassingTime | None = None, **settings: Any
) -> AsyncIterator[GitHubPullRequests]:
    async with connected(server, time, **settings) as github:
        yield github.pull_requests("main")


async def test_a_pull_request_is_opened_with_labels_and_a_review_request(server: GitHubServer) -> None:
    who = Requester(name="Ada Lovelace", id="U02ADA", url="https://acme.slack.com/archives/C1/p1")
    settings: dict[str, Any] = {
        "draft": True,
        "labels": ("docs", "good first issue"),
        "github_users": {"u02ada": "ada"},
    }
    async with keeping(server, **settings) as keeper:
        opened = await keeper.open(NewPullRequest(BRANCH, "Add a page", "Words.", who))
        assert await keeper.add_extras(opened, who) == ()
        seen_at = keeper.picture_link(opened.link, "c0ffee", "docs/a b.png")
    record = server.pull_request(opened.number)
    assert (opened.link, opened.state) == (f"{server.url}/acme/docs/pull/1", PullRequestState.OPEN)
    assert seen_at == f"{server.url}/acme/docs/blob/c0ffee/docs/a%20b.png"
    assert (record.title, record.base, record.draft) == ("Add a page", "main", True)
    assert record.body == "Words."
    assert (record.labels, record.reviewers) == (["docs", "good first issue"], ["ada"])


async def test_an_impossible_reviewer_is_reported(server: GitHubServer) -> None:
    async with keeping(server, github_users={"Grace": "grace"}) as keeper:
        opened = await keeper.open(NEW)
        (missing,) = await keeper.add_extras(opened, Requester(name="Grace"))
    assert server.pull_request(opened.number).reviewers == []
    assert missing.startswith("grace was not asked for a review: ")
    assert "collaborators" in missing


async def test_refused_labels_are_reported(server: GitHubServer) -> None:
    server.faults.arm("POST", "/repos/acme/docs/issues/1/labels", faults.error(403, "Must have triage rights"))
    async with keeping(server, labels=("docs",)) as keeper:
        opened = await keeper.open(NEW)
        (missing,) = await keeper.add_extras(opened, None)
        assert missing.startswith("it has no labels: the token or App may not label a pull request")
        assert await keeper.add_extras(opened, None) == ()
    assert server.pull_request(1).labels == ["docs"]


async def test_a_follow_up_extends_the_description_once(server: GitHubServer) -> None:
    async with keeping(server) as keeper:
        opened = await keeper.open(NEW)
        server.pull_request(1).body = server.pull_request(1).body.replace("\n", "\r\n")  # as left by a person's edit
        for _ in range(2):
            await keeper.update(opened, "> make that shorter\n\nMade it shorter.")
    assert server.pull_request(1).body == "> Add a page\n\nAdded new.md.\n\n> make that shorter\n\nMade it shorter."
    assert server.count("PATCH", f"{PULLS}/1") == 1


async def test_an_existing_pull_request_is_reused_with_the_new_texts(server: GitHubServer) -> None:
    async with keeping(server) as keeper:
        await keeper.open(NEW)
        again = await keeper.open(NewPullRequest(BRANCH, "Again", "More words."))
    assert again.number == 1
    assert server.pull_request(1).body.endswith("Added new.md.\n\nMore words.")
    assert len(server.repository.pull_requests) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (faults.error(401, "Bad credentials"), "does not accept the token"),
        (faults.error(403, "Resource not accessible by personal access token"), "Pull requests: read and write"),
        (faults.error(403, "Repository was archived"), "GitHub did not open a pull request: Repository was archived"),
        (faults.error(404, "Not Found"), "PAGEHAND_JOBSERVER_REPOSITORY"),
        (faults.error(410, "Gone\x1b[31m for good"), "did not open a pull request: Gone[31m for good"),
        (faults.nonsense(b'{"errors": [1]}', status=422), "did not open a pull request: 422: 1"),
        (faults.error(403, "x", headers={"Retry-After": "Fri, 27 Nov 2026 00:00:00 GMT"}), "limits the rate"),
        (faults.error(403, "Soon", headers={"Retry-After": "soon"}), "did not open a pull request: Soon"),
        (faults.nonsense(b"<html>Sign in</html>"), "makes no sense"),
        (faults.nonsense(b"[" * 100_000), "makes no sense"),
        (faults.nonsense(b'{"a": "' + b"a" * 10_000_001 + b'"}'), "makes no sense"),
        (faults.Fault(200, b"<html>Sign in</html>", {"Content-Type": "text/html"}), "makes no sense"),
        (faults.broken(503), "a fault of its own (503)"),
        (faults.Fault(520, b"", {}), "a fault of its own (520)"),
        (faults.cut(), "cannot be reached"),
        (faults.Fault(302, b"", {"Location": "https://evil.example/api/v3/x"}), "another address"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_every_refusal_has_a_readable_reason(
    server: GitHubServer, passing: PassingTime, fault: faults.Fault, words: str
) -> None:
    server.faults.arm("POST", PULLS, fault, times=10)
    async with keeping(server, passing) as keeper:
        with pytest.raises(CodeHostError) as caught:
            await keeper.open(NEW)
    assert words in str(caught.value)
    assert TOKEN not in repr(caught.value)
    assert server.repository.pull_requests == []


async def test_an_impossible_pull_request_is_explained(server: GitHubServer) -> None:
    server.repository.git.git("update-ref", f"refs/heads/{BRANCH}", "refs/heads/main")
    async with keeping(server) as keeper:
        with pytest.raises(CodeHostError, match="nothing to propose"):
            await keeper.open(NEW)
        with pytest.raises(CodeHostError, match="did not open a pull request: Validation Failed"):
            await keeper.open(NewPullRequest("pagehand/none", "t", "d"))


@pytest.mark.parametrize(
    "fault", [faults.broken(), faults.cut(), faults.nonsense(status=500)], ids=["502", "cut", "garbled"]
)
async def test_reading_survives_transient_errors(
    server: GitHubServer, passing: PassingTime, fault: faults.Fault
) -> None:
    server.faults.arm("GET", PULLS, fault, times=3)
    async with keeping(server, passing) as keeper:
        assert await keeper.find(BRANCH) is None
    assert server.count("GET", PULLS) == 4
    assert 0 < sum(passing.slept) < 15


@pytest.mark.parametrize(
    "fault",
    [
        faults.broken(applied=True),
        faults.cut(applied=True),
        faults.nonsense(applied=True),
        faults.broken(),
        faults.cut(),
    ],
    ids=["502 applied", "cut applied", "garbled", "502", "cut"],
)
async def test_a_creation_whose_answer_was_lost_is_looked_for_first(
    server: GitHubServer, passing: PassingTime, fault: faults.Fault
) -> None:
    server.faults.arm("POST", PULLS, fault)
    async with keeping(server, passing) as keeper:
        opened = await keeper.open(NEW)
    assert opened.number == 1
    assert len(server.repository.pull_requests) == 1
    calls = [one.method for one in server.asked if one.path == PULLS]
    assert calls == (["POST", "GET"] if fault.applied else ["POST", "GET", "POST"])


async def test_a_short_rate_limit_is_waited_for(server: GitHubServer, passing: PassingTime) -> None:
    server.faults.arm("GET", PULLS, faults.rate_limited(passing.now() + 20))
    server.faults.arm("POST", PULLS, faults.secondary_limit(retry_after=7, status=429))
    async with keeping(server, passing) as keeper:
        assert await keeper.find(BRANCH) is None
        assert (await keeper.open(NEW)).number == 1
    assert 19 <= passing.slept[0] <= 22
    assert passing.slept[1:] == [7]


@pytest.mark.parametrize("minutes", [5, 50])
async def test_a_long_rate_limit_is_a_reason_and_stops_further_calls(server: GitHubServer, minutes: int) -> None:
    passing = PassingTime(14 * 3600.0)
    server.faults.arm("GET", PULLS, faults.rate_limited(passing.now() + minutes * 60 - 30))
    async with keeping(server, passing) as keeper:
        for _ in range(3):
            with pytest.raises(CodeHostError, match=f"lets nothing through until 14:{minutes:02} UTC"):
                await keeper.find(BRANCH)
        assert server.count("GET", PULLS) == 1
        passing.at += minutes * 60
        assert await keeper.find(BRANCH) is None


async def test_a_lasting_secondary_limit_is_a_reason(server: GitHubServer, passing: PassingTime) -> None:
    """After a minute, in which the job is still active; the proposal is tried again later."""
    server.faults.arm("POST", PULLS, faults.secondary_limit(), times=10)
    async with keeping(server, passing) as keeper:
        with pytest.raises(CodeHostError, match="limits the rate of calls"):
            await keeper.open(NEW)
    assert passing.slept == [60]


@pytest.mark.parametrize("identity", [{}, as_app()], ids=["token", "app"])
async def test_a_renamed_repository_is_explained(server: GitHubServer, identity: dict[str, Any]) -> None:
    async with keeping(server, **identity) as keeper:
        server.repository.rename("acme-inc", "handbook")
        with pytest.raises(CodeHostError, match="set PAGEHAND_JOBSERVER_REPOSITORY"):
            await keeper.open(NEW)
    assert server.repository.pull_requests == []


async def test_no_output_shows_the_token(server: GitHubServer) -> None:
    for identity in ({}, as_app()):
        async with connected(server, **identity) as github:
            await github.pull_requests("main").find(BRANCH)
            assert github.credentials
            shown = repr((github, github.credentials, github.credentials.tokens))
            assert "planted-secret" not in shown
            assert "PRIVATE" not in shown


INSTALLATION = "/repos/acme/docs/installation"


async def test_one_token_serves_concurrent_calls_and_only_this_repository(server: GitHubServer) -> None:
    async with keeping(server, **as_app()) as keeper:
        await asyncio.gather(*(keeper.find(BRANCH) for _ in range(5)))
    assert server.token_requests == [{"repositories": ["docs"]}]


async def test_a_token_is_renewed_shortly_before_it_expires(server: GitHubServer) -> None:
    passing = PassingTime(time.time())
    async with keeping(server, passing, **as_app()) as keeper:
        for minutes, made in ((0, 1), (50, 1), (6, 2)):
            passing.at += minutes * 60
            await keeper.find(BRANCH)
            assert len(server.token_requests) == made


async def test_a_revoked_token_is_renewed_once(server: GitHubServer) -> None:
    async with keeping(server, **as_app()) as keeper:
        await keeper.find(BRANCH)
        server.tokens.clear()
        await asyncio.gather(*(keeper.find(BRANCH) for _ in range(3)))
        assert len(server.token_requests) == 2
        server.faults.arm("GET", "/repos/acme/docs/pulls", faults.error(401, "Bad credentials"), times=3)
        with pytest.raises(CodeHostError, match="does not accept the token"):
            await keeper.find(BRANCH)
        assert len(server.faults.left) == 1


async def test_an_app_that_is_not_installed_is_explained(server: GitHubServer) -> None:
    server.is_installed = False
    async with keeping(server, **as_app()) as keeper:
        with pytest.raises(CodeHostError, match="is not installed for this repository: install it"):
            await keeper.find(BRANCH)


async def test_a_wrong_key_is_explained(server: GitHubServer) -> None:
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = SecretStr(other.private_bytes(serialization.Encoding.PEM, form, none).decode())
    async with keeping(server, **(as_app() | {"github_app_private_key": pem})) as keeper:
        with pytest.raises(CodeHostError, match="does not know the App: check PAGEHAND_JOBSERVER_GITHUB_APP_ID"):
            await keeper.find(BRANCH)


async def test_transient_errors_while_creating_a_token_are_retried(server: GitHubServer) -> None:
    passing = PassingTime(time.time())
    server.faults.arm("GET", INSTALLATION, faults.broken(), times=2)
    server.faults.arm("POST", "/app/installations/77/access_tokens", faults.nonsense(status=201))
    async with keeping(server, passing, **as_app()) as keeper:
        assert await keeper.find(BRANCH) is None


async def shown(settings: JobServerSettings) -> list[str]:
    signs = {True: "ok", False: "failed", None: "note"}
    return [f"{signs[result.is_ok]}: {result.name}: {result.message}" for result in await check_github(settings)]


@pytest.mark.parametrize("identity", [{}, as_app()], ids=["token", "app"])
async def test_the_github_check_reports_what_works_and_changes_nothing(
    server: GitHubServer, identity: dict[str, Any]
) -> None:
    assert await shown(settings_for(server, **identity)) == [
        "ok: GitHub: the repository acme/docs can be read",
        "ok: pull requests: they can be opened",
        "ok: checks: it can read the checks of commits",
        "ok: checks: it can read the statuses of commits",
    ]
    assert server.repository.pull_requests == []


async def test_the_github_check_names_missing_permissions(server: GitHubServer) -> None:
    server.tokens[TOKEN] = frozenset()
    lines = await shown(settings_for(server))
    assert lines[1].startswith("failed: pull requests: the token or App may not open a pull request")
    assert [line.partition(":")[0] for line in lines[2:]] == ["note", "note"]


async def test_the_github_check_explains_a_wrong_identity(server: GitHubServer) -> None:
    (line,) = await shown(settings_for(server, github_token=SecretStr("planted-secret-old")))
    assert line.startswith("failed: GitHub: GitHub does not accept the token: make a new one")
    given = {"REPOSITORY": server.repository_url, "API_KEY": KEY, "GITHUB_TOKEN": "planted-secret-old"}
    environment = {PREFIX + name: value for name, value in given.items()}
    ended = await asyncio.to_thread(CliRunner().invoke, main, ["jobserver", "--check"], env=environment)
    assert ended.exit_code == 1
    assert "FAIL GitHub         GitHub does not accept the token" in ended.output
    server.repository.archived = True
    assert (await shown(settings_for(server)))[-1] == ("failed: push: the repository is archived: nobody can change it")


async def test_reading_is_paced_and_a_refusal_is_explained(server: GitHubServer, passing: PassingTime) -> None:
    commit = server.repository.git.head(BRANCH) or ""
    async with keeping(server, passing) as keeper:
        await keeper.open(NEW)
        first = await keeper.read(1)
        server.asked.clear()
        server.repository.check_runs[commit] = [{"name": "links", "status": "completed", "conclusion": "failure"}]
        assert await keeper.read(1) == first
        assert server.asked == []
        passing.at += AT_LEAST
        found = await keeper.read(1)
        assert [check.name for check in found.checks] == ["links"], "a webhook may have sent the bot for this"
        server.faults.arm("GET", f"{PULLS}/1", faults.error(404, "Not Found"), times=10)
        passing.at += LOOK_EVERY_S
        with pytest.raises(CodeHostError, match="shows no such pull request"):
            await keeper.read(1)
