"""What we say to GitHub, and what our stand-ins answer, by GitHub's own descriptions; and its examples, read by us.

The stand-ins check each call and answer of all other tests, too (`official_faults`), once the package is installed.
"""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.agents.packages import NotInstalled, Package, installed_folder
from support.fakes.github import COMMENTS, PULL, RUNS, WEB, GitHubInMemory, pull
from support.oracles import github_api
from support.oracles.github_api import GitHubApi, documents, official_faults

from bot.codehosts.github import GitHub
from bot.codehosts.github_client import GRAPHQL, GitHubAnswer
from bot.codehosts.pull_request import Check, CheckOutcome, Comment, Found, Preview, PullRequest, Review, Verdict
from bot.jobapi.models import PullRequestState
from bot.jobserver.pull_requests.github.wire import (
    InstallationPayload,
    InstallationTokenPayload,
    PullRequestPayload,
    RepositoryPayload,
    parse,
)

SCHEMA = Package("@octokit/graphql-schema", "15.26.1")
LINK = f"{WEB}/octocat/Hello-World/pull/1347"
HEAD = "6dcb09b5b57875f334f61aebed695e2e4193db5e"


def folder_of(package: Package) -> Path:
    try:
        return installed_folder(package)
    except NotInstalled as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def api() -> GitHubApi:
    folder_of(github_api.PACKAGE)
    documents.cache_clear()
    return documents()[0]


@pytest.mark.parametrize(
    ("call", "status", "answer", "fault"),
    [
        (("GET", f"{PULL}?per_page=1", None), 404, {"message": "Not Found"}, "there is no parameter per_page"),
        (("GET", f"{COMMENTS}?per_page=all", None), 404, {}, "'all' is not of type 'integer'"),
        (("GET", "/repos/acme/docs/merges/1", None), 404, {}, "there is no such operation"),
        (("GET", PULL, None), 418, {}, "it does not answer 418"),
        (("GET", PULL, None), 404, {"reason": "x"}, "Additional properties are not allowed ('reason' was unexpected)"),
        (("GET", PULL, None), 200, pull(), "is a required property"),
        (("POST", "/repos/acme/docs/pulls", {"title": "x", "head": "a"}), 403, {}, "'base' is a required property"),
    ],
)
@pytest.mark.usefixtures("api")
def test_what_github_does_not_describe_is_found(
    call: tuple[str, str, object], status: int, answer: object, fault: str
) -> None:
    assert [fault in found for found in official_faults(*call, status, answer)] == [True, True]


class Examples:
    """A GitHub that answers with its own examples."""

    def __init__(self, api: GitHubApi, changed: Mapping[str, Any]) -> None:
        self._api = api
        self._changed = changed

    async def send(
        self, method: str, path: str, _body: Mapping[str, Any] | None = None, *, etag: str = ""
    ) -> GitHubAnswer:
        del etag
        place = path.partition("?")[0]
        if place == GRAPHQL or place.endswith(str(self._changed.get("denied"))):
            return GitHubAnswer(403, {}, {"message": "Resource not accessible by personal access token"})
        told = self._api.example(method, place)
        return GitHubAnswer(200, {}, told | self._changed if place.endswith("/1347") else told)


READ = PullRequest(
    number=1347,
    link=LINK,
    state=PullRequestState.OPEN,
    title="Amazing new feature",
    head=HEAD,
    base="master",
    mergeable=True,
    updated_at="2011-01-26T19:01:12Z",
    checks=(
        Check(name="mighty_readme", outcome=CheckOutcome.PASSED, link="https://github.com/github/hello-world/runs/4"),
        Check(
            name="continuous-integration/jenkins",
            outcome=CheckOutcome.PASSED,
            link="https://ci.example.com/1000/output",
        ),
        Check(name="security/brakeman", outcome=CheckOutcome.PASSED, link="https://ci.example.com/2000/output"),
    ),
    reviews=(
        Review(
            author="octocat",
            verdict=Verdict.APPROVED,
            head="ecdd80bb57125d7ba9641ffaa4d7d2c19d3f3091",
            link="https://github.com/octocat/Hello-World/pull/12#pullrequestreview-80",
        ),
    ),
    comments=(Comment(id=10, path="file1.txt", line=2, words="Great stuff!", author="octocat"),),
    previews=(Preview(name="production", link="https://test-branch.lab.acme.com"),),
    unread=("whether comments are resolved",),
)
BUILD = Check(
    name="Build", outcome=CheckOutcome.RUNNING, link="https://github.com/octo-org/octo-repo/actions/runs/30433642"
)
OPEN = {"merged": False, "merged_at": None, "merged_by": None}


@pytest.mark.parametrize(
    ("changed", "read"),
    [
        (OPEN, READ),
        (
            {**OPEN, "denied": RUNS},
            READ.model_copy(update={"checks": (BUILD, *READ.checks[1:]), "unread": ("checks", *READ.unread)}),
        ),
        (
            {},
            PullRequest(
                number=1347,
                link=LINK,
                state=PullRequestState.MERGED,
                title="Amazing new feature",
                head=HEAD,
                base="master",
                ended_by="octocat",
                updated_at="2011-01-26T19:01:12Z",
            ),
        ),
    ],
    ids=["open", "without the right to read checks", "merged"],
)
async def test_githubs_own_examples_are_read_whole(api: GitHubApi, changed: dict[str, Any], read: PullRequest) -> None:
    github = GitHub(Examples(api, changed), web_url=WEB, now=lambda: 0.0, hide=lambda text: text)
    found = await github.read(LINK)
    assert isinstance(found, Found)
    assert found.pull_request == read


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("GET", "/repos/acme/docs", RepositoryPayload),
        ("GET", PULL, PullRequestPayload),
        ("POST", "/repos/acme/docs/pulls", PullRequestPayload),
        ("GET", "/repos/acme/docs/pulls", list[PullRequestPayload]),
        ("GET", "/repos/acme/docs/installation", InstallationPayload),
        ("POST", "/app/installations/77/access_tokens", InstallationTokenPayload),
    ],
)
def test_githubs_own_examples_are_taken_by_the_job_server(api: GitHubApi, method: str, path: str, kind: Any) -> None:
    assert parse(kind, api.example(method, path))


def test_queries_and_their_answers_are_of_githubs_schema() -> None:
    packages = folder_of(SCHEMA) / "node_modules"
    node, schema = shutil.which("node"), packages / SCHEMA.name / "schema.graphql"
    assert node is not None, "npm comes with it"
    github = GitHubInMemory()
    github.graphql["reviewThreads"] = {"nodes": [{"isResolved": True, "comments": {"nodes": [{"databaseId": 12}]}}]}
    asyncio.run(github.read())
    asked = [{**body, "data": answer["data"]} for body, answer in github.queries]
    assert len(asked) == 2
    wrong = {"query": "{ viewer { login } }", "data": {"viewer": {"login": 1, "name": "x"}}}
    script = Path(github_api.__file__).with_name("graphql_faults.cjs")
    ended = subprocess.run(
        (node, script, schema),
        input=json.dumps([*asked, wrong]),
        env={**os.environ, "NODE_PATH": str(packages)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert json.loads(ended.stdout) == ['not asked for: {"viewer":{"login":1,"name":"x"}}']
