"""Runs each fuzzing target briefly; `python tests/fuzz/run.py TARGET --seconds N` runs longer."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.fuzz_targets import TARGETS

SECONDS = int(os.environ.get("FUZZ_SECONDS", "1"))

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris is not installed: it comes with tests/requirements.txt where there is a wheel",
)


AT_ONCE = "slack_text"
"""The one in the default lane: each target takes seconds to be instrumented."""


@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=() if name == AT_ONCE else pytest.mark.full) for name in sorted(TARGETS)]
)
def test_a_short_fuzz_run_finds_nothing(target: str) -> None:
    command = [sys.executable, str(Path(__file__).with_name("run.py")), target, "--seconds", str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    assert "DONE" in done.stderr, "it did not run at all"
