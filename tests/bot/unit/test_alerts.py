"""The alert rules fire only when they should, and the guide says what to do for each."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from support.oracles.promtool import run_promtool

ROOT = Path(__file__).parents[3]
RULES = ROOT / ".deploy" / "alerts.yml"
GUIDE = ROOT / "bot" / "OPERATING.md"
Series = Mapping[str, str]
WELL: Series = {
    'up{job="pagehand"}': "1x60",
    "pagehand_ready": "1x60",
    'pagehand_queue_overdue_seconds{queue="send"}': "3x60",
    'pagehand_part_failing_seconds{part="job API of docs"}': "0x60",
    'pagehand_part_failing_seconds{part="recording"}': "0x60",
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
    'pagehand_jobserver_runs_total{agent="claude",outcome="done"}': "0+1x60",
    'pagehand_jobserver_runs_total{agent="claude",outcome="failed"}': "0x60",
    "pagehand_jobserver_egress_refusals_total": "3x60",
}
"""Prometheus's data of a healthy bot, one sample a minute."""
FAULTS: Mapping[str, Series] = {
    "PagehandDown": {'up{job="pagehand"}': "0x60"},
    "PagehandNotReady": {"pagehand_ready": "0x60"},
    "PagehandQueueOverdue": {'pagehand_queue_overdue_seconds{queue="send"}': "0+60x60"},
    "PagehandJobApiFailing": {'pagehand_part_failing_seconds{part="job API of docs"}': "0+60x60"},
    "PagehandSlackFailing": {
        'pagehand_slack_call_seconds_count{method="chat.postMessage",outcome="unreachable"}': "0+50x60"
    },
    "PagehandTokenRevoked": {'pagehand_slack_call_seconds_count{method="auth.test",outcome="not_allowed"}': "0+1x60"},
    "PagehandSetupBroken": {'pagehand_setup_faults{status="warning"}': "1x60"},
    "PagehandDatabaseFailing": {"pagehand_database_readable": "0x60"},
    "PagehandDatabaseNearlyFull": {"pagehand_database_free_bytes": "1000x60"},
    "PagehandNotPolling": {'pagehand_polls_total{outcome="unchanged"}': "7x60"},
    "PagehandSlackBudgetExhausted": {'pagehand_slack_budget_calls{method="chat.update"}': "0x60"},
    "PagehandLeaseTakeovers": {"pagehand_lease_takeovers_total": "0+2x60"},
    "PagehandJobServerDown": {'up{job="pagehand-jobserver"}': "0x60"},
    "PagehandJobServerFailing": {'pagehand_jobserver_runs_total{agent="claude",outcome="failed"}': "0+3x60"},
    "PagehandEgressRefused": {"pagehand_jobserver_egress_refusals_total": "0+5x60"},
}
"""The data that differ when each alert should fire."""


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


def test_each_alert_fires_only_at_its_fault(tmp_path: Path) -> None:
    """If one fault includes another, that alert fires, too."""
    tests = [case({}), *(case(fault, name) for name, fault in FAULTS.items())]
    file = tmp_path / "alerts_test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = run_promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
