"""Checks what must be true once all is quiet, against the records of the job API, Slack and the threads."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from support.chaos.actions_verdict import actions_broken
from support.chaos.asides_verdict import asides_broken, wrong_announcements
from support.chaos.asked import Reply
from support.chaos.card_verdict import end_on_card
from support.chaos.process_world import ENDS_ALONE, REQUEST_LEASE, ProcessWorld
from support.chaos.pull_request_verdict import pull_requests_broken
from support.chaos.user_scenario import UserScenario
from support.oracles.notice_keys import all_keys, explained, key_in_thread, key_of
from support.oracles.promises import AskedFor, Broken, History, Promise, Said, Shown, Turn, broken

from bot.domain.requests.request import HeldBecause, RejectionReason, RequestState, WayIn
from bot.notices.notice import Reaction
from bot.workspace.model.entities import Message

_ENDS = ("/completed", "/failed", "/stopped")
_ROUND = re.compile(r"r(\d+)/")


@dataclass
class Verdict:
    """The faults that were found: broken promises, and others that these worlds can show."""

    broken: list[Broken] = field(default_factory=list)
    double_sends: list[str] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    """Secrets and tracebacks in the output of the processes."""

    @property
    def faults(self) -> list[str]:
        """All of them."""
        others = {name: found for name, found in vars(self).items() if name != "broken"}
        return [*map(str, self.broken), *(f"{name}: {fault}" for name, faults in others.items() for fault in faults)]

    def count(self, *promises: Promise) -> int:
        """Returns how often these were broken."""
        return sum(found.promise in promises for found in self.broken)


@dataclass(frozen=True)
class Records:
    """What the database contains: each job by its words; each reply's id, the id it was sent as, and its state; each
    thread's notice keys in order, and those that are done.
    """

    asks: Mapping[str, tuple[str, str, RequestState]]
    replies: Mapping[str, tuple[str, str, RequestState]]
    """By the request's id."""
    states: Mapping[str, tuple[RequestState, str]]
    """By the request's id, with the problem."""
    times: Mapping[str, tuple[float, float]]
    """When each request was recorded and first sent, by its id."""
    posts: Mapping[str, Sequence[str]]
    done: frozenset[str]

    @classmethod
    async def read(cls, world: ProcessWorld) -> "Records":
        """Reads the current records."""
        requests = await world.rows("SELECT text, id, merged_into, state, way_in, problem FROM requests")
        tried = await world.rows("SELECT id, recorded_at, first_tried_at FROM requests")
        times = {each: (recorded, inf if sent is None else sent) for each, recorded, sent in tried}
        posts: dict[str, list[str]] = {}
        done: set[str] = set()
        for thread_id, key, state in await world.rows(
            "SELECT thread_id, key, state FROM notices WHERE delivery = 'post' ORDER BY id"
        ):
            posts.setdefault(thread_id, []).append(key)
            done |= {key} if state == "done" else set()
        found = [(row[0], (row[1], row[2] or row[1], RequestState(row[3])), row[4]) for row in requests]
        asks = {
            text.partition(" tidy")[0]: each
            for text, each, way_in in found
            if way_in not in {WayIn.RETRY, WayIn.SWITCH}
        }
        replies = {each[0]: each for _, each, _ in found}
        states = {request_id: (RequestState(state), problem) for _, request_id, _, state, _, problem in requests}
        return cls(asks, replies, states, times, posts, frozenset(done))


async def judge(world: ProcessWorld, scenarios: Sequence[UserScenario]) -> Verdict:
    """Judges a world in which nothing is in progress any more."""
    records = await Records.read(world)
    happened = history(world, scenarios, records)
    handed_back = _handed_back(world, happened, scenarios)
    verdict = Verdict([*broken(happened), *handed_back], deaths=list(world.process_pool.deaths))
    verdict.broken += await actions_broken(world, scenarios)
    for scenario in scenarios:
        if scenario.card is not None:
            verdict.broken += [*_told(scenario), *wrong_announcements(scenario)]
        verdict.broken += asides_broken(world, scenario)
        verdict.broken += [*_without_its_files(world, scenario), *_against_the_rules(world, scenario, records)]
    verdict.broken += await pull_requests_broken(world, late=_late(world))
    verdict.double_sends += _sent_twice(world)
    return verdict


def history(world: ProcessWorld, scenarios: Sequence[UserScenario], records: Records) -> History:
    """Returns what happened, for the oracle, without late calls of a paused process."""
    late = _late(world)
    with_card = [scenario for scenario in scenarios if scenario.card is not None]
    return History(
        requests=[asked for scenario in scenarios for asked in _asked_for(world, scenario, records)],
        posts=[*_posts(world), *(name for scenario in scenarios for name in _cards_of(scenario))],
        threads=[
            _said(scenario, records, thread_id)
            for scenario in with_card
            for thread_id in (scenario.thread_id, *scenario.followers)
        ],
        shown=[
            shown
            for scenario in with_card
            for shown in (*end_on_card(world, scenario), *_reactions(world, scenario, records))
        ],
        polls=[poll for poll in world.fake_job_api.polls if poll.job_id not in late],
    )


def _asked_for(world: ProcessWorld, scenario: UserScenario, records: Records) -> Iterator[AskedFor]:
    """Each request was taken once, or where that cannot be known at most once more than a person asked."""
    entries = world.fake_job_api.created
    created = Counter(entry.prompt.partition(" ")[0] for entry in entries if entry.key not in scenario.followers)
    taken = world.fake_job_api.words_taken()
    keys = all_keys(world.workspace)
    told = explained(keys)
    for ask in scenario.asks:
        request_id, first, state = records.asks.get(ask.prompt, ("", "", None))
        yield AskedFor(
            ask.prompt,
            acknowledged=ask.acked,
            taken=created[ask.prompt],
            sent_again=scenario.presses[request_id],
            explained=bool({request_id, first} & told) or _waits_for_a_choice(request_id, state, keys),
            state=state,
        )
    for reply in scenario.replies:
        request_id, first, state = records.replies.get(reply.request_id, ("", "", None))
        yield AskedFor(
            reply.text,
            # What is deleted while nobody listens is not in the history that is read afterwards.
            acknowledged=bool(reply.acked) and not (reply.deleted and state is None),
            taken=reply.times_in(taken),
            sent_again=scenario.presses[request_id],
            explained=bool({request_id, first} & told) or world.is_asked(scenario.channel, reply.request_id, state),
            state=state,
            turn=_turn(scenario, reply, taken, records),
        )
    for follower, way_in in scenario.followers.items():
        state, problem = records.states[follower]
        if problem != RejectionReason.REPLACED:  # by the same person, requested twice
            yield AskedFor(
                f"the {way_in} of {scenario.prompt}",
                acknowledged=True,
                taken=sum(entry.key == follower for entry in entries),
                sent_again=scenario.presses[follower],
                explained=follower in told,
                state=state,
            )


def _waits_for_a_choice(request_id: str, state: RequestState | None, keys: Sequence[str]) -> bool:
    """Returns whether its card, whose key is that of the starting request, asks for the project."""
    return state is RequestState.AWAITING_PERSON and f"{request_id}/card" in keys


def _turn(scenario: UserScenario, reply: Reply, taken: Sequence[str], records: Records) -> Turn | None:
    """A request that was sent again by a person or redelivered by Slack does not keep its place. What only the history
    has looks as if it was delivered at once, and may become known after a later one was sent.
    """
    places = [place for place, words in enumerate(taken) if words in reply.texts]
    asked = reply.held or reply.stopped
    if not places or scenario.presses[reply.request_id] or asked or reply.changes or not reply.at_first:
        return None
    return Turn(str(scenario.number), reply.ts, places[0], *records.times.get(reply.request_id, (0.0, inf)))


def _said(scenario: UserScenario, records: Records, thread_id: str) -> Said:
    meant = records.posts.get(thread_id, ())
    seen = [key for message in _timely(scenario) if (key := key_of(message)).startswith(f"{thread_id}/")]
    return Said(scenario.prompt, seen, meant, [key for key in meant if key in records.done])


def _reactions(world: ProcessWorld, scenario: UserScenario, records: Records) -> Iterator[Shown]:
    """Each acknowledged reply has one reaction, and the right one."""
    bot, channel = world.workspace.app.bot_user_id, world.workspace.channels[scenario.channel]
    for reply in scenario.replies:
        if not reply.acked or reply.deleted or reply.pressed:
            continue
        message = world.workspace.state.message(channel, reply.ts)
        _, first, state = records.replies.get(reply.request_id, ("", reply.request_id, None))
        open_question = scenario.unsure_about(first) > scenario.answered[reply.request_id]
        right = {Reaction.PROBLEM if open_question else Reaction.ACCEPTED}
        if world.process_pool.pauses and reply.times_in(world.fake_job_api.words_taken()):
            # A process paused between the answer and its record comes back with the truth.
            right.add(Reaction.ACCEPTED)
        shown = sorted(name for name, people in message.reactions.items() if bot in people)
        none = state is RequestState.WITHDRAWN or world.lacks_reactions
        yield Shown(reply.text, shown, [[]] if none else [[reaction.value] for reaction in right])


def _posts(world: ProcessWorld) -> Iterator[str]:
    """All channels and threads are checked, whether a scenario knows them or not."""
    late = _late(world)
    yield from (key for key in all_keys(world.workspace) if key not in late)


def _cards_of(scenario: UserScenario) -> Iterator[str]:
    """A command has one card, even if two threads were made of it."""
    late = _late(scenario.world)
    for ask in scenario.asks:
        cards = scenario.cards.by_prompt.get(ask.prompt, ())
        own = [card for card in cards if key_of(card).partition("/")[0] not in scenario.followers]
        yield from (f"a card of {ask.prompt}" for card in own if key_of(card) not in late)


# -- what only the text of a thread can show --------------------------------------------------------------------------


def _handed_back(world: ProcessWorld, happened: History, scenarios: Sequence[UserScenario]) -> Iterator[Broken]:
    """Where the job API honours idempotency keys, no request is handed back, except a reply in doubt whose job was
    replaced meanwhile: it would wake that job.
    """
    to_replaced = {
        reply.text
        for scenario in scenarios
        if {WayIn.RETRY, WayIn.SWITCH} & set(scenario.followers.values())
        for reply in scenario.replies
    }
    for request in happened.requests:
        waits_for_a_choice = request.state is RequestState.AWAITING_PERSON
        if world.idempotent and request.explained and not waits_for_a_choice and request.name not in to_replaced:
            how = f"{request.name} was handed back though the job API runs a request once"
            yield Broken(Promise.NOTHING_LOST, how)


def _told(scenario: UserScenario) -> Iterator[Broken]:
    """Each notice is posted once, by its text."""
    said, pictures = _told_of(scenario, pictures=False), _told_of(scenario, pictures=True)
    for picture in scenario.pictures:
        if (posts := sum(picture in message.text for message in pictures)) != 1:
            yield _count(scenario, picture, posts)
    started = sum(message.text == "Started." for message in said)
    # A process paused between the answer and its record comes back with the truth, which a person did not wait for.
    unexpected = scenario.start_left and not scenario.world.process_pool.pauses
    may_be_left_out = scenario.quick or scenario.channel == ENDS_ALONE
    if started not in {not scenario.start_left, not unexpected, *([0] if may_be_left_out else [])}:
        yield _count(scenario, "that it has started", started)
    for link in scenario.links:
        others = sum(link in message.text for message in said if not key_in_thread(message).endswith(_ENDS))
        if others > 1 or not any(link in message.text for message in said):
            yield _count(scenario, link, others)
    for answer in scenario.answers:
        by = [key_in_thread(message) for message in said if answer in message.text]
        if not 1 <= len(by) <= scenario.ends[answer]:
            yield _count(scenario, f"{answer} by {by}", len(by))
    if again := _ends_announced_again(scenario):
        yield Broken(Promise.SAID_ONCE, f"{scenario.prompt} was told {again} ends more than there were")
    rounds = [int(found[1]) for message in said if (found := _ROUND.match(key_in_thread(message)))]
    if rounds != sorted(rounds):
        yield Broken(Promise.IN_ORDER, f"{scenario.prompt} was told of the rounds {rounds}")


def _ends_announced_again(scenario: UserScenario) -> int:
    """Returns ends that were announced again. A link may have been announced before its end: if a follow-up was taken
    from a process that was killed before it recorded that, the job is seen with a new link before its round is known.
    """
    ends = [message for message in _told_of(scenario, pictures=False) if key_in_thread(message).endswith(_ENDS)]
    told = {link: sum(link in message.text for message in ends) for link in scenario.links}
    return sum(max(times - scenario.ends[link], 0) for link, times in told.items())


def _without_its_files(world: ProcessWorld, scenario: UserScenario) -> Iterator[Broken]:
    """Attached files were sent each time the job was requested, and had been uploaded before."""
    for created in world.fake_job_api.created:
        mine = created.prompt.startswith(scenario.prompt)
        sent = [world.fake_job_api.files.get(file_id) for file_id in created.files]
        if mine and sent != [file.content for file in scenario.files]:
            yield Broken(Promise.NOTHING_LOST, f"{scenario.prompt} went out with {len(sent)} files: {created.files}")


def _against_the_rules(world: ProcessWorld, scenario: UserScenario, records: Records) -> Iterator[Broken]:
    """Nothing that was refused is done, and nothing is sent that was deleted before, or not to be sent any more."""
    attempts = world.fake_job_api.attempts
    # as context by others they may be sent
    for text in {*scenario.refused_words} & {*world.fake_job_api.words_taken()}:
        yield Broken(Promise.DONE_ONCE, f"{text} went out")
    for request_id in scenario.refused_requests:
        state, problem = records.states.get(request_id, (RequestState.REJECTED, ""))
        # Before it is checked, a stop may withdraw it: then its writer is asked.
        if state is not RequestState.REJECTED and problem != HeldBecause.STOPPED:
            yield Broken(Promise.NOTHING_LOST, f"what may not be asked for, {request_id}, is {state}")
    for reply in scenario.replies:
        if reply.gone_at is None or world.process_pool.pauses:
            continue
        # as context of what others ask for in somebody's thread it may be sent, since it is still there
        sent = (each.at for each in attempts if reply.texts & {*(each.prompt or "").split("\n\n")})
        at = min(sent, default=0.0)
        if at > reply.gone_at + REQUEST_LEASE:
            yield Broken(Promise.DONE_ONCE, f"{reply.text} went out {at - reply.gone_at:.0f} s after it was taken back")


def _count(scenario: UserScenario, what: str, times: int) -> Broken:
    promise = Promise.SAID_ONCE if times > 1 else Promise.NOTHING_LOST
    return Broken(promise, f"{scenario.prompt} was told {what} {times} times")


def _sent_twice(world: ProcessWorld) -> Iterator[str]:
    """A request that is repeated without a person's request was first held for the lease of its sender."""
    sent: dict[str, list[float]] = {}
    for attempt in world.fake_job_api.attempts:
        if attempt.key:
            sent.setdefault(f"{attempt.prompt} ({attempt.key})", []).append(attempt.at)
    yield from _other_bodies(world)
    for name, times in sent.items():
        early = [after - before for before, after in pairwise(times) if after - before < REQUEST_LEASE - 5.0]
        if early and world.idempotent:
            yield f"{name} was sent again after {early[0]:.1f} s"


def _other_bodies(world: ProcessWorld) -> Iterator[str]:
    """A repeated key has the same body: a server that honours keys may refuse another one."""
    bodies: dict[str, set[bytes]] = {}
    for attempt in world.fake_job_api.attempts:
        if attempt.key:
            bodies.setdefault(attempt.key, set()).add(attempt.body)
    yield from (f"{key} came with {len(found)} bodies" for key, found in bodies.items() if len(found) > 1)


def _late(world: ProcessWorld) -> set[str]:
    """Returns the calls in progress when a process was paused: only these may arrive late, as the README says."""
    return {what for pause in world.process_pool.pauses for what in pause.under_way}


def _told_of(scenario: UserScenario, *, pictures: bool) -> list[Message]:
    """Returns what the thread said of the scenario's job: its pictures, or all else."""
    said = [message for message in _timely(scenario) if key_of(message).startswith(f"{scenario.thread_id}/")]
    return [message for message in said if key_in_thread(message).startswith("pictures/") is pictures]


def _timely(scenario: UserScenario) -> list[Message]:
    """Returns the Slack thread without cards and without repetitions of a post in progress at a pause."""
    late, seen, timely = _late(scenario.world), set[str](), list[Message]()
    for message in scenario.slack_thread():
        key = key_of(message)
        if key.endswith("/card"):
            continue
        if key not in late or key not in seen:
            timely.append(message)
        seen.add(key)
    return timely
