"""Pages that tell of the past: no place for new ones, and not corrected afterwards."""

import re
from pathlib import PurePosixPath

_RECORD = re.compile(
    r"(?:changelogs?|changes|history|news|releases?|release-notes?|whats-new|blog|-?posts|updates)"
    r"|(?:changelog|changes|release-notes|releases?-v?\d)-?.{0,80}"
)


def is_record(path: PurePosixPath) -> bool:
    """Tells whether a page tells of the past: a changelog, release notes, a blog's article."""
    parts = (*path.parts[:-1], path.stem)
    return any(_RECORD.fullmatch(part.casefold().replace("_", "-")) for part in parts)
