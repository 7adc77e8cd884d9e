"""Settings for the pages of the local pull requests: who may merge and close, and how they log in."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, SecretStr

from bot.jobserver.settings.values import Duration
from bot.runtime.secrets.rotation import Rotating, secret_text
from bot.runtime.settings import Settings

SHORTEST_REVIEWER_KEY = 16
_LONGEST_NAME = 80
_NOBODY = "nobody may merge or close pull requests, and everybody is logged out"
_MOST_KEYS = 2
Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Reviewer:
    """A person who may merge and close pull requests."""

    name: str
    key: SecretStr


def _parse(text: str) -> tuple[Reviewer, ...]:
    entries = [entry for entry in re.split("[\n,]", text) if entry.strip()]
    pairs = [entry.rpartition(":") for entry in entries]
    return tuple(Reviewer(" ".join(name.split()), SecretStr(key.strip())) for name, _, key in pairs)


def _reviewers(text: str) -> tuple[Reviewer, ...]:
    """Returns the reviewers in a text. Raises ValueError, which does not quote it."""
    found = _parse(text)
    names, keys = Counter(one.name for one in found), set(_keys(found))
    if not all(name.isprintable() and 0 < len(name) <= _LONGEST_NAME for name in names):
        raise ValueError("must be lines such as Ada: key, each with a name")
    if not all(len(key) >= SHORTEST_REVIEWER_KEY and re.fullmatch(r"[!-~]+", key) for key in keys):
        raise ValueError(
            f"must be lines such as Ada: key, each with a key of at least {SHORTEST_REVIEWER_KEY} characters"
        )
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


def _networks(value: object) -> object:
    """Reads addresses and networks separated by commas or spaces."""
    if not isinstance(value, str):
        return value
    try:
        return tuple(ip_network(word) for word in value.replace(",", " ").split())
    except ValueError:
        raise ValueError("must be addresses or networks, such as 127.0.0.1, 10.0.3.0/24") from None


def _not_everybody(value: tuple[Network, ...]) -> tuple[Network, ...]:
    if not all(network.prefixlen for network in value):
        raise ValueError("must not include every address, or anybody could claim any address")
    return value


class PageSettings(Settings):
    """Who may merge and close on the pages of the local pull requests, and how they log in."""

    reviewers: Annotated[Reviewers, PlainValidator(_rotating_reviewers)] = Field(
        reviewers_in(""),
        description="who may merge and close on the pull request pages: a line `name: key` each, with a key of at "
        f"least {SHORTEST_REVIEWER_KEY} characters, best in a file; without it nobody can",
    )
    login_lasts: Duration = Field(
        timedelta(hours=12), description="how long a reviewer stays logged in (seconds or ISO 8601)"
    )
    trusted_proxies: Annotated[tuple[Network, ...], BeforeValidator(_networks), AfterValidator(_not_everybody)] = Field(
        (),
        description="comma-separated addresses and networks of the proxies in front; only their X-Forwarded-For is "
        "trusted",
    )

    @property
    def reviewer_list(self) -> tuple[Reviewer, ...]:
        return self.reviewers.current
