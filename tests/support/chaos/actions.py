"""What a person does about a job besides asking and replying, and how the job ends."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from support.chaos.asides import STOP_SAID, press_words
from support.chaos.asked import End, PersonsAction, Reply, acked, changes_of, deliveries_of, reactions_to
from support.chaos.process_world import AT_THE_LIMIT, CODE_HOST, GUEST, MENTION, WITHOUT_CANCEL
from support.oracles.notice_keys import key_in_thread
from support.servers.fake_job_api import PROJECT
from support.worlds.card_menu import menu_choice

from bot.domain.requests.new_jobs import MAKE_IT_A_CHANGE, request_id
from bot.domain.requests.request import RequestKind, WayIn
from bot.jobapi.models import Mode, ProposalState
from bot.notices.said import ButtonId
from bot.slack.receiving.listeners.buttons import ABOUT_REQUESTS
from bot.slack.rendering.blocks import CHOOSE_PROJECT_BUTTONS, RETRY_JOB, SEND_EXAMPLES
from bot.workspace.model.entities import Message, SlackError
from bot.workspace.people import Actor

if TYPE_CHECKING:
    from support.chaos.user_scenario import UserScenario

STOPPED, OVERTAKES, BY_REACTION, MUTED = 0.2, 0.6, 0.3, 0.2
"""How often a job is stopped instead of ending, right after a reply, and by a reaction; how often it is muted for a
while.
"""
FAILED, SWITCHED, FOLLOWED = 0.2, 0.2, 0.2
"""How often a job fails at last and is retried, is switched to the other project, or is followed by another job."""
MODES = ("plan: ", "plan: ", "ask: ", "ask: ", "")
"""How that other job begins."""
DISCARDED, EXAMPLES = 0.5, 0.4
"""How often partial work of a failed job is discarded, and how often a follow-up button is pressed."""
EDITED, DELETED = 0.12, 0.08
"""How often a reply is edited or deleted at once."""
OF_HELD = (ButtonId.SEND_HELD, ButtonId.SEND_HELD, ButtonId.SEND_HELD, ButtonId.SEND_ALL_HELD, ButtonId.DISCARD_HELD)
"""The answers of the person who is asked."""
MERGED = 0.5
"""How often a pull request is merged."""
_SWITCH = "Switch project…"
_OPEN = "SELECT id FROM requests WHERE thread_id = '{}' AND kind IN ({}) AND due_at IS NOT NULL"


async def end(scenario: "UserScenario", turn: int, *, is_last: bool) -> None:
    """Ends the job: with a link, by a stop, or finally with a failure, and then it is retried."""
    if scenario.rng.random() < MUTED:
        await _do(scenario, RequestKind.MUTE, "!mute")
        await _do(scenario, RequestKind.UNMUTE, "!unmute")
    if scenario.rng.random() < STOPPED and await _stop(scenario):
        return
    last = scenario.rng.random() if is_last else 1.0
    if last < FAILED:
        await _fail(scenario)
        if scenario.rng.random() < DISCARDED:
            await _discard(scenario)
        await _retry(scenario)
    elif last < FAILED + SWITCHED:
        await _switch(scenario)
    else:
        await finish(scenario, turn)
        if last < FAILED + SWITCHED + FOLLOWED:
            await _ask_for_another(scenario)


async def choose_project(scenario: "UserScenario") -> None:
    """Answers the question which project a job is for."""
    scenario.where = "waits to be asked for the project"
    while not (question := _question(scenario, scenario.person, CHOOSE_PROJECT_BUTTONS[0], scenario.prompt)):
        await scenario.dither(0.5)
    await _press(scenario, RequestKind.CHOOSE_PROJECT, scenario.person, question, CHOOSE_PROJECT_BUTTONS[0])


async def answer_held(scenario: "UserScenario", reply: Reply) -> None:
    """Answers the question about a held reply once it is there. It may be late, for example if the process that
    recorded the reply was paused.
    """
    asked = scenario.other if reply.held and not reply.is_answer else scenario.person
    question = _question(scenario, asked, ButtonId.SEND_HELD, reply.request_id)
    if question is not None and question.ts not in reply.answered:
        reply.answered.add(question.ts)
        offered = [each for each in OF_HELD if each in str(question.blocks)]
        action_id = scenario.rng.choice(offered)
        # Of two questions, as before and after a stop, either answer may be handled first, since that to the other may
        # wait for the lease of a killed process; the later one is in vain.
        reply.discarded |= action_id == ButtonId.DISCARD_HELD
        if action_id != ButtonId.DISCARD_HELD:
            reply.gone_at = None
        await _press(scenario, ABOUT_REQUESTS[action_id], asked, question, action_id)
        if action_id == ButtonId.DISCARD_HELD and ButtonId.SEND_ALL_HELD not in offered and len(reply.answered) == 1:
            reply.gone_at = asyncio.get_running_loop().time()


async def change(scenario: "UserScenario", reply: Reply) -> None:
    """Edits or deletes a reply that may not have been sent yet."""
    writer, chance = scenario.other if reply.held else scenario.person, scenario.rng.random()
    if chance < EDITED:
        reply.edited = f"{reply.text[:-1]}-edited."
        await writer.edit(scenario.channel, reply.ts, scenario.addressed(reply.edited))
    elif chance < EDITED + DELETED:
        reply.deleted = True
        await writer.delete(scenario.channel, reply.ts)
        reply.changes = changes_of(scenario.world, reply.ts)


async def press_example(scenario: "UserScenario") -> Reply | None:
    """Presses a follow-up button until that is acknowledged, and perhaps once more. The follow-up is sent once."""
    example = _example(scenario)
    found = [message for message in scenario.thread() if f"/{example}" in str(message.blocks)]
    if not (found and scenario.answers) or scenario.rng.random() > EXAMPLES:
        return None
    scenario.where = "presses an example"
    return await press_words(scenario, found[-1].ts, SEND_EXAMPLES[0], example)


def _example(scenario: "UserScenario") -> str:
    return f"scenario-{scenario.number} example-{len(scenario.answers)}."


async def ask_in_vain(scenario: "UserScenario") -> None:
    """Has a person reply who may not: a guest, who also presses the stop button, or a person over the hourly limit."""
    scenario.where, name = "is refused", scenario.rng.choice((GUEST, AT_THE_LIMIT))
    person = scenario.world.workspace.people[name]
    words = f"scenario-{scenario.number} {name}-{len(scenario.refused_words) + 1}."
    said = await person.say(scenario.channel, f"{MENTION}{words}", thread_ts=scenario.root_ts)
    scenario.refused_words.append(words)
    scenario.refused_requests.append(request_id(f"message/{said.channel}/{said.ts}"))
    if name == GUEST and scenario.card is not None and ButtonId.STOP_JOB in str(scenario.card.blocks):
        with suppress(SlackError):
            await person.press(scenario.channel, scenario.card.ts, ButtonId.STOP_JOB)


async def finish(scenario: "UserScenario", turn: int) -> None:
    """Completes the job with a link, either at once or a little later."""
    await scenario.dither(0.5)
    link = f"{CODE_HOST}/e{scenario.number}/r{turn}/pull/1"
    scenario.where = f"waits for {link}"
    scenario.answers.append(f"answer-{scenario.number}-{turn}.")
    scenario.pictures.append(picture := f"{scenario.number}-{turn}.png")
    scenario.world.fake_job_api.pictures[picture] = b"\x89PNG\r\n\x1a\n" + picture.encode()
    scenario.end = End.LINK
    if scenario.rng.random() < 0.3:
        _show(scenario, None)
        await scenario.dither(2.0)
    scenario.links.append(link)
    await scenario.see(lambda: _announced(scenario, link))
    await _merge(scenario, link)


async def _merge(scenario: "UserScenario", link: str) -> None:
    """Sometimes merges it a little later, which its code host tells twice, once, or never."""
    if scenario.rng.random() < MERGED:
        await scenario.dither(2.0)
        scenario.world.fake_job_api.merged.add(link)
        for _ in range(scenario.rng.choice((0, 1, 2))):
            await scenario.world.webhook(link)


def _announced(scenario: "UserScenario", link: str) -> bool:
    """Returns whether the link is in the thread. A late reply resumes the job, which then ends the same way."""
    jobs = [scenario.world.fake_job_api.jobs[job_id] for job_id in scenario.jobs]
    if any(job["prLink"] != link or job["status"] != "completed" for job in jobs):
        _show(scenario, link)
    return any(link in message.text for message in scenario.thread()[1:])


def _show(scenario: "UserScenario", link: str | None) -> None:
    scenario.ends[link or (scenario.links[-1] if scenario.links else "")] += 1
    scenario.ends[scenario.answers[-1]] += 1
    answer = scenario.answers[-1]
    plan = [{"title": "Write it", "status": "completed"}]
    pictures = [
        {"id": path, "path": path, "mimetype": "image/png", "size": len(scenario.world.fake_job_api.pictures[path])}
        for path in scenario.pictures[-1:]
    ]
    details = {"summary": f"This is {answer}", "revision": answer, "examples": [_example(scenario)], "plan": plan}
    details["pictures"] = pictures
    for job_id in scenario.jobs:
        scenario.world.fake_job_api.show(job_id, "completed", link, details=details)


async def _fail(scenario: "UserScenario") -> None:
    scenario.where, scenario.end = "waits for the failure", End.FAILED
    await scenario.see(lambda: _failed(scenario))


def _failed(scenario: "UserScenario") -> bool:
    """Returns whether the thread reports the failure. A late reply resumes the job, which then fails again."""
    if any(scenario.world.fake_job_api.jobs[job_id]["status"] != "failed" for job_id in scenario.jobs):
        _ends_without_answer(scenario, "failed")
    return any(key_in_thread(message).endswith("/failed") for message in scenario.thread())


def _ends_without_answer(scenario: "UserScenario", status: str | None) -> None:
    """Such an end names the earlier pull request."""
    scenario.ends.update(scenario.links[-1:])
    for job_id in scenario.jobs:
        details = {"partialWork": {"files": 2}} if status == "failed" else {}
        scenario.world.fake_job_api.show(job_id, status, details=details)


async def _discard(scenario: "UserScenario") -> None:
    """Discards the partial work, by the card's button if it is there already."""
    scenario.where, card = "discards", scenario.card
    assert card is not None
    if scenario.rng.random() < 0.5 and ButtonId.DISCARD_WORK in str(card.blocks):
        await _press(scenario, RequestKind.DISCARD, scenario.person, card, ButtonId.DISCARD_WORK)
        await scenario.see_in_database(_OPEN.format(scenario.thread_id, f"'{RequestKind.DISCARD}'"))
    else:
        await _do(scenario, RequestKind.DISCARD, "!discard")


async def _retry(scenario: "UserScenario") -> None:
    """Retries the job, which then ends well. If that was impossible, its person was told privately."""
    scenario.where = "retries"
    await _by_button_or_word(scenario, RequestKind.RETRY, RETRY_JOB, "!retry")
    await _end_followers(scenario, "retried")


async def _switch(scenario: "UserScenario") -> None:
    """Switches an active job to the other project. The new job then ends well."""
    scenario.where, card = "switches", scenario.card
    assert card is not None
    ((project,),) = await scenario.world.rows(f"SELECT project FROM threads WHERE id = '{scenario.thread_id}'")  # noqa: S608 - in hexadecimal
    other = next(name for name in (PROJECT, WITHOUT_CANCEL) if name != project)
    _ends_without_answer(scenario, None)
    await scenario.see(lambda: _SWITCH in str(card.blocks))
    while not (found := _button_with(scenario, f"{scenario.thread_id}/{other}")):
        choice = menu_choice(card, _SWITCH)
        await _press(scenario, RequestKind.CHOOSE_PROJECT, scenario.person, card, **choice)
        await scenario.see_in_database(_OPEN.format(scenario.thread_id, "'choose_project'"))
        await scenario.dither(2.0)
    question, action_id = found
    await _press(scenario, RequestKind.CHOOSE_PROJECT, scenario.person, question, action_id)
    await scenario.see_in_database(_OPEN.format(scenario.thread_id, "'choose_project'"))
    await _end_followers(scenario, "switched")


async def _ask_for_another(scenario: "UserScenario") -> None:
    """Asks for another job in the same thread. It ends well, too."""
    scenario.where = "asks for another job"
    mode = scenario.rng.choice(MODES)
    await _do(scenario, RequestKind.START, f"!new {mode}another-{scenario.number}: tidy the guides")
    await _end_followers(scenario, "another")


async def _end_followers(scenario: "UserScenario", name: str) -> None:
    """Waits for the jobs that follow the scenario's and lets them end well."""
    follow = (
        "SELECT requests.id, requests.way_in, requests.state FROM requests JOIN threads ON threads.id = thread_id"  # noqa: S608 - in hexadecimal
        f" WHERE follows = '{scenario.thread_id}' AND kind = 'start'"
    )
    scenario.followers |= {row[0]: WayIn(row[1]) for row in await scenario.world.rows(follow)}
    await scenario.see_in_database(f"{follow} AND requests.state NOT IN ('accepted', 'rejected')")
    link = f"{CODE_HOST}/e{scenario.number}/{name}/pull/1"
    # If one was sent again, the thread knows only the last of them.
    created = [one for one in scenario.world.fake_job_api.created if one.key in scenario.followers]
    for job in created[-1:]:
        await _start_plan(scenario, scenario.world.fake_job_api.jobs[job.job_id])
        await _make_change(scenario, scenario.world.fake_job_api.jobs[job.job_id])
    scenario.where = f"waits for {link}"
    await scenario.see(lambda: _ended(scenario, [job.job_id for job in created], link))
    await _merge(scenario, link)


async def _start_plan(scenario: "UserScenario", job: dict[str, Any]) -> None:
    """Presses Start below the newest plan of a job, until one is accepted: a late reply asks for another plan."""
    scenario.where = f"starts a plan of {job['id']}"
    while job.get("details", {}).get("proposal", {}).get("state") == ProposalState.PROPOSED:
        await scenario.see(lambda: True)
        posts = [message for message in scenario.slack_thread() if ButtonId.ACCEPT_PROPOSAL in str(message.blocks)]
        for post in posts[-1:]:
            person = scenario.rng.choice((scenario.person, scenario.other))
            await _press(scenario, RequestKind.ACCEPT_PROPOSAL, person, post, ButtonId.ACCEPT_PROPOSAL)
        await scenario.dither(3.0)


async def _make_change(scenario: "UserScenario", job: dict[str, Any]) -> None:
    """Has an answer made a change, by one person or two, until the agent is at it, or nobody knows whether it is."""
    scenario.where = f"makes the answer of {job['id']} a change"
    while job.get("details", {}).get("mode") == Mode.ASK and not scenario.left.intersection(scenario.changes):
        await scenario.see(lambda: True)
        posts = [message for message in scenario.slack_thread() if ButtonId.MAKE_CHANGE in str(message.blocks)]
        for post in posts[-1:]:
            person = scenario.rng.choice((scenario.person, scenario.other))
            pressed = await press_words(scenario, post.ts, ButtonId.MAKE_CHANGE, MAKE_IT_A_CHANGE, person)
            scenario.changes[pressed.request_id] += 1
        await scenario.dither(3.0)


def _ended(scenario: "UserScenario", job_ids: list[str], link: str) -> bool:
    """Returns whether the thread has the link of these jobs. A reply can resume one, which then ends the same way."""
    job_api = scenario.world.fake_job_api
    for job_id in job_ids:
        if (job_api.jobs[job_id]["status"], job_api.jobs[job_id]["prLink"]) != ("completed", link):
            job_api.show(job_id, "completed", link)
    return not job_ids or any(link in message.text for message in scenario.slack_thread())


async def _stop(scenario: "UserScenario") -> bool:
    """Returns whether the stop ended the job: a job API that can cancel ends it; otherwise
    the agent ends on its own. What was written just before may be withdrawn, and is sent anyway or not.
    """
    scenario.where, before = "stops the job", len(scenario.replies)
    _ends_without_answer(scenario, None)
    if scenario.rng.random() < OVERTAKES:
        await scenario.reply(scenario.rng.choice((1, 2)))
    for reply in scenario.replies[before:]:
        reply.stopped = True
    if scenario.stopped_by_reaction or scenario.rng.random() > BY_REACTION:
        await _by_button_or_word(scenario, RequestKind.STOP, ButtonId.STOP_JOB, scenario.rng.choice(STOP_SAID))
    else:
        await _stop_by_reaction(scenario)
    scenario.where = "waits for what it wrote before a stop"
    await scenario.see(lambda: all(scenario.settled(reply) for reply in scenario.replies[before:]))
    if not await scenario.world.rows(
        f"SELECT id FROM threads WHERE id = '{scenario.thread_id}' AND project = '{PROJECT}'"  # noqa: S608 - in hexadecimal
    ):
        return False
    cancelled = scenario.world.fake_job_api.cancelled
    if not any(job_id in cancelled for job_id in scenario.jobs):
        return False  # a duplicated answer of the job API already reported the end: there was nothing to stop
    scenario.end = End.STOPPED
    if len(scenario.replies) > before:
        return True  # what was sent all the same resumes it, perhaps before its end was announced
    await scenario.see(lambda: any(key_in_thread(message).endswith("/stopped") for message in scenario.thread()))
    return True


async def _stop_by_reaction(scenario: "UserScenario") -> None:
    """Reacts to the card with `:x:`. If Pagehand was away, it asks whether to stop the job, unless that has ended."""
    card, reacted = scenario.card, PersonsAction(RequestKind.STOP, tries=1)
    assert card is not None
    await scenario.see(lambda: ButtonId.STOP_JOB in str(card.blocks))
    scenario.actions.append(reacted)
    scenario.stopped_by_reaction = True
    await scenario.world.when_people_write()
    await scenario.person.react(scenario.channel, card.ts, "x")
    deliveries = reactions_to(scenario.world, card.ts)
    await scenario.see(lambda: acked(deliveries) is not None)
    recorded = f"SELECT id FROM requests WHERE thread_id = '{scenario.thread_id}' AND way_in = '{WayIn.REACTION}'"  # noqa: S608 - in hexadecimal
    scenario.where = "waits for its reaction to stop the job"
    while acked(deliveries) and not reacted.acked and ButtonId.STOP_JOB in str(card.blocks):
        reacted.acked = bool(await scenario.world.rows(recorded))
        question = _question(scenario, scenario.person, ButtonId.STOP_JOB, scenario.thread_id)
        if question is not None:
            await _press(scenario, RequestKind.STOP, scenario.person, question, ButtonId.STOP_JOB)
            break
        await scenario.dither(0.5)
    await scenario.see_in_database(_OPEN.format(scenario.thread_id, f"'{RequestKind.STOP}'"))


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
    """Writes a control word until it is acknowledged, and waits until it takes effect."""
    action, recorded = PersonsAction(kind), ""
    scenario.actions.append(action)
    while not action.acked:
        action.tries += 1
        await scenario.world.when_people_write()
        said = await scenario.person.say(scenario.channel, scenario.addressed(word), thread_ts=scenario.root_ts)
        deliveries = deliveries_of(scenario.world, said)
        await scenario.see(lambda arrived=deliveries: acked(arrived) is not None)  # type: ignore[misc]
        action.acked, recorded = acked(deliveries) is True, request_id(f"message/{said.channel}/{said.ts}")
    scenario.where = f"{scenario.where}, waits till {word} is recorded"
    while not await scenario.world.rows(f"SELECT id FROM requests WHERE id = '{recorded}'"):  # noqa: S608 - in hexadecimal
        await scenario.dither(0.5)  # it may be found in the history alone
    await scenario.see_in_database(_OPEN.format(scenario.thread_id, f"'{kind}'"))


async def _press(
    scenario: "UserScenario",
    kind: RequestKind,
    person: Actor,
    message: Message,
    action_id: str,
    *,
    value: str | None = None,
) -> None:
    """Presses a button until it is acknowledged. A button that is gone has done its work."""
    action = PersonsAction(kind)
    scenario.actions.append(action)
    while not action.acked:
        action.tries += 1
        try:
            action.acked = (await person.press(scenario.channel, message.ts, action_id, value=value)).ok
        except SlackError:
            return
        await scenario.dither(0.5)


def _button_with(scenario: "UserScenario", value: str) -> tuple[Message, str] | None:
    """Returns the newest question to the scenario's person that has a button with this
    value, and the button's label.
    """
    for message in reversed(scenario.person.ephemerals(scenario.channel)):
        for block in message.blocks or []:
            for element in block.get("elements", []):
                if element.get("value") == value:
                    return message, element["action_id"]
    return None


def _question(scenario: "UserScenario", person: Actor, action_id: str, about: str) -> Message | None:
    """Returns what only this person sees: the newest message with a button about a job or a reply."""
    for message in reversed(person.ephemerals(scenario.channel)):
        blocks = str(message.blocks)
        if action_id in blocks and about in f"{message.text} {blocks}":
            return message
    return None
