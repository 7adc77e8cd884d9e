"""Lists what Pagehand promises, and the tests that try to break each promise, as their markers say."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1]
PROMISES: Mapping[str, str] = tomllib.loads((TESTS / "promises.toml").read_text(encoding="utf-8"))


def files_by_promise() -> Mapping[str, Sequence[str]]:
    """Returns the files with each promise in a marker, from their text: importing them all takes a minute."""
    found = defaultdict[str, list[str]](list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for names in re.findall(r"pytest\.mark\.promise\(([^)]*)\)", path.read_text(encoding="utf-8")):
            for name in re.findall(r'"([^"]+)"', names):
                found[name].append(str(path.relative_to(TESTS)))
    return found


if __name__ == "__main__":
    for promise, files in files_by_promise().items():
        print(promise, PROMISES[promise], *files, sep="\n  ", end="\n\n")  # noqa: T201 - the command's output
