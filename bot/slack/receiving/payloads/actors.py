"""Determines who caused a payload.

It follows Bolt's search for the actor's team (slack_bolt/request/internals.py, `extract_actor_team_id` and others).
On Enterprise Grid, people of the whole organization count as people of our workspace. If Slack does not say where
somebody belongs, or names another workspace in a channel that is shared with other organizations, they do not count as
ours.
"""

from bot.domain.requests.request import Person
from bot.slack.message_parts.slack_message import Authored
from bot.slack.receiving.payloads.interactions import InteractionPayload
from bot.slack.receiving.payloads.payload import CommandPayload, EventPayload, is_ours
from bot.slack.sending.identity import Identity

_WORKSPACE = "T"
"""The first letter of workspaces' ids; those of organizations begin with E."""
_NAMES_WHERE = frozenset({"view_submission", "view_closed", "message_action", "shortcut"})
"""Kinds of interactions that name the workspace in which they happened."""


def author_of(payload: EventPayload, identity: Identity) -> Person:
    """Returns who caused an event. The id is empty if the event names nobody."""
    return message_author(payload.event, payload, identity)


def message_author(message: Authored, payload: EventPayload, identity: Identity) -> Person:
    """Returns the author of the message in an event."""
    return Person(message.user, _author_team(message, payload, identity))


def user_of(payload: InteractionPayload, identity: Identity) -> Person:
    """Returns who clicked, used the shortcut or submitted the modal. The id is empty if the payload names nobody."""
    team_id = payload.user.team_id
    is_colleague = team_id.startswith(_WORKSPACE) and _happened_in_our_organization(payload, identity)
    return Person(payload.user.id, identity.team_id if is_colleague else _counted_as(team_id, identity))


def sender_of(payload: CommandPayload, identity: Identity) -> Person:
    """Returns who ran a command; people of other organizations cannot."""
    return Person(payload.user_id, identity.team_id if payload.is_for(identity) else payload.team_id)


def _author_team(message: Authored, payload: EventPayload, identity: Identity) -> str:
    team_id = message.user_team or message.team or message.source_team
    is_shared = payload.is_ext_shared_channel
    if team_id:
        # Without outsiders, another workspace can only be one of our organization.
        is_colleague = bool(identity.enterprise_id) and is_shared is False
        return identity.team_id if is_colleague else _counted_as(team_id, identity)
    return identity.team_id if not is_shared and payload.is_for(identity) else ""


def _happened_in_our_organization(payload: InteractionPayload, identity: Identity) -> bool:
    """Whether a modal or a shortcut was used in a workspace of our organization; False if we have none. For these,
    `team` is where it happened; for a click it is where the app is installed, for every person.
    """
    if not identity.enterprise_id or payload.type not in _NAMES_WHERE:
        return False
    if payload.team is None:  # the app is installed for the whole organization
        return payload.enterprise is not None and payload.enterprise.id == identity.enterprise_id
    return is_ours(payload.team.id, identity) or is_ours(payload.team.enterprise_id, identity)


def _counted_as(team_id: str, identity: Identity) -> str:
    """Returns the workspace whose member a person counts as: ours for everybody in our organization."""
    return identity.team_id if is_ours(team_id, identity) else team_id
