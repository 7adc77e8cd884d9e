"""The store, the service and the workers against a simple model, with crashes, pauses, faults and time as steps.

`HYPOTHESIS_PROFILE=long` searches further (minutes). A failure is printed as a list of steps.
"""

from functools import partial
from pathlib import Path

from support.machine.databases import SqliteDatabase
from support.machine.downtimes import Downtimes
from support.machine.environment import Environment, Traps
from support.machine.instances import Instances
from support.machine.running import AS_LONG_AS_IT_TAKES, run_machine
from support.machine.steering import Steering

pytestmark = AS_LONG_AS_IT_TAKES


class FaultWorld(Downtimes, Steering, Traps, Environment, Instances):
    """One project, a job by the command, everyone's replies, downtimes, and all kinds of faults."""


def test_nothing_is_lost_or_posted_twice_whatever_happens(sqlite_template: Path) -> None:
    """Tens of runs of 30 steps; thousands of 60 in the long profile."""
    run_machine(FaultWorld, partial(SqliteDatabase, sqlite_template), runs=40, steps=30)
