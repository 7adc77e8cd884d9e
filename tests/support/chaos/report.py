"""A run in figures."""

from collections.abc import Callable, Sequence

from support.chaos.kill_points import POINTS
from support.chaos.process_world import ProcessWorld
from support.chaos.resume import longest, typical
from support.chaos.run import RoundResult
from support.oracles.notice_keys import all_keys
from support.oracles.promises import Promise


def _not_acked(result: RoundResult) -> int:
    asks = sum(not ask.acked for scenario in result.scenarios for ask in scenario.asks)
    return asks + sum(reply.acked is not True for scenario in result.scenarios for reply in scenario.replies)


def _actions_acked(result: RoundResult) -> int:
    return sum(action.acked for scenario in result.scenarios for action in scenario.actions)


_ROWS: Sequence[tuple[str, Callable[[RoundResult], float]]] = (
    ("kills", lambda o: len(o.world.process_pool.kills)),
    ("of these at a named point", lambda o: o.world.process_pool.at_points),
    ("different points", lambda o: len({kill.point for kill in o.world.process_pool.kills} - {""})),
    ("times without any process", lambda o: o.world.process_pool.downtimes),
    ("of what was written, only in the history", lambda o: o.world.workspace.faults.kept_nothing),
    ("pauses of over 30 s", lambda o: len(o.world.process_pool.pauses)),
    ("faults of Slack and of the job API", lambda o: o.world.faults),
    (
        "commands and mentions acknowledged",
        lambda o: sum(ask.acked for scenario in o.scenarios for ask in scenario.asks),
    ),
    (
        "replies acknowledged",
        lambda o: sum(bool(reply.acked) for scenario in o.scenarios for reply in scenario.replies),
    ),
    ("stops, retries, choices and the like acknowledged", _actions_acked),
    ("not acknowledged", _not_acked),
    ("jobs created", lambda o: len(o.world.fake_job_api.created)),
    ("messages taken", lambda o: len(o.world.fake_job_api.messages)),
    ("plans started", lambda o: len(o.world.fake_job_api.accepted)),
    ("handed back as unsure", lambda o: sum("/unsure/" in key for key in all_keys(o.world.workspace))),
    ("sent again by a person", lambda o: sum(sum(scenario.presses.values()) for scenario in o.scenarios)),
    ("polls", lambda o: len(o.world.fake_job_api.polls)),
    ("posts", lambda o: len(all_keys(o.world.workspace))),
    ("calls refused by Slack", lambda o: sum(call.error == "ratelimited" for call in o.world.workspace.web_api.calls)),
    ("lost", lambda o: o.verdict.count(Promise.NOTHING_LOST)),
    ("said or taken twice", lambda o: o.verdict.count(Promise.SAID_ONCE, Promise.DONE_ONCE)),
    ("double polls", lambda o: o.verdict.count(Promise.ONE_OWNER)),
    ("double sends", lambda o: len(o.verdict.double_sends)),
    ("out of order", lambda o: o.verdict.count(Promise.IN_ORDER)),
    ("cards and reactions out of date", lambda o: o.verdict.count(Promise.UP_TO_DATE)),
    ("ended by themselves", lambda o: len(o.verdict.deaths)),
    ("secrets and tracebacks in their logs", lambda o: len(o.verdict.logged)),
    ("till any process went on, median s", lambda o: typical(o.resume.anywhere)),
    ("till any process went on, longest s", lambda o: longest(o.resume.anywhere)),
    ("held by killed processes", lambda o: len(o.resume.taken_over)),
    ("till others took it over, median s", lambda o: typical(o.resume.taken_over)),
    ("till others took it over, longest s", lambda o: longest(o.resume.taken_over)),
    ("from the last kill to quiet, s", lambda o: o.quiet_after),
)


def table(results: Sequence[RoundResult]) -> str:
    """A Markdown table with a column for each round."""
    lines = [f"| | {' | '.join(_heading(o.world) for o in results)} |", f"|---|{'---:|' * len(results)}"]
    for title, figure in _ROWS:
        lines.append(f"| {title} | {' | '.join(_shown(figure(result)) for result in results)} |")
    return "\n".join(lines)


def _heading(world: ProcessWorld) -> str:
    way = "HTTP" if world.http else "Socket Mode"
    return f"{world.name}, {way}, {'idempotent' if world.idempotent else 'not idempotent'}"


def missed(results: Sequence[RoundResult]) -> list[str]:
    """The points at which no process of any round was killed."""
    hit = {kill.point for result in results for kill in result.world.process_pool.kills}
    return [point for point in POINTS if point not in hit]


def _shown(figure: float) -> str:
    return f"{figure:.2f}" if figure % 1 else f"{figure:.0f}"
