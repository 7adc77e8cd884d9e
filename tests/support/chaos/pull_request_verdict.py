"""What people are told of pull requests: each job's is read, and its news is told once, in its thread alone."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from support.chaos.process_world import ENDS_ALONE, ProcessWorld
from support.oracles.notice_keys import all_keys, key_of
from support.oracles.promises import Broken, Promise

from bot.domain.jobs.job import digest
from bot.domain.pull_requests import is_over
from bot.store.schema.rows import followed_from

_ROWS = "SELECT t.id, t.channel_id, t.ts, p.link, p.followed FROM pull_requests p JOIN threads t ON t.id = p.thread_id"
_THREADS = "SELECT id, channel_id, ts, job_id FROM threads"
_MUTED = "SELECT thread_id FROM audit WHERE action = 'muted'"
_NEWS = "pull_request"


async def pull_requests_broken(world: ProcessWorld, *, late: Collection[str]) -> list[Broken]:
    """Returns what is wrong, without `late` posts of a process that was paused. A muted job is told nothing, nor is a
    channel that wants only ends told of checks.
    """
    rows, faults = await world.rows(_ROWS), list[Broken]()
    muted = {thread_id for (thread_id,) in await world.rows(_MUTED)}
    posted = Counter(key for key in all_keys(world.workspace) if key not in late)
    for thread_id, channel_id, ts, link, text in rows:
        followed = followed_from(text)
        if followed.found is None and not followed.ended:
            faults.append(Broken(Promise.NOTHING_LOST, f"the pull request of {thread_id} was never read"))
        elif followed.found and is_over(followed.found.pull_request) != (link in world.fake_job_api.merged):
            faults.append(Broken(Promise.UP_TO_DATE, f"{thread_id} does not know whether {link} is merged"))
        together = {each for each, *place, _, _ in rows if place == [channel_id, ts]} if ts else {thread_id}
        ends_only = channel_id == world.workspace.channels[ENDS_ALONE].id
        for key in followed.told:
            times = sum(posted[f"{each}/{key}"] for each in together)
            silent = ts is None or together & muted or (ends_only and not key.endswith("/merged"))
            if times > 1 or not (times or silent):
                promise = Promise.SAID_ONCE if times else Promise.NOTHING_LOST
                faults.append(Broken(promise, f"{thread_id} was told {key} {times} times"))
    return [*faults, *_misplaced(world, await world.rows(_THREADS)), *_stale(world, late)]


def _misplaced(world: ProcessWorld, threads: Sequence[Any]) -> Iterator[Broken]:
    """News is in the thread of a job that had this pull request."""
    places = {thread_id: ((channel_id, ts), job_id) for thread_id, channel_id, ts, job_id in threads}
    for place, keys in _told(world).items():
        for thread_id, link_digest, _ in keys:
            wanted, job_id = places[thread_id]
            if wanted != place or link_digest not in map(digest, world.fake_job_api.links.get(job_id, ())):
                yield Broken(Promise.SAID_ONCE, f"{thread_id} was told of {link_digest} in {place}")


def _stale(world: ProcessWorld, late: Collection[str]) -> Iterator[Broken]:
    """No failure is told after the merge."""
    for place, keys in _told(world).items():
        merged = set[str]()
        for thread_id, link_digest, what in keys:
            if what == "merged":
                merged.add(link_digest)
            is_failure = what.startswith("failed/") and f"{thread_id}/{_NEWS}/{link_digest}/{what}" not in late
            if is_failure and link_digest in merged:
                yield Broken(Promise.IN_ORDER, f"{place} was told {what} of {link_digest} after its merge")


def _told(world: ProcessWorld) -> dict[tuple[str, str | None], list[tuple[str, str, str]]]:
    """Returns the thread, the pull request and the rest of each key of news, in order, by where it was posted."""
    told: dict[tuple[str, str | None], list[tuple[str, str, str]]] = {}
    for channel in world.workspace.state.channels.values():
        for message in world.workspace.state.conversation(channel):
            thread_id, _, key = key_of(message).partition("/")
            kind, _, rest = key.partition("/")
            if kind == _NEWS:
                link_digest, _, what = rest.partition("/")
                told.setdefault((channel.id, message.thread_ts), []).append((thread_id, link_digest, what))
    return told
