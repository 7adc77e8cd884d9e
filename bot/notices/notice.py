"""The common interface of all notices: how they are delivered, whom they are about, and the texts that they quote.

The database stores each notice by its `kind` and fields, so renaming or changing one needs a migration. Its key is
unique in the database and in the metadata of messages: if a key changed, its fact would be announced again.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NewType, Self, cast

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from bot.domain.requests.request import Request, Surface
from bot.notices.said import Renderer, Said

if TYPE_CHECKING:
    from bot.domain.threads.thread import Thread  # whose state contains a notice

NoticeKey = NewType("NoticeKey", str)
"""Unique within a thread. The same fact always has the same key, so that it is announced once."""


def in_database(thread_id: str, key: NoticeKey) -> str:
    """Returns the key as it is stored, unique among all threads."""
    return f"{thread_id}/{key}"


def within_thread(thread_id: str, stored: str) -> NoticeKey:
    """Returns the key within its thread from a stored one."""
    return NoticeKey(stored.removeprefix(f"{thread_id}/"))


class Delivery(StrEnum):
    """How a notice reaches people."""

    CARD = "card"
    """The thread's first message: posted once, then kept at the newest state."""
    POST = "post"
    """A message in the thread."""
    REACTION = "reaction"
    """The reaction on a reply that shows its state."""
    EPHEMERAL = "ephemeral"
    """A message for one person only, in the thread's channel."""


class Quotes:
    """A dataclass that may quote people. `quotes` names the fields that do: texts, or containers of texts, in which
    mentions are marked (bot.domain.messages).
    """

    quotes: ClassVar[tuple[str, ...]] = ()

    def with_texts(self, change: Callable[[str], str]) -> Self:
        """Returns a copy with `change` applied to each text that people wrote."""
        changed = {name: _changed(getattr(self, name), change) for name in self.quotes}
        return cast("Self", replace(cast("Any", self), **changed)) if changed else self

    @property
    def texts(self) -> list[str]:
        """Each text that people wrote."""
        texts: list[str] = []

        def noted(text: str) -> str:
            texts.append(text)
            return text

        self.with_texts(noted)
        return texts


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case Quotes():
            return value.with_texts(change)
        case list() | tuple():
            return type(value)(_changed(item, change) for item in value)
        case dict():
            return {name: _changed(item, change) for name, item in value.items()}
        case _:
            return value


KINDS: "dict[str, type[NoticeContent]]" = {}
"""The notices by their kind."""


@dataclass(frozen=True)
class NoticeContent(Quotes):
    """The content of a notice, and what it says: `words`, or what `tell` makes of them."""

    words: ClassVar[str]
    kind: ClassVar[str]
    delivery: ClassVar[Delivery] = Delivery.POST
    ends_work: ClassVar[bool] = False
    """Whether it cancels lines that are held back in its thread, because the work that they announce is over."""

    told_though_muted: ClassVar[bool] = False
    """Whether a muted thread gets it: failures, pull requests, and the outcome of a stop."""

    def __init_subclass__(cls, kind: str = "") -> None:
        """Registers a notice; a common base of several has no kind."""
        if kind:
            cls.kind = kind
            KINDS[kind] = cls

    @property
    def about(self) -> str:
        """The id of the person whom it is for or about; empty if there is none."""
        return ""

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """Returns what is said about the thread's job. Raises ValueError for a notice that is no message of its own."""
        if not hasattr(self, "words"):
            raise ValueError(f"{self.kind} is no message of its own")
        return Said(show(self.words))

    def addressed_to(self, person_id: str) -> Self:
        """Returns a copy that addresses this person, if it addresses anybody."""
        del person_id
        return self


def written(message: NoticeContent) -> dict[str, Any]:
    """Returns a notice as values of JSON."""
    return {**_adapter(cast("Hashable", type(message))).dump_python(message, mode="json"), "kind": message.kind}


def read(value: Any) -> NoticeContent:
    """Returns the notice from such values. Raises ValueError, also for an unknown kind."""
    if isinstance(value, NoticeContent):
        return value
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in KINDS:
        raise ValueError("an unknown kind of notice")
    return cast("NoticeContent", _adapter(cast("Hashable", KINDS[kind])).validate_python(value))


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast("type[NoticeContent]", kind))


AnyNotice = Annotated[NoticeContent, PlainValidator(read), PlainSerializer(written)]


@dataclass(frozen=True)
class Addressed(NoticeContent):
    """A post that addresses one person; the thread's requester if `person_id` is empty."""

    person_id: str = field(kw_only=True)

    @property
    def about(self) -> str:
        """See NoticeContent."""
        return self.person_id

    def addressed_to(self, person_id: str) -> Self:
        """See NoticeContent."""
        return replace(self, person_id=person_id)


@dataclass(frozen=True)
class ToPerson(NoticeContent):
    """A message for one person only, shown where they asked for it."""

    delivery: ClassVar = Delivery.EPHEMERAL
    person_id: str
    asked_on: Surface = field(default=Surface.CONVERSATION, kw_only=True)

    @property
    def about(self) -> str:
        """See NoticeContent."""
        return self.person_id

    @property
    def leads_to(self) -> str:
        """The `ts` of the message to which it leads; empty: none."""
        return ""


@dataclass(frozen=True)
class PostOutdated(NoticeContent):
    """The post or the reaction with this key, if there is one, has to show the state as it is now. It is no row of its
    own.
    """

    told_though_muted: ClassVar = True


@dataclass(frozen=True)
class UnknownNotice(NoticeContent, kind="unknown"):
    """A notice that a newer version, which shares our database, has recorded."""

    quotes: ClassVar = ("fields",)
    """Any text may be a person's, because the fields' meaning is unknown here."""
    unknown_kind: str
    fields: Mapping[str, Any]
    delivery: Delivery = field(default=Delivery.POST, kw_only=True)  # type: ignore[misc]

    @property
    def about(self) -> str:
        """See NoticeContent."""
        return str(self.fields.get("person_id") or "")

    def tell(self, show: Renderer, thread: "Thread") -> Said:
        """Shows its content, rather than nothing."""
        held = ", ".join(f"{name}: {value}" for name, value in self.fields.items())
        return Said(show.line(held, 1_000) or show("News."))


@dataclass(frozen=True)
class CardChanged(NoticeContent, kind="card_changed"):
    """The card is out of date."""

    delivery: ClassVar = Delivery.CARD
    KEY: ClassVar = NoticeKey("card")


class Reaction(StrEnum):
    """The reaction on a reply."""

    RECORDED = "eyes"
    ACCEPTED = "white_check_mark"
    PROBLEM = "warning"
    WELCOME = "heart"
    """The reply only says thanks, and is not sent."""


@dataclass(frozen=True)
class ReactionChanged(NoticeContent, kind="reaction_changed"):
    """A reply should have this reaction, or none."""

    delivery: ClassVar = Delivery.REACTION
    message_ts: str
    reaction: Reaction | None

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """The one reaction on a reply."""
        return NoticeKey(f"{request.reply_id}/mark")


@dataclass(frozen=True)
class NewNotice:
    """A notice to record, due in `due_in` seconds. `only_progress`: the card's state is the same."""

    key: NoticeKey
    message: NoticeContent
    due_in: float = 0.0
    only_progress: bool = False


CARD_CHANGED = NewNotice(CardChanged.KEY, CardChanged())
CARD_PROGRESSED = NewNotice(CardChanged.KEY, CardChanged(), only_progress=True)


@dataclass(frozen=True)
class Notice:
    """Something Pagehand owes a thread, as a row.

    `key` is unique in the database, and the message carries it as metadata. The notice of a card or reaction is a
    single row, which is reopened whenever there is something newer to show; `revision` counts that. `attempts` includes
    the current one, and for an ephemeral message in doubt counts those since the doubt. `uncertain`: an
    earlier attempt may have arrived, so look for the key before posting. `without_blocks`: Slack refused the blocks, so
    send text only. `reactions_shown`: the reactions that the reply may have (None: any). `reaction_added`: it has the
    new one. `posted_ts`: the post that was made of it, which it now changes.
    """

    id: int
    key: str
    thread_id: str
    message: AnyNotice
    created_at: float
    attempts: int = 0
    uncertain: bool = False
    without_blocks: bool = False
    revision: int = 0
    reactions_shown: tuple[Reaction, ...] | None = None
    reaction_added: bool = False
    posted_ts: str | None = None

    @property
    def delivery(self) -> Delivery:
        """How it is delivered."""
        return self.message.delivery
