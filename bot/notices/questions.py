"""Questions to one person before a request of theirs is sent to the agent, and refusals instead of sending it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.people.permissions import Refusal
from bot.domain.requests.request import HeldBecause, Reply, Request, RequestKind
from bot.notices.notice import NoticeKey, ToPerson


@dataclass(frozen=True)
class RequestRefused(ToPerson, kind="request_refused"):
    """A request is not permitted. `text` is its beginning, `limit` the hourly limit, and `free_at` when the person may
    ask again, in seconds since the epoch.
    """

    quotes: ClassVar = ("text",)
    refusal: Refusal
    wanted: RequestKind
    text: str = ""
    limit: int = 0
    free_at: int | None = None

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for each version of a request that is not permitted."""
        version = f"/{request.edited_at}" if request.edited_at else ""
        return NoticeKey(f"{request.id}/refused{version}")


@dataclass(frozen=True)
class HeldQuestion(ToPerson):
    """A question about a request that waits for its person. `text` is its beginning."""

    quotes: ClassVar = ("text",)
    request_id: str
    text: str

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Asked once for each version of a reply, and each time that it comes to wait for its person."""
        again = f"/{request.held_because}/{request.recorded_at:.6f}" if request.held_because else ""
        return NoticeKey(f"{request.id}/held/{request.edited_at}{again}")

    @staticmethod
    def reminder_key(request: Request) -> NoticeKey:
        """Asked once more each time that a request comes to wait for its person."""
        return NoticeKey(f"{request.id}/held/reminder/{request.problem}/{request.recorded_at:.6f}")

    @staticmethod
    def key_for(request: Request, action: Request) -> NoticeKey:
        """Asked once more whenever its writer asks what is waiting."""
        return NoticeKey(f"{request.id}/held/{request.edited_at}/{action.id}")


@dataclass(frozen=True)
class ReplyHeld(HeldQuestion, kind="reply_held"):
    """Somebody who is not a participant has written in a job's thread: is it for the agent?"""


@dataclass(frozen=True)
class JobOrReplyAsked(HeldQuestion, kind="job_or_reply_asked"):
    """Somebody has written in a direct message whose last job is running, or waits for an answer: is it a new job, or
    for that one?
    """


@dataclass(frozen=True)
class HeldAsked(HeldQuestion, kind="held_asked"):
    """Shall something still be done that somebody `wanted`? It was not, `because` of that. `text` is empty for a word
    for Pagehand.
    """

    because: HeldBecause
    wanted: RequestKind


@dataclass(frozen=True)
class ProjectAsked(ToPerson, kind="project_asked"):
    """Which project is a job for? `said` is the unknown name that was given; `text` is the beginning of the request;
    `current` is its project so far, empty if it has none and waits.
    """

    quotes: ClassVar = ("text",)
    thread_id: str
    projects: tuple[str, ...]
    said: str
    text: str
    current: str = ""

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Asked once for each version of the message that requested a job."""
        version = f"/{request.edited_at}" if request.edited_at else ""
        return NoticeKey(f"{request.id}/project{version}")


@dataclass(frozen=True)
class StopAsked(ToPerson, kind="stop_asked"):
    """Somebody who is not a participant added the reaction for a stop to a card: do they mean it?"""

    @staticmethod
    def key(person_id: str) -> NoticeKey:
        """Each person is asked once about their reaction on a card."""
        return NoticeKey(f"stop_found/{person_id}")


class EarlierWords(StrEnum):
    """Whether a reply's words were sent before it was edited."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True)
class ReplyEdited(ToPerson, kind="reply_edited"):
    """A reply was edited after it was sent; its writer can send the new words, too. `text` is their beginning."""

    quotes: ClassVar = ("text",)
    request_id: str
    text: str
    earlier: EarlierWords

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for each edit."""
        return NoticeKey(f"{request.id}/edited/{request.edited_at}")


class WordsBefore(StrEnum):
    """What became of a message's words from before an edit."""

    NOT_SENT = "not_sent"
    SENT = "sent"
    IN_DOUBT = "in_doubt"


@dataclass(frozen=True)
class EditWithoutEffect(ToPerson, kind="edit_without_effect"):
    """A message was edited into a `word` for Pagehand or, if None, from one into words for the agent, which does
    nothing. `text` is the beginning of the new words; `before`: what became of earlier words for the agent, if any.
    """

    quotes: ClassVar = ("text",)
    word: ThreadWord | None
    text: str = ""
    before: WordsBefore | None = None

    @staticmethod
    def key(reply: Reply) -> NoticeKey:
        """Told once for an edit."""
        return NoticeKey(f"{reply.message_ts}/edit/{reply.edited_at}")
