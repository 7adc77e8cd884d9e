"""The metrics, and the alert rules on them: each fires only when it should, and the guide says what to do."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from support.oracles.promtool import run_promtool
from support.worlds.documented_commands import ROOT, blocks

from bot.app.metrics import BACKLOG_SECONDS, Counts, Readings
from bot.domain.slack_limits import SLACK_LIMITS
from bot.errors import StoreUnavailable
from bot.jobserver.metrics import RunCounts
from bot.slack.receiving.connection_keeper import SocketHealth
from bot.store.condition import Backlog, QueueLength

RULES = ROOT / ".deploy" / "alerts.yml"
GUIDE = ROOT / "bot" / "docs" / "operate.md"
Series = Mapping[str, str]
WELL: Series = {
    'up{job="pagehand"}': "1x60",
    "pagehand_ready": "1x60",
    'pagehand_queue_overdue_seconds{queue="send"}': "3x60",
    'pagehand_part_failing_seconds{part="job API of docs"}': "0x60",
    'pagehand_part_failing_seconds{part="recording"}': "0x60",
    'pagehand_part_failing_seconds{part="Outbox"}': "0x60",
    'pagehand_acknowledgement_seconds_bucket{status="200",le="2.5"}': "0+10x60",
    'pagehand_acknowledgement_seconds_count{status="200"}': "0+10x60",
    'pagehand_acknowledgement_seconds_count{status="503"}': "0x60",
    "pagehand_socket_reconnects_total": "0+1x60",
    'pagehand_notices_total{kind="card",outcome="ok"}': "0+20x60",
    'pagehand_notices_total{kind="reaction",outcome="rejected"}': "0+1x60",
    'pagehand_slack_call_seconds_count{method="chat.postMessage",outcome="ok"}': "0+100x60",
    'pagehand_slack_call_seconds_count{method="chat.postMessage",outcome="unreachable"}': "0+1x60",
    'pagehand_setup_faults{status="warning"}': "0x60",
    "pagehand_database_readable": "1x60",
    "pagehand_database_free_bytes": "9000000000x60",
    'pagehand_jobs{state="active"}': "4x60",
    'pagehand_polls_total{outcome="unchanged"}': "0+20x60",
    'pagehand_slack_budget_calls{method="chat.update"}': "50x60",
    "pagehand_lease_takeovers_total": "0x60",
    'up{job="pagehand-jobserver"}': "1x60",
    'pagehand_jobserver_runs_total{project="docs",agent="claude",outcome="done"}': "0+1x60",
    'pagehand_jobserver_runs_total{project="docs",agent="claude",outcome="failed"}': "0x60",
    'pagehand_jobserver_runs_total{project="busy",agent="claude",outcome="done"}': "0+9x60",
    "pagehand_jobserver_egress_refusals_total": "3x60",
    "pagehand_jobserver_queued_seconds": "60x60",
}
"""Prometheus's data of a healthy bot, one sample a minute."""
FAULTS: Mapping[str, Series] = {
    "PagehandDown": {'up{job="pagehand"}': "0x60"},
    "PagehandNotReady": {"pagehand_ready": "0x60"},
    "PagehandQueueOverdue": {'pagehand_queue_overdue_seconds{queue="send"}': "0+60x60"},
    "PagehandJobApiFailing": {'pagehand_part_failing_seconds{part="job API of docs"}': "0+60x60"},
    "PagehandPartFailing": {'pagehand_part_failing_seconds{part="Outbox"}': "0+60x60"},
    "PagehandAcknowledgingLate": {'pagehand_acknowledgement_seconds_count{status="503"}': "0+1x60"},
    "PagehandSocketUnstable": {"pagehand_socket_reconnects_total": "0+2x60"},
    "PagehandSlackFailing": {
        'pagehand_slack_call_seconds_count{method="chat.postMessage",outcome="unreachable"}': "0+50x60"
    },
    "PagehandNoticesRefused": {'pagehand_notices_total{kind="reaction",outcome="rejected"}': "0+10x60"},
    "PagehandTokenRevoked": {'pagehand_slack_call_seconds_count{method="auth.test",outcome="not_allowed"}': "0+1x60"},
    "PagehandSetupBroken": {'pagehand_setup_faults{status="warning"}': "1x60"},
    "PagehandDatabaseFailing": {"pagehand_database_readable": "0x60"},
    "PagehandDatabaseNearlyFull": {"pagehand_database_free_bytes": "1000x60"},
    "PagehandNotPolling": {'pagehand_polls_total{outcome="unchanged"}': "7x60"},
    "PagehandSlackBudgetExhausted": {'pagehand_slack_budget_calls{method="chat.update"}': "0x60"},
    "PagehandLeaseTakeovers": {"pagehand_lease_takeovers_total": "0+2x60"},
    "PagehandJobServerDown": {'up{job="pagehand-jobserver"}': "0x60"},
    "PagehandJobServerFailing": {
        'pagehand_jobserver_runs_total{project="docs",agent="claude",outcome="failed"}': "0+3x60"
    },
    "PagehandJobServerQueue": {"pagehand_jobserver_queued_seconds": "0+120x60"},
    "PagehandEgressRefused": {"pagehand_jobserver_egress_refusals_total": "0+5x60"},
}
"""The data that differ when each alert should fire."""
NO_FAULTS = {
    "pagehand_requests_total",
    "pagehand_job_api_call_seconds",  # a job API that fails is a part that fails
    "pagehand_queue_rows",  # those that are late count
    "pagehand_socket_connections",  # none means not ready
    "pagehand_jobserver_instructions",
    "pagehand_jobserver_tokens_total",  # BUDGET limits them
}


def alerts() -> Sequence[str]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def case(fault: Series, *firing: str) -> dict[str, Any]:
    """A test of promtool: which alerts fire after 50 minutes."""
    series = [{"series": name, "values": values} for name, values in {**WELL, **fault}.items()]
    return {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "50m",
                "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in firing],
            }
        ],
    }


def test_each_alert_has_a_tested_fault_and_a_paragraph_in_the_guide() -> None:
    guide = re.findall(r"^- \*\*(Pagehand\w+)\*\*", GUIDE.read_text(), re.MULTILINE)
    assert guide == alerts()
    assert set(FAULTS) == set(alerts())


async def test_each_metric_has_an_alert_but_for_those_that_tell_no_fault() -> None:
    database = Database()
    readings = replace(HEALTHY, socket=SocketHealth(1, 1, 0.0), free_bytes=1)
    shown = await database.counts().page(lambda: readings, database.read)() + RunCounts().render({})
    told = set(re.findall(r"^# HELP (pagehand_\w+(?<!_created)) \w", shown.decode(), re.MULTILINE))
    watched = set(re.findall(r"\bpagehand_\w+?(?=_(?:bucket|count)\b|\W)", RULES.read_text()))
    assert told - watched == NO_FAULTS
    assert watched <= told


def test_prometheus_reads_the_configuration_in_the_guide(tmp_path: Path) -> None:
    (written,) = blocks("bot/docs/operate.md", "yaml")
    config = yaml.safe_load(written)
    assert [Path(ROOT, *Path(file).parts[3:]) for file in config["rule_files"]] == [RULES]
    jobs = {job["job_name"] for job in config["scrape_configs"]}
    assert jobs == set(re.findall(r'job="([\w-]+)"', RULES.read_text()))
    file = tmp_path / "prometheus.yml"
    file.write_text(written)
    done = run_promtool("check", "config", "--syntax-only", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_only_at_its_fault(tmp_path: Path) -> None:
    """If one fault includes another, that alert fires, too."""
    tests = [case({}), *(case(fault, name) for name, fault in FAULTS.items())]
    file = tmp_path / "alerts_test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = run_promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


HEALTHY = Readings(ready=True, parts=(), socket=None, free_bytes=None)
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

    def counts(self) -> Counts:
        return Counts(SLACK_LIMITS, monotonic=lambda: self.now)


async def test_queues_are_measured_periodically_by_their_known_names() -> None:
    database = Database()
    render = database.counts().page(lambda: HEALTHY, database.read)
    await render()
    database.now = BACKLOG_SECONDS - 1.0
    await render()
    assert database.asked == 1
    database.now = BACKLOG_SECONDS
    shown = (await render()).decode()
    assert database.asked == 2
    assert 'pagehand_queue_rows{queue="send"} 3.0' in shown
    assert 'pagehand_queue_overdue_seconds{queue="send"} 12.5' in shown
    assert 'pagehand_jobs{state="active"} 2.0' in shown
    assert 'pagehand_jobs{state="other"} 4.0' in shown
    assert 'pagehand_slack_budget_calls{method="chat.update"} 0.0' in shown
    assert "nobody knows" not in shown


async def test_a_database_outage_is_shown_and_hides_no_other_metric() -> None:
    database = Database()
    database.away, counts = True, database.counts()
    counts.polled("changed")
    shown = (await counts.page(lambda: HEALTHY, database.read)()).decode()
    assert "pagehand_database_readable 0.0" in shown
    assert 'pagehand_polls_total{outcome="changed"} 1.0' in shown
    assert "pagehand_queue_rows{" not in shown
