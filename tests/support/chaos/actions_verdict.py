"""Checks stops, retries, choices, the audit trail and Homes: everything that is neither a job nor a reply."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from support.chaos.process_world import ProcessWorld
from support.chaos.user_scenario import UserScenario
from support.oracles.promises import Broken, Promise

from bot.domain.jobs.stopping import STOP_WORDS
from bot.domain.people import JOBS_A_PAGE, HomeContent
from bot.domain.requests.audit import AuditAction
from bot.domain.requests.request import RequestKind, RequestState, WayIn
from bot.domain.threads.thread import Thread
from bot.notices.answers import ActionAnswer
from bot.slack.rendering.home import home_view
from bot.slack.rendering.message_context import MessageContext
from bot.store.store import open_store

_ENDS = frozenset({RequestState.ACCEPTED, RequestState.REJECTED, RequestState.UNCERTAIN})
_SENT = frozenset({RequestState.ACCEPTED, RequestState.UNCERTAIN})
_DISCARDED = ActionAnswer.DISCARDED.value
_LINK = re.compile(r" · <[^<>|]*\|thread>")


@dataclass(frozen=True)
class Row:
    """A request as it is in the database."""

    id: str
    thread_id: str
    kind: RequestKind
    state: RequestState
    way_in: WayIn
    person_id: str


async def actions_broken(world: ProcessWorld, scenarios: Sequence[UserScenario]) -> list[Broken]:
    """Returns the promises that were broken."""
    rows = [
        Row(request_id, thread_id, RequestKind(kind), RequestState(state), WayIn(way_in), person_id)
        for request_id, thread_id, kind, state, way_in, person_id in await world.rows(
            "SELECT id, thread_id, kind, state, way_in, person_id FROM requests"
        )
    ]
    noted = Counter((row[0], AuditAction(row[1])) for row in await world.rows("SELECT thread_id, action FROM audit"))
    follows = {row[0]: row[1] for row in await world.rows("SELECT id, follows FROM threads")}
    return [
        *_actions(scenarios, rows),
        *_stops(world, scenarios, rows),
        *_discards(world, scenarios, rows),
        *_plans(world, scenarios, rows),
        *_changes(world, scenarios, rows),
        *_audit(rows, noted, follows),
    ]


def _actions(scenarios: Sequence[UserScenario], rows: Collection[Row]) -> Iterator[Broken]:
    """Every acknowledged action was recorded, at most once for each try, and has ended."""
    recorded = Counter((row.thread_id, row.kind, row.person_id) for row in rows if row.way_in is not WayIn.SWITCH)
    for scenario in scenarios:
        for kind in {action.kind for action in scenario.actions if scenario.card}:
            acked = sum(action.acked for action in scenario.actions if action.kind is kind)
            tries = sum(action.tries for action in scenario.actions if action.kind is kind)
            found = sum(
                recorded[thread_id, kind, person.id]
                for thread_id in (
                    scenario.thread_id,
                    *scenario.followers,
                )  # waiting replies move along
                for person in (scenario.person, scenario.other)
            )
            if kind is RequestKind.START:
                found = list(scenario.followers.values()).count(WayIn.REPLY)
            if not acked <= found <= tries:
                promise = Promise.DONE_ONCE if found > tries else Promise.NOTHING_LOST
                yield Broken(promise, f"{scenario.prompt}: {kind} was acknowledged {acked} times, recorded {found}")
    for row in rows:
        if row.kind not in {RequestKind.START, RequestKind.FOLLOW_UP} and row.state not in _ENDS:
            yield Broken(Promise.NOTHING_LOST, f"the {row.kind} {row.id} is {row.state}")


def _stops(world: ProcessWorld, scenarios: Sequence[UserScenario], rows: Collection[Row]) -> Iterator[Broken]:
    """A stop reaches the agent in words once, or ends the job."""
    said = Counter(message.key for message in world.fake_job_api.messages if message.prompt == STOP_WORDS)
    pressed = sum((scenario.presses for scenario in scenarios), Counter[str]())
    by_thread = {scenario.thread_id: scenario for scenario in scenarios if scenario.card}
    for row in rows:
        if row.kind is not RequestKind.STOP:
            continue
        if said[row.id] > 1 + pressed[row.id]:
            yield Broken(Promise.DONE_ONCE, f"the stop {row.id} was said {said[row.id]} times")
        jobs = by_thread[row.thread_id].jobs if row.thread_id in by_thread else []
        if row.state is RequestState.ACCEPTED and not said[row.id] and not {*jobs} & {*world.fake_job_api.cancelled}:
            yield Broken(Promise.NOTHING_LOST, f"the stop {row.id} is said to be done, and reached nobody")


def _discards(world: ProcessWorld, scenarios: Sequence[UserScenario], rows: Collection[Row]) -> Iterator[Broken]:
    """The job API discarded work for everyone who was told so, and for nobody else."""
    discarded, by_thread = {*world.fake_job_api.discarded}, {each.thread_id: each for each in scenarios if each.card}
    wanted = {row.thread_id for row in rows if row.kind is RequestKind.DISCARD}
    for thread_id, scenario in by_thread.items():
        was_done = bool({*scenario.jobs} & discarded)
        seen = scenario.person.ephemerals(scenario.channel)
        told = [message.text for message in seen if message.thread_ts == scenario.root_ts]
        if was_done and thread_id not in wanted:
            yield Broken(Promise.DONE_ONCE, f"{scenario.prompt}: its work was discarded, and nobody wanted that")
        if thread_id in wanted and not was_done and any(_DISCARDED in text for text in told):
            yield Broken(Promise.NOTHING_LOST, f"{scenario.prompt}: it is said to be discarded, and reached nobody")


def _plans(world: ProcessWorld, scenarios: Sequence[UserScenario], rows: Collection[Row]) -> Iterator[Broken]:
    """Only presses start plans, and in the end no post offers to start one that was started."""
    presses = {row.id for row in rows if row.kind is RequestKind.ACCEPT_PROPOSAL}
    for plan, key in world.fake_job_api.accepted:
        if key not in presses:
            yield Broken(Promise.DONE_ONCE, f"{plan} was started by {key}, which is no press")
        posts = [str(message.blocks) for scenario in scenarios for message in scenario.slack_thread()]
        if any(f"/{plan}'" in post for post in posts):
            yield Broken(Promise.UP_TO_DATE, f"the post of {plan} still offers to start it")


def _changes(world: ProcessWorld, scenarios: Sequence[UserScenario], rows: Collection[Row]) -> Iterator[Broken]:
    """An answer is made a change by one of those who press, who reaches the agent once."""
    taken, known = Counter(message.key for message in world.fake_job_api.messages), {row.id: row for row in rows}
    for scenario in (each for each in scenarios if each.changes):
        recorded = [known[each] for each in scenario.changes if each in known]
        reached = [taken[row.id] for row in recorded if taken[row.id]]
        if len(reached) > 1 or sum(reached) > 1 + sum(scenario.presses[row.id] for row in recorded):
            yield Broken(Promise.DONE_ONCE, f"{scenario.prompt}: {reached} changes were made of its answer")
        told = [row.state for row in recorded]
        if not told or not _ENDS.issuperset(told) or (RequestState.ACCEPTED in told and not reached):
            yield Broken(
                Promise.NOTHING_LOST, f"{scenario.prompt}: of its answer no change was made, and {told} is told"
            )


def _audit(
    rows: Collection[Row], noted_of_threads: Counter[tuple[str, AuditAction]], follows: Mapping[str, str]
) -> Iterator[Broken]:
    """Each action is audited once: at least those that were sent or carried out, at most those that were requested.
    Jobs that follow each other are counted together, since waiting replies move along.
    """

    def first(thread_id: str) -> str:
        return first(follows[thread_id]) if follows.get(thread_id) else thread_id

    recorded = Counter((first(row.thread_id), row.kind) for row in rows)
    done = Counter((first(row.thread_id), row.kind) for row in rows if row.state in _SENT)
    noted = Counter[tuple[str, AuditAction]]()
    for (thread_id, action), times in noted_of_threads.items():
        noted[first(thread_id), action] += times
    bounds: dict[AuditAction, tuple[tuple[RequestKind, ...], tuple[RequestKind, ...]]] = {
        AuditAction.ASKED: ((RequestKind.START,), (RequestKind.START,)),
        AuditAction.STEERED: ((RequestKind.FOLLOW_UP,), (RequestKind.FOLLOW_UP,)),
        AuditAction.STOPPED: ((RequestKind.STOP,), (RequestKind.STOP,)),
        AuditAction.DISCARDED: ((RequestKind.DISCARD,), (RequestKind.DISCARD,)),
        AuditAction.MUTED: ((RequestKind.MUTE,), (RequestKind.MUTE,)),
        AuditAction.UNMUTED: ((), (RequestKind.UNMUTE,)),
        AuditAction.RETRIED: ((), (RequestKind.RETRY, RequestKind.SEND_AGAIN)),
        AuditAction.PROJECT_CHOSEN: ((), (RequestKind.CHOOSE_PROJECT,)),
        AuditAction.PLAN_ACCEPTED: ((RequestKind.ACCEPT_PROPOSAL,), (RequestKind.ACCEPT_PROPOSAL,)),
        AuditAction.REFUSED: ((), (RequestKind.START, RequestKind.FOLLOW_UP, RequestKind.STOP)),
    }
    for thread_id in {first(row.thread_id) for row in rows}:
        for action, (needed, allowed) in bounds.items():
            least = sum(done[thread_id, kind] for kind in needed)
            most = sum(recorded[thread_id, kind] for kind in allowed)
            found = noted[thread_id, action]
            if not least <= found <= most:
                promise = Promise.DONE_ONCE if found > most else Promise.NOTHING_LOST
                yield Broken(promise, f"{action} is noted {found} times of {thread_id}, not {least} to {most}")
    for (thread_id, action), times in noted.items():
        if action not in bounds:
            yield Broken(Promise.DONE_ONCE, f"{action} is noted {times} times of {thread_id}")


async def ends_unseen(world: ProcessWorld) -> int:
    """Returns how many jobs on people's Homes have ended without a poll that has seen it."""
    threads = [thread for jobs in (await _newest_jobs(world)).values() for thread in jobs]
    jobs = [thread.state.job for thread in threads if thread.state.job is not None]
    known = world.fake_job_api.jobs
    return sum(not job.ended and job.id in known and known[job.id]["status"] != "active" for job in jobs)


async def homes_broken(world: ProcessWorld) -> list[Broken]:
    """Each Home shows the newest state of its person's jobs, apart from permalinks and times."""
    found = list[Broken]()
    context = MessageContext(bot_user_id=world.workspace.app.bot_user_id, several_projects=True)
    for person_id, jobs in (await _newest_jobs(world)).items():
        view = world.workspace.people.human(person_id).views.home()
        shown = (
            [_LINK.sub("", str(block.get("text", {}).get("text"))) for block in view.blocks if "text" in block]
            if view
            else []
        )
        for job in jobs:
            (right,) = _texts(HomeContent(person_id, jobs=[job]), context)
            if right not in shown:
                found.append(Broken(Promise.UP_TO_DATE, f"the Home of {person_id} shows {shown}, not {right!r}"))
    return found


async def _newest_jobs(world: ProcessWorld) -> dict[str, Sequence[Thread]]:
    """Returns the jobs on the first page of each Home, by person."""
    store = await open_store(world.database_url)
    try:
        return {
            person_id: await store.transact(
                lambda tx, whose=person_id: tx.threads.of_person(whose, offset=0, limit=JOBS_A_PAGE)  # type: ignore[misc]
            )
            for (person_id,) in await world.rows("SELECT person_id FROM homes")
        }
    finally:
        await store.close()


def _texts(content: HomeContent, context: MessageContext) -> list[str]:
    """Returns the texts of its jobs."""
    blocks = home_view(content, {}, context)["blocks"]
    return [block["text"]["text"] for block in blocks if block["type"] == "section"][:1]
