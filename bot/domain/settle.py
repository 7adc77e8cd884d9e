"""From the job API's answer to a request to what becomes of the request, and what people are told. Pure."""

from dataclasses import dataclass, replace

from bot.domain.decide import OutOfReach, Polling, Seen, decide, gone, next_look, open_round, out_of_reach, outage
from bot.domain.models import Job, Known, Mark, Request, RequestKind, RequestState, Saying, Trouble, What

SLOWEST_RETRY = 60.0
PATIENCE = 60.0
"""Seconds that a request may wait for the job API before the thread is told that it waits."""
GIVE_UP_AFTER = 3 * 24 * 3600.0
"""Seconds of trying after which a request is handed back to its person."""
NO_ANSWER = "does not answer properly"


@dataclass(frozen=True)
class Taken:
    """The job API took it and answered with the job. `outdated`: the answer may be older than what is known of it."""

    job: Job
    outdated: bool = False


@dataclass(frozen=True)
class TurnedAway:
    """The job API will not have it, however often it is asked. `reason`: api, project or gone; `words` are its own."""

    reason: str
    words: str = ""


@dataclass(frozen=True)
class Unsure:
    """It may have arrived. `why` is for the log; `ask_again` where the server promises that the same key runs once."""

    why: str
    ask_again: bool = False


Outcome = Taken | TurnedAway | OutOfReach | Unsure


@dataclass(frozen=True)
class Settlement:
    """What becomes of a request. `due_in` and `poll_in` are in seconds; `poll_in` None: no polling."""

    state: RequestState
    known: Known
    sayings: tuple[Saying, ...] = ()
    mark: Mark | None = None
    due_in: float = 0.0
    poll_in: float | None = None
    problem: str = ""


def settle(
    request: Request, known: Known, outcome: Outcome, now: float, polling: Polling, *, jitter: float = 0.5
) -> Settlement:
    """Decides what an answer means for a request. `jitter` is a random number from 0 to 1."""
    match outcome:
        case Taken():
            settlement = _taken(request, known, outcome, now, polling, jitter=jitter)
        case TurnedAway():
            settlement = _turned_away(request, known, outcome)
        case OutOfReach() if _waited(request, now) >= GIVE_UP_AFTER:
            settlement = _handed_back(request, known)
        case OutOfReach():
            settlement = _later(request, known, outcome, now, jitter)
        case Unsure(why) if outcome.ask_again and _waited(request, now) < GIVE_UP_AFTER:
            settlement = _later(request, known, OutOfReach(NO_ANSWER), now, jitter)
            settlement = replace(settlement, problem=why)
        case _:
            settlement = _unsure(request, known, outcome, now, polling)
    return replace(settlement, poll_in=next_look(settlement.known, now, polling, jitter=jitter))


def mark_key(request: Request) -> str:
    """The key of the one reaction on a reply."""
    return f"{request.id}/mark"


def _taken(request: Request, known: Known, taken: Taken, now: float, polling: Polling, *, jitter: float) -> Settlement:
    if request.kind is RequestKind.START:
        decision = decide(known, Seen(taken.job), now, polling, jitter=jitter)
        return Settlement(RequestState.TAKEN, decision.known, decision.sayings)
    sayings: tuple[Saying, ...] = ()
    if not taken.outdated:
        decision = decide(known, Seen(taken.job), now, polling, jitter=jitter)
        known, sayings = decision.known, decision.sayings
    if taken.outdated or taken.job.ended:
        # The end that is known may be that of earlier work, or already this one's: either is news when it comes.
        known = open_round(known, now, polling)
    return Settlement(RequestState.TAKEN, known, sayings, Mark.TAKEN)


def _turned_away(request: Request, known: Known, outcome: TurnedAway) -> Settlement:
    if request.kind is RequestKind.START:
        known = replace(known, trouble=Trouble.REFUSED, trouble_words=outcome.words)
    elif outcome.reason == "gone":
        known = gone(known)
    saying = refusal(request, outcome.reason, outcome.words)
    return Settlement(RequestState.REFUSED, known, (saying,), _problem_mark(request), problem=outcome.reason)


def refusal(request: Request, reason: str, words: str = "") -> Saying:
    """What the thread is told of a request that was not taken."""
    facts = {**_whose(request), "reason": reason, "words": words}
    return Saying(f"{request.id}/refused/{request.attempts}", What.REFUSED, facts)


def _later(request: Request, known: Known, outcome: OutOfReach, now: float, jitter: float) -> Settlement:
    known, sayings = _waiting(request, known, outcome, now)
    due_in = max(_backoff(request.attempts, jitter), outcome.retry_after or 0.0)
    return Settlement(RequestState.WAITING, known, tuple(sayings), due_in=due_in, problem=outcome.reason)


def _waiting(request: Request, known: Known, outcome: OutOfReach, now: float) -> tuple[Known, list[Saying]]:
    """What is said of a request that waits. Where the job can be read all the same, it is this request's trouble: said
    once for it, since each good look would end an outage.
    """
    patience = PATIENCE - (outcome.retry_after or 0.0)
    if known.job is None or known.out_since is not None:
        return out_of_reach(known, outcome, now, patience, request=True)
    if outcome.status is None and _waited(request, now) < patience:
        return known, []
    return known, [outage(f"{request.id}/out", outcome, request=True)]


def _waited(request: Request, now: float) -> float:
    return 0.0 if request.first_tried_at is None else now - request.first_tried_at


def _handed_back(request: Request, known: Known) -> Settlement:
    saying = refusal(request, "too_old")
    return Settlement(RequestState.REFUSED, known, (saying,), _problem_mark(request), problem="too_old")


def _unsure(request: Request, known: Known, outcome: Unsure, now: float, polling: Polling) -> Settlement:
    if request.kind is RequestKind.START:
        known = replace(known, trouble=Trouble.UNSURE, trouble_words="")
    else:
        known = open_round(known, now, polling)  # if it arrived after all, what comes of it is news
    saying = Saying(f"{request.id}/unsure/{request.attempts}", What.UNSURE, _whose(request))
    return Settlement(RequestState.UNSURE, known, (saying,), _problem_mark(request), problem=outcome.why)


def _whose(request: Request) -> dict[str, str]:
    return {"person": request.person_id, "request": request.id, "kind": request.kind.value}


def _problem_mark(request: Request) -> Mark | None:
    return Mark.PROBLEM if request.kind is RequestKind.FOLLOW_UP else None


def _backoff(attempts: int, jitter: float) -> float:
    return min(2.0 ** min(attempts, 10), SLOWEST_RETRY) * (0.75 + 0.5 * jitter)
