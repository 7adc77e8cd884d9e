from core_world import World

from bot.loops.retention import DAY, Retention


async def test_finished_jobs_go_after_their_time_and_running_ones_stay(world: World) -> None:
    first = await world.started("first", key="k1")
    world.job_api.show("job-1", "failed")
    await world.pass_time(10)
    second = await world.started("second", key="k2")
    sweep = Retention(world.store, days=90)
    assert await sweep.sweep() == 0
    world.clock.advance(91 * DAY)
    assert await sweep.sweep() == 1
    known = await world.store.transact(lambda tx: tx.thread_at("C1", first))
    assert known is None
    assert (await world.thread(second)).prompt == "second"
