"""What a person does with Pagehand: asks for a job, steers it, presses where the thread asks for it."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from support.chaos.process_world import CHANNELS, NEW_CHANNEL, PEOPLE, RETRY_DELAYS, ProcessWorld
from support.oracles.notice_keys import key_in_thread

from bot.slack.rendering.blocks import SEND_AGAIN
from bot.slack.rendering.ephemeral_texts import GOT_IT
from bot.starts import request_id
from bot.workspace.delivery.deliveries import DeliveryRecord
from bot.workspace.model.entities import Change, Message

PRESSED = 0.7
"""How often a person presses where a button offers to send a request again."""
_PROMPT = re.compile(r"scenario-\d+-\d+:")
_LOOK_EVERY = 0.15


@dataclass
class Ask:
    """A slash command. Without `acked`, Slack told the person that it failed."""

    prompt: str
    acked: bool


@dataclass
class Reply:
    """A reply in the thread; `request_id` is what Pagehand calls it."""

    text: str
    ts: str
    request_id: str
    delivery: DeliveryRecord

    @property
    def acked(self) -> bool | None:
        """Whether the bot acknowledged it to Slack; None while Slack is still at it."""
        if self.delivery.acked:
            return True
        return False if self.delivery.failed and self.delivery.attempts > len(RETRY_DELAYS) else None


class Cards:
    """Every card that was ever posted, by the prompt it shows."""

    def __init__(self, world: ProcessWorld) -> None:
        self.by_prompt: dict[str, list[Message]] = {}
        world.workspace.state.observers.append(self._happened)

    def _happened(self, change: Change) -> None:
        message = change.message
        if change.kind == "message_posted" and message is not None and key_in_thread(message) == "card":
            found = _PROMPT.search(message.text)
            self.by_prompt.setdefault(found[0] if found else "", []).append(message)


@dataclass
class UserScenario:
    """One person's business from the command to the last pull request, in `rounds` of replies after the first."""

    world: ProcessWorld
    cards: Cards
    number: int
    rng: random.Random
    asks: list[Ask] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    presses: Counter[str] = field(default_factory=Counter)
    """How often each request was asked to be sent again."""
    ends: Counter[str] = field(default_factory=Counter)
    """How often the agent really ended with each link known, and with each answer."""
    answers: list[str] = field(default_factory=list)
    """What the agent said at each end."""
    answered: Counter[str] = field(default_factory=Counter)
    """How many notices about each request the person answered by pressing."""
    pressed: set[str] = field(default_factory=set)
    """The messages whose button was pressed."""
    left: set[str] = field(default_factory=set)
    """The requests that were not asked to be sent again."""
    card: Message | None = None
    where: str = "asks"
    """How far it has come."""

    def __post_init__(self) -> None:
        is_new = self.rng.random() < NEW_CHANNEL
        self.channel = self.world.new_channel(f"scenario{self.number}") if is_new else self.rng.choice(CHANNELS)
        self.person = self.world.workspace.people[self.rng.choice(PEOPLE)]
        self.rounds = self.rng.choice((0, 1, 1, 2))
        self.eager = self.rng.random() < 0.5

    async def run(self) -> None:
        """Does it all, however long the bot takes."""
        await self._ask()
        self.where = "waits for the card"
        await self._see(lambda: self.cards.by_prompt.get(self.prompt))
        self.card = self.cards.by_prompt[self.prompt][0]
        if not self.eager:
            await self._started()
        for turn in range(self.rounds + 1):
            said: list[Reply] = []
            if turn or self.eager:
                said = await self._steer()
            await self._started()
            if self.start_left:
                break
            self.where = f"waits for its replies, round {turn}"
            await self._see(lambda: all(self._settled(reply) for reply in self.replies))
            if turn == 0 or any(self._taken(reply) for reply in said):
                await self._finish(turn)
        self.where = "done"

    @property
    def prompt(self) -> str:
        """The prompt of the command that was acknowledged."""
        return self.asks[-1].prompt if self.asks else ""

    @property
    def jobs(self) -> list[str]:
        """The jobs that were created for it: more than one only where a person had it sent again."""
        return [entry.job_id for entry in self.world.fake_job_api.created if entry.prompt.startswith(self.prompt)]

    def thread(self) -> list[Message]:
        """The thread's messages, the card first; empty while there is none."""
        return self.world.workspace.channels.thread(self.channel, self.card.ts) if self.card else []

    def words_about(self, request_id: str) -> bool:
        """Whether the thread tells that a request was not taken, or perhaps not."""
        told = (f"{request_id}/unsure/", f"{request_id}/refused/")
        return any(key_in_thread(message).startswith(told) for message in self.thread())

    def unsure_about(self, request_id: str) -> int:
        """How often the thread says that it is not known whether a request arrived."""
        return sum(key_in_thread(message).startswith(f"{request_id}/unsure/") for message in self.thread())

    @property
    def start_left(self) -> bool:
        """Whether the person left it at not knowing whether the job was started."""
        return not self.left <= {reply.request_id for reply in self.replies}

    async def _ask(self) -> None:
        while not (self.asks and self.asks[-1].acked):
            prompt = f"scenario-{self.number}-{len(self.asks) + 1}:"
            answer = await self.person.command(self.channel, "/docs", f"{prompt} tidy the guides")
            self.asks.append(Ask(prompt, answer.ok and answer.text == GOT_IT))
            await self._dither(2.0)

    async def _started(self) -> None:
        """Waits for the job, or for words that it may not have started and that the person leaves alone."""
        self.where = "waits for the job"
        await self._see(lambda: self.start_left or "started" in map(key_in_thread, self.thread()))

    async def _steer(self) -> list[Reply]:
        self.where = "replies"
        assert self.card is not None
        before = len(self.replies)
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            text = f"scenario-{self.number} reply-{len(self.replies) + 1}."
            said = await self.person.say(self.channel, text, thread_ts=self.card.ts)
            channel_id = self.world.workspace.channels[self.channel].id
            request = request_id(f"message/{channel_id}/{said.ts}")
            self.replies.append(Reply(text, said.ts, request, self._delivery(said)))
            await self._dither(0.3)
        return self.replies[before:]

    def _delivery(self, said: Message) -> DeliveryRecord:
        newest = reversed(self.world.workspace.deliveries.records)
        return next(record for record in newest if record.envelope.payload.get("event", {}).get("ts") == said.ts)

    async def _finish(self, turn: int) -> None:
        """The agent is done: with a link at once, or with one that comes a little later."""
        await self._dither(0.5)
        link = f"https://git.example/e{self.number}/r{turn}"
        self.where = f"waits for {link}"
        self.answers.append(f"answer-{self.number}-{turn}.")
        if self.rng.random() < 0.3:
            self._show(None)
            await self._dither(2.0)
        self.links.append(link)
        await self._see(lambda: self._announced(link))

    def _announced(self, link: str) -> bool:
        """Whether the thread has the link; what arrives late takes the agent up again, which then ends the same way."""
        if any(self.world.fake_job_api.jobs[job_id]["prLink"] != link for job_id in self.jobs):
            self._show(link)
        return any(link in message.text for message in self.thread()[1:])

    def _show(self, link: str | None) -> None:
        self.ends[link or (self.links[-1] if self.links else "")] += 1
        self.ends[self.answers[-1]] += 1
        details = {"summary": f"This is {self.answers[-1]}", "revision": self.answers[-1]}
        for job_id in self.jobs:
            self.world.fake_job_api.show(job_id, "completed", link, details=details)

    def _settled(self, reply: Reply) -> bool:
        return self._taken(reply) or reply.request_id in self.left or reply.acked is False

    def _taken(self, reply: Reply) -> bool:
        return reply.text in self.world.fake_job_api.words_taken()

    async def _see(self, condition: Callable[[], object]) -> None:
        """Waits for a condition, and presses what the thread offers to press meanwhile."""
        while not condition():
            await asyncio.sleep(_LOOK_EVERY)
            for message in self.thread()[1:]:
                await self._consider(message)

    async def _consider(self, message: Message) -> None:
        """Presses the button of an unsure notice or leaves it, once and for all."""
        request_id, _, rest = key_in_thread(message).partition("/")
        if not rest.startswith("unsure/") or request_id in self.left or message.ts in self.pressed:
            return
        is_start = request_id not in {reply.request_id for reply in self.replies}
        if not (is_start and (self.eager or self.rounds)) and self.rng.random() > PRESSED:
            self.left.add(request_id)
            return
        self.pressed.add(message.ts)
        self.answered[request_id] += 1
        answered = False
        while not answered:
            await self._dither(0.5)
            self.presses[request_id] += 1
            answered = (await self.person.press(self.channel, message.ts, SEND_AGAIN)).ok

    async def _dither(self, longest: float) -> None:
        await asyncio.sleep(self.rng.uniform(0.05, longest))
