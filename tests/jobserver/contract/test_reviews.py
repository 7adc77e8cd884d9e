"""Reviews and checks of a local pull request: who may leave them, what is told of them, and how long they hold."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from support.worlds.jobserver_process import job_server_process
from support.worlds.jobserver_world import (
    ADA,
    JOB,
    REVIEWER,
    REVIEWER_KEY,
    JobServerWorld,
    git,
    hidden_fields,
    make_bare,
    running,
    serving,
    until,
)

PAGES = {"docs/start.md": "# Start\n\nA colour, untill now.\n"}
REPLACE = 'Replace "colour" with "color"'
BEN = httpx.BasicAuth("Ben", "planted-key-of-another-reviewer")
REVIEWERS = f"{REVIEWER}: {REVIEWER_KEY}\nBen: planted-key-of-another-reviewer\nEve: sixteen-of-1.0.0"
FAILED = {"name": "build", "outcome": "failed"}
ASKED = {"outcome": "changes_requested", "words": "Not in quotations."}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[JobServerWorld]:
    async with running(make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data", reviewers=REVIEWERS) as world:
        yield world


async def say(
    world: JobServerWorld, link: str, kind: str, form: dict[str, str], auth: httpx.Auth = ADA
) -> httpx.Response:
    """Sends a form of the pull request's page, as it is now, with these fields."""
    page = (await world.client.get(link)).text
    return await world.send(link, kind, hidden_fields(page) | form, auth)


async def told(world: JobServerWorld, job: dict[str, Any]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The checks and reviews that a client of the job API sees."""
    pull = (await world.client.get(f"{JOB}/{job['id']}/pull-request")).raise_for_status().json()
    assert {review["head"] for review in pull["reviews"]} <= {pull["head"]}
    checks: list[tuple[str, ...]] = [(each["name"], each["outcome"], each["words"] or "") for each in pull["checks"]]
    return checks, [(each["author"], each["verdict"]) for each in pull["reviews"]]


async def test_a_reviewer_has_one_decision_and_a_check_one_outcome(world: JobServerWorld) -> None:
    """The newest one; the same one again is no news."""
    job = await world.done(REPLACE)
    link, address = job["prLink"], f"{JOB}/{job['id']}/pull-request"
    for outcome in ("running", "failed"):
        answer = await say(world, link, "check", {"name": "build", "outcome": outcome, "words": "Step 3: no such page"})
        assert (answer.status_code, answer.headers["Location"]) == (303, "/docs/pulls/1")
    await say(world, link, "review", {"outcome": "approved"})
    await say(world, link, "review", ASKED, BEN)
    await say(world, link, "review", ASKED)
    assert await told(world, job) == (
        [("build", "failed", "Step 3: no such page")],
        [(REVIEWER, "changes_requested"), ("Ben", "changes_requested")],
    )
    answer = await world.client.get(address)
    document = (await world.client.get("/openapi.json")).json()
    schema = {"$ref": "#/components/schemas/PullRequest", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.json())
    assert answer.json()["reviews"][0]["link"] == f"{link}#judgements"
    await say(world, link, "review", ASKED, BEN)
    known = {"If-None-Match": answer.headers["ETag"]}
    assert (await world.client.get(address, headers=known)).status_code == 304


async def test_a_new_commit_retires_what_was_said_of_the_one_before(world: JobServerWorld) -> None:
    """Its page still shows it, and whoever judges what is no longer there is told so."""
    job = await world.done(REPLACE)
    link = job["prLink"]
    old = hidden_fields((await world.client.get(link)).text)
    for change in ("Add a page called More with the text: x", "Undo"):
        await say(world, link, "check", FAILED)
        await say(world, link, "review", ASKED)
        assert [len(each) for each in await told(world, job)] == [1, 1], change
        assert "on an earlier version" not in (await world.client.get(link)).text.partition("Not in quotations")[0]
        await world.continued(job["id"], change)
        assert await told(world, job) == ([], []), change
    assert (await world.client.get(link)).text.count("on an earlier version") == 4
    answers = [await world.send(link, kind, old | form) for kind, form in (("check", FAILED), ("review", ASKED))]
    for answer in answers:
        assert (answer.status_code, "The branch has changed since" in answer.text) == (409, True)
    assert ">Not in quotations.</textarea>" in answers[-1].text, "its words are not lost"
    assert await told(world, job) == ([], [])


async def test_it_holds_while_the_agent_works_until_there_is_a_commit(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    await world.message(job["id"], "Fix the typos slowly")

    async def works() -> bool:
        return bool((await world.job(job["id"])).get("details", {}).get("activity"))

    await until(works)
    await say(world, job["prLink"], "review", ASKED)
    await world.client.post(f"{JOB}/{job['id']}/cancel")
    await world.ended(job["id"])
    assert await told(world, job) == ([], [(REVIEWER, "changes_requested")])


@pytest.mark.parametrize(("button", "state"), [("merge", "merged"), ("close", "closed")])
async def test_an_ended_one_keeps_what_was_said_and_takes_no_more(
    world: JobServerWorld, button: str, state: str
) -> None:
    """The next pull request of the job has its own."""
    job = await world.done(REPLACE)
    link = job["prLink"]
    await say(world, link, "review", ASKED)
    form = hidden_fields((await world.client.get(link)).text)
    await world.press(link, button)
    for kind, fields in (("check", FAILED), ("review", {"outcome": "approved"})):
        answer = await world.send(link, kind, form | fields, BEN)
        assert (answer.status_code, f"This pull request is {state}, so nothing more" in answer.text) == (409, True)
    assert await told(world, job) == ([], [(REVIEWER, "changes_requested")])
    job = await world.continued(job["id"], "Add a page called More with the text: x")
    assert (job["prLink"] != link, await told(world, job)) == (True, ([], []))
    await say(world, job["prLink"], "check", FAILED)
    assert await told(world, job) == ([("build", "failed", "")], [])


async def test_only_reviewers_with_a_long_key_are_heard_and_only_from_the_page(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    link = job["prLink"]
    form = hidden_fields((await world.client.get(link)).text)
    short, wrong = httpx.BasicAuth("Eve", "sixteen-of-1.0.0"), httpx.BasicAuth(REVIEWER, "wrong")
    for kind, fields in (("check", FAILED), ("review", ASKED)):
        assert (await world.send(link, kind, form | fields, wrong)).status_code == 401
        assert (await world.send(link, kind, form | fields, short)).status_code == 403
        for origin in ({}, {"Origin": "null"}, {"Origin": "http://evil.example"}):
            answer = await world.client.post(f"{link}/{kind}", data=form | fields, headers=origin, auth=ADA)
            assert answer.status_code == 403
    assert await told(world, job) == ([], [])


async def test_without_reviewers_nobody_merges_or_is_heard_and_the_page_says_why(tmp_path: Path) -> None:
    async with serving(tmp_path, PAGES, reviewers="") as world:
        link = (await world.done(REPLACE))["prLink"]
        page = (await world.client.get(link)).text
        assert "PAGEHAND_JOBSERVER_REVIEWERS" in page
        for button in ("Merge</button>", "Request changes"):
            assert button not in page
        for kind in ("merge", "review"):
            assert (await world.send(link, kind, ASKED)).status_code == 403


async def test_nonsense_is_refused_in_words(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    nonsense: list[tuple[str, dict[str, str]]] = [
        ("review", {}), ("review", {"outcome": "dismissed"}), ("review", {"outcome": "failed"}), ("check", {}),
        ("check", {"name": "build", "outcome": "unknown"}), ("check", {"name": "build", "outcome": "approved"}),
        ("check", {"name": " \n\u200b", "outcome": "passed"}),
    ]  # fmt: skip
    for kind, fields in nonsense:
        answer = await say(world, job["prLink"], kind, fields)
        assert (answer.status_code, "A check needs a `name`" in answer.text) == (400, True), fields
    assert (await world.send("/docs/pulls/7", "review", ASKED)).status_code == 404
    assert await told(world, job) == ([], [])


async def test_what_was_said_is_bounded_and_shown_as_text(world: JobServerWorld) -> None:
    job = await world.done(REPLACE)
    nasty = '<script>alert("1")</script>\r\n\u202eReversed'
    await say(world, job["prLink"], "check", {"name": f"<b>{'n' * 500}", "outcome": "failed", "words": nasty})
    await say(world, job["prLink"], "review", {"outcome": "approved", "words": "x" * 9_000})
    text = (await world.client.get(job["prLink"])).text
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;\n[U+202E]Reversed" in text
    assert "x" * 3_999 + "…" in text
    ((name, *_),), _ = await told(world, job)
    assert (len(name), f"&lt;{name[1:]}".replace(">", "&gt;") in text) == (100, True)


async def test_a_review_outlives_a_server_that_is_killed_after_it(tmp_path: Path, pagehand: tuple[str, ...]) -> None:
    """Whoever follows the pull request hears of it late, and not never."""
    repository = make_bare(tmp_path / "manual.git", PAGES)
    settings = {"REPOSITORY": str(repository), "REVIEWERS": REVIEWERS}
    async with job_server_process(tmp_path / "data", settings, pagehand) as server:
        job_id = await server.create(REPLACE)
        link = (await server.ended(job_id))["prLink"]
        form = {**ASKED, "head": git(repository, "rev-parse", f"pagehand/{job_id}").strip()}
        headers = {"Origin": link.removesuffix("/docs/pulls/1")}
        answer = await server.client.post(f"{link}/review", data=form, headers=headers, auth=ADA)
        server.kill()
        await server.dies()
        assert answer.status_code == 303
        await server.start()
        (review,) = (await server.client.get(f"{JOB}/{job_id}/pull-request")).json()["reviews"]
        assert (review["author"], review["verdict"], review["head"]) == (REVIEWER, "changes_requested", form["head"])
