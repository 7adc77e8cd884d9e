"""What a person does about a job besides asking and replying, and how the job ends."""

from typing import TYPE_CHECKING

from support.chaos.asked import Deed, End, Reply, acked, deliveries_of
from support.oracles.notice_keys import key_in_thread
from support.servers.fake_job_api import PROJECT

from bot.domain.requests import RequestKind
from bot.slack.rendering.blocks import CHOOSE_PROJECT_BUTTONS, RETRY_JOB, SEND_HELD, STOP_JOB
from bot.workspace.model.entities import Message
from bot.workspace.model.errors import SlackError
from bot.workspace.people import Actor

if TYPE_CHECKING:
    from support.chaos.user_scenario import UserScenario

STOPPED, FAILED, MUTED = 0.2, 0.25, 0.2
"""How often a job is stopped instead of ending, fails at last and is retried, and is muted for a while."""
_OPEN = "SELECT id FROM requests WHERE thread_id = '{}' AND kind IN ({}) AND due_at IS NOT NULL"


async def end(scenario: "UserScenario", turn: int, *, is_last: bool) -> None:
    """Has the job end: with a link, by a stop, or, at last, badly, and then it is retried."""
    if scenario.rng.random() < MUTED:
        await _do(scenario, RequestKind.MUTE, "!mute")
        await _do(scenario, RequestKind.UNMUTE, "!unmute")
    if scenario.rng.random() < STOPPED and await _stop(scenario):
        return
    if is_last and scenario.rng.random() < FAILED:
        await _fail(scenario)
        await _retry(scenario)
        return
    await _finish(scenario, turn)


async def choose_project(scenario: "UserScenario") -> None:
    """Answers the question which project a job is for."""
    scenario.where = "waits to be asked for the project"
    while not (question := _question(scenario, scenario.person, CHOOSE_PROJECT_BUTTONS[0], scenario.prompt)):
        await scenario.dither(0.5)
    await _press(scenario, RequestKind.CHOOSE_PROJECT, scenario.person, question, CHOOSE_PROJECT_BUTTONS[0])


async def send_held(scenario: "UserScenario", reply: Reply) -> None:
    """Has a reply sent about which its person is asked, once that question is there: it can come late, too, as what a
    process recorded that was stopped meanwhile.
    """
    question = _question(scenario, scenario.other, SEND_HELD, reply.request_id)
    if question is not None:
        reply.answered = True
        await _press(scenario, RequestKind.SEND_HELD, scenario.other, question, SEND_HELD)


async def _finish(scenario: "UserScenario", turn: int) -> None:
    """The agent is done: with a link at once, or with one that comes a little later."""
    await scenario.dither(0.5)
    link = f"https://git.example/e{scenario.number}/r{turn}"
    scenario.where = f"waits for {link}"
    scenario.answers.append(f"answer-{scenario.number}-{turn}.")
    scenario.end = End.LINK
    if scenario.rng.random() < 0.3:
        _show(scenario, None)
        await scenario.dither(2.0)
    scenario.links.append(link)
    await scenario.see(lambda: _announced(scenario, link))


def _announced(scenario: "UserScenario", link: str) -> bool:
    """Whether the thread has the link; what arrives late takes the agent up again, which then ends the same way."""
    jobs = [scenario.world.fake_job_api.jobs[job_id] for job_id in scenario.jobs]
    if any(job["prLink"] != link or job["status"] != "completed" for job in jobs):
        _show(scenario, link)
    return any(link in message.text for message in scenario.thread()[1:])


def _show(scenario: "UserScenario", link: str | None) -> None:
    scenario.ends[link or (scenario.links[-1] if scenario.links else "")] += 1
    scenario.ends[scenario.answers[-1]] += 1
    details = {"summary": f"This is {scenario.answers[-1]}", "revision": scenario.answers[-1]}
    for job_id in scenario.jobs:
        scenario.world.fake_job_api.show(job_id, "completed", link, details=details)


async def _fail(scenario: "UserScenario") -> None:
    scenario.where, scenario.end = "waits for the failure", End.FAILED
    await scenario.see(lambda: _failed(scenario))


def _failed(scenario: "UserScenario") -> bool:
    """Whether the thread tells of the failure; what arrives late takes the agent up again, which then fails again."""
    if any(scenario.world.fake_job_api.jobs[job_id]["status"] != "failed" for job_id in scenario.jobs):
        _ends_without_answer(scenario, "failed")
    return any(key_in_thread(message).endswith("/failed") for message in scenario.thread())


def _ends_without_answer(scenario: "UserScenario", status: str | None) -> None:
    """Such an end names the pull request that there was before it."""
    scenario.ends.update(scenario.links[-1:])
    for job_id in scenario.jobs:
        scenario.world.fake_job_api.show(job_id, status, details={})


async def _retry(scenario: "UserScenario") -> None:
    """The same job once more, which then ends well; where that could not be, its person was told so, privately."""
    scenario.where = "retries"
    await _by_button_or_word(scenario, RequestKind.RETRY, RETRY_JOB, "!retry")
    await scenario.see_in_database(
        f"SELECT id FROM requests WHERE id = '{scenario.retry_id}' AND state NOT IN ('accepted', 'rejected')"  # noqa: S608 - in hexadecimal
    )
    link = f"https://git.example/e{scenario.number}/retried"
    # Where it was sent again, the thread knows the last of them only.
    retried = [one for one in scenario.world.fake_job_api.created if one.key.startswith(scenario.retry_id)]
    for job in retried:
        scenario.world.fake_job_api.show(job.job_id, "completed", link)
    scenario.where = f"waits for {link}"
    await scenario.see(lambda: not retried or any(link in message.text for message in scenario.slack_thread()))


async def _stop(scenario: "UserScenario") -> bool:
    """Whether that was the job's end: a job API that can cancel ends it; otherwise the agent ends when it likes."""
    scenario.where = "stops the job"
    _ends_without_answer(scenario, None)
    await _by_button_or_word(scenario, RequestKind.STOP, STOP_JOB, "!stop")
    if not await scenario.world.rows(
        f"SELECT id FROM threads WHERE id = '{scenario.thread_id}' AND project = '{PROJECT}'"  # noqa: S608 - in hexadecimal
    ):
        return False
    cancelled = scenario.world.fake_job_api.cancelled
    if not any(job_id in cancelled for job_id in scenario.jobs):
        return False  # an answer of the job API that came twice told that it had ended: there was nothing to stop
    scenario.end = End.STOPPED
    await scenario.see(lambda: any(key_in_thread(message).endswith("/stopped") for message in scenario.thread()))
    return True


async def _by_button_or_word(scenario: "UserScenario", kind: RequestKind, action_id: str, word: str) -> None:
    card = scenario.card
    assert card is not None
    if scenario.rng.random() < 0.5:
        await scenario.see(lambda: action_id in str(card.blocks))
        await _press(scenario, kind, scenario.person, card, action_id)
        await scenario.see_in_database(_OPEN.format(scenario.thread_id, f"'{kind}'"))
    else:
        await _do(scenario, kind, word)


async def _do(scenario: "UserScenario", kind: RequestKind, word: str) -> None:
    """Says a word till that was acknowledged, and waits till it is done."""
    deed = Deed(kind)
    scenario.deeds.append(deed)
    while not deed.acked:
        deed.tries += 1
        said = await scenario.person.say(scenario.channel, scenario.addressed(word), thread_ts=scenario.root_ts)
        deliveries = deliveries_of(scenario.world, said)
        await scenario.see(lambda arrived=deliveries: acked(arrived) is not None)  # type: ignore[misc]
        deed.acked = acked(deliveries) is True
    await scenario.see_in_database(_OPEN.format(scenario.thread_id, f"'{kind}'"))


async def _press(scenario: "UserScenario", kind: RequestKind, person: Actor, message: Message, action_id: str) -> None:
    """Presses a button till that was acknowledged; one that is not there any more did what it was to do."""
    deed = Deed(kind)
    scenario.deeds.append(deed)
    while not deed.acked:
        deed.tries += 1
        try:
            deed.acked = (await person.press(scenario.channel, message.ts, action_id)).ok
        except SlackError:
            return
        await scenario.dither(0.5)


def _question(scenario: "UserScenario", person: Actor, action_id: str, about: str) -> Message | None:
    """What only this person sees: the newest message with a button, about a job or a reply."""
    for message in reversed(person.ephemerals(scenario.channel)):
        blocks = str(message.blocks)
        if action_id in blocks and about in f"{message.text} {blocks}":
            return message
    return None
