"""Payloads of Slack's Events API (docs.slack.dev, "Events API"), one for each event that Pagehand uses."""

from typing import Annotated

from pydantic import BeforeValidator, StrictBool

from bot.runtime.untrusted_json import EmptyAsNone, LenientModel, Text
from bot.slack.message_parts.slack_message import SlackMessage, Ts
from bot.slack.receiving.payloads.payload import SlackEvent, SlackPayload


class EventPayload(SlackPayload):
    """An event of any type. `is_ext_shared_channel` is None if Slack does not say; an unreadable value counts as
    shared.
    """

    is_ext_shared_channel: Annotated[
        StrictBool | None, BeforeValidator(lambda shared: shared if shared in (None, False) else True)
    ] = None


class MessageEvent(SlackMessage, SlackEvent):
    """A message that was just written, or a mention."""

    channel: Text = ""
    channel_type: Text = ""


class MessagePayload(EventPayload):
    """`message` without an edit or deletion, and `app_mention`."""

    event: MessageEvent = MessageEvent()


class RevisionEvent(SlackEvent):
    """An edit or a deletion of a message. `previous_message` is None if Slack does not include it."""

    channel: Text = ""
    ts: Ts = ""
    event_ts: Ts = ""
    deleted_ts: Ts = ""
    message: SlackMessage = SlackMessage()
    previous_message: Annotated[SlackMessage | None, EmptyAsNone] = None


class RevisionPayload(EventPayload):
    """`message` with the subtype `message_changed` or `message_deleted`."""

    event: RevisionEvent = RevisionEvent()


class ReactionItem(LenientModel):
    """The message that a reaction was added to."""

    channel: Text = ""
    ts: Ts = ""


class ReactionEvent(SlackEvent):
    """A reaction. `item_user` is who wrote the message; Slack can leave it out."""

    reaction: Text = ""
    item: ReactionItem = ReactionItem()
    item_user: Text = ""
    event_ts: Ts = ""


class ReactionPayload(EventPayload):
    """`reaction_added`."""

    event: ReactionEvent = ReactionEvent()


class HomeEvent(SlackEvent):
    """Somebody opened the app's Home."""

    tab: Text = ""


class HomePayload(EventPayload):
    """`app_home_opened`."""

    event: HomeEvent = HomeEvent()


class MemberJoinedEvent(SlackEvent):
    """Somebody joined a channel. `inviter` is empty if nobody invited them."""

    channel: Text = ""
    inviter: Text = ""


class MemberJoinedPayload(EventPayload):
    """`member_joined_channel`."""

    event: MemberJoinedEvent = MemberJoinedEvent()


class ChannelIdEvent(SlackEvent):
    """Slack gave a channel another id."""

    old_channel_id: Text = ""
    new_channel_id: Text = ""
    event_ts: Ts = ""


class ChannelIdPayload(EventPayload):
    """`channel_id_changed`."""

    event: ChannelIdEvent = ChannelIdEvent()
