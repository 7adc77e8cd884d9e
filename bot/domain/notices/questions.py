"""Messages to one person before a request of theirs is sent to the agent, or instead of sending it.

As in `bot.domain.notices.posts`, renaming or changing a message needs a migration.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.notices.content import Delivery, NoticeContent
from bot.domain.people.permissions import Refusal
from bot.domain.requests.request import HeldBecause, RequestKind
from bot.domain.threads.thread import Surface


@dataclass(frozen=True)
class ToPerson(NoticeContent):
    """A message for one person only, shown where they asked for it."""

    delivery: ClassVar = Delivery.EPHEMERAL
    person_id: str
    asked_on: Surface = field(default=Surface.CONVERSATION, kw_only=True)

    @property
    def about(self) -> str:
        return self.person_id


@dataclass(frozen=True)
class RequestRefused(ToPerson):
    """A request is not permitted. `text` is its beginning, `limit` the hourly limit, and `free_at` when the person may
    ask again, in seconds since the epoch.
    """

    quotes: ClassVar = ("text",)
    refusal: Refusal
    wanted: RequestKind
    text: str = ""
    limit: int = 0
    free_at: int | None = None
    kind: Literal["request_refused"] = field(default="request_refused", kw_only=True)


@dataclass(frozen=True)
class ReplyHeld(ToPerson):
    """Somebody who is not a participant has written in a job's thread: is it for the agent? `text` is its beginning."""

    quotes: ClassVar = ("text",)
    request_id: str
    text: str
    kind: Literal["reply_held"] = field(default="reply_held", kw_only=True)


@dataclass(frozen=True)
class JobOrReplyAsked(ToPerson):
    """Somebody has written in a direct message whose last job is running, or waits for an answer: is it a new job, or
    for that one? `text` is its beginning.
    """

    quotes: ClassVar = ("text",)
    request_id: str
    text: str
    kind: Literal["job_or_reply_asked"] = field(default="job_or_reply_asked", kw_only=True)


@dataclass(frozen=True)
class HeldAsked(ToPerson):
    """Shall something still be done that somebody `wanted`? It was not, `because` of that. `text` is the beginning of
    what they wrote; empty for a word for Pagehand.
    """

    quotes: ClassVar = ("text",)
    request_id: str
    text: str
    because: HeldBecause
    wanted: RequestKind
    kind: Literal["held_asked"] = field(default="held_asked", kw_only=True)


HeldQuestion = ReplyHeld | JobOrReplyAsked | HeldAsked
"""A question about a request that waits for its person."""


@dataclass(frozen=True)
class ProjectAsked(ToPerson):
    """Which project is a job for? `said` is the unknown name that was given; `text` is the beginning of the request;
    `current` is its project so far, empty if it has none and waits.
    """

    quotes: ClassVar = ("text",)
    thread_id: str
    projects: tuple[str, ...]
    said: str
    text: str
    current: str = ""
    kind: Literal["project_asked"] = field(default="project_asked", kw_only=True)


@dataclass(frozen=True)
class StopAsked(ToPerson):
    """Somebody who is not a participant added the reaction for a stop to a card: do they mean it?"""

    kind: Literal["stop_asked"] = field(default="stop_asked", kw_only=True)


@dataclass(frozen=True)
class HelpRequested(ToPerson):
    """Somebody asks for help in a job's thread, or probably `meant` this word for Pagehand."""

    meant: ThreadWord | None = None
    kind: Literal["help_requested"] = field(default="help_requested", kw_only=True)
