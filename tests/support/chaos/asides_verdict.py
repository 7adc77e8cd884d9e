"""Checks what was said beside a job, and how the thread announces starts and ends."""

from collections.abc import Iterator

from support.chaos.asides import MISTYPED, THANKS, shown_on
from support.chaos.asked import acked, joins_of
from support.chaos.process_world import ENDS_ALONE, ProcessWorld
from support.chaos.user_scenario import UserScenario
from support.oracles.notice_keys import key_in_thread, key_of
from support.oracles.promises import Broken, Promise

from bot.notices.notice import Reaction

_BEGINNINGS, _ENDS = ("started", "/active"), ("/completed", "/failed", "/stopped")


def asides_broken(world: ProcessWorld, scenario: UserScenario) -> Iterator[Broken]:
    """Thanks get their reaction, other non-instructions reach nobody, and forwarded messages are sent along."""
    taken = [message.prompt for message in world.fake_job_api.messages]
    created = [entry.prompt for entry in world.fake_job_api.created]
    for thanks in scenario.thanks:
        shown, welcome = shown_on(scenario, thanks), [Reaction.WELCOME.value]
        if shown not in ([], welcome) or (thanks.acked and not world.lacks_reactions and shown != welcome):
            yield Broken(Promise.UP_TO_DATE, f"the thanks of {scenario.prompt} show {shown}")
    for prompt in taken:
        if {MISTYPED, THANKS} & {*prompt.split("\n\n")}:
            yield Broken(Promise.DONE_ONCE, f"{prompt!r} went to the agent")
    for words in scenario.passed_on_alone:
        if any(words in prompt for prompt in created):
            yield Broken(Promise.DONE_ONCE, f"{words} began a job")
    yield from _introduced_once(world, scenario)
    for words, original in scenario.passed_on.items():
        if any(words in prompt and original not in prompt for prompt in taken):
            yield Broken(Promise.NOTHING_LOST, f"{original} did not go along with {words}")


def _introduced_once(world: ProcessWorld, scenario: UserScenario) -> Iterator[Broken]:
    channel = scenario.invited_to
    if not channel:
        return
    said = [key_in_thread(message) for message in world.workspace.channels.messages(channel)].count("introduction")
    if said > 1:
        yield Broken(Promise.SAID_ONCE, f"{said} introductions in {channel}")
    if not said and acked(joins_of(world, channel)):
        yield Broken(Promise.NOTHING_LOST, f"no introduction in {channel}")


def wrong_announcements(scenario: UserScenario) -> Iterator[Broken]:
    """A start mentions nobody and an end one person at most. In ends-only mode there is no start."""
    for message in scenario.slack_thread():
        key, mentions = key_in_thread(message), message.text.count("<@")
        begins, ends = key.endswith(_BEGINNINGS), key.endswith(_ENDS)
        if (begins and mentions) or (ends and mentions > 1):
            yield Broken(Promise.SAID_ONCE, f"{key_of(message)} mentions {mentions} people: {message.text}")
        if begins and scenario.channel == ENDS_ALONE:
            yield Broken(Promise.SAID_ONCE, f"{key_of(message)} tells of a beginning where only ends are wanted")
