"""A message as Slack describes it, in an event, a shortcut or a response of the Web API.

If Slack uses one key for values of two types, each type has its own field: `text` and `text_parts`, for example.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt

from bot.runtime.lenient_model import IsPresent, IsText, LenientModel, Objects, Text, objects_in

MAX_PARTS = 5_000
"""The most parts in one message's blocks. Blocks with more are not read: the message has its text as flat text, too."""
_TS = re.compile(r"\d{1,20}\.\d{6}")


def _ts(value: str) -> str:
    if not _TS.fullmatch(value):
        raise ValueError("not a ts")
    return value


Ts = Annotated[Text, AfterValidator(_ts)]
"""The `ts` of a message, which is its id within its channel."""


# Blocks (docs.slack.dev, "Blocks" and "Rich text block").


def _parts(value: object) -> list[dict[str, Any]]:
    """Returns the parts under a key, which holds an object, a list of objects, or the rows of a table."""
    found: list[dict[str, Any]] = []
    for item in value if isinstance(value, list) else [value]:
        cells = item if isinstance(item, list) else [item]
        found += [cell for cell in cells if isinstance(cell, dict)]
    return found


def _blocks(value: object) -> list[dict[str, Any]]:
    """Raises ValueError for blocks with too many parts."""
    blocks = objects_in(value)
    places: list[Any] = [blocks]
    left = MAX_PARTS
    while places:
        place = places.pop()
        if isinstance(place, list):
            left -= len(place)
            if left < 0:
                raise ValueError("too many parts")
        inner = place.values() if isinstance(place, dict) else place
        places += [each for each in inner if isinstance(each, dict | list)]
    return blocks


BlockParts = Annotated[tuple["BlockPart", ...], BeforeValidator(_parts)]
Blocks = Annotated[tuple["BlockPart", ...], BeforeValidator(_blocks)]


class TextStyle(LenientModel):
    """The style of a part of rich text."""

    bold: StrictBool = False
    italic: StrictBool = False
    strike: StrictBool = False
    code: StrictBool = False


class BlockPart(LenientModel):
    """A block, or any part of one."""

    type: Text = ""
    text: Text = ""
    text_parts: Annotated[BlockParts, Field(validation_alias="text")] = ()
    title: BlockParts = ()
    fields: BlockParts = ()
    elements: BlockParts = ()
    rows: BlockParts = ()
    style: Text = ""
    text_style: Annotated[TextStyle, Field(validation_alias="style")] = TextStyle()
    indent: StrictInt = 0
    offset: StrictInt = 0
    border: StrictInt = 0
    url: Text = ""
    name: Text = ""
    user_id: Text = ""
    channel_id: Text = ""
    usergroup_id: Text = ""
    range: Text = ""
    fallback: Text = ""
    value: Text = ""


# Files and attachments (docs.slack.dev, "File object" and "Secondary message attachments").


class MessageFile(LenientModel):
    """A file of a message, or as `files.info` describes it."""

    id: Text = ""
    name: Text = ""
    title: Text = ""
    mimetype: Text = ""
    size: StrictInt = 0
    mode: Text = ""
    file_access: Text = ""
    url_private: Text = ""
    url_private_download: Text = ""
    permalink: Text = ""


class AttachmentField(LenientModel):
    """A field in an attachment of an app: a title and a value."""

    title: Text = ""
    value: Text = ""


class BlocksOfMessage(LenientModel):
    """The blocks of a message that an attachment shows."""

    blocks: Blocks = ()


class MessageBlocks(LenientModel):
    """A message that an attachment shows."""

    message: BlocksOfMessage = BlocksOfMessage()


class MessageAttachment(LenientModel):
    """What Slack shows below a message's own text: a forwarded or linked message, a link's preview, an app's text."""

    is_share: StrictBool = False
    is_msg_unfurl: StrictBool = False
    author_id: Text = ""
    author_name: Text = ""
    service_name: Text = ""
    title: Text = ""
    title_link: Text = ""
    from_url: Text = ""
    pretext: Text = ""
    text: Text = ""
    fallback: Text = ""
    fields: Objects[AttachmentField] = ()
    files: Objects[MessageFile] = ()
    blocks: Blocks = ()
    message_blocks: Objects[MessageBlocks] = ()


# Messages (docs.slack.dev, "message event").


class Signed(LenientModel):
    """The person or bot that wrote a message."""

    user: Text = ""
    bot_id: Text = ""


class Authored(LenientModel):
    """What Slack says about the author of a message or another event."""

    user: Text = ""
    user_team: Text = ""
    team: Text = ""
    source_team: Text = ""


class LastEdit(LenientModel):
    """Who edited a message last, and when."""

    user: Text = ""
    ts: Ts = ""


class BotProfile(LenientModel):
    """The app that wrote a message."""

    name: Text = ""


def _subtype(value: object) -> object:
    """An unreadable subtype must not count as none, because messages without one are people's."""
    return value if value is None or isinstance(value, str) else "unreadable"


class SlackMessage(Authored, Signed):
    """A message. `files` is None if Slack does not list them."""

    type: Text = ""
    subtype: Annotated[Text, BeforeValidator(_subtype)] = ""
    ts: Ts = ""
    thread_ts: Ts = ""
    parent_user_id: Text = ""
    text: Text = ""
    has_text: Annotated[IsText, Field(validation_alias="text")] = False
    blocks: Blocks = ()
    attachments: Objects[MessageAttachment] = ()
    files: Objects[MessageFile] | None = None
    username: Text = ""
    has_bot_id: Annotated[IsPresent, Field(validation_alias="bot_id")] = False
    bot_profile: BotProfile = BotProfile()
    has_bot_profile: Annotated[IsPresent, Field(validation_alias="bot_profile")] = False
    hidden: IsPresent = False
    edited: LastEdit = LastEdit()
    is_edited: Annotated[IsPresent, Field(validation_alias="edited")] = False

    @property
    def is_reply(self) -> bool:
        """Whether it is in a thread that another message began."""
        return bool(self.thread_ts and self.ts) and self.thread_ts != self.ts
