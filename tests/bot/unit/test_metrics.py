"""The bot's metrics: bounded labels, and a database that is rarely queried and may be away."""

from prometheus_client import CollectorRegistry

from bot.app.metrics.counts import Readings
from bot.app.metrics.prometheus import BACKLOG_SECONDS, PrometheusCounts, PrometheusPage
from bot.domain.slack_limits import SLACK_LIMITS
from bot.errors import StoreUnavailable
from bot.store.condition import Backlog, QueueLength

WELL = Readings(ready=True, parts=(), socket=None, free_bytes=None)
SOME = Backlog([QueueLength("send", 3, 12.5)], {"active": 2, "asked nobody knows what": 4}, {"chat.update": 60})


class Database:
    """Returns queue lengths, or fails; `asked` counts the queries."""

    def __init__(self) -> None:
        self.asked = 0
        self.away = False
        self.now = 0.0

    async def read(self) -> Backlog:
        self.asked += 1
        if self.away:
            raise StoreUnavailable("away")
        return SOME

    def page(self, registry: CollectorRegistry) -> PrometheusPage:
        return PrometheusPage(registry, lambda: WELL, self.read, SLACK_LIMITS, monotonic=lambda: self.now)


async def test_queues_are_measured_periodically_by_their_known_names() -> None:
    database, registry = Database(), CollectorRegistry()
    page = database.page(registry)
    await page.render()
    database.now = BACKLOG_SECONDS - 1.0
    await page.render()
    assert database.asked == 1
    database.now = BACKLOG_SECONDS
    shown = (await page.render()).decode()
    assert database.asked == 2
    assert 'pagehand_queue_rows{queue="send"} 3.0' in shown
    assert 'pagehand_queue_overdue_seconds{queue="send"} 12.5' in shown
    assert 'pagehand_jobs{state="active"} 2.0' in shown
    assert 'pagehand_jobs{state="other"} 4.0' in shown
    assert 'pagehand_slack_budget_calls{method="chat.update"} 0.0' in shown
    assert "nobody knows" not in shown


async def test_a_database_outage_is_shown_and_hides_no_other_metric() -> None:
    database, counts = Database(), PrometheusCounts(SLACK_LIMITS)
    database.away = True
    counts.polled("changed")
    shown = (await database.page(counts.registry).render()).decode()
    assert "pagehand_database_readable 0.0" in shown
    assert 'pagehand_polls_total{outcome="changed"} 1.0' in shown
    assert "pagehand_queue_rows{" not in shown
