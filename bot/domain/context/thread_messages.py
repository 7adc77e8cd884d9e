"""The messages of a thread, as they are read to become context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.domain.context.mentions import mentioned, with_names
from bot.domain.context.slack_files import ForwardedMessage, SlackFile


@dataclass(frozen=True)
class LinkPreview:
    """What Slack, or an app, shows under a message: of a page that it links to, for instance. All can be empty."""

    title: str
    text: str
    url: str = ""


@dataclass(frozen=True)
class ThreadMessage:
    """A message of a thread; `ts` is its own. `author` is a name, or, like whoever the texts mention, a marked mention
    (bot.domain.context.mentions).
    """

    author: str
    text: str
    ts: str
    files: tuple[SlackFile, ...] = ()
    forwarded: tuple[ForwardedMessage, ...] = ()
    previews: tuple[LinkPreview, ...] = ()


def people_in(messages: Sequence[ThreadMessage], forwarded: Sequence[ForwardedMessage] = ()) -> tuple[str, ...]:
    """Returns the ids of those who wrote the messages, or are mentioned in them, each once."""
    inside = [share for message in messages for share in message.forwarded]
    texts = [text for message in messages for text in (message.author, message.text)]
    texts += [text for share in (*inside, *forwarded) for text in (share.author, share.text)]
    texts += [preview.text for message in messages for preview in message.previews]
    return tuple(dict.fromkeys(user_id for text in texts for user_id in mentioned(text)))


def with_known_names(message: ThreadMessage, names: Mapping[str, str]) -> ThreadMessage:
    """Returns the message with names (by id) in the place of mentions; where there is none, the id."""
    return replace(
        message,
        author=_person(message.author, names),
        text=with_names(message.text, names),
        forwarded=tuple(forwarded_with_names(share, names) for share in message.forwarded),
        previews=tuple(replace(preview, text=with_names(preview.text, names)) for preview in message.previews),
    )


def forwarded_with_names(share: ForwardedMessage, names: Mapping[str, str]) -> ForwardedMessage:
    """Returns the forwarded message with names in the place of mentions."""
    return replace(share, author=_person(share.author, names), text=with_names(share.text, names))


def _person(author: str, names: Mapping[str, str]) -> str:
    return with_names(author, names).removeprefix("@") if mentioned(author) else author
