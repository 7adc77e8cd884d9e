"""From a job as known and a job as seen to what people are told, and when to look again. Pure.

Two rules carry everything: a fact is said when it becomes known, once a round (a round begins when a follow-up goes
out); a link is announced once, ever. A sighting that changes nothing says nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from bot.domain.models import ACTIVE, ARCHIVED, COMPLETED, FAILED, Job, Known, Saying, Trouble, What

GONE_AFTER_MISSES = 3


@dataclass(frozen=True)
class Seen:
    """The job API showed the job."""

    job: Job


@dataclass(frozen=True)
class NotFound:
    """The job API answered 404."""


@dataclass(frozen=True)
class OutOfReach:
    """The job API could not be asked, or gave no usable answer. `status` is 401 or 403 where our key is the reason."""

    reason: str
    status: int | None = None
    retry_after: float | None = None


Sighting = Seen | NotFound | OutOfReach


@dataclass(frozen=True)
class Polling:
    """How often to look, in seconds: `fastest` after a change, slowing down to `slowest`.

    `grace`: how much longer to look after the end, for a link that comes late. `patience`: how long an outage may last
    before the thread is told.
    """

    fastest: float = 2.0
    slowest: float = 30.0
    grace: float = 180.0
    patience: float = 300.0


@dataclass(frozen=True)
class Decision:
    """What follows from a sighting. `next_in` is in seconds; None: look no more."""

    known: Known
    sayings: tuple[Saying, ...] = ()
    card_changed: bool = False
    next_in: float | None = None


def decide(known: Known, seen: Sighting, now: float, polling: Polling, *, jitter: float = 0.5) -> Decision:
    """Decides what one sighting means. `jitter` is a random number from 0 to 1."""
    match seen:
        case Seen(job):
            after, sayings = _sighted(known, job, now, polling)
        case NotFound():
            after, sayings = _missed(known)
        case _:
            after, sayings = out_of_reach(known, seen, now, polling.patience)
    next_in = next_look(after, now, polling, jitter=jitter)
    if next_in is None:
        after = replace(after, out_since=None)  # nobody looks on, so it would count as an outage for ever
    elif isinstance(seen, OutOfReach):
        next_in = max(next_in, seen.retry_after or 0.0)
    return Decision(after, tuple(sayings), _card(after) != _card(known), next_in)


def open_round(known: Known, now: float, polling: Polling) -> Known:
    """Prepares for a follow-up that goes out: whatever the job does from now on is news, and is looked for."""
    watch_until = max(known.watch_until, now + polling.grace)
    return replace(known, round=known.round + 1, said=frozenset(), changed_at=now, watch_until=watch_until)


def next_look(known: Known, now: float, polling: Polling, *, jitter: float) -> float | None:
    """Seconds till the next look: a quarter of the time since the last change, within bounds, 20% either way."""
    ended = known.job is None or (known.job.ended and not known.out_said)  # the end of an outage is said too
    if known.trouble is Trouble.GONE or (ended and now >= known.watch_until):
        return None
    interval = min(max((now - known.changed_at) / 4, polling.fastest), polling.slowest)
    return max(interval * (0.8 + 0.4 * jitter), polling.fastest)


def out_of_reach(
    known: Known, seen: OutOfReach, now: float, patience: float, *, request: bool = False
) -> tuple[Known, list[Saying]]:
    """Notes an outage; it is said once it has lasted, or at once where our key is the reason. `request`: one waits."""
    since = known.out_since if known.out_since is not None else now
    known = replace(known, out_since=since)
    if known.out_said or (seen.status is None and now - since < patience):
        return known, []
    outages = known.outages + 1
    trouble = Trouble.OUT_OF_REACH if seen.status is None else Trouble.NOT_ALLOWED
    known = replace(known, out_said=True, outages=outages, trouble=trouble)
    return known, [outage(f"out/{outages}", seen, request=request)]


def outage(key: str, seen: OutOfReach, *, request: bool) -> Saying:
    """What is said of an outage. `request`: one waits."""
    if seen.status is not None:
        return Saying(key, What.NOT_ALLOWED, {"status": str(seen.status)})
    return Saying(key, What.OUT_OF_REACH, {"reason": seen.reason, "request": "yes" if request else ""})


def gone(known: Known) -> Known:
    """The job API does not know the job any more."""
    return replace(known, trouble=Trouble.GONE)


def link_key(link: str) -> str:
    """A short name for a link of any length."""
    return sha256(link.encode("utf-8", "replace")).hexdigest()[:16]


def _missed(known: Known) -> tuple[Known, list[Saying]]:
    known = replace(known, misses=known.misses + 1, out_since=known.out_since if known.out_said else None)
    if known.misses < GONE_AFTER_MISSES or known.trouble is Trouble.GONE:
        return known, []
    return gone(known), [Saying("gone", What.GONE)]


def _sighted(known: Known, job: Job, now: float, polling: Polling) -> tuple[Known, list[Saying]]:
    before, late = known.job, job.status == COMPLETED and job.pr_link is None
    job = _filled(job, before)
    sayings = [Saying(f"back/{known.outages}", What.BACK)] if known.out_said else []
    known = replace(known, job=job, misses=0, out_since=None, out_said=False, trouble=None, trouble_words="")
    if job != before:
        known = replace(known, changed_at=now)
    if job.ended and not (before and before.ended and before.status == job.status):
        known = replace(known, watch_until=max(known.watch_until, now + polling.grace if late else now))
    facts = [fact for fact in _transitions(known, before) if fact.key not in known.said]
    known = replace(known, said=known.said | {fact.key for fact in facts})
    known, link = _announce(known, facts)
    return known, sayings + facts + link


def _filled(job: Job, before: Job | None) -> Job:
    """The job with what an earlier sighting told and this one leaves out: the link is null again in a new round."""
    if before is None:
        return job
    return replace(
        job,
        id=before.id,
        pr_link=job.pr_link or before.pr_link,
        repository=job.repository or before.repository,
        ref=job.ref or before.ref,
        model=job.model or before.model,
        created_at=job.created_at or before.created_at,
        archived_at=job.archived_at or before.archived_at,
    )


def _transitions(known: Known, before: Job | None) -> Iterable[Saying]:
    job, prefix = known.job, f"r{known.round}"
    if job is None:
        return
    if before is None:
        yield Saying("started", What.STARTED, _about(job))
    if before is not None and job.status == before.status:
        return
    if job.status == ACTIVE and before is not None and before.ended and known.round:
        yield Saying(f"{prefix}/active", What.ACTIVE_AGAIN)
    elif job.status == COMPLETED:
        again = {"again": "yes"} if known.round and known.links else {}
        yield Saying(f"{prefix}/completed", What.FINISHED, {"link": job.pr_link or "", **again})
    elif job.status == FAILED:
        yield Saying(f"{prefix}/failed", What.FAILED)
    elif job.status == ARCHIVED:
        yield Saying(f"{prefix}/archived", What.ARCHIVED)


def _about(job: Job) -> dict[str, str]:
    about = {"job": job.id, "repository": job.repository, "ref": job.ref, "model": job.model}
    return {name: value for name, value in about.items() if value}


def _announce(known: Known, facts: list[Saying]) -> tuple[Known, list[Saying]]:
    """Notes a link that was not announced before; it has words of its own unless the news of the end carries it."""
    link = known.job.pr_link if known.job else None
    if link is None or link in known.links:
        return known, []
    changed = {"changed": "yes"} if known.links else {}
    known = replace(known, links=(*known.links, link))
    if any(fact.what is What.FINISHED for fact in facts):
        return known, []
    return known, [Saying(f"link/{link_key(link)}", What.LINK, {"link": link, **changed})]


def _card(known: Known) -> tuple[Job | None, Trouble | None, str]:
    return known.job, known.trouble, known.trouble_words
