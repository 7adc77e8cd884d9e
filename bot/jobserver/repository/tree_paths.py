"""The paths in git's trees. Almost all of a tree's are those of the tree before, so that one object serves for both."""

from functools import lru_cache
from pathlib import PurePosixPath

_KEPT = 20_000
"""About 10 MB."""


@lru_cache(maxsize=_KEPT)
def tree_path(name: str) -> PurePosixPath:
    """Returns the path of a name in a tree; what pathlib works out for its hash and its order is worked out once."""
    return PurePosixPath(name)
