"""Reading pull requests at GitHub: what is told, what it costs, and what GitHub can answer."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.any_json import any_json
from support.fakes.github import (
    ACTIONS,
    ACTIONS_OF_BASE,
    COMMENTS,
    DEPLOYMENTS,
    HEAD,
    LINK,
    NEXT_HEAD,
    PULL,
    REVIEWS,
    RUNS,
    STATUSES,
    WEB,
    GitHubInMemory,
    pull,
)

from bot.codehosts.github import GitHub, parse_link
from bot.codehosts.github_client import GRAPHQL, GitHubAnswer, NoGitHubAnswerError
from bot.codehosts.github_webhook import named_links
from bot.codehosts.pull_request import CheckOutcome, Found, NotModified, Reason, Unreadable, Verdict
from bot.jobapi.models import PullRequestState
from bot.runtime.secrets.masking import SecretMasker


def run(name: str, conclusion: str | None, status: str = "completed") -> dict[str, Any]:
    return {"name": name, "status": status, "conclusion": conclusion, "html_url": f"{WEB}/runs/{name}"}


@pytest.fixture
def github() -> GitHubInMemory:
    return GitHubInMemory()


async def test_an_unchanged_pull_request_costs_nothing(github: GitHubInMemory) -> None:
    github.checks(run("links", "success"))
    github.answers[DEPLOYMENTS] = [{"id": 5, "environment": "preview"}]
    github.answers[f"{DEPLOYMENTS}/5/statuses"] = [{"state": "success", "environment_url": "https://preview.example/7"}]
    first = await github.found()
    assert [(one.name, one.link) for one in first.pull_request.previews] == [("preview", "https://preview.example/7")]
    github.charged.clear()
    assert await github.code_host.read(LINK, first) == NotModified()
    assert github.charged == []


def of_check(name: str, link: str | None, conclusion: str | None = "success") -> dict[str, Any]:
    return {**run(name, conclusion), "details_url": link}


@pytest.mark.parametrize(
    ("patterns", "shown"),
    [
        ((), ["preview"]),
        (("Deploy Preview*",), ["Deploy Preview for docs"]),
        (("preview", "netlify/*"), ["preview", "netlify/docs/deploy"]),
        (("*",), ["preview", "Deploy Preview for docs", "links", "netlify/docs/deploy"]),
        (("deploy*", "netlify", "storybook"), []),
    ],
)
async def test_the_settings_name_what_leads_to_a_preview(
    github: GitHubInMemory, patterns: tuple[str, ...], shown: list[str]
) -> None:
    """Deployments do without a setting; checks only if they have passed, and only with a page of the web."""
    github.watch(patterns)
    github.checks(
        of_check("Deploy Preview for docs", "https://7.preview.example"),
        of_check("links", "https://ci.example/1"),
        of_check("Deploy Preview running", "https://ci.example/2", conclusion=None),
        of_check("Deploy Preview of no page", None),
        of_check("Deploy Preview of evil", "javascript:alert(1)"),
        statuses=(
            {"context": "netlify/docs/deploy", "state": "success", "target_url": "HTTPS://netlify.example/7"},
            {"context": "netlify/docs/failed", "state": "failure", "target_url": "https://netlify.example/8"},
            {"context": "netlify/docs/same", "state": "success", "target_url": "https://preview.example/7"},
        ),
    )
    deploy(github, "https://preview.example/7")
    found = await github.found()
    names = [preview.name for preview in found.pull_request.previews]
    assert [{"netlify/docs/same": "preview"}.get(name, name) for name in names] == shown
    assert {check.name: check.link for check in found.pull_request.checks}["links"] == (
        "https://ci.example/1" if "*" in patterns else f"{WEB}/runs/links"
    )
    github.charged.clear()
    assert await github.code_host.read(LINK, found) == NotModified()
    assert github.charged == []


def deploy(github: GitHubInMemory, link: str) -> None:
    number = ord(link[-1])
    github.answers[DEPLOYMENTS] = [{"id": number, "environment": "preview"}]
    github.answers[f"{DEPLOYMENTS}/{number}/statuses"] = [{"state": "success", "environment_url": link}]


async def test_what_one_of_both_leads_to_is_kept_while_the_other_changes(github: GitHubInMemory) -> None:
    github.watch(("*",))

    async def seen(known: Found | None = None) -> tuple[Found, list[str]]:
        found = await github.found(known)
        return found, [preview.link for preview in found.pull_request.previews]

    deploy(github, "https://preview.example/7")
    github.checks(of_check("site", "https://site.example/1"))
    found, links = await seen()
    assert links == ["https://preview.example/7", "https://site.example/1"]
    github.checks(of_check("site", "https://site.example/2"))
    found, links = await seen(found)
    assert links == ["https://preview.example/7", "https://site.example/2"]
    deploy(github, "https://preview.example/8")
    found, links = await seen(found)
    assert links == ["https://preview.example/8", "https://site.example/2"]
    github.checks(of_check("site", "https://site.example/2", "failure"))
    assert (await seen(found))[1] == ["https://preview.example/8"]


async def test_a_deployment_outlasts_a_check_that_leads_to_the_same_page(github: GitHubInMemory) -> None:
    github.watch(("*",))
    deploy(github, "https://preview.example/7")
    github.checks(of_check("site", "https://preview.example/7"))
    found = await github.found()
    github.checks(of_check("site", "https://preview.example/7", "failure"))
    assert [(one.name, one.link) for one in (await github.found(found)).pull_request.previews] == [
        ("preview", "https://preview.example/7")
    ]


async def test_comments_lead_to_no_preview(github: GitHubInMemory) -> None:
    github.watch(("*",))
    github.answers[COMMENTS] = [{"id": 1, "body": "Preview: https://evil.example", "user": {"login": "bot[bot]"}}]
    assert (await github.read()).previews == ()


async def test_a_deployment_leads_to_the_web_only(github: GitHubInMemory) -> None:
    deploy(github, "javascript:alert(1)")
    assert (await github.read()).previews == ()


async def test_of_what_changed_the_rest_is_kept(github: GitHubInMemory) -> None:
    github.checks(run("links", "success"), statuses=({"context": "site", "state": "pending"},))
    github.answers[REVIEWS] = [{"id": 1, "state": "APPROVED", "user": {"login": "ana"}}]
    first = await github.found()
    github.charged.clear()
    github.checks(run("links", "failure"), statuses=({"context": "site", "state": "pending"},))
    second = (await github.found(first)).pull_request
    assert [(check.name, check.outcome.value) for check in second.checks] == [("links", "failed"), ("site", "running")]
    assert second.reviews == first.pull_request.reviews
    assert not any("pulls" in path or "graphql" in path for path in github.charged)


@pytest.mark.parametrize(
    ("told", "state", "ended_by"),
    [
        ({"state": "closed", "merged": True, "merged_by": {"login": "ana"}}, PullRequestState.MERGED, "ana"),
        ({"state": "closed", "merged_at": "2026-11-27T11:00:00Z"}, PullRequestState.MERGED, None),
        ({"state": "closed"}, PullRequestState.CLOSED, None),
        ({"state": "paused"}, None, None),
    ],
)
async def test_how_it_ended_is_told_and_its_checks_are_not(
    github: GitHubInMemory, told: dict[str, Any], state: PullRequestState | None, ended_by: str | None
) -> None:
    github.checks(run("links", "failure"))
    first = await github.found()
    github.is_odd = state is None
    github.answers[PULL] = pull(**told, updated_at="2026-11-27T11:00:00Z")
    ended = (await github.found(first)).pull_request
    assert (ended.state, ended.ended_by, ended.checks) == (state, ended_by, ())


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (run("x", None), CheckOutcome.UNKNOWN),
        (run("x", "stale"), CheckOutcome.UNKNOWN),
        (run("x", "startup_failure"), CheckOutcome.FAILED),
        (run("x", None, "waiting"), CheckOutcome.RUNNING),
        (run("x", "skipped"), CheckOutcome.SKIPPED),
        ({"status": 3, "conclusion": ["failure"], "output": "none"}, CheckOutcome.RUNNING),
    ],
)
async def test_a_check_fails_only_if_github_says_so(
    github: GitHubInMemory, told: dict[str, Any], outcome: CheckOutcome
) -> None:
    github.is_odd = True
    github.checks(told)
    assert [check.outcome for check in (await github.read()).checks] == [outcome]


async def test_no_checks_at_all_are_not_pending(github: GitHubInMemory) -> None:
    github.checks()
    assert (await github.read()).checks == ()


async def test_what_github_leaves_out_is_unknown(github: GitHubInMemory) -> None:
    """The fork was deleted, and GitHub still computes whether it can be merged."""
    github.answers[PULL] = pull(head={"sha": HEAD, "repo": None}, mergeable=None)
    read = await github.read()
    assert (read.head, read.state, read.mergeable) == (HEAD, PullRequestState.OPEN, None)


async def test_one_that_is_opened_again_has_its_checks_again(github: GitHubInMemory) -> None:
    github.checks(run("links", "failure"))
    found = await github.found()
    for state, checks in (("closed", ()), ("open", found.pull_request.checks)):
        github.answers[PULL] = pull(state=state)
        found = await github.found(found)
        assert found.pull_request.checks == checks


async def test_a_preview_is_told_once_it_is_there(github: GitHubInMemory) -> None:
    """What becomes of a deployment changes no answer that has an ETag."""
    github.answers[DEPLOYMENTS] = [{"id": 5, "environment": "preview"}]
    found = await github.found()
    for state, names in (("in_progress", []), ("success", ["preview"])):
        told = {"state": state, "environment_url": "https://preview.example/7"}
        github.answers[f"{DEPLOYMENTS}/5/statuses"] = [told]
        found = await github.found(found)
        assert [preview.name for preview in found.pull_request.previews] == names


async def test_what_the_base_branch_fails_is_marked(github: GitHubInMemory) -> None:
    github.checks(run("links", "failure"), run("style", "failure"))
    github.checks(run("links", "failure"), ref="main")
    assert {check.name: check.fails_on_base for check in (await github.read()).checks} == {
        "links": True,
        "style": False,
    }


async def test_without_a_base_branch_nothing_is_asked_of_it(github: GitHubInMemory) -> None:
    github.is_odd = True
    github.answers[PULL] = pull(base={})
    github.checks(run("links", "failure"))
    read = await github.read()
    assert ([(check.name, check.fails_on_base) for check in read.checks], read.unread) == ([("links", False)], ())
    assert [call for call in github.charged if "/commits//" in call] == []


async def test_a_token_that_may_not_read_checks_gets_the_runs_of_actions(github: GitHubInMemory) -> None:
    github.status = {RUNS: 403}
    github.answers[ACTIONS] = {"workflow_runs": [run("build", "failure")]}
    github.checks(statuses=({"context": "site", "state": "success", "target_url": "https://site.example"},))
    found = await github.found()
    assert [check.name for check in found.pull_request.checks] == ["build", "site"]
    assert found.pull_request.unread == ("checks",)
    github.charged.clear()
    assert await github.code_host.read(LINK, found) == NotModified()
    assert github.charged == [], "what is denied is not asked for again"


async def test_without_the_right_to_read_checks_too_the_base_branchs_failures_are_marked(
    github: GitHubInMemory,
) -> None:
    """Its newest run of a workflow counts."""
    github.status = {RUNS: 403}
    names = ("build", "links", "style")
    github.answers[ACTIONS] = {"workflow_runs": [run(name, "failure") for name in names]}
    of_base = [run("build", "failure"), run("links", "success"), run("build", "success"), run("links", "failure")]
    github.answers[ACTIONS_OF_BASE] = {"workflow_runs": of_base}
    first = await github.found()
    assert [check.fails_on_base for check in first.pull_request.checks] == [True, False, False]
    github.answers[ACTIONS] = {"workflow_runs": [run(name, "failure") for name in names[:2]]}
    second = await github.found(first)
    assert [check.fails_on_base for check in second.pull_request.checks] == [True, False]


async def test_what_was_denied_is_asked_for_again_once_something_changes(github: GitHubInMemory) -> None:
    github.answers[REVIEWS] = [{"id": 1, "state": "APPROVED", "user": {"login": "ana"}}]
    github.status = {REVIEWS: 403, GRAPHQL: 403}
    first = await github.found()
    assert first.pull_request.unread == ("reviews", "whether comments are resolved")
    github.checks(run("links", "success"))
    second = await github.found(first)
    assert second.pull_request.unread == first.pull_request.unread
    github.status = {}
    github.answers[PULL] = pull(updated_at="2026-11-27T11:00:00Z")
    third = (await github.found(second)).pull_request
    assert (third.unread, [review.author for review in third.reviews]) == ((), ["ana"])


async def test_a_new_commit_has_its_own_checks(github: GitHubInMemory) -> None:
    github.status = {RUNS: 403}
    github.checks(run("links", "failure"))
    first = await github.found()
    github.status = {}
    github.answers[PULL] = pull(head={"sha": NEXT_HEAD}, updated_at="2026-11-27T11:00:00Z")
    second = (await github.found(first)).pull_request
    assert (second.head, second.checks, second.unread) == (NEXT_HEAD, (), ())


async def test_the_newest_decision_of_a_reviewer_counts(github: GitHubInMemory) -> None:
    def review(number: int, login: str | None, state: str) -> dict[str, Any]:
        return {"id": number, "user": login and {"login": login}, "state": state, "commit_id": HEAD}

    github.answers[REVIEWS] = [
        review(1, "ana", "APPROVED"),
        review(2, "ana", "CHANGES_REQUESTED"),
        review(3, "ana", "COMMENTED"),
        review(4, None, "DISMISSED"),
        review(5, "ben", "PENDING"),
        review(6, "carl", "REFERRED"),
    ]
    github.answers[COMMENTS] = [{"id": n, "pull_request_review_id": 2, "path": "a.md", "line": n} for n in (1, 2)]
    reviews = (await github.read()).reviews
    assert [(one.author, one.verdict, one.comments, one.head) for one in reviews] == [
        ("ana", Verdict.CHANGES_REQUESTED, 2, HEAD),
        ("ghost", Verdict.DISMISSED, 0, HEAD),
        ("carl", Verdict.UNKNOWN, 0, HEAD),
    ]


async def test_comments_are_told_with_whether_they_are_resolved(github: GitHubInMemory) -> None:
    secret = "ghp_" + "a1B2" * 9
    github.answers[COMMENTS] = [
        {"id": 11, "path": "a.md", "line": 3, "body": f"Use {secret} here", "user": {"login": "ana", "type": "User"}},
        {"id": 12, "path": "a.md", "line": None, "body": "Outdated", "user": {"login": "lint[bot]", "type": "Bot"}},
    ]
    thread = {"isResolved": True, "comments": {"nodes": [{"databaseId": 12}]}}
    github.graphql["reviewThreads"] = {"nodes": [thread, {"isResolved": None}]}
    comments = (await github.read()).comments
    assert [(one.id, one.line, one.author, one.by_bot, one.resolved) for one in comments] == [
        (11, 3, "ana", False, None),
        (12, None, "lint[bot]", True, True),
    ]
    assert secret not in str(comments)


async def test_comments_of_further_pages_are_read_each_time(github: GitHubInMemory) -> None:
    github.answers[COMMENTS] = [{"id": n} for n in range(130)]
    found = await github.found()
    assert [comment.id for comment in found.pull_request.comments] == list(range(30, 130)), "the newest"
    github.answers[COMMENTS].append({"id": 130})
    assert (await github.found(found)).pull_request.comments[-1].id == 130


async def test_a_merge_queue_is_seen_where_it_can_be(github: GitHubInMemory) -> None:
    github.graphql["isInMergeQueue"] = True
    assert (await github.read()).queued is True
    for github.status in ({GRAPHQL: 403}, {}):
        without = await github.read()
        assert (without.queued, without.unread) == (None, ("whether comments are resolved",))
        github.graphql.clear()


async def test_a_place_in_a_merge_queue_can_be_lost_silently(github: GitHubInMemory) -> None:
    github.graphql["isInMergeQueue"] = True
    queued = await github.found()
    github.graphql["isInMergeQueue"] = False
    assert (await github.found(queued)).pull_request.queued is False


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (401, {}, Unreadable(Reason.NOT_ALLOWED)),
        (403, {}, Unreadable(Reason.NOT_ALLOWED)),
        (403, {"retry-after": "30"}, Unreadable(Reason.RATE_LIMITED, 30.0)),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "100"}, Unreadable(Reason.RATE_LIMITED, 101.0)),
        (404, {}, Unreadable(Reason.NOT_FOUND)),
        (301, {"location": "https://evil.example/"}, Unreadable(Reason.MOVED)),
        (502, {}, Unreadable(Reason.OUT_OF_REACH)),
    ],
)
async def test_an_answer_without_a_pull_request_claims_nothing(
    github: GitHubInMemory, status: int, headers: dict[str, str], expected: Unreadable
) -> None:
    github.status, github.headers = {PULL: status}, headers
    assert await github.code_host.read(LINK) == expected


@pytest.mark.parametrize("part", [RUNS, STATUSES, REVIEWS, COMMENTS, DEPLOYMENTS, GRAPHQL])
async def test_an_outage_in_the_middle_claims_nothing(github: GitHubInMemory, part: str) -> None:
    github.status = {part: 503}
    assert await github.code_host.read(LINK) == Unreadable(Reason.OUT_OF_REACH)


async def test_the_pace_that_github_asks_for_is_kept(github: GitHubInMemory) -> None:
    github.headers = {"x-poll-interval": "90"}
    found = await github.found()
    assert found.wait == 90.0
    assert await github.code_host.read(LINK, found) == NotModified(90.0)


async def test_while_a_limit_lasts_nothing_else_is_asked_with_the_token(github: GitHubInMemory) -> None:
    github.status, github.headers = {"/7": 429}, {"retry-after": "60"}
    assert await github.code_host.read(LINK) == Unreadable(Reason.RATE_LIMITED, 60.0)
    assert await github.code_host.read(f"{LINK[:-1]}8") == Unreadable(Reason.RATE_LIMITED, 60.0)
    assert await github.code_host.read("https://elsewhere.example/a/b/pull/1") == Unreadable(Reason.UNKNOWN_HOST)
    assert len(github.charged) == 1


async def test_a_limit_outlasts_what_was_asked_before_it() -> None:
    """A reading of another pull request that fails later does not lift it."""
    begun, limited = asyncio.Event(), asyncio.Event()

    class Slow(GitHubInMemory):
        async def send(self, method: str, path: str, *arguments: Any, **options: Any) -> GitHubAnswer:
            if path.endswith("/8"):
                begun.set()
                await limited.wait()
            return await super().send(method, path, *arguments, **options)

    slow = Slow()
    slow.status, slow.headers = {"/7": 429, "/8": 404}, {"retry-after": "60"}
    asked_before = asyncio.create_task(slow.code_host.read(f"{LINK[:-1]}8"))
    await begun.wait()
    assert await slow.code_host.read(LINK) == Unreadable(Reason.RATE_LIMITED, 60.0)
    limited.set()
    assert await asked_before == Unreadable(Reason.NOT_FOUND)
    assert await slow.code_host.read(LINK) == Unreadable(Reason.RATE_LIMITED, 60.0)
    assert slow.charged.count(f"GET {PULL}") == 1


async def test_a_limit_that_is_used_up_is_not_tried(github: GitHubInMemory) -> None:
    github.headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "100"}
    limited = Unreadable(Reason.RATE_LIMITED, 101.0)
    assert [await github.code_host.read(LINK), await github.code_host.read(LINK)] == [limited, limited]
    assert github.charged == [f"GET {PULL}"]


async def test_a_secondary_limit_can_be_named_in_the_body_only(github: GitHubInMemory) -> None:
    github.status, github.said = {"/7": 403}, "You have exceeded a secondary rate limit."
    assert await github.code_host.read(LINK) == Unreadable(Reason.RATE_LIMITED, 60.0)


async def test_another_pull_requests_answer_is_refused(github: GitHubInMemory) -> None:
    github.answers[PULL] = pull(number=8)
    assert await github.code_host.read(LINK) == Unreadable(Reason.NONSENSE)


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/acme/docs/pull/7",
        "https://github.example.evil/acme/docs/pull/7",
        "https://github.example@evil.example/acme/docs/pull/7",
        "http://github.example/acme/docs/pull/7",
        f"{WEB}/acme/../pull/7",
        f"{WEB}/acme/docs/pull/7x",
        f"{WEB}/acme/do%2Fcs/pull/7",
        f"{WEB}/acme/docs/issues/7",
    ],
)
async def test_a_link_to_elsewhere_is_not_followed(github: GitHubInMemory, link: str) -> None:
    assert await github.code_host.read(link) == Unreadable(Reason.UNKNOWN_HOST)
    assert github.charged == []


def test_a_link_to_a_part_of_it_leads_to_it() -> None:
    assert parse_link(f"{LINK}/files?w=1", WEB) == parse_link(LINK, f"{WEB}/")


async def test_no_answer_is_an_outage(github: GitHubInMemory) -> None:
    async def send(*_: Any, **__: Any) -> GitHubAnswer:
        raise NoGitHubAnswerError("TimeoutError")

    github.send = send  # type: ignore[method-assign]
    assert await github.code_host.read(LINK) == Unreadable(Reason.OUT_OF_REACH)


async def test_a_flood_is_read_within_bounds(github: GitHubInMemory) -> None:
    """A body is at most 10 MB: as many items, or as long a text, as fit."""
    github.is_odd = True
    masked: list[int] = []

    def hide(text: str) -> str:
        masked.append(len(text))
        return SecretMasker().mask(text).text

    github.code_host = GitHub(github, web_url=WEB, now=lambda: 0.0, hide=hide)
    github.answers[PULL] = pull(title="word " * 1_000_000)
    github.answers[COMMENTS] = [{"id": n, "body": "word " * 20_000} for n in range(100)]
    github.checks(*[{} for _ in range(100_000)], run("x " * 1_000_000, "failure"))
    read = await github.read()
    assert (len(read.comments), len(read.checks)) == (100, 100)
    assert max(masked) <= 10_000


JSON = any_json()


@given(place=st.sampled_from([PULL, REVIEWS, COMMENTS, DEPLOYMENTS, f"/{RUNS}", STATUSES, ACTIONS]), data=JSON)
async def test_any_json_is_read_or_refused(place: str, data: Any) -> None:
    github = GitHubInMemory(is_odd=True)
    github.answers[place] = data
    assert isinstance(await github.code_host.read(LINK), Found | Unreadable)


_EVENT_KEYS = st.sampled_from(
    ["repository", "full_name", "pull_request", "number", "check_run", "check_suite", "workflow_run", "pull_requests",
     "url", "merge_group", "head_ref"]
)  # fmt: skip
_EVENT_WORDS = st.sampled_from(
    ["acme/docs", "../x", "acme/docs/pull/1?", "/api/v3/repos/acme/docs/pulls/7", "/repos/a/b/pulls/7/..", "x" * 2_000]
)


@given(payload=any_json(_EVENT_KEYS, odd=_EVENT_WORDS))
def test_a_webhook_of_any_json_names_links_of_its_host_only(payload: Any) -> None:
    for link in named_links(payload, WEB):
        found = parse_link(link, WEB)
        assert found is not None
        assert link == f"{WEB}/{found.owner}/{found.name}/pull/{found.number}"


@given(field=st.sampled_from(sorted(pull())), value=JSON)
async def test_any_field_can_be_anything(field: str, value: Any) -> None:
    github = GitHubInMemory(is_odd=True)
    github.answers[PULL] = pull(**{field: value})
    read = await github.code_host.read(LINK)
    assert isinstance(read, Unreadable) == (field in {"number", "state", "head"} and not _usable(field, value))


def _usable(field: str, value: Any) -> bool:
    match field:
        case "number":
            return value == 7 and type(value) is int
        case "state":
            return isinstance(value, str) and bool(value.strip())
        case _:
            return False
