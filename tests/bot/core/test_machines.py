"""The whole core against simple models: with crashes, pauses, faults and time as steps, and with every way in and every
control, in any order and interleaving, against the promises of the specification.

`HYPOTHESIS_PROFILE=long` searches further (many minutes), and on PostgreSQL, too. A failure is printed as a list of
steps.
"""

from functools import partial
from pathlib import Path

import pytest
from support.hypothesis_settings import LONG
from support.machine.controls import Controls
from support.machine.databases import PostgresDatabase, SqliteDatabase
from support.machine.downtimes import Downtimes
from support.machine.environment import Environment, Traps
from support.machine.instances import Instances
from support.machine.machine import Machine
from support.machine.modes import Modes
from support.machine.proposals import Proposals
from support.machine.pull_requests import PullRequests
from support.machine.running import AS_LONG_AS_IT_TAKES, run_machine
from support.machine.steering import Steering
from support.servers.postgres import NoPostgres, postgres_server

pytestmark = AS_LONG_AS_IT_TAKES


class FaultWorld(PullRequests, Proposals, Modes, Downtimes, Steering, Traps, Environment, Instances):
    """One project, a job by the command, everyone's replies, downtimes, pull requests, and all kinds of faults."""


def test_nothing_is_lost_or_posted_twice_whatever_happens(sqlite_template: Path) -> None:
    """Tens of runs of 30 steps; thousands of 60 in the long profile."""
    run_machine(FaultWorld, partial(SqliteDatabase, sqlite_template), runs=40, steps=30)


class Plans(Proposals, Steering, Traps, Instances):
    """Plans, words, stops and all kinds of faults: jobs change by nothing else. Most runs begin with a plan."""

    def has_begun(self) -> None:
        if self.outside.job_api.jobs:
            self.outside.traps.clear()
            self.propose_and_see(which=0, at=0)


@pytest.mark.promise("plans")
def test_a_plan_is_started_once_and_by_a_press_whatever_happens(sqlite_template: Path) -> None:
    run_machine(Plans, partial(SqliteDatabase, sqlite_template), runs=100, steps=20)


def on_postgresql(kind: type[Machine], *, runs: int, steps: int) -> None:
    try:
        with postgres_server(fsync="off", full_page_writes="off") as server:
            run_machine(kind, partial(PostgresDatabase, server), runs=runs, steps=steps)
    except NoPostgres as error:
        pytest.skip(str(error))


@pytest.mark.promise("plans")
@pytest.mark.full
@pytest.mark.postgres
def test_a_plan_is_started_once_and_by_a_press_on_postgresql() -> None:
    on_postgresql(Plans, runs=10, steps=20)


class Orders(Controls, Environment, Instances):
    """Without faults: only people who act at the same time."""


class OrdersAndFaults(Proposals, Controls, Traps, Environment, Instances):
    """With plans, failing calls and dying processes."""


KINDS = pytest.mark.parametrize(
    "kind", [pytest.param(Orders, marks=pytest.mark.full), OrdersAndFaults], ids=lambda kind: kind.__name__
)


@pytest.mark.promise("any order", "plans")
@KINDS
def test_whatever_people_do_each_message_is_routed_once(sqlite_template: Path, kind: type[Machine]) -> None:
    run_machine(kind, partial(SqliteDatabase, sqlite_template), runs=30, steps=18)


@pytest.mark.promise("any order")
@pytest.mark.postgres
@pytest.mark.skipif(not LONG, reason="on PostgreSQL in the long profile only")
@KINDS
def test_whatever_people_do_each_message_is_routed_once_on_postgresql(kind: type[Machine]) -> None:
    on_postgresql(kind, runs=4, steps=18)
