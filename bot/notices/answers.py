"""Answers that only one person sees: to a button, a `!word` or an edit, and instead of what could not be posted; and
the introduction in a channel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Annotated, ClassVar

from pydantic import PlainSerializer

from bot.domain.commands import ThreadWord
from bot.domain.requests.request import Reply, Request, surface_of
from bot.domain.threads.thread import Thread, ThreadOrigin
from bot.notices.notice import AnyNotice, NewNotice, NoticeContent, NoticeKey, ToPerson
from bot.notices.said import Button, ButtonId, Markup, Renderer, Said, joined


class ActionAnswer(Enum):
    """The answer to a button, or to a reply that is not sent: its words."""

    @classmethod
    def _missing_(cls, value: object) -> "ActionAnswer | None":
        return cls.__members__.get(str(value).upper())

    @property
    def stored(self) -> str:
        """Its value in the database."""
        return self.name.lower()

    SENT_AGAIN = "Sending it again."
    ALREADY_ACCEPTED = "No need: it was already sent, or is on its way."
    NOT_YOURS = "Only the person who wrote it can send it again."
    """As the next two and NOT_FOR_YOU: earlier versions told it, which say `RequestRefused` now."""
    OTHER_WORKSPACE = "Your reply wasn't sent: only members of {workspace} can steer this job."
    UNKNOWN_WORKSPACE = (
        "Your reply wasn't sent: Slack didn't say where you belong. Please write it again, as text only."
    )
    WITHDRAWN = "It wasn't sent again: it was deleted, or is no longer for the agent."
    FIRST_WITHDRAWN = "It wasn't sent again: part of it has been deleted. Please write what is still to be done."
    """The first of several replies that were sent as one message was deleted."""
    NEW_WORDS_SENT = "The new version is on its way to the agent."
    NOTHING_NEW = "Nothing new to send: the reply was already sent as it is, or was deleted."
    SEE_THREAD = "It wasn't sent. The thread says why."
    MUTED = "Muted: replies don't go to the agent, and only failures and pull requests are posted. `!unmute` ends that."
    UNMUTED = "No longer muted: replies go to the agent again."
    NOT_MUTED = "This job isn't muted."
    REPLY_NOT_SENT_MUTED = "Your reply wasn't sent: this job is muted. Write `!unmute`, then write it again."
    """The job is muted, so a reply is not sent."""
    REPLY_NOT_SENT_OPTIONS = (
        "Your reply wasn't sent: `plan:`, `ask:`, `mode:`, `model:` and `effort:` are only for new jobs. Leave them "
        "out, or start another job here with `!new` before them."
    )
    EDITED_TOO_LATE = (
        "Nothing was started: an edit can ask for a job only within ten minutes. Write a new message with `!new`."
    )
    """A message asks for another job only since an edit long after it was written."""
    NO_JOB_THERE = (
        "Nothing was done: there is no job in the thread where you wrote that. Write it in the thread of the job."
    )
    """A word for Pagehand was written in another thread of the channel, where there is no job."""
    STOPPED_UNSENT = "Stopped. The agent never got this job."
    """The job was not sent yet, and will not be sent."""
    NOTHING_TO_STOP = "There's nothing to stop: the agent isn't working on this job."
    WAITING_STOPPED = (
        "The agent wasn't working. What waited to be sent isn't sent, and whoever wrote it can still send it."
    )
    """The agent was not working, and what waited to be sent is withdrawn."""
    PLAN_STOPPED = "The plan is taken back, and can't be started any more. Reply in the thread for another one."
    STOPPED_SINCE = "It wasn't sent: the job was stopped after that. Press again to send it."
    """The job was stopped after the press, so that nothing is sent."""
    STOP_UNCERTAIN = "I can't tell if this job started, so I can't stop it. The thread says what to do."
    """Nobody knows whether the job was started, so there is nothing that could be stopped."""
    DISCARDED = "Discarded: the agent starts your next reply without what it did before it failed."
    """The work that the agent had done before it failed is discarded."""
    NOTHING_TO_DISCARD = "There's nothing to discard: nothing is kept of this job's failed work."
    DISCARD_TOO_LATE = (
        "Too late to discard: the agent has its next instruction. Reply with what should be undone, or write `!stop`."
    )
    """The agent is already continuing the work."""
    NOT_DISCARDED = (
        "It wasn't discarded: the agent still has that work. Try again later, or reply with what should be undone."
    )
    """The job API accepted the call, but still has the work."""
    STARTED_AGAIN = "Starting it again, as a new job."
    NOT_TO_BE_RETRIED = "Retry is for jobs that failed or changed nothing. To change this one, reply here."
    """The job did not fail, or was already retried."""
    CHANGE_TOO_LATE = (
        "Nothing was changed: this job was stopped, or another one took its place. Write what should be changed."
    )
    """An answer is to be made a change after its job ended."""
    HELD_SENT = "Your reply is on its way to the agent."
    HELD_ALL_SENT = (
        "Your reply is on its way to the agent. Everything you write in this thread from now on goes there, too."
    )
    SENT_FOR_ITS_PROJECT = (
        "The project wasn't changed: the job was already sent. Choose *Switch project…* in the card's menu."
    )
    """An edit names another project for a job that was already sent."""
    SENT_AS_ASKED = (
        "How the agent works wasn't changed: the job was already sent. `!stop` ends it; `!new` starts another one."
    )
    """An edit changes how the agent is to work on a job that was already sent."""
    TAKEN_BACK_BY_OPTIONS = (
        "Your edit took the job back: I can't read its options. Write each once, before the task, such as `plan:` or "
        "`model:NAME`."
    )
    """An edit gives a job that was not sent yet options that cannot be read."""
    SENT_BEFORE_DELETED = (
        "The agent already has the message that you deleted or took back. Reply with what it should do instead."
    )
    """A message was deleted that the agent already has."""
    NOT_ADDED = "It wasn't added: the job above takes no more replies. Choose *New job*."
    NOT_ADDED_MUTED = (
        "It wasn't added: the job above is muted. Write `!unmute` in its thread first, or choose *New job*."
    )
    HELD_EXPIRED = (
        "What you wrote was left undone: you didn't answer within a week. Write it again if it still matters."
    )
    """Nobody answered for days whether a reply is for the agent."""
    HELD_DISCARDED = "OK, your reply wasn't sent to the agent."
    LEFT_UNDONE = "OK, nothing is done about it."
    """Somebody does not want done any more what they asked for while Pagehand was away."""
    PROJECT_CHOSEN = "Thanks, that's the project."
    PROJECT_SWITCHED = (
        "Starting over for that project, with the same request. If the job before is still running, it's stopped."
    )
    """The job was already sent, so it starts again for another project."""
    PROJECT_SETTLED = (
        "Nothing was changed: the job has this project already, is just being sent, or can't be switched any more."
    )
    """It is too late to choose another project."""
    START_ENDED = "Nothing was started: that request is over, and has no thread. Please ask again."
    """The project is chosen for a request that has ended, and has no thread."""
    NOT_FOR_YOU = "Only people who asked for this job, steered it or were asked can do that."
    """Somebody else was asked."""
    RESTORED = (
        "I was restored from a backup and can't tell if this was done. If the thread doesn't show it, do it again."
    )
    """It was open in a restored backup, so nobody knows whether it was done."""
    SLACK_AWAY = "Nothing was done: Slack didn't say for a long time if you may ask for this. Please try again."
    """It was given up, because Slack did not say for a long time who somebody is, or what the channel is."""


@dataclass(frozen=True)
class ActionAnswered(ToPerson, kind="action_answered"):
    """The answer to a click, or to a reply that is not sent. `text` is the beginning of the reply in question, if
    any.
    """

    quotes: ClassVar = ("text",)
    answer: Annotated[ActionAnswer, PlainSerializer(lambda answer: answer.stored)]
    text: str = ""

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        told = show(self.answer.value)
        if not self.text:
            return Said(told)
        return Said(show("{told}\n{reply}", told=told, reply=show.quote(self.text, 150, 2)))

    @staticmethod
    def key_of_edit(reply: Reply) -> NoticeKey:
        """Told once for an edit that asks for a job too late."""
        return NoticeKey(f"{reply.message_ts}/late/{reply.edited_at}")

    @staticmethod
    def key_of_expiry(person_id: str, at: float) -> NoticeKey:
        """Told at most once a day that what waited for an answer is left undone."""
        return NoticeKey(f"{person_id}/expired/{at // 86_400:.0f}")

    @staticmethod
    def key_of_muted(reply: Reply) -> NoticeKey:
        """Told once for a reply that came while the job was muted."""
        return NoticeKey(f"{reply.message_ts}/muted")

    @staticmethod
    def key_of_needless_stop(request: Request) -> NoticeKey:
        """Sent once for a stop."""
        return NoticeKey(f"{request.id}/nothing")

    @staticmethod
    def key_of_project(request: Request) -> NoticeKey:
        """Told once for an edit that names another project too late."""
        return NoticeKey(f"{request.id}/project/late/{request.edited_at}")

    @staticmethod
    def key_of_deletion(request: Request) -> NoticeKey:
        """Told once for a request whose reply was deleted."""
        return NoticeKey(f"{request.id}/taken_back")


def answered(request: Request, answer: ActionAnswer, text: str = "") -> NewNotice:
    """Returns the answer to the person of a request, shown where they made it."""
    told = ActionAnswered(request.person_id, answer, text, asked_on=surface_of(request.source_key))
    return NewNotice(NoticeKey(request.source_key), told)


CONTINUED = "Continued:"
EMPTY = "(empty)"


@dataclass(frozen=True)
class PromptRequested(ToPerson, kind="prompt_requested"):
    """Somebody wants to see a whole request, which the card shortens."""

    words: ClassVar = "The whole request:"
    quotes: ClassVar = ("prompt",)
    prompt: str


class AnswerMissing(StrEnum):
    """Why an agent's whole answer cannot be shown."""

    GONE = "gone"
    """The job API no longer knows the job, or has no answer or a newer one."""
    NOT_NOW = "not_now"
    """The job API does not answer."""


@dataclass(frozen=True)
class AnswerRequested(ToPerson, kind="answer_requested"):
    """Somebody wants to see an agent's whole answer, which the thread shortens. `answer_id` is its digest.

    `text`, or why it is `missing`, is fetched when the notice is delivered, and never stored.
    """

    words: ClassVar = "The whole answer:"
    words_by_reason: ClassVar[Mapping[AnswerMissing, str]] = {
        AnswerMissing.GONE: "The whole of this answer is no longer kept.",
        AnswerMissing.NOT_NOW: "The agent isn't answering right now. Please press the button again in a minute.",
    }
    answer_id: str
    text: str = ""
    missing: AnswerMissing | None = None


@dataclass(frozen=True)
class StatusRequested(ToPerson, kind="status_requested"):
    """Somebody wants to know the job's state, as of the delivery of the notice."""


@dataclass(frozen=True)
class JobIdRequested(ToPerson, kind="job_id_requested"):
    """Somebody wants the job's id, to look it up elsewhere."""

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        job = thread.state.job
        if job is None:
            return Said(show("This job has no id yet. It gets one when the agent takes it."))
        return Said(show("This job's id, to copy:\n{id}", id=show.line(job.id, 1_000)))


@dataclass(frozen=True)
class HelpRequested(ToPerson, kind="help_requested"):
    """Somebody asks for help in a job's thread, or probably `meant` this word for Pagehand."""

    lines: ClassVar = (
        "• `!status`: how the job is · `!stop`: stop it · `!retry`: start it again if it failed",
        "• `!discard`: throw away what the agent did before it failed",
        "• `!mute`: send no replies, post only failures and pull requests · `!unmute`: end that",
        "• `!new` and a task: another job in this thread",
        "• Replies that start with `//` stay between people.",
    )
    meant: ThreadWord | None = None

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        if self.meant is not None:
            return Said(word_meant(self.meant))
        first = "*Replies in this thread go to the agent.* These words, on their own, are for me:"
        if thread.origin is ThreadOrigin.CONVERSATION:
            first = "*Replies that mention {bot} go to the agent.* These words, on their own, are for me:"
        return Said(joined([show(line) for line in (first, *self.lines)], "\n"))


def word_meant(word: ThreadWord) -> Markup:
    """Answers a message that was probably meant as a word for Pagehand."""
    written = f"{word} and the task" if word is ThreadWord.NEW else word
    ask = "Did you mean `!{word}`? Write {what} in a new message; what is for the agent doesn't start with `!`."
    return Markup(ask.format(word=written, what="that" if word is ThreadWord.NEW else "only that"))


@dataclass(frozen=True)
class Introduction(NoticeContent, kind="introduction"):
    """Pagehand was invited to a channel, and says there what it does. It has no job and no thread."""

    lines: ClassVar = (
        "*Hello, I'm {bot}: I hand documentation tasks to an agent and bring back the pull request.*",
        "Type `{command}` and what to do, or mention me where a question about the docs came up.",
        "A card shows how it goes, and replies in its thread steer the agent. More: `{command} help`.",
    )
    KEY: ClassVar = NoticeKey("introduction")

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """See NoticeContent."""
        return Said(joined([show(line) for line in self.lines], "\n"), (Button("Try it", ButtonId.OPEN_FORM, "start"),))


@dataclass(frozen=True)
class CardNotPosted(ToPerson, kind="card_not_posted"):
    """The card could not be posted, so no job was started, or the one that was is stopped (`may_have_job`). `reason`
    is Slack's error code.
    """

    words_by_reason: ClassVar[Mapping[str, str]] = {
        "is_archived": "{job}: this channel is archived. Ask again in another one.",
        "thread_not_found": "{job}: the thread is gone, with its first message. Ask again in another one.",
        **dict.fromkeys(
            ("", "not_in_channel", "channel_not_found", "method_not_supported_for_channel_type", "private"),
            "{job}: I'm not in this channel. Invite me with `/invite` {bot}, then ask again.",
        ),
    }
    words_in_direct_message: ClassVar = (
        "{job}: I'm not part of this direct message. Ask again in a channel, or in a direct message to me."
    )
    words_otherwise: ClassVar = (
        "{job}: Slack doesn't let me post in this channel ({reason}). Ask again in another one, or tell {ask}."
    )
    words_without_scopes: ClassVar = (
        "{job}: Slack hasn't granted the app {scopes}. Ask {ask} to grant it, then ask again."
    )
    words_in_doubt: ClassVar = (
        "{job}: Slack hasn't granted the app {scopes}, so I can't see if the job's card arrived; if it did, "
        "ignore it. Ask {ask} to grant it, then ask again."
    )
    KEY: ClassVar = NoticeKey("cannot_post")
    reason: str
    missing_scopes: tuple[str, ...] = ()
    may_be_posted: bool = False
    may_have_job: bool = False

    def tell(self, show: Renderer, thread: Thread) -> Said:
        """Says why no job was started, and what to do about it, with the prompt, because there is no card for it."""
        words = self.words_by_reason.get(self.reason, "")
        if not words and self.missing_scopes:
            words = self.words_in_doubt if self.may_be_posted else self.words_without_scopes
        elif not words:
            words = self.words_otherwise
        elif "/invite" in words and thread.channel_id.startswith("D"):
            words = self.words_in_direct_message
        job = "Your job has no card, so it doesn't go on" if self.may_have_job else "No job was started"
        scopes = show.line(", ".join(self.missing_scopes), 200)
        why = show(words, job=show(job), scopes=scopes, reason=show.line(self.reason))
        return Said(show("{why}\nYou asked:\n{request}", why=why, request=show.quote(thread.prompt)))


@dataclass(frozen=True)
class PostNotDelivered(ToPerson, kind="post_not_delivered"):
    """A post could not be delivered, so one person gets it. `may_be_posted`: it may be in the thread nevertheless."""

    words: ClassVar = "I can't tell if this reached the job's thread:"
    quotes: ClassVar = ("post",)
    post: AnyNotice
    may_be_posted: bool

    @staticmethod
    def key(post: NoticeKey) -> NoticeKey:
        """Of a post that was given up, by its own key."""
        return NoticeKey(f"{post}/told")
