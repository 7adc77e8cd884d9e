"""What people are told of pull requests: each job's is read, and its failed check is told once in its thread."""

from collections import Counter
from collections.abc import Collection

from support.chaos.process_world import ENDS_ALONE, ProcessWorld
from support.oracles.notice_keys import all_keys
from support.oracles.promises import Broken, Promise

from bot.store.schema.rows import followed_from

_ROWS = "SELECT t.id, t.channel_id, t.ts, p.followed FROM pull_requests p JOIN threads t ON t.id = p.thread_id"
_MUTED = "SELECT thread_id FROM audit WHERE action = 'muted'"


async def pull_requests_broken(world: ProcessWorld, *, late: Collection[str]) -> list[Broken]:
    """Returns what is wrong, without `late` posts of a process that was paused. A muted job is told nothing, nor is a
    channel that wants only ends.
    """
    rows, faults = await world.rows(_ROWS), list[Broken]()
    muted = {thread_id for (thread_id,) in await world.rows(_MUTED)}
    posted = Counter(key for key in all_keys(world.workspace) if key not in late)
    for thread_id, channel_id, ts, text in rows:
        followed = followed_from(text)
        if followed.found is None and not followed.ended:
            faults.append(Broken(Promise.NOTHING_LOST, f"the pull request of {thread_id} was never read"))
        together = {each for each, *place, _ in rows if place == [channel_id, ts]} if ts else {thread_id}
        silent = ts is None or together & muted or channel_id == world.workspace.channels[ENDS_ALONE].id
        for key in followed.told:
            times = sum(posted[f"{each}/{key}"] for each in together)
            if times > 1 or not (times or silent):
                promise = Promise.SAID_ONCE if times else Promise.NOTHING_LOST
                faults.append(Broken(promise, f"{thread_id} was told {key} {times} times"))
    return faults
