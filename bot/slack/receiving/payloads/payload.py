"""The common parts of all of Slack's payloads; the payloads of its events (docs.slack.dev, "Events API"); reading a
payload from an HTTP request; and who caused it.

That follows Bolt's search for the actor's team (slack_bolt/request/internals.py, `extract_actor_team_id` and others).
On Enterprise Grid, people of the whole organization count as people of our workspace. If Slack does not say where
somebody belongs, or names another workspace in a channel that is shared with other organizations, they do not count as
ours.
"""

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BeforeValidator, Field, StrictBool

from bot.domain.requests.request import Person
from bot.runtime.untrusted_json import EmptyAsNone, LenientModel, Objects, Text
from bot.slack.message_parts.slack_message import Authored, SlackMessage, Ts
from bot.slack.sending.identity import Identity

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.:\-]")
_TS = re.compile(r"[0-9]{10}\.[0-9]{6}")
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"


class Installation(LenientModel):
    """A workspace in which the app is installed, with its organization."""

    team_id: Text = ""
    enterprise_id: Text = ""


class SlackWorkspace(LenientModel):
    """A workspace or an organization."""

    id: Text = ""
    enterprise_id: Text = ""


NamedWorkspace = Annotated[
    SlackWorkspace | None, BeforeValidator(lambda value: value if value is None or isinstance(value, dict) else {})
]
"""None if Slack names no workspace. An unreadable value must not count as that."""


class InstalledView(LenientModel):
    """The view of a payload, with the fields that show for which app the payload is."""

    app_installed_team_id: Text = ""


class ReactionItem(LenientModel):
    """The message that a reaction was added to."""

    channel: Text = ""
    ts: Ts = ""


class SlackEvent(Authored):
    """An event; each type has some of the fields. `item_user` is who wrote the message that got a reaction, and
    `inviter` who invited somebody to a channel; Slack can leave both out.
    """

    type: Text = ""
    channel: Text = ""
    event_ts: Ts = ""
    reaction: Text = ""
    item: ReactionItem = ReactionItem()
    item_user: Text = ""
    tab: Text = ""
    inviter: Text = ""
    old_channel_id: Text = ""
    new_channel_id: Text = ""


class SlackPayload(LenientModel):
    """A payload of any kind."""

    type: Text = ""
    api_app_id: Text = ""
    command: Text = ""
    ssl_check: Text = ""
    team_id: Text = ""
    enterprise_id: Text = ""
    context_team_id: Text = ""
    context_enterprise_id: Text = ""
    team: NamedWorkspace = None
    team_text: Annotated[Text, Field(validation_alias="team")] = ""
    enterprise: NamedWorkspace = None
    enterprise_text: Annotated[Text, Field(validation_alias="enterprise")] = ""
    authorizations: Objects[Installation] = ()
    view: Annotated[InstalledView | None, EmptyAsNone] = None
    event: SlackEvent = SlackEvent()

    @property
    def workspace_id(self) -> str:
        """The workspace that the payload comes from."""
        return (
            self.team_id
            or (self.team.id if self.team else "")
            or (self.authorizations[0].team_id if self.authorizations else "")
            or self.team_text
        )

    @property
    def kind(self) -> str:
        """The types of the payload, for the log, without any of its content."""
        types = (self.type, self.event.type, self.command)
        return "/".join(log_safe(name) for name in types if name) or "without a type"

    def is_for(self, identity: Identity) -> bool:
        """Returns whether this is for our app as it is installed in our workspace or organization. If our app's id is
        not known, the signing secret or the socket is the only proof that it is for our app.
        """
        if identity.app_id and self.api_app_id and self.api_app_id != identity.app_id:
            return False
        return any(is_ours(installation, identity) for installation in self._installations())

    def _installations(self) -> Iterator[str]:
        """Yields the workspaces and organizations that the payload is for. An event names the channel's own workspace
        at the top, and ours among the authorizations.
        """
        yield from (self.team_id, self.enterprise_id, self.context_team_id, self.context_enterprise_id)
        yield from (self.team_text, self.enterprise_text)
        if self.view:
            yield self.view.app_installed_team_id
        if self.team:
            yield from (self.team.id, self.team.enterprise_id)
        if self.enterprise:
            yield self.enterprise.id
        for installation in self.authorizations:
            yield from (installation.team_id, installation.enterprise_id)


class CommandPayload(SlackPayload):
    """A slash command."""

    text: Text = ""
    user_id: Text = ""
    channel_id: Text = ""
    trigger_id: Text = ""


class EventPayload(SlackPayload):
    """An event of any type. `is_ext_shared_channel` is None if Slack does not say; an unreadable value counts as
    shared.
    """

    is_ext_shared_channel: Annotated[
        StrictBool | None, BeforeValidator(lambda shared: shared if shared in (None, False) else True)
    ] = None


class MessageEvent(SlackMessage, SlackEvent):
    """A message that was just written, or a mention."""

    channel_type: Text = ""


class MessagePayload(EventPayload):
    """`message` without an edit or deletion, and `app_mention`."""

    event: MessageEvent = MessageEvent()


class RevisionEvent(SlackEvent):
    """An edit or a deletion of a message. `previous_message` is None if Slack does not include it."""

    ts: Ts = ""
    deleted_ts: Ts = ""
    message: SlackMessage = SlackMessage()
    previous_message: Annotated[SlackMessage | None, EmptyAsNone] = None


class RevisionPayload(EventPayload):
    """`message` with the subtype `message_changed` or `message_deleted`."""

    event: RevisionEvent = RevisionEvent()


def is_ours(team_id: str, identity: Identity) -> bool:
    """Returns whether an id is that of our workspace (T...) or organization (E...)."""
    return bool(team_id) and team_id in {identity.team_id, identity.enterprise_id}


def is_direct_message(channel_id: str) -> bool:
    """Returns whether a channel's id is that of a direct message."""
    return channel_id.startswith("D")


def log_safe(text: str) -> str:
    """Returns a type or an id in a form for the log: short and on one line."""
    return _UNUSUAL.sub("?", text[:40])


def parse_body(body: str, content_type: str) -> dict[str, Any] | None:
    """Returns the payload in the body of a signed HTTP request; None if it is not a payload of Slack's.

    Slack sends JSON, a form, or a form with JSON in its only field. Bolt's own parser takes every form that contains
    the word "payload" for an interaction, and drops a command about one.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _JSON or (kind != _FORM and body.lstrip().startswith("{")):
        return _json_object(body)
    fields = dict(parse_qsl(body, keep_blank_values=True))
    return _json_object(fields["payload"]) if "payload" in fields else fields or None


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def known_ts(text: str) -> str:
    """Returns a `ts`; empty if it is not like all others, because they are compared as text."""
    return text if _TS.fullmatch(text) else ""


def author_of(payload: EventPayload, identity: Identity) -> Person:
    """Returns who caused an event. The id is empty if the event names nobody."""
    return message_author(payload.event, payload, identity)


def message_author(message: Authored, payload: EventPayload, identity: Identity) -> Person:
    """Returns the author of the message in an event."""
    return Person(message.user, _author_team(message, payload, identity))


def sender_of(payload: CommandPayload, identity: Identity) -> Person:
    """Returns who ran a command; people of other organizations cannot."""
    return Person(payload.user_id, identity.team_id if payload.is_for(identity) else payload.team_id)


def _author_team(message: Authored, payload: EventPayload, identity: Identity) -> str:
    team_id = message.user_team or message.team or message.source_team
    is_shared = payload.is_ext_shared_channel
    if team_id:
        # Without outsiders, another workspace can only be one of our organization.
        is_colleague = bool(identity.enterprise_id) and is_shared is False
        return identity.team_id if is_colleague else counted_as(team_id, identity)
    return identity.team_id if not is_shared and payload.is_for(identity) else ""


def counted_as(team_id: str, identity: Identity) -> str:
    """Returns the workspace whose member a person counts as: ours for everybody in our organization."""
    return identity.team_id if is_ours(team_id, identity) else team_id
