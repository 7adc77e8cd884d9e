"""The scopes that Pagehand needs, those that are missing, and what to do about it.

manifest.yml requests the same scopes. An app can still have fewer: scopes added to a manifest are granted only when the
app is reinstalled (docs.slack.dev, "Installing with OAuth"), and whoever installs it can leave some out.
"""

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

logger = logging.getLogger(__name__)

HOW_TO_GRANT = (
    "At api.slack.com/apps, choose your app and then OAuth & Permissions: add what is not among the Bot Token Scopes, "
    "and click Reinstall to Workspace (Install App has the same button)."
)
_HEADER = "X-OAuth-Scopes"
_SCOPE = re.compile(r"[a-z][a-z0-9_.:-]{0,60}")
_MOST_NAMED = 200


@dataclass(frozen=True)
class Scope:
    """A scope by Slack's name, and the effect of being `without` it. Pagehand does not start without a `required`
    one.
    """

    name: str
    without: str
    required: bool = False


NEEDED_SCOPES = (
    Scope("app_mentions:read", "a mention of Pagehand is heard only where it hears all messages"),
    Scope(
        "channels:history",
        "replies in public channels never arrive, threads there cannot be read, and a post whose answer was lost "
        "cannot be looked for",
        required=True,
    ),
    Scope("channels:join", "Pagehand cannot join a public channel by itself, and has to be invited first"),
    Scope(
        "channels:read",
        "what a public channel is cannot be found out, so nobody may ask for anything there",
        required=True,
    ),
    Scope("chat:write", "nothing can be posted", required=True),
    Scope("commands", "there are no slash command and no shortcuts", required=True),
    Scope("files:read", "the agent gets the names and links of files, and never what is in them"),
    Scope(
        "groups:history",
        "replies in private channels never arrive, threads there cannot be read, and a post there whose answer was "
        "lost cannot be looked for",
    ),
    Scope(
        "groups:read",
        "what a private channel is cannot be found out, so nobody may ask for anything there",
    ),
    Scope("im:history", "direct messages start no jobs, and replies there are not heard"),
    Scope("reactions:read", "a :x: on a card stops nothing (its button and !stop do)"),
    Scope("reactions:write", "replies get no marks"),
    Scope("usergroups:read", "nobody counts as a member of the user groups that may ask for jobs"),
    Scope(
        "users:read",
        "members cannot be told from guests and outsiders, so nobody may ask for anything",
        required=True,
    ),
)
_WITHOUT = {scope.name: scope.without for scope in NEEDED_SCOPES}


class MissingScopes:
    """The scopes that are known to be missing. Each is logged once, and listed in the health report, unless it was
    `left_out` on purpose.
    """

    def __init__(self, left_out: Collection[str] = ()) -> None:
        self._left_out = frozenset(left_out)
        self._names: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """Slack's names, in alphabetical order."""
        return tuple(sorted(self._names))

    def warning(self) -> str:
        """Returns a warning for the health report: what is missing, and how to fix it."""
        return f"Slack has not granted {', '.join(self.names)}. {HOW_TO_GRANT}" if self._names else ""

    def add(self, names: Iterable[str]) -> None:
        """Records that these scopes are missing."""
        for name in sorted(set(names) - self._names - self._left_out):
            self._names.add(name)
            without = _WITHOUT.get(name, "what needs it is left out")
            logger.warning("Slack has not granted the scope %s: %s. %s", name, without, HOW_TO_GRANT)

    def remove_granted(self, headers: Mapping[str, str]) -> None:
        """Removes those that a response's headers list, because they may have been granted meanwhile."""
        if self._names:
            self._names -= granted_scopes(headers) or frozenset()


def granted_scopes(headers: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the scopes that Slack's response headers list; None if a substitute or proxy leaves them out."""
    return frozenset(_names(headers.get(_HEADER, ""))) or None


def missing_scopes_in(needed: str, provided: str) -> tuple[str, ...]:
    """Returns the scopes that Slack's error `missing_scope` asks for. Slack lists those for every kind of channel, of
    which one would be enough, so only the ones that Pagehand needs are returned.
    """
    granted = _names(provided)
    missing = [name for name in _names(needed) if name not in granted]
    return tuple([name for name in missing if name in _WITHOUT] or missing)


def _names(listed: str) -> list[str]:
    """Returns the scopes in a list as Slack writes it; anything else is left out."""
    names = (name.strip() for name in listed.split(",", _MOST_NAMED))
    return [name for name in names if _SCOPE.fullmatch(name)]
