"""Judges what is left of a run: the table of instructions, the branches, and the pull requests."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from support.chaos.worker_client import ANSWER, SentJob
from support.chaos.worker_world import WorkerWorld
from support.worlds.jobserver_world import git

from bot.jobserver.pipeline.job_runner import MAX_ATTEMPTS

_ROWS = "SELECT number, job_id, prompt, state, attempts, answer, holder, trespasser FROM instructions ORDER BY number"
_PULLS = "SELECT branch FROM local_pull_requests"
_TRAILERS = "--format=%H %(trailers:key=Pagehand-Instruction,valueonly,separator=%x20)"
_RESUMED = """
    SELECT i.job_id FROM instructions i JOIN chunks c ON c.file = i.log
    WHERE position('the partial work was put back'::bytea IN c.content) > 0
"""
_DIED = "ended unexpectedly 3 times"
AT_ONCE = 2.0
"""Seconds within which the agent of a cancelled job knows."""
SOON = 5.0
"""Seconds within which a cancelled job ends."""


async def faults(world: WorkerWorld, jobs: list[SentJob]) -> list[str]:
    """Returns what was lost, done twice, or not explained."""
    rows = await world.fetch(_ROWS)
    pulls = await world.fetch(_PULLS)
    found = [f"instruction {row['number']} is {row['state']}" for row in rows if row["state"] in {"queued", "running"}]
    found += [f"not proposed: {row['branch']}" for row in await world.fetch("SELECT branch FROM proposals")]
    found += [f"{name}: {line}" for name in world.instances for line in _broken(world, name)]
    for job in jobs:
        if (job.told_within or 0.0) > AT_ONCE or (job.stopped_within or 0.0) > SOON:
            found.append(
                f"a cancelled job was told within {job.told_within} s, and ended within {job.stopped_within} s"
            )
    resumed = {row["job_id"] for row in await world.fetch(_RESUMED)}
    known = {job.id for job in jobs}
    found += [f"nobody asked for {row['prompt']}" for row in rows if row["job_id"] not in known]
    for job in jobs:
        mine = [row for row in rows if row["job_id"] == job.id]
        found += [
            f"job {job.number} ({job.id}): {fault}"
            for fault in _of_job(world, job, mine, pulls, is_resumed=job.id in resumed)
        ]
    return found


def _of_job(
    world: WorkerWorld, job: SentJob, rows: list[dict[str, Any]], pulls: list[dict[str, Any]], *, is_resumed: bool
) -> Iterator[str]:
    """`is_resumed`: an attempt was handed what an interrupted one had written, and its agent, which knows nothing of
    that, wrote it again.
    """
    sent, recorded = [*job.prompts, *job.answers], [row["prompt"] for row in rows]
    if sorted(sent) != sorted(recorded):
        yield f"sent {sent}, recorded {recorded}"
    branch = f"pagehand/{job.id}"
    log = git(world.repository, "log", "--reverse", _TRAILERS, f"main..{branch}") if _exists(world, branch) else ""
    commits = [line.split() for line in log.splitlines()]
    order = [int(trailer.rpartition("/")[2]) for _, trailer in commits]
    if order != sorted(set(order)):
        yield f"its commits are of the instructions {order}"
    lines = _lines(world, branch, job) if commits else []
    if is_resumed:
        lines = list(dict.fromkeys(lines))
    if len(lines) != len(set(lines)):
        yield f"its page has a line twice: {lines}"
    for row in rows:
        yield from (f"instruction {row['number']}, {row['state']}: {fault}" for fault in _of_row(row, order))
    yield from _of_answers(job, rows, order, lines)
    yield from _of_pull_requests(job, branch, commits, pulls, is_unlucky=any(map(_is_unlucky, rows)))
    if job.ended.get("status") == "failed" and not any(row["state"] == "failed" for row in rows):
        yield f"it failed: {job.ended}"


def _of_row(row: Mapping[str, Any], order: list[int]) -> Iterator[str]:
    if row["trespasser"]:
        yield f"{row['trespasser']} wrote when it was another's, at last {row['holder']}'s"
    is_there = row["number"] in order
    if row["state"] == "done" and not is_there and row["prompt"] != ANSWER:
        yield "it has no commit"
    if row["state"] == "failed" and ((is_there and not _is_unlucky(row)) or _DIED not in row["answer"]):
        yield f"commit: {is_there}, {row['answer']!r}"
    if row["state"] == "stopped" and "stopped" not in row["answer"]:
        yield f"nothing says why: {row['answer']!r}"


def _is_unlucky(row: Mapping[str, Any]) -> bool:
    """Whether workers died in finishing what was pushed, too, so that it counts as failed."""
    return bool(row["attempts"] > MAX_ATTEMPTS + 1)


def _of_answers(job: SentJob, rows: list[dict[str, Any]], order: list[int], lines: list[str]) -> Iterator[str]:
    used = Counter(line.rpartition(" ")[2] for line in lines)[ANSWER]
    own = sum(row["number"] in order for row in rows if row["prompt"] == ANSWER)
    is_done = any(row["state"] == "done" for row in rows if row["prompt"] != ANSWER)
    if job.answers and is_done and used + own != 1:
        yield f"its question was answered {used} times, and its answer is {own} commits: {lines}"


def _of_pull_requests(
    job: SentJob, branch: str, commits: list[list[str]], pulls: list[dict[str, Any]], *, is_unlucky: bool
) -> Iterator[str]:
    mine = [pull for pull in pulls if pull["branch"] == branch]
    if len(mine) != bool(commits):
        yield f"{len(commits)} commits, {len(mine)} pull requests"
    elif mine and not job.ended.get("prLink") and not is_unlucky:
        yield f"it does not name its pull request: {job.ended}"


def _broken(world: WorkerWorld, name: str) -> Iterator[str]:
    """Yields what no log may say. A process that starts while its database is away ends."""
    for line in (world.directory / f"{name}.log").read_text().splitlines():
        if "failed unexpectedly" in line or "Traceback" in line or (" stopped: " in line and "database" not in line):
            yield line


def _exists(world: WorkerWorld, branch: str) -> bool:
    return bool(git(world.repository, "for-each-ref", f"refs/heads/{branch}"))


def _lines(world: WorkerWorld, branch: str, job: SentJob) -> list[str]:
    pages = git(world.repository, "ls-tree", "--name-only", branch, f"docs/job{job.number}.md")
    return git(world.repository, "show", f"{branch}:{pages.strip()}").splitlines() if pages.strip() else []
