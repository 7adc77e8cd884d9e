"""What a person does in their direct message with Pagehand: they ask for a job and write more lines outside its thread
while it is running. Each line is its own job or is for the one above, as the person decides.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from support.chaos.asked import acked, deliveries_of
from support.chaos.process_world import ProcessWorld
from support.oracles.notice_keys import all_keys, explained, key_of
from support.oracles.promises import AskedFor, Broken, History, Promise, broken

from bot.domain.requests.new_jobs import request_id
from bot.domain.requests.request import RequestKind, RequestState
from bot.notices.said import ButtonId
from bot.workspace.delivery.deliveries import DeliveryRecord
from bot.workspace.model.entities import Message, SlackError
from bot.workspace.people import Actor

DIRECT = "pagehand"
AT_ONCE = (1, 1, 2, 1, 2)
"""How many lines are written before their outcome is awaited."""
_ROWS = "SELECT id, kind, state, merged_into FROM requests WHERE id IN ({})"


@dataclass
class Line:
    """A line that was written. `answered`: its author decided what it is."""

    text: str
    request_id: str
    deliveries: Sequence[DeliveryRecord]
    answered: bool = False


@dataclass
class DirectScenario:
    """One person's conversation, from the first line to the last."""

    world: ProcessWorld
    name: str
    rng: random.Random
    lines: list[Line] = field(default_factory=list)
    presses: Counter[str] = field(default_factory=Counter)
    """How often each request was asked to be sent again, alone or with the one that it is merged into."""
    pressed: set[str] = field(default_factory=set)
    where: str = "begins"

    @property
    def person(self) -> Actor:
        """The person whose direct message it is."""
        return self.world.workspace.people[self.name]

    async def run(self) -> None:
        """Plays the scenario, however long the bot takes."""
        for number in AT_ONCE:
            for _ in range(number):
                await self._write()
            self.where = f"waits for its line {len(self.lines)}"
            while not await self._settled():
                await self._dither()
        self.where = "done"

    async def _write(self) -> None:
        await self.world.when_people_write()
        text = f"direct-{self.name}-{len(self.lines) + 1}. Tidy the guides"
        said = await self.person.say(DIRECT, text)
        key = request_id(f"message/{said.channel}/{said.ts}")
        self.lines.append(Line(text, key, deliveries_of(self.world, said)))

    async def _settled(self) -> bool:
        """Returns whether all lines have ended or Slack gave them up. Answers questions meanwhile."""
        rows = await self.rows()
        for message in self.person.ephemerals(DIRECT):
            await self._answer(message, rows)
        channel = self.person.channel(DIRECT)
        for message in list(self.world.workspace.state.conversation(channel)):
            await self._send_again(message)
        return all(_is_over(line, rows) for line in self.lines)

    async def _dither(self) -> None:
        await asyncio.sleep(self.rng.uniform(0.1, 0.5))

    async def rows(self) -> dict[str, "Row"]:
        """Returns the lines' rows in the database."""
        listed = ", ".join(f"'{line.request_id}'" for line in self.lines)
        found = await self.world.rows(_ROWS.format(listed))
        return {row[0]: Row(RequestKind(row[1]), RequestState(row[2]), row[3]) for row in found}

    async def _answer(self, message: Message, rows: dict[str, "Row"]) -> None:
        """Decides about a line once it is known to be recorded and waiting."""
        asked = [line for line in self.lines if not line.answered and line.request_id in str(message.blocks)]
        for line in asked:
            row = rows.get(line.request_id)
            if row is None or row.state is not RequestState.AWAITING_PERSON:
                continue
            with suppress(SlackError):  # it is gone: it has done its work
                pressed = await self.person.press(
                    DIRECT, message.ts, self.rng.choice((ButtonId.SEND_HELD, ButtonId.DISCARD_HELD))
                )
                line.answered = pressed.ok

    async def _send_again(self, message: Message) -> None:
        """Has a request in doubt sent again."""
        _, request, *rest = f"{key_of(message)}//".split("/")
        if rest[0] != "unsure" or message.ts in self.pressed:
            return
        merged = f"SELECT id FROM requests WHERE id = '{request}' OR merged_into = '{request}'"  # noqa: S608 - in hexadecimal
        self.presses.update(row[0] for row in await self.world.rows(merged))
        if (await self.person.press(DIRECT, message.ts, ButtonId.SEND_AGAIN)).ok:
            self.pressed.add(message.ts)


@dataclass(frozen=True)
class Row:
    """A request as it is in the database."""

    kind: RequestKind
    state: RequestState
    merged_into: str


def _is_over(line: Line, rows: dict[str, Row]) -> bool:
    row = rows.get(line.request_id)
    return acked(line.deliveries) is False or (row is not None and row.state is RequestState.ACCEPTED)


async def lines_broken(scenario: DirectScenario) -> list[Broken]:
    """Returns the promises that were broken: each line was taken once, as a job or by one."""
    world, rows = scenario.world, await scenario.rows()
    created = Counter(entry.prompt for entry in world.fake_job_api.created)
    told, taken, found = explained(all_keys(world.workspace)), Counter(world.fake_job_api.words_taken()), list[Broken]()
    # Lines that were written together share the question about the first.
    asks = any(world.is_asked(DIRECT, request_id, row.state) for request_id, row in rows.items())
    asked: list[AskedFor] = []
    for line in scenario.lines:
        row = rows.get(line.request_id)
        state = row.state if row else None
        if created[line.text] and taken[line.text]:
            found.append(Broken(Promise.DONE_ONCE, f"{line.text} became a job, and went to one"))
        asked.append(
            AskedFor(
                line.text,
                acknowledged=bool(acked(line.deliveries)),
                taken=created[line.text] + taken[line.text],
                sent_again=scenario.presses[line.request_id],
                explained=bool({line.request_id, row.merged_into if row else ""} & told)
                or (state is RequestState.AWAITING_PERSON and asks),
                state=state,
            )
        )
    if scenario.where != "done":
        found.append(Broken(Promise.NOTHING_LOST, f"{scenario.name} in a direct message: {scenario.where}, in vain"))
    return [*found, *broken(History(asked))]
