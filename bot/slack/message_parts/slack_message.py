"""A message as Slack describes it, in an event, a shortcut or a response of the Web API.

If Slack uses one key for values of two types, each type has its own field: `text` and `text_parts`, for example.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictFloat, StrictInt

from bot.runtime.untrusted_json import IsPresent, IsText, LenientModel, Objects, Text, objects_in

MAX_PARTS = 20_000
"""The most parts in a list of blocks; blocks beyond that are not read. The largest table that Slack allows has 201 rows
of 20 cells, each with three parts if it is formatted. Reading 20,000 takes about a quarter of a second.
"""
_MAX_NESTING = 40
"""Objects and lists within one another; a formatted cell of a table in a container takes 12."""
_TS = re.compile(r"\d{1,20}\.\d{6}")


def _ts(value: str) -> str:
    if not _TS.fullmatch(value):
        raise ValueError("not a ts")
    return value


Ts = Annotated[Text, AfterValidator(_ts)]
"""The `ts` of a message, which is its id within its channel."""


# Blocks (docs.slack.dev, "Blocks" and "Rich text block").


def _parts(value: object) -> list[dict[str, Any]]:
    """Returns the parts under a key, which holds an object or a list of objects."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def _parts_or_text(value: object) -> list[dict[str, Any]]:
    """Returns the same for a key that can also hold a plain text."""
    return _parts({"type": "plain_text", "text": value} if isinstance(value, str) else value)


def _rows(value: object) -> list[list[dict[str, Any]]]:
    """Returns the rows of a table. What is no cell counts as an empty one, so that the others keep their columns."""
    rows = value if isinstance(value, list) else []
    return [[cell if isinstance(cell, dict) else {} for cell in row] for row in rows if isinstance(row, list)]


def _blocks(value: object) -> list[dict[str, Any]]:
    """Returns the blocks; of those with too many parts only the type."""
    left, read = MAX_PARTS, []
    for block in objects_in(value):
        size = _size(block, left)
        left -= size
        read.append(block if left >= 0 else {"type": block.get("type")})
    return read


def _size(block: dict[str, Any], most: int) -> int:
    """Returns the number of parts in a block; a number above `most` if there are more, or parts are nested deeply."""
    places: list[tuple[Any, int]] = [(block, 0)]
    size = 1
    while places and size <= most:
        place, depth = places.pop()
        size += len(place) if isinstance(place, list) else 0
        inner = place.values() if isinstance(place, dict) else place
        places += [(each, depth + 1) for each in inner if isinstance(each, dict | list)]
        if depth > _MAX_NESTING:
            return most + 1
    return size


BlockParts = Annotated[tuple["BlockPart", ...], BeforeValidator(_parts)]
PartsOrText = Annotated[tuple["BlockPart", ...], BeforeValidator(_parts_or_text)]
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
    title: PartsOrText = ()
    subtitle: PartsOrText = ()
    caption: PartsOrText = ()
    description: PartsOrText = ()
    body: PartsOrText = ()
    label: PartsOrText = ()
    alt_text: PartsOrText = ()
    fields: BlockParts = ()
    elements: BlockParts = ()
    child_blocks: BlockParts = ()
    tasks: BlockParts = ()
    details: BlockParts = ()
    output: BlockParts = ()
    rows: Annotated[tuple[tuple["BlockPart", ...], ...], BeforeValidator(_rows)] = ()
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
    number: Annotated[StrictInt | StrictFloat | None, Field(validation_alias="value")] = None

    @property
    def parts(self) -> tuple["BlockPart", ...]:
        """The parts that it contains, in the order in which people see them."""
        named = (*self.label, *self.title, *self.subtitle, *self.caption, *self.alt_text)
        words = (*self.text_parts, *self.description, *self.body, *self.fields, *self.elements)
        return (*named, *words, *self.child_blocks, *self.tasks, *self.details, *self.output)


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


class PastedBlocks(LenientModel):
    """What was pasted into a message."""

    blocks: Blocks = ()


class BlocksOfMessage(PastedBlocks):
    """The blocks of a message that an attachment shows, and of its attachments."""

    attachments: Objects[PastedBlocks] = ()


class MessageBlocks(LenientModel):
    """A message that an attachment shows."""

    message: BlocksOfMessage = BlocksOfMessage()


class MessageAttachment(LenientModel):
    """What Slack shows below a message's own text: a forwarded or linked message, a link's preview, an app's text."""

    is_share: StrictBool = False
    is_msg_unfurl: StrictBool = False
    is_app_unfurl: IsPresent = False
    original_url: Text = ""
    app_unfurl_url: Text = ""
    app_id: Text = ""
    bot_id: Text = ""
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

    @property
    def is_message(self) -> bool:
        """Whether it shows another message."""
        return self.is_share or self.is_msg_unfurl

    @property
    def is_own(self) -> bool:
        """Whether the message's author put it there, as a pasted table: it came from nowhere else."""
        addresses = (self.from_url, self.original_url, self.app_unfurl_url, self.title_link)
        names = (self.author_id, self.author_name, self.service_name, self.app_id, self.bot_id)
        return not (self.is_message or self.is_app_unfurl or any(addresses) or any(names))


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

    @property
    def is_by_an_app(self) -> bool:
        """Whether an app posted it: as its bot, or as the person who uses it."""
        return self.has_bot_id or self.has_bot_profile
