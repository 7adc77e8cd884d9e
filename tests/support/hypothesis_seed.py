"""Where Hypothesis looks: elsewhere with each commit, at the same examples for one commit, so that what failed does so
again. The long profile looks elsewhere each time.
"""

import os
import subprocess
from pathlib import Path

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Thousands of runs instead of tens."""


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
