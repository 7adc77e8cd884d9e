"""What a card must show once all is quiet: how its job ended, and buttons, whatever kinds of block Slack refuses."""

from collections.abc import Iterator

from support.chaos.process_world import ProcessWorld
from support.chaos.user_scenario import UserScenario
from support.oracles.promises import Shown

from bot.domain.requests.request import RequestKind, WayIn


def end_on_card(world: ProcessWorld, scenario: UserScenario) -> Iterator[Shown]:
    """If a job was requested twice, the end of either is right."""
    if scenario.card is None or scenario.end is None:
        return
    stopped = any(action.kind is RequestKind.STOP for action in scenario.actions)
    asked_to_stop = stopped or WayIn.SWITCH in scenario.followers.values()
    right: list[tuple[str, ...]] = []
    for job in (world.fake_job_api.jobs[job_id] for job_id in scenario.jobs):
        # A link is null again in a new round; the earlier pull request stays on the card.
        for link in [job["prLink"]] if job["prLink"] else [*scenario.links, ""]:
            merged = link in world.fake_job_api.merged
            right += _ends(job["status"], link, asked_to_stop=asked_to_stop, merged=merged)
    text = scenario.card.text
    shown = next((words for words in right if all(part in text for part in words)), text)
    yield Shown(f"the card of {scenario.prompt}", shown, right)
    kinds = {block["type"] for block in scenario.card.blocks or ()}
    yield Shown(f"buttons on the card of {scenario.prompt}", "actions" in kinds, [True])


def _ends(status: str, link: str, *, asked_to_stop: bool, merged: bool) -> Iterator[tuple[str, ...]]:
    """What a card may say about a job with this status, in parts. A stopped job may have ended
    before it heard of the stop.
    """
    if status == "failed":
        yield ("Failed.",)
    elif status == "completed":
        finished = "Finished: the pull request is merged." if merged else "Finished with a pull request."
        yield (finished, link) if link else ("Finished without a pull request.",)
    if asked_to_stop and status in {"failed", "completed"}:
        yield ("Stopped by ", "with a pull request.", link) if link else ("Stopped by ",)
