"""Settings for the pages of the local pull requests: who may merge and close."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, PlainValidator, SecretStr

from bot.runtime.rotating_secrets import Rotating, secret_text
from bot.runtime.settings import Settings

SHORTEST_KEY = 22
"""Characters: nothing slows down whoever tries keys. 1.0.0 accepted 16, with which one can still read."""
_SHORTEST_TO_READ = 16
NEW_KEY = f"a new one of at least {SHORTEST_KEY} characters (openssl rand -hex 24)"
_LONGEST_NAME = 80
_NOBODY = "nobody may merge or close pull requests, or read private ones"
_MOST_KEYS = 2


@dataclass(frozen=True)
class Reviewer:
    """A person who may merge and close pull requests."""

    name: str
    key: SecretStr

    @property
    def may_decide(self) -> bool:
        return len(self.key.get_secret_value()) >= SHORTEST_KEY


def _parse(text: str) -> tuple[Reviewer, ...]:
    entries = [entry for entry in re.split("[\n,]", text) if entry.strip()]
    pairs = [entry.rpartition(":") for entry in entries]
    return tuple(Reviewer(" ".join(name.split()), SecretStr(key.strip())) for name, _, key in pairs)


def _reviewers(text: str) -> tuple[Reviewer, ...]:
    """Returns the reviewers in a text. Raises ValueError, which does not quote it."""
    found = _parse(text)
    names, keys = Counter(one.name for one in found), set(_keys(found))
    if not all(name.isprintable() and 0 < len(name) <= _LONGEST_NAME and ":" not in name for name in names):
        raise ValueError("must be lines such as Ada: key, each with a name without a colon")
    if not all(len(key) >= _SHORTEST_TO_READ and re.fullmatch(r"[!-~]+", key) for key in keys):
        raise ValueError(f"must be lines such as Ada: key, each with a key of at least {SHORTEST_KEY} characters")
    if max(names.values(), default=0) > _MOST_KEYS or len(keys) < len(found):
        raise ValueError("must give each person a name and a key of their own, or two keys while one is replaced")
    return found


def _keys(reviewers: Iterable[Reviewer]) -> Iterator[str]:
    return (reviewer.key.get_secret_value() for reviewer in reviewers)


Reviewers = Rotating[tuple[Reviewer, ...]]


def reviewers_in(text: str, *, monotonic: Callable[[], float] = time.monotonic) -> Reviewers:
    """Returns the reviewers of a setting's text. Raises ValueError.

    An empty file removes the last reviewer at once: whoever empties it must not find that an old key still merges.
    """
    return Rotating(text, _reviewers, _keys, nobody=_NOBODY, monotonic=monotonic)


def _rotating_reviewers(value: object) -> Reviewers:
    return value if isinstance(value, Rotating) else reviewers_in(secret_text(value))


class PageSettings(Settings):
    """Who may merge and close on the pages of the local pull requests."""

    reviewers: Annotated[Reviewers, PlainValidator(_rotating_reviewers)] = Field(
        reviewers_in(""),
        description="who may merge and close on the pull request pages: a line `name: key` each, with a key of at "
        f"least {SHORTEST_KEY} characters, best in a file; without it nobody can",
    )

    @property
    def reviewer_list(self) -> tuple[Reviewer, ...]:
        return self.reviewers.current
