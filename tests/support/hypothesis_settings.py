"""Where Hypothesis looks, and how far: elsewhere with each commit, at the same examples for one commit, so that what
failed does so again. The default lane tries a quarter of the full one's examples: four commits try as many. The long
profile looks elsewhere each time.
"""

import os
import subprocess
from pathlib import Path

from hypothesis import settings

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Thousands of runs instead of tens."""
QUARTER, ALL = 25, 100
"""Examples of a test that names no number."""


def look(*, at_all: bool) -> None:
    """Sets how far tests look that are imported from now on."""
    settings.register_profile("pagehand", deadline=None, max_examples=ALL if at_all or LONG else QUARTER)
    settings.load_profile("pagehand")


def examples(number: int) -> int:
    """Returns how many of so many examples are tried in this lane."""
    return max(number * settings().max_examples // ALL, 1)


def hypothesis_seed() -> str | None:
    """Returns the commit's hash; None for the long profile, and where there is no repository."""
    if LONG:
        return None
    here = Path(__file__).parent
    try:
        done = subprocess.run(("git", "rev-parse", "HEAD"), cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
