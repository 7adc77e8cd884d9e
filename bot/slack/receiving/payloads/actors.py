"""Which payloads are for our app, and who is behind them.

It follows Bolt's search for the actor's team (slack_bolt/request/internals.py, `extract_actor_team_id` and its kin).
On Enterprise Grid, people of the whole organization count as people of our workspace. Where Slack does not say where
somebody belongs, or names another workspace in a channel that is shared with other organizations, nobody is taken for
one of ours.
"""

from collections.abc import Iterator
from typing import Any

from bot.domain.requests.request import Person
from bot.runtime.json_fields import objects_at, text_at
from bot.slack.sending.identity import Identity

_WORKSPACE = "T"
"""How the ids of workspaces begin; those of organizations begin with E."""
_NAMES_WHERE = frozenset({"view_submission", "view_closed", "message_action", "shortcut"})
"""Kinds of payloads that name the workspace in which somebody did it."""


def is_for_our_app(body: Any, identity: Identity) -> bool:
    """Returns whether a payload is for our app as it is installed in our workspace or organization.

    Where our app's id is not known, its signing secret or its socket alone says that it is for our app.
    """
    app_id = text_at(body, "api_app_id")
    if identity.app_id and app_id and app_id != identity.app_id:
        return False
    return any(_is_us(installation, identity) for installation in _installations(body))


def actor(body: Any, identity: Identity) -> Person:
    """Returns who is behind a payload of any kind: an event, a command, a click, a shortcut or a modal. Where it names
    nobody, the id is empty.
    """
    if not isinstance(body, dict):
        return Person("", "")
    if "event" in body:
        return Person(text_at(body, "event", "user"), _author_team(body, body["event"], identity))
    if "user" in body:
        return Person(text_at(body, "user", "id"), _user_team(body, identity))
    # People of other organizations cannot run commands.
    ours = is_for_our_app(body, identity)
    return Person(text_at(body, "user_id"), identity.team_id if ours else text_at(body, "team_id"))


def _author_team(body: Any, event: Any, identity: Identity) -> str:
    team_id = text_at(event, "user_team") or text_at(event, "team") or text_at(event, "source_team")
    shared = body.get("is_ext_shared_channel")
    if team_id:
        # Where nobody from outside is, another workspace can only be one of our organization.
        colleague = bool(identity.enterprise_id) and shared is False
        return identity.team_id if colleague else _counted_as(team_id, identity)
    return identity.team_id if shared in (None, False) and is_for_our_app(body, identity) else ""


def _user_team(body: Any, identity: Identity) -> str:
    team_id = text_at(body, "user", "team_id")
    colleague = team_id.startswith(_WORKSPACE) and _was_done_in_our_organization(body, identity)
    return identity.team_id if colleague else _counted_as(team_id, identity)


def _was_done_in_our_organization(body: Any, identity: Identity) -> bool:
    """Whether a modal or a shortcut was used in a workspace of our organization; False where we are of none. There,
    `team` is where that was; for a click it is where the app is installed, whoever clicked.
    """
    if not identity.enterprise_id or text_at(body, "type") not in _NAMES_WHERE:
        return False
    if body.get("team") is None:  # the app is installed for the whole organization
        return text_at(body, "enterprise", "id") == identity.enterprise_id
    return any(_is_us(text_at(body, "team", key), identity) for key in ("id", "enterprise_id"))


def _counted_as(team_id: str, identity: Identity) -> str:
    """Returns the workspace that a person counts as one of: for our organization's id, our workspace."""
    return identity.team_id if _is_us(team_id, identity) else team_id


def _is_us(team_id: str, identity: Identity) -> bool:
    """Takes the id of a workspace (T...) or of an organization (E...)."""
    return bool(team_id) and team_id in {identity.team_id, identity.enterprise_id}


def _installations(body: Any) -> Iterator[str]:
    """Yields the workspaces and organizations that a payload names as those it is for. Events name the channel's own
    workspace at the top, and ours among the authorizations.
    """
    for key in ("team_id", "enterprise_id", "context_team_id", "context_enterprise_id", "team", "enterprise"):
        yield text_at(body, key)
    for path in (("team", "id"), ("team", "enterprise_id"), ("enterprise", "id"), ("view", "app_installed_team_id")):
        yield text_at(body, *path)
    for installation in objects_at(body, "authorizations"):
        yield text_at(installation, "team_id")
        yield text_at(installation, "enterprise_id")
