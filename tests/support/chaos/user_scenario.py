"""What a person does with Pagehand: asks for a job, steers it, and presses buttons in the thread."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from support.chaos import actions, asides
from support.chaos.asked import Ask, Cards, End, PersonsAction, Reply, acked, deliveries_of
from support.chaos.process_world import (
    AMONG_PARTICIPANTS,
    CHANNELS,
    ENDS_ALONE,
    MENTION,
    NEW_CHANNEL,
    PEOPLE,
    ProcessWorld,
)
from support.oracles.notice_keys import key_in_thread, key_of

from bot.domain.requests.new_jobs import request_id
from bot.domain.requests.request import WayIn
from bot.notices.said import ButtonId
from bot.slack.rendering.ephemeral_texts import RECORDED
from bot.workspace.model.entities import Message, Upload

PRESSED = 0.7
"""How often a person presses a button that offers to send a request again."""
BY_MENTION, WITH_FILE, OF_NO_PROJECT, BY_SOMEBODY_ELSE = 0.35, 0.5, 0.2, 0.4
"""How often a job is requested by message, with a file, and without a project keyword; and, where non-participants are
asked whether a reply is for the agent, how often another person replies.
"""
QUICK = 0.3
"""How often a job without replies ends while its start notice is still held."""
IN_VAIN = 0.15
"""How often a person asks who may not."""
_LOOK_EVERY = 0.15


@dataclass
class UserScenario:
    """One person's conversation, from the command to the last pull request, with `rounds`
    of replies after the first.
    """

    world: ProcessWorld
    cards: Cards
    number: int
    rng: random.Random
    asks: list[Ask] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    actions: list[PersonsAction] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    presses: Counter[str] = field(default_factory=Counter)
    """How often each request was asked to be sent again, alone or with the one that it is merged into."""
    ends: Counter[str] = field(default_factory=Counter)
    """How often the agent really ended with each link, and with each answer."""
    answers: list[str] = field(default_factory=list)
    """The agent's answer at each end."""
    pictures: list[str] = field(default_factory=list)
    """The picture that the agent made for each link."""
    changes: Counter[str] = field(default_factory=Counter)
    """How often a change was asked for that an answer was to be made, acknowledged, by the request's id."""
    answered: Counter[str] = field(default_factory=Counter)
    """How many notices about each request the person answered by pressing."""
    pressed: set[str] = field(default_factory=set)
    """The messages whose button was pressed."""
    left: set[str] = field(default_factory=set)
    """The requests that were not asked to be sent again."""
    followers: dict[str, WayIn] = field(default_factory=dict)
    """Pagehand's ids of the jobs that followed or replaced this one, and how they were requested."""
    refused_words: list[str] = field(default_factory=list)
    refused_requests: list[str] = field(default_factory=list)
    """What people wrote who may not, with Pagehand's ids of it."""
    thanks: list[Reply] = field(default_factory=list)
    passed_on: dict[str, str] = field(default_factory=dict)
    """The text of a forwarded message, by the words that it was sent with."""
    invited_to: str = ""
    """The channel that Pagehand was invited to; empty: none."""
    passed_on_alone: list[str] = field(default_factory=list)
    stopped_by_reaction: bool = False
    """Whether the requester's reaction is on the card."""
    start_left: bool = False
    """Whether the person accepted not knowing whether the job was started."""
    card: Message | None = None
    end: End | None = None
    where: str = "asks"
    """The current stage."""

    def __post_init__(self) -> None:
        self.mentions = self.rng.random() < BY_MENTION
        self.in_conversation = self.mentions and self.rng.random() < 0.5
        with_file = self.mentions and self.rng.random() < WITH_FILE
        self.files = [Upload(f"{self.number}.png", f"\x89PNG {self.number}".encode())] if with_file else []
        self.needs_project = self.rng.random() < OF_NO_PROJECT
        is_new = self.rng.random() < NEW_CHANNEL and not (self.mentions or self.needs_project)
        self.channel = self.world.new_channel(f"scenario{self.number}") if is_new else self.rng.choice(CHANNELS)
        name, other = self.rng.sample(PEOPLE, 2)
        self.person, self.other = self.world.workspace.people[name], self.world.workspace.people[other]
        self.rounds = self.rng.choice((0, 1, 1, 2))
        self.eager = self.rng.random() < 0.5
        self.quick = not (self.eager or self.rounds) and self.rng.random() < QUICK

    async def run(self) -> None:
        """Plays the scenario, however long the bot takes."""
        await self.person.views.open_home()
        if self.rng.random() < asides.INVITED:
            await asides.invite(self)
        if self.rng.random() < asides.FORWARDED_ALONE:
            await asides.pass_on_alone(self)
        await self._ask()
        self.where = "waits for the card"
        if self.needs_project:
            await actions.choose_project(self)
        await self.see(lambda: self.cards.by_prompt.get(self.prompt))
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
            await self.see(lambda: all(self.settled(reply) for reply in self.replies))
            if turn == 0 or any(self._taken(reply) for reply in said):
                await self._end(turn)
        if self.rng.random() < asides.THANKED:
            await asides.thank(self)
        self.where = "done"

    async def _end(self, turn: int) -> None:
        if self.quick:
            await actions.finish(self, turn)
        else:
            await asides.before_the_end(self)
            await actions.end(self, turn, is_last=turn == self.rounds)

    @property
    def prompt(self) -> str:
        """The prompt of the command that was acknowledged."""
        return self.asks[-1].prompt if self.asks else ""

    @property
    def thread_id(self) -> str:
        """Pagehand's id of the thread; empty while there is no card."""
        return key_of(self.card).partition("/")[0] if self.card else ""

    @property
    def root_ts(self) -> str:
        """The root message of the Slack thread; empty while there is no card."""
        return (self.card.thread_ts or self.card.ts) if self.card else ""

    @property
    def jobs(self) -> list[str]:
        """The jobs created for it: more than one only if a person sent it again."""
        created = self.world.fake_job_api.created
        return [one.job_id for one in created if one.prompt.startswith(self.prompt) and one.key not in self.followers]

    def slack_thread(self) -> list[Message]:
        """All messages of the Slack thread; empty while there is no card."""
        return self.world.workspace.channels.thread(self.channel, self.root_ts) if self.card else []

    def thread(self) -> list[Message]:
        """The thread's messages, the card first; empty while there is none."""
        said = (message for message in self.slack_thread() if key_of(message).startswith(f"{self.thread_id}/"))
        return [self.card, *(one for one in said if key_in_thread(one) != "card")] if self.card else []

    def unsure_about(self, request_id: str) -> int:
        """Returns how often the thread says that it is unknown whether a request arrived."""
        return sum(key_in_thread(message).startswith(f"{request_id}/unsure/") for message in self.thread())

    async def _ask(self) -> None:
        while not (self.asks and self.asks[-1].acked):
            prompt = f"scenario-{self.number}-{len(self.asks) + 1}:"
            words = f"{prompt} tidy {'up' if self.needs_project else self.rng.choice(('the guides', 'the handbook'))}"
            self.asks.append(Ask(prompt, await (self._mention(words) if self.mentions else self._command(words))))
            await self.dither(2.0)

    async def _command(self, words: str) -> bool:
        answer = await self.person.command(self.channel, "/docs", words)
        return answer.ok and answer.text == RECORDED

    async def _mention(self, words: str) -> bool:
        """Mentions the bot in a new message or in an existing thread."""
        await self.world.when_people_write()
        begins = await self.other.say(self.channel, "Who knows the guides?") if self.in_conversation else None
        said = await self.person.say(
            self.channel, f"{MENTION}{words}", thread_ts=begins.ts if begins else None, files=self.files
        )
        deliveries = deliveries_of(self.world, said)
        await self.see(lambda: acked(deliveries) is not None)
        return acked(deliveries) is True

    async def _started(self) -> None:
        """Waits for the job, or for a doubt about its start that the person leaves open."""
        self.where = "waits for the job"
        if self.quick or self.channel == ENDS_ALONE:
            await self._accepted()
            return
        await self.see(lambda: self.start_left or "started" in map(key_in_thread, self.thread()))

    async def _accepted(self) -> None:
        """Waits for the same where starts are not announced."""
        open_start = (
            f"SELECT id FROM requests WHERE thread_id = '{self.thread_id}' AND kind = 'start' AND state != 'accepted'"  # noqa: S608 - in hexadecimal
        )
        while not self.start_left and await self.world.rows(open_start):
            await self._look()
            await self.dither(0.5)

    async def _steer(self) -> list[Reply]:
        self.where = "replies"
        before = len(self.replies)
        if (pressed := await actions.press_example(self)) is not None:
            self.replies.append(pressed)
        await self.reply(self.rng.choice((1, 1, 2, 3)))
        if self.rng.random() < IN_VAIN:
            await actions.ask_in_vain(self)
        return self.replies[before:]

    async def reply(self, times: int) -> None:
        """Replies, and changes one or the other reply at once."""
        for _ in range(times):
            await self.world.when_people_write()
            by_other = (
                self.channel == AMONG_PARTICIPANTS and not self.in_conversation and self.rng.random() < BY_SOMEBODY_ELSE
            )
            text = f"scenario-{self.number} reply-{len(self.replies) + 1}."
            forwards = not by_other and self.rng.random() < asides.FORWARDED
            writing = asides.forward(self, text) if forwards else self._say(text, by_other=by_other)
            said = await writing
            request = request_id(f"message/{said.channel}/{said.ts}")
            reply = Reply(text, said.ts, request, deliveries_of(self.world, said), held=by_other)
            self.replies.append(reply)
            if not forwards:
                await actions.change(self, reply)
            await self.dither(0.3)

    async def _say(self, text: str, *, by_other: bool) -> Message:
        person = self.other if by_other else self.person
        return await person.say(self.channel, self.addressed(text), thread_ts=self.root_ts)

    def addressed(self, words: str) -> str:
        """Returns words that count in this thread."""
        return f"{MENTION}{words}" if self.in_conversation else words

    def settled(self, reply: Reply) -> bool:
        """Returns whether nothing more can happen to a reply."""
        over = reply.deleted or reply.discarded
        return over or self._taken(reply) or reply.request_id in self.left or reply.acked is False

    def _taken(self, reply: Reply) -> bool:
        return reply.times_in(self.world.fake_job_api.words_taken()) > 0

    async def see(self, condition: Callable[[], object]) -> None:
        """Waits for a condition, and presses what the thread offers meanwhile."""
        while not condition():
            await self._look()

    async def see_in_database(self, statement: str) -> None:
        """Waits until a statement returns no rows."""
        while await self.world.rows(statement):
            await self._look()
            await self.dither(0.5)

    async def _look(self) -> None:
        await asyncio.sleep(_LOOK_EVERY)
        for message in self.slack_thread():
            await self._consider(message)
        for reply in self.replies:
            if reply.deleted and reply.gone_at is None and acked(reply.changes):
                reply.gone_at = asyncio.get_running_loop().time()
            if not reply.deleted and (reply.stopped or (reply.held and not reply.answered)):
                await actions.answer_held(self, reply)

    async def _consider(self, message: Message) -> None:
        """Presses the button of a notice in doubt or leaves it, once and for all."""
        thread_id, _, rest = key_of(message).partition("/")
        request_id, _, rest = rest.partition("/")
        if thread_id not in {self.thread_id, *self.followers} or not rest.startswith("unsure/"):
            return
        if request_id in self.left or message.ts in self.pressed:
            return
        rows = await self.world.rows(
            f"SELECT id, kind FROM requests WHERE id = '{request_id}' OR merged_into = '{request_id}'"  # noqa: S608 - in hexadecimal
        )
        is_start = any(kind == "start" for _, kind in rows)
        needed = is_start and (self.eager or self.rounds or thread_id in self.followers)
        if not needed and self.rng.random() > PRESSED:
            self.start_left |= is_start
            self.left.update(each for each, _ in rows)
            return
        self.pressed.add(message.ts)
        self.answered.update(each for each, _ in rows)
        answered = False
        while not answered:
            await self.dither(0.5)
            self.presses.update(each for each, _ in rows)
            answered = (await self.person.press(self.channel, message.ts, ButtonId.SEND_AGAIN)).ok

    async def dither(self, longest: float) -> None:
        """Hesitates for a moment."""
        await asyncio.sleep(self.rng.uniform(0.05, longest))
