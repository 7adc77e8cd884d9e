"""What people did, in whatever way, as they would tell it: what they wrote where, what they pressed, who they were."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.domain.commands.options import Options
from bot.domain.commands.thread_words import ThreadWord
from bot.domain.context.slack_files import ForwardedMessage
from bot.domain.requests.request import Action, Attachments, Person, Reply, WayIn


@dataclass
class Version:
    """What a message says since it was edited; no words: it was deleted. `acked`: the step that acknowledged it."""

    at: str
    words: str
    mark: str = ""
    acked: int | None = None


@dataclass
class Message:
    """Something that somebody wrote, by whatever way in. `mark` is in its words, and in no others.

    `ts` is empty where it is no message of Slack's, `root` where its job's card begins a thread. `project` is the one
    that it has to be for, as far as that is known by what it says and where; `said` the one that it names; `likely` the
    one that it is for if there is no job in its thread. With `thread_id` it was typed into a modal, or `pressed`.
    """

    mark: str
    key: str
    person: Person
    way_in: WayIn
    channel_id: str
    words: str
    ts: str = ""
    root: str = ""
    thread_id: str = ""
    pressed: bool = False
    mentions: bool = False
    word: ThreadWord | None = None
    said: str = ""
    project: str = ""
    likely: str = ""
    forwarded: str = ""
    """What somebody else's message says that was passed on with it."""
    acked: int | None = None
    known: bool = False
    """Pagehand did not say that it has nothing to do with it."""
    told_too_late: bool = False
    """Its writer was told that it asks for nothing, since it was edited late."""
    versions: list[Version] = field(default_factory=list)

    @property
    def in_direct_message(self) -> bool:
        """Whether it was written to Pagehand alone."""
        return self.channel_id.startswith("D")

    @property
    def starts(self) -> bool:
        """Whether it asks for a job of its own."""
        return self.way_in not in {WayIn.REPLY, WayIn.WORD} or self.word is ThreadWord.NEW

    @property
    def attachments(self) -> Attachments:
        """What it holds besides words."""
        return Attachments(forwarded=(ForwardedMessage("Cy", self.forwarded),) if self.forwarded else ())

    def reply(self) -> Reply:
        """As the event of it."""
        return Reply(
            self.person,
            self.channel_id,
            self.root,
            self.ts,
            self.words,
            attachments=self.attachments,
            mentions_us=self.mentions,
            word=self.word,
            in_direct_message=self.in_direct_message,
        )

    def revised(self, version: Version) -> Reply:
        """As the event of its edit or deletion; that of what begins a thread names none."""
        return Reply(
            self.person,
            self.channel_id,
            "" if self.root == self.ts else self.root,
            self.ts,
            version.words,
            attachments=self.attachments if version.words else Attachments(),
            edited_at=version.at,
            withdrawn=not version.words,
            mentions_us=self.mentions and bool(version.words),
            mentioned_us_before=self.mentions,
            word=self.word,
            options=Options(self.said) if self.root == self.ts else None,
            in_direct_message=self.in_direct_message,
        )

    def marks(self) -> Iterator[tuple[str, Version | None]]:
        """The words by which each version is known, the first first; those of a deletion are none."""
        yield f"[{self.mark}.0]", None
        yield from ((version.mark, version) for version in self.versions if version.words)


@dataclass
class Press:
    """A press of a button, a reaction, or a word for Pagehand."""

    key: str
    person: Person
    wants: Action | Reply
    acked: int | None = None
    known: bool = False


@dataclass
class People:
    """All that people did, and what they were when."""

    messages: list[Message] = field(default_factory=list)
    presses: dict[str, Press] = field(default_factory=dict)
    thanks: list[Reply] = field(default_factory=list)
    cheers: list[Reply] = field(default_factory=list)
    """Emoji alone."""
    guests: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    """By person: from which step on they are a guest, or a member."""
    away: list[tuple[int, bool]] = field(default_factory=list)
    """From which step on Slack cannot be read, or can."""
    noted: dict[str, int] = field(default_factory=dict)
    """By a notice's key: the step after which it was seen first."""
    recorded: dict[str, int] = field(default_factory=dict)
    """The same of requests, by their ids."""
    ended: dict[str, int] = field(default_factory=dict)
    """By a start that came to nothing: the step after which that was seen first."""
    kept: dict[str, int] = field(default_factory=dict)
    """By a message's key: the step after which it was last seen to wait till it is known where a card is."""
    passed: dict[str, float] = field(default_factory=dict)
    """By request: at which time it had passed its checks."""


def between(history: list[tuple[int, bool]], since: int, until: int, *, first: bool) -> set[bool]:
    """What held at any time from one step to another; `first`: what held before anything was noted."""
    now, found = first, set[bool]()
    for step, value in [*history, (until + 1, first)]:
        if step > since:
            found.add(now)
        if step > until:
            break
        now = value
    return found
