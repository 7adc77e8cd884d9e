"""What people did, by every way in, as they would report it: what they wrote and pressed, where, and who they were."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.domain.commands import AgentOptions, Options, ThreadWord
from bot.domain.messages import ForwardedMessage
from bot.domain.requests.new_jobs import request_id
from bot.domain.requests.request import Action, Arrival, Attachments, Person, Reply, RequestKind, WayIn


@dataclass
class Version:
    """The text of a message since an edit; no words: it was deleted, or is a `word` for Pagehand or for other people
    now. `acked`: the step that acknowledged it, `step`: the one in which it was made.
    """

    at: str
    words: str
    mark: str = ""
    word: ThreadWord | None = None
    acked: int | None = None
    step: int = 0
    unheard: bool = False
    """Nobody was connected to Slack then."""
    gone: bool = False
    """It was deleted."""


@dataclass
class Message:
    """A message by any way in. `mark` is in its words, and in no others.

    `ts` is empty if it is not a Slack message, `root` if its job's card begins a thread. `project` is its required
    project as far as that is known from its text and place; `said` the one that it names; `likely` the one that it has
    if its thread has no job. With `thread_id` it was typed into a modal, or `pressed`.
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
    agent: AgentOptions = field(default_factory=AgentOptions)
    """How it says that the agent is to work."""
    project: str = ""
    likely: str = ""
    forwarded: str = ""
    """The text of a message forwarded with it."""
    by_tool: bool = False
    """Its author posted it by a tool."""
    refused: int | None = None
    """For a command: the step in which its answer was a refusal."""
    acked: int | None = None
    known: bool = False
    """Pagehand did not answer that the message is not for it."""
    late: bool = False
    """Slack delivered it while Pagehand was away, so that its author is asked first."""
    told_too_late: bool = False
    """Its author was told that it asks for nothing, since it was edited late."""
    versions: list[Version] = field(default_factory=list)
    step: int = 0
    """When it was written."""
    unheard: bool = False
    """Nobody was connected to Slack then."""
    found_late: bool = False
    """It was found in Slack's history, long afterwards."""

    def __post_init__(self) -> None:
        if self.ts:
            self.key = f"message/{self.channel_id}/{self.ts}"

    @property
    def place(self) -> tuple[str, str]:
        """The channel and the thread."""
        return self.channel_id, self.root

    @property
    def request_id(self) -> str:
        """The id of its first request."""
        return request_id(self.key)

    @property
    def is_delivered(self) -> bool:
        """Whether Slack delivered any version of it."""
        return any(acked is not None for acked in (self.acked, *(version.acked for version in self.versions)))

    @property
    def newest_words(self) -> str:
        """The words now."""
        return self.versions[-1].words if self.versions else self.words

    @property
    def gone(self) -> bool:
        """Whether it was deleted."""
        return bool(self.versions) and self.versions[-1].gone

    def made_at(self, words: str) -> str:
        """Returns when it got these words; empty: they are the first ones."""
        return {self.words: "", **{version.words: version.at for version in self.versions}}[words]

    @property
    def in_direct_message(self) -> bool:
        """Whether it was a direct message to Pagehand."""
        return self.channel_id.startswith("D")

    @property
    def starts(self) -> bool:
        """Whether it asks for a new job."""
        return self.way_in not in {WayIn.REPLY, WayIn.WORD} or self.word is ThreadWord.NEW

    @property
    def attachments(self) -> Attachments:
        """Its files and forwarded messages."""
        return Attachments(forwarded=(ForwardedMessage("Cy", self.forwarded),) if self.forwarded else ())

    def reply(self) -> Reply:
        """Returns the event of it."""
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
            arrival=Arrival.LATE if self.late else Arrival.LIVE,
        )

    def revised(self, version: Version) -> Reply:
        """Returns the event of its edit or deletion; that of a root message names none."""
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
            word=self.word if version.words else version.word,
            options=Options(self.said, agent=self.agent) if self.root == self.ts else None,
            in_direct_message=self.in_direct_message,
        )

    def marks(self) -> Iterator[tuple[str, Version | None]]:
        """The words by which each version is known, the first one first; those of a deletion are none."""
        yield f"[{self.mark}.0]", None
        yield from ((version.mark, version) for version in self.versions if version.words)


@dataclass
class Press:
    """A press of a button, a reaction, or a control word."""

    key: str
    person: Person
    wants: Action | Reply
    acked: int | None = None
    known: bool = False


@dataclass
class People:
    """Everything that people did, and who they were when."""

    messages: list[Message] = field(default_factory=list)
    presses: dict[str, Press] = field(default_factory=dict)
    invitations: dict[str, bool] = field(default_factory=dict)
    """By channel: whether one was acknowledged."""
    thanks: list[Reply] = field(default_factory=list)
    edited_words: list[Reply] = field(default_factory=list)
    """Words for Pagehand, recorded as such, since an edit made them words for the agent."""
    cheers: list[Reply] = field(default_factory=list)
    """Emoji alone."""
    guests: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    """By person: from which step on they are a guest, or a member."""
    away: list[tuple[int, bool]] = field(default_factory=list)
    """From which step on Slack cannot be read, or can."""
    noted: dict[str, int] = field(default_factory=dict)
    """By notice key: the step after which it was first seen."""
    recorded: dict[str, int] = field(default_factory=dict)
    """The same for requests, by id."""
    ended: dict[str, int] = field(default_factory=dict)
    """By a start without result: the step after which that was seen first."""
    kept: dict[str, int] = field(default_factory=dict)
    """By message key: the step after which it was last seen waiting for the place of a card."""
    stopped: dict[str, int] = field(default_factory=dict)
    """By a stop's request: the step after which it was first seen to have taken effect."""
    passed: dict[str, float] = field(default_factory=dict)
    """By request: the time at which it had passed its checks."""
    heard: dict[int, tuple[float, float]] = field(default_factory=dict)
    """By step: its time, and since when its process has heard everything (infinite: it does not)."""

    @property
    def replies(self) -> list[Message]:
        """What was written below a card."""
        return [message for message in self.messages if message.way_in is WayIn.REPLY]

    def stops(self) -> Iterator[tuple[Press, Action]]:
        """Yields the presses of stop buttons."""
        for press in self.presses.values():
            if isinstance(press.wants, Action) and press.wants.kind is RequestKind.STOP:
                yield press, press.wants


def between(history: list[tuple[int, bool]], since: int, until: int, *, first: bool) -> set[bool]:
    """Returns the values that held at any time between two steps; `first` held before the first record."""
    now, found = first, set[bool]()
    for step, value in [*history, (until + 1, first)]:
        if step > since:
            found.add(now)
        if step > until:
            break
        now = value
    return found
