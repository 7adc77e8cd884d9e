"""How a state machine is run: how many steps, and on which database."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from support.hypothesis_settings import LONG, examples
from support.machine.databases import Database
from support.machine.machine import Machine

AS_LONG_AS_IT_TAKES = pytest.mark.timeout(0 if LONG else 600)
"""A test in the long profile runs longer than any other may."""


def run_machine(machine: type[Machine], make_database: Callable[[], Database], *, runs: int, steps: int) -> None:
    """Tries this many runs of this many steps in the full lane; many more, and longer ones, in the long profile.
    Failures are printed as a list of steps, which the long profile shortens first.
    """
    machine.make_database = staticmethod(make_database)
    shortened = (Phase.shrink,) if LONG else ()
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=50 * runs if LONG else examples(runs),
            stateful_step_count=2 * steps if LONG else steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.reuse, Phase.generate, *shortened),
            print_blob=True,
        ),
    )
