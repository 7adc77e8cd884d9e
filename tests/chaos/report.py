"""A run in figures."""

from collections.abc import Callable, Sequence

from chaos.crew import POINTS
from chaos.resume import longest, typical
from chaos.scenario import Outcome
from chaos.world import World


def _not_acked(outcome: Outcome) -> int:
    asks = sum(not ask.acked for errand in outcome.errands for ask in errand.asks)
    return asks + sum(reply.acked is not True for errand in outcome.errands for reply in errand.replies)


def _keys(outcome: Outcome) -> list[str]:
    """The keys of all that was posted."""
    messages = (
        message
        for channel in outcome.world.workspace.state.channels.values()
        for message in outcome.world.workspace.state.conversation(channel)
    )
    keys = [str((message.metadata or {}).get("event_payload", {}).get("key", "")) for message in messages]
    return [key for key in keys if key]


_ROWS: Sequence[tuple[str, Callable[[Outcome], float]]] = (
    ("kills", lambda o: len(o.world.crew.kills)),
    ("of these at a named point", lambda o: o.world.crew.at_points),
    ("different points", lambda o: len({kill.point for kill in o.world.crew.kills} - {""})),
    ("pauses of over 30 s", lambda o: len(o.world.crew.pauses)),
    ("faults of Slack and of the job API", lambda o: o.world.faults),
    ("commands acknowledged", lambda o: sum(ask.acked for errand in o.errands for ask in errand.asks)),
    ("replies acknowledged", lambda o: sum(bool(reply.acked) for errand in o.errands for reply in errand.replies)),
    ("not acknowledged", _not_acked),
    ("jobs created", lambda o: len(o.world.ledger.created)),
    ("messages taken", lambda o: len(o.world.ledger.messages)),
    ("handed back as unsure", lambda o: sum("/unsure/" in key for key in _keys(o))),
    ("sent again by a person", lambda o: sum(sum(errand.presses.values()) for errand in o.errands)),
    ("polls", lambda o: len(o.world.ledger.polls)),
    ("posts", lambda o: len(_keys(o))),
    ("lost", lambda o: len(o.verdict.losses)),
    ("said or taken twice", lambda o: len(o.verdict.duplicates)),
    ("double polls", lambda o: len(o.verdict.double_polls)),
    ("double sends", lambda o: len(o.verdict.double_sends)),
    ("out of order", lambda o: len(o.verdict.disorder)),
    ("stale cards and marks", lambda o: len(o.verdict.stale)),
    ("ended by themselves", lambda o: len(o.verdict.deaths)),
    ("secrets and tracebacks in their logs", lambda o: len(o.verdict.logged)),
    ("till any process went on, median s", lambda o: typical(o.resume.anywhere)),
    ("till any process went on, longest s", lambda o: longest(o.resume.anywhere)),
    ("held by killed processes", lambda o: len(o.resume.taken_over)),
    ("till others took it over, median s", lambda o: typical(o.resume.taken_over)),
    ("till others took it over, longest s", lambda o: longest(o.resume.taken_over)),
    ("from the last kill to quiet, s", lambda o: o.quiet_after),
)


def table(outcomes: Sequence[Outcome]) -> str:
    """A Markdown table with a column for each round."""
    lines = [f"| | {' | '.join(_heading(o.world) for o in outcomes)} |", f"|---|{'---:|' * len(outcomes)}"]
    for title, figure in _ROWS:
        lines.append(f"| {title} | {' | '.join(_shown(figure(outcome)) for outcome in outcomes)} |")
    return "\n".join(lines)


def _heading(world: World) -> str:
    way = "HTTP" if world.http else "Socket Mode"
    return f"{world.name}, {way}, {'idempotent' if world.idempotent else 'not idempotent'}"


def missed(outcomes: Sequence[Outcome]) -> list[str]:
    """The points at which no process of any round was killed."""
    hit = {kill.point for outcome in outcomes for kill in outcome.world.crew.kills}
    return [point for point in POINTS if point not in hit]


def _shown(figure: float) -> str:
    return f"{figure:.2f}" if figure % 1 else f"{figure:.0f}"
