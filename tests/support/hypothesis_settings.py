"""Which examples Hypothesis tries, and how many. Except in the full lane and the long profile, they depend on the tests
alone: the seed is fixed, and examples that failed here before are not tried again. The default lane tries a tenth of
the full lane's.
"""

import os
from typing import Any

from hypothesis import settings

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Thousands of runs instead of tens."""
SEED = "0"
TENTH, ALL = 10, 100
"""The number of examples of a test that gives none."""


def look(*, full: bool) -> None:
    """Sets the number of examples for tests that are imported after this, and whether those that failed are kept."""
    thorough = full or LONG
    kept: dict[str, Any] = {} if thorough else {"database": None}
    settings.register_profile("pagehand", deadline=None, max_examples=ALL if thorough else TENTH, **kept)
    settings.load_profile("pagehand")


def examples(number: int) -> int:
    """Returns how many of `number` examples this lane tries."""
    return max(number * settings().max_examples // ALL, 1)
