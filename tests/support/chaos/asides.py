"""What a person says in a job's thread that is not an instruction: thanks, near misses of control words,
forwarded messages, emoji.
"""

from typing import TYPE_CHECKING

from support.chaos.asked import End, Reply, acked, deliveries_of, joins_of
from support.chaos.process_world import MENTION

from bot.domain.requests.new_jobs import request_id
from bot.slack.rendering.blocks import SEND_ANSWERS
from bot.workspace.model.entities import Message
from bot.workspace.people import Actor

if TYPE_CHECKING:
    from support.chaos.user_scenario import UserScenario

INVITED = 0.2
"""How often somebody invites Pagehand to another channel."""
THANKED, HINTED, FORWARDED, FORWARDED_ALONE, ANSWERED, PRESSED = 0.4, 0.1, 0.15, 0.1, 0.2, 0.5
"""How often somebody says thanks at the end, mistypes a control word, replies with another person's message, forwards
one without words, and answers the agent's question by a button or with emoji alone.
"""
THANKS = "Thanks a lot!"
MISTYPED, MEANT = "!statsu", "`!status`"
STOP_SAID = ("!stop", "!stop now", "! cancel", "!stopp")
"""All of these are understood."""


async def thank(scenario: "UserScenario") -> None:
    """Says thanks for a job that ended well and that nothing in flight can resume."""
    if scenario.followers or scenario.end is not End.LINK or not await _is_quiet(scenario):
        return
    scenario.where = "thanks"
    while not any(thanks.acked for thanks in scenario.thanks):
        said = await _say(scenario, THANKS)
        scenario.thanks.append(said)
        await scenario.see(lambda: said.acked is not None)  # noqa: B023 - seen before the next
    welcome = scenario.thanks[-1]
    await scenario.see(lambda: scenario.world.lacks_reactions or shown_on(scenario, welcome))


async def _is_quiet(scenario: "UserScenario") -> bool:
    """Returns whether everything written has ended, so that nothing can still reach the agent."""
    if not all(reply.at_first and reply.acked and not reply.changes for reply in scenario.replies):
        return False
    of_thread = f"SELECT id FROM requests WHERE thread_id = '{scenario.thread_id}' AND state"  # noqa: S608 - in hexadecimal
    await scenario.see_in_database(f"{of_thread} IN ('received', 'waiting', 'sending')")
    unsure = await scenario.world.rows(f"{of_thread} IN ('uncertain', 'awaiting_person')")
    return not (unsure or scenario.presses or scenario.left)


def shown_on(scenario: "UserScenario", reply: Reply) -> list[str]:
    """The bot's reactions on a message."""
    world = scenario.world
    message = world.workspace.state.message(world.workspace.channels[scenario.channel], reply.ts)
    return sorted(name for name, people in message.reactions.items() if world.workspace.app.bot_user_id in people)


async def mistype(scenario: "UserScenario") -> None:
    """Writes a near miss of a control word. Its author alone is told."""
    scenario.where, before = f"waits to be told what {MISTYPED} means", _hints(scenario)
    said = await _say(scenario, MISTYPED)
    await scenario.see(lambda: said.acked is not None)
    await scenario.see(lambda: not said.acked or _hints(scenario) > before)


def _hints(scenario: "UserScenario") -> int:
    return sum(MEANT in message.text for message in scenario.person.ephemerals(scenario.channel))


async def pass_on_alone(scenario: "UserScenario") -> None:
    """Forwards a message without words. The sender is asked what to do with it, and no job starts."""
    original = await scenario.other.say(scenario.channel, f"Seen by {scenario.number} alone.")
    scenario.passed_on_alone.append(original.text)
    await scenario.person.forward(scenario.channel, original.ts, scenario.channel, text=MENTION)


async def invite(scenario: "UserScenario") -> None:
    """Invites Pagehand to a new channel, where it introduces itself."""
    scenario.where, scenario.invited_to = "invites", scenario.world.new_channel(f"invited{scenario.number}")
    await scenario.person.invite(scenario.invited_to, "pagehand")
    joins = joins_of(scenario.world, scenario.invited_to)
    await scenario.see(lambda: acked(joins) is not None)


async def forward(scenario: "UserScenario", words: str) -> Message:
    """Replies with words and a forwarded message."""
    original = await scenario.other.say(scenario.channel, f"Seen with {words}")
    scenario.passed_on[words] = original.text
    return await scenario.person.forward(
        scenario.channel, original.ts, scenario.channel, thread_ts=scenario.root_ts, text=scenario.addressed(words)
    )


async def answer(scenario: "UserScenario") -> None:
    """Answers a multiple-choice question of the agent, by a button or with emoji, which have to be confirmed."""
    scenario.where = "waits for the agent's question"
    number = f"{scenario.number}-{len(scenario.replies) + 1}"
    question, label = f"Is it meant, {number}?", f"scenario-{number} answer."
    fields = [{"title": question, "kind": "choice", "options": [{"label": label}, {"label": "Another"}]}]
    for job_id in scenario.jobs:
        details = {"question": question, "questionFields": fields}
        scenario.world.fake_job_api.show(job_id, "active", details=details)
    await scenario.see(lambda: any(question in message.text for message in scenario.thread()))
    asked = next(message for message in scenario.thread() if question in message.text)
    if scenario.rng.random() < PRESSED:
        reply = await press_words(scenario, asked.ts, SEND_ANSWERS[0], label)
    else:
        reply = await _say(scenario, f":scenario-{number}:")
        reply.held = reply.is_answer = True
    scenario.replies.append(reply)
    scenario.where = "waits till its answer is sent"
    await scenario.see(lambda: scenario.settled(reply))


async def _say(scenario: "UserScenario", words: str) -> Reply:
    await scenario.world.when_people_write()
    said = await scenario.person.say(scenario.channel, scenario.addressed(words), thread_ts=scenario.root_ts)
    request = request_id(f"message/{said.channel}/{said.ts}")
    return Reply(words, said.ts, request, deliveries_of(scenario.world, said))


async def before_the_end(scenario: "UserScenario") -> None:
    """Sometimes acts before a job ends."""
    if scenario.rng.random() < HINTED:
        await mistype(scenario)
    if scenario.rng.random() < ANSWERED and await _is_quiet(scenario):
        await answer(scenario)


async def press_words(
    scenario: "UserScenario", ts: str, action_id: str, words: str, person: Actor | None = None
) -> Reply:
    """Presses the button with these words until that is acknowledged, and perhaps once more."""
    person = person or scenario.person
    for _ in range(scenario.rng.choice((1, 2))):
        while not (await person.press(scenario.channel, ts, action_id)).ok:
            await scenario.dither(0.5)
    team, place = scenario.world.workspace.state.team.id, scenario.world.workspace.channels[scenario.channel]
    key = f"said/{team}/{place.id}/{ts}/{action_id}/{person.id}"
    return Reply(words, ts, request_id(key), (), pressed=True)
