"""The store, the service and the workers against a simple model, with crashes, pauses, faults and time as steps.

`HYPOTHESIS_PROFILE=long` looks further (minutes). What is found is printed as a list of steps.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from support.machine.instances import Instances
from support.machine.steering import Steering
from support.machine.surroundings import Surroundings, Traps
from support.scratch import IN_MEMORY

from bot.store.schema.migration import migrate


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A database with the tables and nothing in them."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        path = Path(directory) / "template.db"
        asyncio.run(migrate(f"sqlite:///{path}"))
        yield path


class FaultWorld(Steering, Traps, Surroundings, Instances):
    """One project, a job by the command, everyone's replies: through whatever goes wrong."""


def test_whatever_happens_nothing_is_lost_and_nothing_is_said_twice(template: Path) -> None:
    """Tens of runs of 30 steps; thousands of 60 in the long profile."""
    FaultWorld.template = template
    examples, steps = (2_000, 60) if os.environ.get("HYPOTHESIS_PROFILE") == "long" else (40, 30)
    run_state_machine_as_test(
        FaultWorld,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
