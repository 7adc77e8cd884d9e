"""Prometheus's own program, which checks the format of metrics and evaluates alert rules."""

import shutil
import subprocess

import pytest


def run_promtool(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs it with `given` on standard input. Skips the test if it is not installed."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian's package prometheus): nothing was checked by it")
    return subprocess.run([promtool, *arguments], input=given, capture_output=True, text=True, check=False)


def faults_of(page: str) -> str:
    """Returns what promtool says against a page of metrics."""
    return run_promtool("check", "metrics", given=page).stderr
