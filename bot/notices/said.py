"""What a notice says: words and buttons, without Slack's blocks. A renderer at the edge escapes what is filled in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Protocol

Markup = NewType("Markup", str)
"""Text in Slack's escaped form."""
NOTHING = Markup("")
ELLIPSIS = Markup("…")


class Renderer(Protocol):
    """Fills in words. Each method makes somebody's text, or a value of ours, safe to fill in."""

    @property
    def mentioned(self) -> str:
        """Whom this message mentions, as the one person who waits for it; empty: nobody."""

    def __call__(self, words: str, /, **parts: Markup | int) -> Markup:
        """Returns the words with their placeholders filled. Facts about the installation need not be given: `ask` is
        whom to ask, `bot` is Pagehand, `slash` its command (`command`: without quotation marks), `workspace` the one it
        belongs to, and `reply` how people write to the agent in the thread, as the beginning of a sentence.
        """

    def person(self, user_id: str) -> Markup:
        """Returns a mention."""

    def addressed(self, person_id: str, words: Markup) -> Markup:
        """Returns words that begin with a mention; without an id, as they are."""

    def line(self, text: str, limit: int = 100) -> Markup:
        """Returns the text on one line, at most `limit` wide."""

    def quote(self, text: str, characters: int = 300, lines: int = 4, width: int = 1_500) -> Markup:
        """Returns the beginning of a text as a quotation."""

    def link(self, url: str, limit: int = 1_500) -> Markup:
        """Returns a link, or text where it is none, or too long."""

    def moment(self, seconds: int) -> Markup:
        """Returns a time of day."""

    def day_and_time(self, seconds: float) -> Markup:
        """Returns a date and time, and how long ago it was."""


EXAMPLE = "Fix the typos"
"""A task that any documentation has, to begin with."""


class ButtonId(StrEnum):
    """What a button does (Slack's `action_id`); its click comes back with a value."""

    SEND_AGAIN = "send_again"
    """The id of the request."""
    SEND_NEW_WORDS = "send_new_words"
    """The id of the request that was edited."""
    OPEN_PULL_REQUEST = "open_pull_request"
    """A link: the click only needs an acknowledgement."""
    STOP_JOB = "stop_job"
    DISCARD_WORK = "discard_work"
    """The thread's id. Slack has asked for confirmation."""
    MAKE_CHANGE = "make_change"
    """The id of a thread whose agent has answered a question."""
    OPEN_FORM = "open_form"
    """Opens the modal for a new job in the channel of the message, with an example in it."""
    SEND_HELD = "send_held"
    """The id of the request whose person was asked whether it is for the agent; also for the next two."""
    SEND_ALL_HELD = "send_all_held"
    DISCARD_HELD = "discard_held"
    ACCEPT_PROPOSAL = "accept_proposal"
    """The thread's id and the plan's, with a slash between; also for the next."""
    DROP_PROPOSAL = "drop_proposal"


@dataclass(frozen=True)
class Confirmation:
    """The question that is asked before a click counts."""

    title: str
    text: str
    yes: str
    no: str


@dataclass(frozen=True)
class Button:
    """A button. One without a `value` is left out, for lack of what it is about."""

    label: str
    action: ButtonId
    value: str
    confirm: Confirmation | None = None


def open_button(link: str) -> tuple[Button, ...]:
    """Returns the button that opens a pull request; none without a link."""
    return (Button("Open the pull request", ButtonId.OPEN_PULL_REQUEST, link),) if link else ()


@dataclass(frozen=True)
class Said:
    """A message of one paragraph, with its buttons."""

    words: Markup
    buttons: tuple[Button, ...] = ()


_SHOWN_NAMES = 5


def some(show: Renderer, names: Sequence[str], unnamed: str = "") -> Markup:
    """Returns the first of these names, and how many more there are; `unnamed` in the place of an empty one."""
    shown = joined([show.line(name) or show(unnamed) for name in names[:_SHOWN_NAMES]], ", ")
    left = len(names) - _SHOWN_NAMES
    return show("{names} and {count} more", names=shown, count=left) if left > 0 else shown


def joined(parts: Iterable[Markup], by: str = " ") -> Markup:
    """Joins escaped texts with a harmless separator."""
    return Markup(by.join(parts))
