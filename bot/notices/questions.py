"""Questions to one person before a request of theirs is sent to the agent, and refusals instead of sending it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bot.domain.commands import ThreadWord
from bot.domain.permissions import Refusal
from bot.domain.requests.request import HeldBecause, Reply, Request, RequestKind, RequestState
from bot.domain.threads.thread import Thread
from bot.notices.notice import NoticeKey, ToPerson
from bot.notices.said import Button, ButtonId, Markup, Renderer, Said

_DO_NOT_SEND = "Don't send"


@dataclass(frozen=True)
class RequestRefused(ToPerson, kind="request_refused"):
    """A request is not permitted. `text` is its beginning, `limit` the hourly limit, and `free_at` when the person may
    ask again, in seconds since the epoch.
    """

    quotes: ClassVar = ("text",)
    words_by_kind: ClassVar[Mapping[RequestKind, str]] = {
        RequestKind.START: "No job was started",
        RequestKind.RETRY: "No job was started",
        RequestKind.FOLLOW_UP: "Your reply wasn't sent",
        RequestKind.SEND_NEW_WORDS: "The new version wasn't sent",
    }
    words_by_refusal: ClassVar[Mapping[Refusal, str]] = {
        Refusal.GUEST: "guests of this workspace can't use Pagehand. Ask {ask} to allow guests.",
        Refusal.OTHER_ORGANIZATION: "only members of {workspace} can do that. Ask one of them to do it for you.",
        Refusal.NOT_A_PERSON: "only people whose account is active can do that.",
        Refusal.SHARED_CHANNEL: (
            "people from other organizations are in this channel. Do it in another one, or ask {ask} to allow shared "
            "channels."
        ),
        Refusal.NOT_ON_THE_LIST: (
            "only certain people can do that, and you aren't one of them. Ask {ask} to add you, or a user group of "
            "yours."
        ),
        Refusal.CHANNEL_NOT_ON_THE_LIST: (
            "Pagehand is for certain channels, and this isn't one of them. Do it in one of those, or ask {ask} to "
            "add this one."
        ),
        Refusal.TOO_MANY: "you've reached the hourly limit ({limit}). Please try again {later}.",
        Refusal.PERSON_UNKNOWN: (
            "Slack doesn't say who you are. Try again in a while; if that doesn't help, ask {ask} to check that the "
            "app has the scope users:read."
        ),
        Refusal.CHANNEL_UNKNOWN: (
            "Slack doesn't say what kind of channel this is. Invite me with `/invite` {bot} and try again; if that "
            "doesn't help, ask {ask} to check that the app has the scopes channels:read and groups:read."
        ),
        Refusal.NOT_A_PARTICIPANT: "only people who asked for this job or steered it can do that.",
        Refusal.NOT_THE_WRITER: "only the person who wrote the reply can do that.",
        Refusal.NO_MODES: (
            "this project's agent can't show a plan first, only answer, or take a model or an effort. Ask again "
            "without that, or with `mode:edit`."
        ),
    }
    refusal: Refusal
    wanted: RequestKind
    text: str = ""
    limit: int = 0
    free_at: int | None = None

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        why = self.why(show)
        if not self.text.strip():
            return Said(why)
        return Said(show("{why}\nYou wrote:\n{text}", why=why, text=show.quote(self.text)))

    def why(self, show: Renderer) -> Markup:
        """Returns what was refused, and why."""
        words = self.words_by_refusal[self.refusal]
        if self.refusal is Refusal.OTHER_ORGANIZATION and self.wanted is RequestKind.FOLLOW_UP:
            words = "only members of {workspace} can steer this job."
        later = show("in a while")
        if self.free_at is not None:
            later = show("after {time}", time=show.moment(self.free_at))
        what = show(self.words_by_kind.get(self.wanted, "Nothing was done"))
        return show("{what}: {why}", what=what, why=show(words, later=later, limit=self.limit))

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

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        words, choices = self._asked()
        buttons = tuple(Button(label, action, self.request_id) for action, label in choices.items())
        return Said(show(words, text=show.quote(self.text)), buttons)

    def _asked(self) -> tuple[str, Mapping[ButtonId, str]]:
        """The words, and the labels of the buttons."""
        raise NotImplementedError

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

    def _asked(self) -> tuple[str, Mapping[ButtonId, str]]:
        choices = {
            ButtonId.SEND_HELD: "Send",
            ButtonId.SEND_ALL_HELD: "Send all I write here",
            ButtonId.DISCARD_HELD: _DO_NOT_SEND,
        }
        return "Send this to the agent?\n{text}", choices


@dataclass(frozen=True)
class JobOrReplyAsked(HeldQuestion, kind="job_or_reply_asked"):
    """Somebody has written in a direct message whose last job is running, or waits for an answer: is it a new job, or
    for that one?
    """

    def _asked(self) -> tuple[str, Mapping[ButtonId, str]]:
        words = "Is this a new job, or for the one above? What you wrote right after it goes along.\n{text}"
        return words, {ButtonId.DISCARD_HELD: "New job", ButtonId.SEND_HELD: "Add to the one above"}


@dataclass(frozen=True)
class HeldAsked(HeldQuestion, kind="held_asked"):
    """Shall something still be done that somebody `wanted`? It was not, `because` of that. `text` is empty for a word
    for Pagehand.
    """

    words_for_us: ClassVar[Mapping[RequestKind, str]] = {
        RequestKind.RETRY: "`!retry`",
        RequestKind.DISCARD: "`!discard`",
        RequestKind.MUTE: "`!mute`",
        RequestKind.UNMUTE: "`!unmute`",
    }
    because: HeldBecause
    wanted: RequestKind

    def _asked(self) -> tuple[str, Mapping[ButtonId, str]]:
        if self.because is HeldBecause.STOPPED:
            words = "The job was stopped before this was sent. Send it anyway?\n{text}"
            return words, {ButtonId.SEND_HELD: "Send it anyway", ButtonId.DISCARD_HELD: _DO_NOT_SEND}
        if self.wanted is RequestKind.STOP:
            words = "You asked to stop this job while I was away. Stop it now?"
            return words, {ButtonId.SEND_HELD: "Stop now", ButtonId.DISCARD_HELD: "Don't stop"}
        if self.wanted in {RequestKind.START, RequestKind.FOLLOW_UP}:
            words = "You wrote this while I was away. Send it?\n{text}"
            return words, {ButtonId.SEND_HELD: "Send it", ButtonId.DISCARD_HELD: _DO_NOT_SEND}
        word = self.words_for_us.get(self.wanted, "something")
        words = f"You wrote {word} while I was away. Do it now?"
        return words, {ButtonId.SEND_HELD: "Do it now", ButtonId.DISCARD_HELD: "Leave it"}


CHOOSE_PROJECT = "Choose a project"


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

    def asked(self, show: Renderer, left_out: int) -> Markup:
        """Returns the question; `left_out`: how many projects have no button."""
        words = "Which project is this for? The job waits for your answer.\n{text}"
        if self.current:
            words = "Which project should this be for instead? The job then starts over.\n{text}"
        ask = show(words, text=show.quote(self.text))
        if self.said.strip():
            ask = show("There is no project called {name}. {ask}", name=show.line(self.said), ask=ask)
        if left_out:
            rest = "{ask}\n{count} more don't fit here. To choose one of them, ask again with `project:NAME` in front."
            ask = show(rest, ask=ask, count=left_out)
        return ask

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Asked once for each version of the message that requested a job."""
        version = f"/{request.edited_at}" if request.edited_at else ""
        return NoticeKey(f"{request.id}/project{version}")


@dataclass(frozen=True)
class StopAsked(ToPerson, kind="stop_asked"):
    """Somebody who is not a participant added the reaction for a stop to a card: do they mean it?"""

    words: ClassVar = "Stop this job? You haven't taken part in it."

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        return Said(show(self.words), (Button("Stop it", ButtonId.STOP_JOB, thread.id),))

    @staticmethod
    def key(person_id: str) -> NoticeKey:
        """Each person is asked once about their reaction on a card."""
        return NoticeKey(f"stop_found/{person_id}")


@dataclass(frozen=True)
class ReplyEdited(ToPerson, kind="reply_edited"):
    """A reply was edited after it was sent; its writer can send the new words, too. `text` is their beginning;
    `earlier`: what became of the earlier ones.
    """

    quotes: ClassVar = ("text",)
    words_by_earlier: ClassVar[Mapping[RequestState, str]] = {
        RequestState.ACCEPTED: (
            "You edited a reply, and the agent has the earlier version. Send the new one as a follow-up?\n{text}"
        ),
        RequestState.REJECTED: "You edited a reply that wasn't sent. Send the new version?\n{text}",
        RequestState.UNCERTAIN: (
            "You edited a reply that the agent may already have. Send the new version as a follow-up?\n{text}"
        ),
    }
    request_id: str
    text: str
    earlier: RequestState

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        button = Button("Send the new version", ButtonId.SEND_NEW_WORDS, self.request_id)
        words = self.words_by_earlier.get(self.earlier, self.words_by_earlier[RequestState.UNCERTAIN])
        return Said(show(words, text=show.quote(self.text)), (button,))

    @staticmethod
    def key(request: Request) -> NoticeKey:
        """Told once for each edit."""
        return NoticeKey(f"{request.id}/edited/{request.edited_at}")


@dataclass(frozen=True)
class EditWithoutEffect(ToPerson, kind="edit_without_effect"):
    """A message was edited into a `word` for Pagehand or, if None, from one into words for the agent, which does
    nothing. `text` is the beginning of the new words.
    """

    quotes: ClassVar = ("text",)
    word: ThreadWord | None
    text: str = ""

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        words = (
            "Nothing was done: an edit doesn't give me a command. Write `!{word}` in a new message, in the job's "
            "thread."
        )
        if self.word is None:
            words = (
                "Your edit wasn't sent to the agent: before it, this message was a command for me. Write it in a new "
                "message.\n{text}"
            )
        elif self.word is ThreadWord.NEW:
            words = (
                "Nothing was started: an edit doesn't give me a command. Write `!new and the task` in a new message, "
                "in the job's thread."
            )
        return Said(show(words, word=show.line(self.word or ""), text=show.quote(self.text)))

    @staticmethod
    def key(reply: Reply) -> NoticeKey:
        """Told once for an edit."""
        return NoticeKey(f"{reply.message_ts}/edit/{reply.edited_at}")
