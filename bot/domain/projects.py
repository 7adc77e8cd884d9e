"""Projects, the settings of channels, and the decision which project a request is for. Pure."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bot.domain.commands import latin
from bot.jobapi.models import Mode

MOST_PROJECTS = 100
"""The most options that Slack allows in a menu."""
_WORD = re.compile(r"\w+")
_MANY_ACCENTS = re.compile(r"([^\w\s\x00-\x7f]{30})[^\w\s\x00-\x7f]+")
"""More than any language has in a row (UAX 15, stream-safe text): normalizing takes quadratic time in their number."""
LOOKED_AT = 20_000
"""Characters of a prompt that are searched for a project's words."""


class ReplyMode(StrEnum):
    """Whose replies are sent to the agent, in a thread that began with a card."""

    EVERYONE = "everyone"
    PARTICIPANTS = "participants"
    """The requester and those who have steered the job. Anybody else is asked first."""
    MENTIONS = "mentions"
    """Anybody's, but only replies that mention Pagehand."""


class PostMode(StrEnum):
    """Which news of a job is posted in its thread."""

    ALL = "all"
    """Every change of its status."""
    ENDS = "ends"
    """Only its ends, and that nothing has changed for a long time."""


class ProjectReason(StrEnum):
    """Why a job belongs to its project."""

    ONLY_ONE = "only_one"
    SAID = "said"
    """The request names it."""
    THREAD = "thread"
    """The thread's earlier job was for it."""
    CHANNEL = "channel"
    """It is the channel's project."""
    WORDS = "words"
    """The request contains words that the project's settings list."""
    DEFAULT = "default"
    """It is the person's default."""
    CHOSEN = "chosen"
    """The person was asked and chose it."""


@dataclass(frozen=True)
class JobApiAbilities:
    """What a project's job API can do beyond its specification: run a repeated Idempotency-Key only once, accept the
    requester's name, cancel a job, accept files, accept which part of a prompt is the person's own words, tell a job's
    pull request with its checks and reviews, send the pictures of its pages, and work in modes.
    """

    idempotent: bool = False
    requester: bool = False
    cancel: bool = False
    files: bool = False
    instruction: bool = False
    pull_request: bool = False
    pictures: bool = False
    modes: bool = False


WISHES = frozenset({"pictures"})
"""Abilities that are used only where a project wants that."""


@dataclass(frozen=True)
class Project:
    """A documentation project.

    `name` is the name that people use, `channels` are channel ids, and `words` words or phrases that select it. `id` is
    its id at the job API; jobs from the time when it was the only project refer to it by this id. `mode` is that of its
    jobs whose request and channel name none.
    """

    name: str
    channels: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    abilities: JobApiAbilities = field(default_factory=JobApiAbilities)
    id: str = ""
    mode: Mode = Mode.EDIT


@dataclass(frozen=True)
class ChannelSettings:
    """The settings of a channel. `broadcast`: a job's end is also shown in the channel; `mention`: it mentions
    people; `mode`: that of jobs whose request names none (None: as the project's).
    """

    replies: ReplyMode = ReplyMode.EVERYONE
    broadcast: bool = False
    mention: bool = True
    posts: PostMode = PostMode.ALL
    mode: Mode | None = None


@dataclass(frozen=True)
class Projects:
    """All projects, and the channels with settings of their own; `any_channel` applies to all others."""

    all: tuple[Project, ...]
    channels: Mapping[str, ChannelSettings] = field(default_factory=dict)
    any_channel: ChannelSettings = field(default_factory=ChannelSettings)

    @property
    def channel_ids(self) -> frozenset[str]:
        """The ids of all channels in the settings."""
        return frozenset(self.channels).union(*(project.channels for project in self.all))

    @property
    def any_accepts_requester(self) -> bool:
        """Whether any project's job API accepts the requester's name."""
        return any(project.abilities.requester for project in self.all)

    def with_channel_aliases(self, aliases: Mapping[str, str]) -> "Projects":
        """Returns a copy in which the settings of channels also apply to other ids of the same channels."""
        moved = {aliases[each]: settings for each, settings in self.channels.items() if each in aliases}
        projects = tuple(replace(each, channels=with_aliases(each.channels, aliases)) for each in self.all)
        return replace(self, all=projects, channels={**self.channels, **moved})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all projects."""
        return tuple(project.name for project in self.all)

    def named(self, name: str) -> Project | None:
        """Returns the project with this name, ignoring case, or else with this id; None if there is none."""
        found = [project for project in self.all if project.name.casefold() == name.casefold()]
        found = found or [project for project in self.all if name and project.id == name]
        return found[0] if len(found) == 1 else None

    def channel(self, channel_id: str) -> ChannelSettings:
        """Returns the settings of a channel."""
        return self.channels.get(channel_id, self.any_channel)

    def replies(self, channel_id: str) -> ReplyMode:
        """Returns whose replies are sent to the agent in a channel."""
        return self.channel(channel_id).replies

    def posts(self, channel_id: str) -> PostMode:
        """Returns which news of a job is posted in a channel."""
        return self.channel(channel_id).posts

    def mode(self, channel_id: str, name: str) -> Mode:
        """Returns the mode of a job in a channel, for a project, whose request names none."""
        project = self.named(name)
        return self.channel(channel_id).mode or (project.mode if project else Mode.EDIT)

    def plans_first(self, channel_id: str, name: str) -> bool | None:
        """Returns whether a form for a job begins with the wish to see a plan first, where this project is chosen
        (empty: none yet); None where it cannot be had.
        """
        chosen = self.named(name)
        candidates = [chosen] if chosen else self.all
        if not any(each.abilities.modes for each in candidates):
            return None
        return all(self.mode(channel_id, each.name) is Mode.PLAN for each in candidates)

    def abilities(self, name: str) -> JobApiAbilities:
        """Returns what a project's job API can do; nothing special if the project no longer exists."""
        project = self.named(name)
        return project.abilities if project else JobApiAbilities()


@dataclass(frozen=True)
class Routed:
    """The request is for this project."""

    project: str
    reason: ProjectReason


@dataclass(frozen=True)
class Ambiguous:
    """The request could be for any of these projects: the person has to be asked. `said`: it names one that does not
    exist.
    """

    candidates: tuple[str, ...]
    said: str = ""


Route = Routed | Ambiguous


def name_among(names: Sequence[str], said: str) -> str:
    """Returns the name among `names` that equals `said`, whatever the case and keyboard; empty if there is none."""
    return next((name for name in names if latin(name).casefold() == latin(said).casefold()), "")


def with_aliases(channel_ids: frozenset[str], aliases: Mapping[str, str]) -> frozenset[str]:
    """Returns the channel ids and their aliases."""
    return channel_ids | {aliases[each] for each in channel_ids & aliases.keys()}


def route(
    projects: Projects, *, said: str = "", of_thread: str = "", channel_id: str = "", prompt: str, of_person: str = ""
) -> Route:
    """Decides which project a request is for. Names can be empty.

    Args:
        projects: All projects.
        said: The project that the request names.
        of_thread: The project of the thread's earlier job.
        channel_id: The channel of the request.
        prompt: The text of the request.
        of_person: The person's default project.
    """
    if said:
        project = projects.named(said)
        return Routed(project.name, ProjectReason.SAID) if project else Ambiguous(projects.names, said)
    if len(projects.all) == 1:
        return Routed(projects.all[0].name, ProjectReason.ONLY_ONE)
    if (project := projects.named(of_thread)) is not None:
        return Routed(project.name, ProjectReason.THREAD)
    for project in projects.all:
        if channel_id in project.channels:
            return Routed(project.name, ProjectReason.CHANNEL)
    return _by_words(projects, prompt) or _by_default(projects, of_person)


def _by_words(projects: Projects, prompt: str) -> Route | None:
    text = normal_words(prompt[:LOOKED_AT])
    matching = tuple(
        project.name for project in projects.all if any(normal_words(phrase) in text for phrase in project.words)
    )
    if len(matching) > 1:
        return Ambiguous(matching)
    return Routed(matching[0], ProjectReason.WORDS) if matching else None


def _by_default(projects: Projects, of_person: str) -> Route:
    project = projects.named(of_person)
    return Routed(project.name, ProjectReason.DEFAULT) if project else Ambiguous(projects.names)


def normal_words(text: str) -> str:
    """Returns a text's words in lower case, each between two spaces, so that a plain search finds whole words and
    phrases.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", _MANY_ACCENTS.sub(r"\1", text)).casefold())
    return f" {' '.join(words)} " if words else ""
