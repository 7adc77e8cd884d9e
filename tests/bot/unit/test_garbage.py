"""Objects created at start are scanned by the garbage collector once."""

import gc

from bot.domain.jobs.poll_pace import PollPace
from bot.runtime.process_signals import freeze_startup_objects, lasting_imports
from bot.scheduler.poll_memory import KnownLook, PollMemory


def test_startup_objects_are_frozen_out_of_garbage_collection() -> None:
    """Garbage is collected before."""
    before, kept = gc.get_freeze_count(), [object()]
    freeze_startup_objects()
    assert gc.get_freeze_count() > before
    assert not any(kept is each for each in gc.get_objects())


def test_imports_are_not_looked_through_for_garbage() -> None:
    with lasting_imports():
        assert not gc.isenabled()
        kept = [object()]
    assert gc.isenabled()
    assert not any(kept is each for each in gc.get_objects())


def test_remembered_jobs_cost_the_garbage_collector_nothing() -> None:
    """However many there are: otherwise it would scan each of them, and block everything else."""
    memory = PollMemory()
    gc.collect()
    before = len(gc.get_objects())
    for number in range(1_000):
        pace = PollPace(float(number), None, waits_for_link=False, slow_for=0.0)
        memory.remember(f"t{number}", KnownLook(number, b"print", pace))
    gc.collect()
    assert len(gc.get_objects()) - before < 100
    assert memory.get("t7") == KnownLook(7, b"print", PollPace(7.0, None, waits_for_link=False, slow_for=0.0))
