"""A GitHub in memory, with one pull request."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from support.fakes.github_answers import completed
from support.oracles.github_api import official_faults

from bot.codehosts.github import GitHub
from bot.codehosts.github_client import GRAPHQL, GitHubAnswer
from bot.codehosts.pull_request import Found, PullRequest
from bot.runtime.secrets.masking import SecretMasker

WEB, LINK = "https://github.example", "https://github.example/acme/docs/pull/7"
HEAD, NEXT_HEAD = "a" * 40, "b" * 40
PULL = "/repos/acme/docs/pulls/7"
RUNS, STATUSES, ACTIONS = "check-runs", "/status", "/repos/acme/docs/actions/runs"
ACTIONS_OF_BASE = f"{ACTIONS}?branch=main"
REVIEWS, COMMENTS = f"{PULL}/reviews", f"{PULL}/comments"
DEPLOYMENTS = "/repos/acme/docs/deployments"


def pull(**changed: Any) -> dict[str, Any]:
    return {
        "number": 7,
        "state": "open",
        "merged": False,
        "merged_at": None,
        "merged_by": None,
        "draft": False,
        "mergeable": None,
        "title": "Add a page",
        "head": {"sha": HEAD, "ref": "pagehand/1"},
        "base": {"ref": "main"},
        "updated_at": "2026-11-27T10:00:00Z",
    } | changed


class GitHubInMemory:
    """Answers by path, with the first part of its query or without it, with an ETag each; counts what GitHub would
    charge. Calls and answers are GitHub's own, unless it `is_odd`.
    """

    def __init__(self, *, is_odd: bool = False) -> None:
        self.is_odd = is_odd
        self.answers: dict[str, Any] = {
            PULL: pull(),
            REVIEWS: [],
            COMMENTS: [],
            DEPLOYMENTS: [],
            ACTIONS: {"workflow_runs": []},
            ACTIONS_OF_BASE: {"workflow_runs": []},
        }
        self.graphql: dict[str, Any] = {"isInMergeQueue": False, "reviewThreads": {"nodes": []}}
        self.status: dict[str, int] = {}
        self.said = "Resource not accessible by personal access token"
        self.headers: dict[str, str] = {}
        self.charged: list[str] = []
        self.queries: list[tuple[Mapping[str, Any], Any]] = []
        self.watch(())

    def watch(self, previews: tuple[str, ...]) -> None:
        """Reads it anew, with these patterns for what leads to previews."""
        told: dict[str, Any] = {"hide": lambda text: SecretMasker().mask(text).text, "previews": previews}
        self.code_host = GitHub(self, web_url=WEB, now=lambda: 0.0, **told)

    async def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, etag: str = ""
    ) -> GitHubAnswer:
        place, _, query = path.partition("?")
        status = next((status for part, status in self.status.items() if place.endswith(part)), 200)
        data = self._data(place, query, body)
        if status != 200:
            data = {"message": self.said}
        if place == GRAPHQL:
            self.queries.append((body or {}, data))
        elif not self.is_odd:
            faults = official_faults(method, path, body, status, data)
            assert not faults, faults
        validator = f'W/"{hashlib.sha256(json.dumps(data).encode()).hexdigest()}"'
        if status == 200 and etag == validator:
            return GitHubAnswer(304, self.headers, None)
        self.charged.append(f"{method} {place}")
        if status != 200:
            return GitHubAnswer(status, self.headers, data)
        return GitHubAnswer(200, {"etag": validator, **self.headers}, data)

    def _data(self, place: str, query: str, body: Mapping[str, Any] | None) -> Any:
        if place == GRAPHQL:
            name = "isInMergeQueue" if "isInMergeQueue" in str(body) else "reviewThreads"
            if name not in self.graphql:  # one field that may not be read fails the whole query
                return {"data": {"repository": {"pullRequest": None}}, "errors": [{"type": "FORBIDDEN"}]}
            return {"data": {"repository": {"pullRequest": {name: self.graphql[name]}}}}
        places = (f"{place}?{query.partition('&')[0]}", place, f"/{place.rpartition('/')[2]}")
        found = next((self.answers[each] for each in places if each in self.answers), None)
        if found is None:
            found = {} if "/commits/" in place else []
        page = int(query.partition("&page=")[2] or 1)
        shown = found[(page - 1) * 100 : page * 100] if isinstance(found, list) else found
        return shown if self.is_odd else completed("GET", place, shown)

    def checks(self, *runs: dict[str, Any], ref: str = HEAD, statuses: tuple[dict[str, Any], ...] = ()) -> None:
        self.answers[f"/repos/acme/docs/commits/{ref}/check-runs"] = {"check_runs": list(runs)}
        self.answers[f"/repos/acme/docs/commits/{ref}/status"] = {"state": "pending", "statuses": list(statuses)}

    async def found(self, known: Found | None = None) -> Found:
        read = await self.code_host.read(LINK, known)
        assert isinstance(read, Found)
        return read

    async def read(self) -> PullRequest:
        return (await self.found()).pull_request
