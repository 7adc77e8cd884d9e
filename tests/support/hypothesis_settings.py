"""Which examples Hypothesis tries, and how many. They depend on the commit, so that a failure repeats.
The default lane tries a quarter of the full lane's. The long profile tries other examples each time.
"""

import os
import subprocess
from pathlib import Path

from hypothesis import settings

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Thousands of runs instead of tens."""
QUARTER, ALL = 25, 100
"""The number of examples of a test that gives none."""


def look(*, at_all: bool) -> None:
    """Sets the number of examples for tests that are imported after this."""
    settings.register_profile("pagehand", deadline=None, max_examples=ALL if at_all or LONG else QUARTER)
    settings.load_profile("pagehand")


def examples(number: int) -> int:
    """Returns how many of `number` examples this lane tries."""
    return max(number * settings().max_examples // ALL, 1)


def hypothesis_seed() -> str | None:
    """Returns the commit's hash; None for the long profile, and outside a repository."""
    if LONG:
        return None
    here = Path(__file__).parent
    try:
        done = subprocess.run(("git", "rev-parse", "HEAD"), cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
