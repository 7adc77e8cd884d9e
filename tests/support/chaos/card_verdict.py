"""What a card must show when all is quiet again: how its job ended."""

from collections.abc import Iterator, Mapping
from typing import Any

from support.chaos.process_world import ProcessWorld
from support.chaos.user_scenario import UserScenario
from support.oracles.promises import Shown

from bot.domain.requests import RequestKind


def end_on_card(world: ProcessWorld, scenario: UserScenario) -> Iterator[Shown]:
    """Of a job that came to an end: of jobs that were asked for twice, the end of any is right."""
    if scenario.card is None or scenario.end is None:
        return
    asked_to_stop = any(deed.kind is RequestKind.STOP for deed in scenario.deeds)
    jobs = [world.fake_job_api.jobs[job_id] for job_id in scenario.jobs]
    right = [words for job in jobs for words in _ends(job, asked_to_stop=asked_to_stop)]
    text = scenario.card.text
    shown = next((words for words in right if all(part in text for part in words)), text)
    yield Shown(f"the card of {scenario.prompt}", shown, right)


def _ends(job: Mapping[str, Any], *, asked_to_stop: bool) -> Iterator[tuple[str, ...]]:
    """What a card may say of a job that looks like this, each in parts; a job that was stopped may have ended by itself
    before it heard of that.
    """
    status, link = job["status"], job["prLink"]
    if status == "failed":
        yield ("Failed.",)
    elif status == "completed":
        yield ("Finished with a pull request.", link) if link else ("Finished without a pull request.",)
    if asked_to_stop and status in {"failed", "completed"}:
        yield ("Stopped by ", "with a pull request.", link) if link else ("Stopped by ",)
