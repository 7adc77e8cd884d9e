"""How long it took until work went on after a kill."""

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from chaos.crew import Kill
from chaos.errand import Errand
from chaos.world import World

_ERRAND = re.compile(r"errand-(\d+)\b")
_SAYING = frozenset(
    {
        "chat.postMessage",
        "chat.update",
        "chat.postEphemeral",
        "reactions.add",
        "reactions.remove",
        "conversations.replies",
        "conversations.history",
    }
)


@dataclass(frozen=True)
class Resume:
    """Seconds from a kill to the first sign of life: of any process, and of the errand that the kill hit."""

    anywhere: tuple[float, ...]
    same_errand: tuple[float, ...]


def longest(seconds: Sequence[float]) -> float:
    """0 where there are none."""
    return max(seconds, default=0.0)


def typical(seconds: Sequence[float]) -> float:
    """The median; 0 where there are none."""
    return median(seconds) if seconds else 0.0


def resumed(world: World, errands: Sequence[Errand]) -> Resume:
    """Measures it for every kill after which there was anything left to do."""
    signs = sorted(_signs(world, errands))
    times = [at for at, _ in signs]
    by_errand: dict[int, list[float]] = {}
    for at, number in signs:
        by_errand.setdefault(number, []).append(at)
    kills = sorted(world.crew.kills, key=lambda kill: kill.at)
    anywhere = [_next(times, kill.at) for kill in kills]
    same = [_of_errand(world, kill, kills, by_errand) for kill in kills]
    return Resume(tuple(s for s in anywhere if s is not None), tuple(s for s in same if s is not None))


def _of_errand(world: World, kill: Kill, kills: Sequence[Kill], signs: dict[int, list[float]]) -> float | None:
    """None where the kill hit no errand that is known, or where another one hit the same before it went on."""
    number = _number(world, kill.about)
    waited = _next(signs.get(number, []), kill.at)
    if waited is None or not number:
        return None
    again = any(kill.at < k.at <= kill.at + waited and _number(world, k.about) == number for k in kills)
    return None if again else waited


def _next(times: Sequence[float], after: float) -> float | None:
    place = bisect_right(times, after)
    return times[place] - after if place < len(times) else None


def _number(world: World, about: Sequence[str]) -> int:
    """The errand that texts or job ids belong to; 0 where there is none."""
    prompts = {entry.job_id: entry.prompt for entry in world.ledger.created}
    for text in about:
        found = _ERRAND.search(prompts.get(text, text))
        if found:
            return int(found[1])
    return 0


def _signs(world: World, errands: Sequence[Errand]) -> Iterator[tuple[float, int]]:
    """When something was done for which errand (0: not known), in monotonic seconds."""
    for attempt in world.ledger.attempts:
        yield attempt.at, _number(world, (attempt.prompt, attempt.job_id))
    at_ts = {message.ts: errand.number for errand in errands for message in errand.thread()}
    offset = time.monotonic() - time.time()
    for call in world.workspace.calls:
        if call.method in _SAYING:
            args = call.args
            named = next((at_ts[args[name]] for name in ("thread_ts", "ts", "timestamp") if args.get(name) in at_ts), 0)
            yield call.at + offset, named or _number(world, (str(args.get("text", "")),))
