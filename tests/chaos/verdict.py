"""What must be true when all is quiet again: looked for in the books of the job API, of Slack, and in the threads."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from chaos.errand import Ask, Errand, Reply, key_of
from chaos.world import REQUEST_LEASE, World

from bot.domain.models import Mark
from bot.workspace.models import Message

_ROUND = re.compile(r"r(\d+)/")


@dataclass
class Verdict:
    """What was found to be wrong, in words, by kind; empty lists are what we want."""

    losses: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    double_polls: list[str] = field(default_factory=list)
    double_sends: list[str] = field(default_factory=list)
    disorder: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    """Cards and marks that do not show how it ended."""
    deaths: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    """Secrets and tracebacks in what the processes printed."""

    @property
    def faults(self) -> list[str]:
        """All of it."""
        return [f"{name}: {fault}" for name, faults in vars(self).items() for fault in faults]


def judge(world: World, errands: Sequence[Errand]) -> Verdict:
    """Judges a world in which nothing is under way any more."""
    verdict = Verdict(deaths=list(world.crew.deaths))
    for errand in errands:
        _requests(world, errand, verdict)
        if errand.card is not None:
            _thread(errand, verdict)
            _card(world, errand, verdict)
            _marks(world, errand, verdict)
    for before, poll in world.ledger.overlapping_polls():
        if before.job_id in _late(world):
            continue
        ended = "never ended" if before.ended is None else f"ended {before.ended - poll.started:.2f} s later"
        verdict.double_polls.append(f"{world.name} {poll.job_id}: polled while a poll was under way, which {ended}")
    verdict.double_sends += _sent_twice(world)
    verdict.duplicates += _posted_twice(world)
    return verdict


def _requests(world: World, errand: Errand, verdict: Verdict) -> None:
    """Each request was taken once; or, where it can't be known, at most once more than a person asked for."""
    created = Counter(entry.prompt.partition(" ")[0] for entry in world.ledger.created)
    taken = Counter(message.prompt for message in world.ledger.messages)
    for ask in errand.asks:
        start = _start_of(errand) if ask is errand.asks[-1] else ""
        _taken(errand, ask, created[ask.prompt], start, verdict)
        cards = sum(_whole_key(card) not in _late(world) for card in errand.cards.by_prompt.get(ask.prompt, ()))
        if cards > 1:
            verdict.duplicates.append(f"{ask.prompt} has {cards} cards")
    for reply in errand.replies:
        _taken(errand, reply, taken[reply.text], reply.request_id, verdict)
    # Neither one that a person had sent again nor one that Slack had to bring again keeps its place.
    at_once = [
        reply.text for reply in errand.replies if not errand.presses[reply.request_id] and reply.delivery.attempts == 1
    ]
    seen = [message.prompt for message in world.ledger.messages if message.prompt in at_once]
    if seen != sorted(seen, key=at_once.index):
        verdict.disorder.append(f"follow-ups were taken in the order {seen}")


def _taken(errand: Errand, request: Ask | Reply, times: int, request_id: str, verdict: Verdict) -> None:
    name = request.prompt if isinstance(request, Ask) else request.text
    told, presses = errand.words_about(request_id), errand.presses[request_id]
    if told and errand.world.idempotent:
        verdict.losses.append(f"{name} was handed back though the job API runs a request once")
    if times > 1 + presses:
        verdict.duplicates.append(f"{name} was taken {times} times and asked for again {presses} times")
    if request.acked and not times and not told:
        verdict.losses.append(f"{name} was acknowledged, was not taken, and nothing was said")


def _start_of(errand: Errand) -> str:
    """The id of the request that started the thread, as far as the thread mentions it."""
    replies = {reply.request_id for reply in errand.replies}
    mentioned = {key_of(message).partition("/")[0] for message in errand.thread() if "/unsure/" in key_of(message)}
    return next(iter(mentioned - replies), "")


def _thread(errand: Errand, verdict: Verdict) -> None:
    """Everything once and in order: by the keys that go with the messages, and by what they say."""
    said = [message for message in _timely(errand) if key_of(message)]
    for key, times in Counter(key_of(message) for message in said).items():
        if times > 1:
            verdict.duplicates.append(f"{errand.prompt} was told {key} {times} times")
    started = sum("has started" in message.text for message in said)
    if started != (not errand.start_left):
        _count(verdict, errand, "that it has started", started)
    for link in errand.links:
        others = sum(link in message.text for message in said if "/completed" not in key_of(message))
        if others > 1 or not any(link in message.text for message in said):
            _count(verdict, errand, link, others)
    if again := ends_told_again(errand):
        verdict.duplicates.append(f"{errand.prompt} was told {again} ends more than there were")
    rounds = [int(found[1]) for message in said if (found := _ROUND.match(key_of(message)))]
    if rounds != sorted(rounds):
        verdict.disorder.append(f"{errand.prompt} was told in the order {[key_of(message) for message in said]}")


def ends_told_again(errand: Errand) -> int:
    """News of an end that had been told."""
    said = _timely(errand)
    told = {link: sum(link in message.text for message in said) for link in errand.links}
    return sum(max(times - errand.ends[link], 0) for link, times in told.items())


def _count(verdict: Verdict, errand: Errand, what: str, times: int) -> None:
    (verdict.duplicates if times > 1 else verdict.losses).append(f"{errand.prompt} was told {what} {times} times")


def _card(world: World, errand: Errand, verdict: Verdict) -> None:
    card = errand.card
    if card is None or not errand.links:
        return
    links = {str(world.ledger.jobs[job_id]["prLink"]) for job_id in errand.jobs}
    if "Finished: the pull request is ready" not in card.text or not any(link in card.text for link in links):
        verdict.stale.append(f"the card of {errand.prompt} says {card.text!r}")


def _marks(world: World, errand: Errand, verdict: Verdict) -> None:
    """One mark on each reply that was acknowledged, and the right one."""
    bot, channel = world.workspace.app.bot_user_id, world.workspace.channel(errand.channel)
    for reply in errand.replies:
        if not reply.acked:
            continue
        message = world.workspace.state.message(channel, reply.ts)
        marks = {name for name, people in message.reactions.items() if bot in people}
        open_question = errand.unsure_about(reply.request_id) > errand.answered[reply.request_id]
        expected = [Mark.PROBLEM] if open_question else [Mark.TAKEN]
        if world.crew.pauses and any(message.prompt == reply.text for message in world.ledger.messages):
            expected.append(Mark.TAKEN)  # who was stopped between the answer and its record comes back with the truth
        if marks not in [{mark.value} for mark in expected]:
            verdict.stale.append(f"{reply.text} carries {sorted(marks)}")


def _sent_twice(world: World) -> Iterator[str]:
    """A request that is sent again without a person asking was first held back for the lease of whoever sent it."""
    sent: dict[str, list[float]] = {}
    for attempt in world.ledger.attempts:
        if attempt.key:
            sent.setdefault(f"{attempt.prompt} ({attempt.key})", []).append(attempt.at)
    for name, times in sent.items():
        early = [after - before for before, after in pairwise(times) if after - before < REQUEST_LEASE - 5.0]
        if early and world.idempotent:
            yield f"{name} was sent again after {early[0]:.1f} s"


def _posted_twice(world: World) -> Iterator[str]:
    """Over all channels and threads, known to an errand or not."""
    keys: Counter[str] = Counter()
    for channel in world.workspace.state.channels.values():
        keys.update(_whole_key(message) for message in world.workspace.state.conversation(channel))
    del keys[""]
    late = _late(world)
    yield from (f"{key} was posted {times} times" for key, times in keys.items() if times > 1 and key not in late)


def _late(world: World) -> set[str]:
    """What a process was calling when it was stopped: the one thing that may come late, as the README says."""
    return {what for pause in world.crew.pauses for what in pause.under_way}


def _timely(errand: Errand) -> list[Message]:
    """The thread below its card, without the repetitions of what was being posted when its process was stopped."""
    late, seen, timely = _late(errand.world), set[str](), list[Message]()
    for message in errand.thread()[1:]:
        key = _whole_key(message)
        if key not in late or key not in seen:
            timely.append(message)
        seen.add(key)
    return timely


def _whole_key(message: Message) -> str:
    return str((message.metadata or {}).get("event_payload", {}).get("key", ""))
