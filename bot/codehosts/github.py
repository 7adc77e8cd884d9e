"""Reads pull requests at GitHub, with conditional requests: what has not changed costs nothing of the rate limit.

Sources: GitHub, "Best practices for using the REST API" (a 304 is free), and its reference, version 2022-11-28. Without
the right to read checks, which fine-grained tokens never have, the runs of GitHub Actions are read, and the result says
so.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import quote

from pydantic import ValidationError

from bot.codehosts.github_client import GRAPHQL, GitHubAnswer, NoGitHubAnswerError
from bot.codehosts.github_payloads import (
    NO_DECISIONS,
    CheckRun,
    CommentPayload,
    DeploymentPayload,
    DeploymentStatus,
    PullPayload,
    ReviewPayload,
    ReviewThread,
    StatusPayload,
    User,
    each,
)
from bot.codehosts.pull_request import (
    MOST_COMMENTS,
    MOST_PREVIEWS,
    CheckOutcome,
    Found,
    NotModified,
    PullRequest,
    Reason,
    Unreadable,
)
from bot.jobapi.models import MAX_WORDS, Hide, PullRequestState
from bot.runtime.text import whole_words
from bot.runtime.untrusted_json import value_at

PAGE, MOST_PAGES = 100, 5
_LAST_RUNS = 50
"""Fewer than a page, so that one call shows them."""
DENIED = "denied"
"""Stands for the ETag of what the token may not read: it is asked for again only once the pull request has changed."""
_THREADS = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(last: 100) { nodes { isResolved comments(first: 50) { nodes { databaseId } } } } } } }"""
_QUEUE = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { isInMergeQueue } } }"""


class GitHubCalls(Protocol):
    """Makes calls with a token."""

    async def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, etag: str = ""
    ) -> GitHubAnswer:
        """Makes one call; see `GitHubClient`. Raises NoGitHubAnswerError."""


@dataclass(frozen=True)
class GitHubLink:
    """What a link leads to."""

    owner: str
    name: str
    number: int


def parse_link(link: str, web_url: str) -> GitHubLink | None:
    """Returns what a link of this GitHub leads to; None for any other, so that no link chooses where a token goes."""
    path = link.removeprefix(f"{web_url.rstrip('/')}/")
    found = re.fullmatch(r"([\w.-]{1,100})/([\w.-]{1,100})/pull/(\d{1,10})(?:[/?#].{0,1000})?", path, re.ASCII)
    if path == link or found is None or {found[1], found[2]} & {".", ".."}:
        return None
    return GitHubLink(found[1], found[2], int(found[3]))


class GitHub:
    """Implements `CodeHost`. `web_url` is where people see its pages; `hide` masks secrets in texts; `previews` are
    patterns for the names of deployments, check runs and statuses that lead to one: without any, all deployments do.
    """

    def __init__(
        self, calls: GitHubCalls, *, web_url: str, now: Callable[[], float], hide: Hide, previews: Sequence[str] = ()
    ) -> None:
        self._calls = calls
        self._previews = previews
        self._web_url = web_url
        self._now = now
        self._hide = hide
        self._paused_until = 0.0
        """All pull requests share the token's limit."""

    async def read(self, link: str, known: Found | None = None) -> Found | NotModified | Unreadable:
        """See `CodeHost`."""
        wanted = parse_link(link, self._web_url)
        if wanted is None:
            return Unreadable(Reason.UNKNOWN_HOST)
        if (left := self._paused_until - self._now()) > 0:
            return Unreadable(Reason.RATE_LIMITED, left)
        asked = _Asked(self._calls, self._now, known.etags if known else {})
        try:
            reading = _Reading(asked, wanted, known.pull_request if known else None, self._hide, self._previews)
            found = await reading.read(link)
        except _UnreadableError as error:
            self._pause(error.unreadable.wait)
            return error.unreadable
        finally:
            self._pause(asked.used_up_for)
        return NotModified(asked.wait) if found is None else Found(found, asked.etags, asked.wait)

    def _pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, self._now() + seconds)


class _UnreadableError(Exception):
    def __init__(self, reason: Reason, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.unreadable = Unreadable(reason, wait)


class _Same(Enum):
    """The answer is the same as last time."""

    SAME = "same"


SAME: Final = _Same.SAME


@dataclass
class _Asked:
    """Makes the calls of one reading. `known` has the ETags of the last one, `etags` those of this; `used_up_for`: for
    how many seconds nothing is left of GitHub's limit.
    """

    calls: GitHubCalls
    now: Callable[[], float]
    known: Mapping[str, str]
    etags: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    used_up_for: float = 0.0

    async def get(self, path: str, *, fresh: bool = False, required: bool = False) -> Any:
        """Returns parsed JSON, SAME, or None for what the token may not read. `fresh`: never SAME. `required`: without
        it, the reading ends.
        """
        etag = self.known.get(path, "")
        if etag == DENIED:
            self.etags[path] = DENIED
            return None if fresh else SAME
        answer = await self._send("GET", path, etag="" if fresh else etag)
        if answer.status == HTTPStatus.NOT_MODIFIED and etag:
            self.etags[path] = etag
            return SAME
        if answer.status != HTTPStatus.OK:
            if required:
                is_forbidden = answer.status == HTTPStatus.FORBIDDEN
                raise _UnreadableError(Reason.NOT_ALLOWED if is_forbidden else Reason.NOT_FOUND)
            self.etags[path] = DENIED
            return None
        if (validator := answer.headers.get("etag", "")) and len(validator) < PAGE:
            self.etags[path] = validator
        return answer.data

    def recall(self, *, denied: bool) -> None:
        """Keeps in mind what the token may not read, or forgets it, so that it is asked for again."""
        if not denied:
            self.known = {path: etag for path, etag in self.known.items() if etag != DENIED}
        elif GRAPHQL in self.known:
            self.etags[GRAPHQL] = DENIED

    async def together(self, *paths: str) -> list[Any] | _Same:
        """Returns the answers of calls that make sense together only: SAME, or all of them anew."""
        answers = [await self.get(path) for path in paths]
        if all(answer is SAME for answer in answers):
            return SAME
        return [
            await self.get(path, fresh=True) if answer is SAME else answer
            for path, answer in zip(paths, answers, strict=True)
        ]

    async def whole(self, path: str, first: Any, *names: str) -> list[Any]:
        """Returns the list at this place of an answer, with its further pages. There is no ETag of a list that has any,
        since a change can be on each.
        """
        items, page, data = [], 1, first
        while isinstance(found := value_at(data, *names), list):
            items += found[:PAGE]
            if len(found) < PAGE or page == MOST_PAGES:
                break
            page += 1
            self.etags.pop(path, None)
            data = (await self._send("GET", f"{path}&page={page}")).data
        return items

    async def query(self, text: str, link: GitHubLink) -> Any:
        """Returns what GraphQL tells of a pull request; None if the token may not ask for it."""
        variables = {"owner": link.owner, "name": link.name, "number": link.number}
        answer = await self._send("POST", GRAPHQL, {"query": text, "variables": variables})
        failed = answer.status != HTTPStatus.OK or value_at(answer.data, "errors")
        return None if failed else value_at(answer.data, "data", "repository", "pullRequest")

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, etag: str = ""
    ) -> GitHubAnswer:
        """Makes a call. What is neither an answer nor a refusal of this call alone ends the reading; so does a limit
        that an earlier call has used up.
        """
        if self.used_up_for:
            raise _UnreadableError(Reason.RATE_LIMITED, self.used_up_for)
        try:
            answer = await self.calls.send(method, path, body, etag=etag)
        except NoGitHubAnswerError as error:
            raise _UnreadableError(Reason.NONSENSE if error.is_unreadable else Reason.OUT_OF_REACH) from None
        interval = answer.headers.get("x-poll-interval", "")
        if re.fullmatch(r"\d{1,6}", interval, re.ASCII):
            self.wait = max(self.wait, min(float(interval), 3600.0))
        self.used_up_for = answer.used_up_for(self.now()) or 0.0
        limited = answer.seconds_to_wait(self.now())
        if limited is not None:
            raise _UnreadableError(Reason.RATE_LIMITED, limited)
        match answer.status:
            case HTTPStatus.UNAUTHORIZED:
                raise _UnreadableError(Reason.NOT_ALLOWED)
            case status if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise _UnreadableError(Reason.OUT_OF_REACH)
            case 301 | 302 | 307 | 308:
                raise _UnreadableError(Reason.MOVED)
            case _:
                return answer


_UNREAD = {
    "check-runs": "checks", "runs": "runs of GitHub Actions", "status": "statuses", "reviews": "reviews",
    "comments": "comments", "graphql": "whether comments are resolved",
    "deployments": "deployments", "statuses": "deployments",
}  # fmt: skip
_ORDER = {CheckOutcome.FAILED: 0, CheckOutcome.RUNNING: 1}
"""What a reader wants to see first."""
_PENDING_DEPLOYMENT = frozenset({"", "in_progress", "pending", "queued"})


class _Reading:
    """One reading of a pull request, from what was known before."""

    def __init__(
        self, asked: _Asked, link: GitHubLink, known: PullRequest | None, hide: Hide, patterns: Sequence[str]
    ) -> None:
        self._patterns = patterns
        self._asked = asked
        self._link = link
        self._known = known
        self._hide = hide
        self._repository = f"/repos/{link.owner}/{link.name}"

    async def read(self, web_link: str) -> PullRequest | None:
        """Returns the pull request as it is now; None if nothing has changed."""
        data = await self._asked.get(f"{self._repository}/pulls/{self._link.number}", required=True)
        changed = {} if data is SAME else {**self._of(data), "link": web_link}
        self._asked.recall(denied=not changed)
        now: dict[str, Any] = (self._known.model_dump() if self._known else {}) | changed
        if now["state"] is PullRequestState.OPEN:
            moved = bool(changed)
            changed |= await self._checks(now)
            changed |= await self._talk(now, moved=moved)
            changed |= await self._previews(now, changed)
            if moved or now["queued"]:  # it can lose its place without any other change
                queued = value_at(await self._asked.query(_QUEUE, self._link), "isInMergeQueue")
                changed["queued"] = queued if isinstance(queued, bool) else None
        elif changed:  # what was said of its checks is no news any more
            changed |= {"checks": (), "queued": None, "mergeable": None}
        if not changed:
            return None
        denied = (path.partition("?")[0] for path, etag in self._asked.etags.items() if etag == DENIED)
        unread = {_UNREAD[path.rpartition("/")[2]] for path in denied}
        return PullRequest.model_validate(now | changed | {"unread": sorted(unread)}, context=self._hide)

    def _of(self, data: Any) -> dict[str, Any]:
        try:
            pull = PullPayload.model_validate(data, context=self._hide)
        except ValidationError:
            raise _UnreadableError(Reason.NONSENSE) from None
        if pull.number != self._link.number:
            raise _UnreadableError(Reason.NONSENSE)
        return {
            "number": pull.number,
            "state": pull.outcome,
            "draft": bool(pull.draft),
            "title": pull.title,
            "head": pull.head.sha,
            "base": pull.base.ref,
            "mergeable": pull.mergeable,
            "ended_by": pull.merged_by.login if pull.merged_by and pull.outcome is PullRequestState.MERGED else None,
            "updated_at": pull.updated_at,
        }

    async def _checks(self, pull: Mapping[str, Any]) -> dict[str, Any]:
        head, asked = pull["head"], self._asked
        runs, statuses = self._check_paths(head)
        actions = f"{self._repository}/actions/runs?head_sha={head}&per_page={PAGE}"
        denied = asked.known.get(runs) == DENIED
        answers = await asked.together(actions if denied else runs, statuses)
        if denied:
            asked.etags[runs] = DENIED
        if answers is SAME:
            return {}
        first, second = answers
        if first is None and not denied:
            denied, first = True, await asked.get(actions, fresh=True)
        checks = await self._listed(actions if denied else runs, first, statuses, second)
        if any(check["outcome"] is CheckOutcome.FAILED for check in checks):
            failing = await self._failing_on(pull["base"], denied=denied)
            checks = [check | {"fails_on_base": check["name"] in failing} for check in checks]
        return {"checks": sorted(checks, key=lambda check: _ORDER.get(check["outcome"], len(_ORDER)))}

    def _check_paths(self, ref: str) -> tuple[str, str]:
        commit = f"{self._repository}/commits/{quote(ref, safe='')}"
        return f"{commit}/check-runs?filter=latest&per_page={PAGE}", f"{commit}/status?per_page={PAGE}"

    async def _listed(self, runs: str, first: Any, statuses: str, second: Any) -> list[dict[str, Any]]:
        name = "check_runs" if "/check-runs?" in runs else "workflow_runs"
        of_runs = each(CheckRun, await self._asked.whole(runs, first, name), self._hide)
        of_statuses = each(StatusPayload, await self._asked.whole(statuses, second, "statuses"), self._hide)
        return [
            *(_check(run.name, run.outcome, self._link_of(run), run.output.title) for run in of_runs),
            *(_check(each.context, each.outcome, each.target_url, each.description) for each in of_statuses),
        ]

    def _link_of(self, run: CheckRun) -> str | None:
        return run.details_url if self._is_preview(run.name) else run.html_url or run.details_url

    def _is_preview(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self._patterns)

    async def _failing_on(self, base: str, *, denied: bool) -> frozenset[str]:
        """Returns the names of the checks that fail without the change; none if its base is not told."""
        if not base:
            return frozenset()
        runs, statuses = self._check_paths(base)
        if denied:
            branch = quote(base, safe="")
            runs = f"{self._repository}/actions/runs?branch={branch}&event=push&status=completed&per_page={_LAST_RUNS}"
        first, second = [await self._asked.get(path, fresh=True) for path in (runs, statuses)]
        found = await self._listed(runs, first, statuses, second)
        if denied:  # runs of a branch are of all its commits, the newest first
            found = list({check["name"]: check for check in reversed(found)}.values())
        return frozenset(check["name"] for check in found if check["outcome"] is CheckOutcome.FAILED)

    async def _talk(self, pull: Mapping[str, Any], *, moved: bool) -> dict[str, Any]:
        """Reads reviews and comments; whether those are resolved only if the pull request has changed, since GraphQL
        knows no conditional requests.
        """
        paths = [
            f"{self._repository}/pulls/{self._link.number}/{name}?per_page={PAGE}" for name in ("reviews", "comments")
        ]
        answers = await self._asked.together(*paths)
        if answers is SAME and not moved:
            return {}
        changed: dict[str, Any] = {}
        comments: Iterable[dict[str, Any]] = pull.get("comments", ())
        if answers is not SAME:
            given = [await self._asked.whole(path, answer) for path, answer in zip(paths, answers, strict=True)]
            payloads = each(CommentPayload, given[1], self._hide)
            changed["reviews"] = _decisions(each(ReviewPayload, given[0], self._hide), payloads)
            comments = [_comment(payload) for payload in payloads[-MOST_COMMENTS:]]
        resolved = await self._resolved()
        return changed | {"comments": [each | {"resolved": resolved.get(each["id"])} for each in comments]}

    async def _resolved(self) -> Mapping[int, bool | None]:
        threads = await self._asked.query(_THREADS, self._link)
        if threads is None:
            self._asked.etags[GRAPHQL] = DENIED
        found = each(ReviewThread, value_at(threads, "reviewThreads", "nodes"), self._hide)
        return {number: thread.is_resolved for thread in found for number in thread.comment_ids}

    async def _previews(self, known: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what shows the newest commit: deployments, and checks whose names say so."""
        deployed = await self._deployed(known["head"])
        if deployed is SAME and "checks" not in changed:
            return {}
        if deployed is SAME:
            before = self._of_checks(known.get("checks", ()))
            deployed = [preview for preview in known.get("previews", ()) if preview not in before]
        found: dict[str, dict[str, Any]] = {}
        for preview in (*deployed, *self._of_checks({**known, **changed}.get("checks", ()))):
            found.setdefault(preview["link"], preview)  # a deployment's own name tells that it is none of a check
        return {"previews": list(found.values())}

    def _of_checks(self, checks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        passed = (check for check in checks if check["outcome"] is CheckOutcome.PASSED and check["link"])
        return [{"name": one["name"], "link": one["link"]} for one in passed if self._is_preview(one["name"])]

    async def _deployed(self, head: str) -> list[dict[str, Any]] | _Same:
        """Reads where the newest commit is deployed, once in each environment."""
        deployments = f"{self._repository}/deployments"
        path = f"{deployments}?sha={head}&per_page={PAGE}"
        answer: Any | _Same = await self._asked.get(path)
        if answer is SAME:
            return SAME
        found = reversed(each(DeploymentPayload, answer, self._hide))
        newest = {one.environment: one for one in found if not self._patterns or self._is_preview(one.environment)}
        previews: list[dict[str, Any]] = []
        for name, deployment in list(newest.items())[:MOST_PREVIEWS]:
            told = await self._asked.get(
                f"{self._repository}/deployments/{deployment.id}/statuses?per_page=1", fresh=True
            )
            status = next(iter(each(DeploymentStatus, told, self._hide)), DeploymentStatus())
            if status.state in _PENDING_DEPLOYMENT:  # its end changes no answer that has an ETag
                self._asked.etags.pop(path, None)
            if status.state == "success" and status.environment_url:
                previews.append({"name": name, "link": status.environment_url})
        return previews


def _check(name: str, outcome: CheckOutcome, link: str | None, words: str | None) -> dict[str, Any]:
    said = words if outcome is CheckOutcome.FAILED else None
    return {"name": name, "outcome": outcome, "link": link, "words": said}


def _login(user: User | None) -> str:
    return user.login if user else "ghost"


def _decisions(reviews: Iterable[ReviewPayload], comments: Iterable[CommentPayload]) -> list[dict[str, Any]]:
    """Returns the newest decision of each reviewer."""
    counts = Counter(comment.pull_request_review_id for comment in comments)
    newest = {_login(review.user): review for review in reviews if review.state not in NO_DECISIONS}
    return [
        {
            "author": author,
            "verdict": review.verdict,
            "comments": counts[review.id],
            "head": review.commit_id,
            "link": review.html_url,
        }
        for author, review in newest.items()
    ]


def _comment(payload: CommentPayload) -> dict[str, Any]:
    return {
        "id": payload.id,
        "path": payload.path,
        "line": payload.line,
        "words": payload.body and whole_words(payload.body, MAX_WORDS),
        "author": _login(payload.user),
        "by_bot": payload.user is not None and payload.user.type == "Bot",
    }
