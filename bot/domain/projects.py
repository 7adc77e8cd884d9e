"""The projects that jobs can work on, how channels are set up, and which project a request is for. Pure."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

MOST_PROJECTS = 100
"""As many as one menu of Slack's can offer."""
_WORD = re.compile(r"\w+")
LOOKED_AT = 20_000
"""Characters of a prompt in which words are looked for."""


class ReplyMode(StrEnum):
    """Whose replies in a thread that began with a card go to the agent."""

    EVERYONE = "everyone"
    PARTICIPANTS = "participants"
    """Who asked and who has steered; anybody else is asked first."""
    MENTIONS = "mentions"
    """Those that mention Pagehand."""


class PostMode(StrEnum):
    """What of a job is posted in its thread."""

    ALL = "all"
    """Each transition of its status, and its ends."""
    ENDS = "ends"
    """Its ends, not when it begins; and that it shows nothing new for long."""


class ProjectReason(StrEnum):
    """Why a job is for its project."""

    ONLY_ONE = "only_one"
    SAID = "said"
    """Its person named it."""
    THREAD = "thread"
    """The thread had a job for it already."""
    CHANNEL = "channel"
    """It is the channel's."""
    WORDS = "words"
    """Words of the request route to it."""
    DEFAULT = "default"
    """It is what this person prefers."""
    CHOSEN = "chosen"
    """Its person was asked."""


@dataclass(frozen=True)
class JobApiAbilities:
    """What a project's job API can do beyond its specification: run a repeated Idempotency-Key only once, take who
    asked, cancel a job, take files.
    """

    idempotent: bool = False
    requester: bool = False
    cancel: bool = False
    files: bool = False


@dataclass(frozen=True)
class Project:
    """A documentation project, by the name that people use. `channels` are ids; `words` are words or phrases; `id` is
    what its job API calls it, and what it is called in jobs of the time when it was the only one.
    """

    name: str
    channels: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    abilities: JobApiAbilities = field(default_factory=JobApiAbilities)
    id: str = ""


@dataclass(frozen=True)
class ChannelSettings:
    """How a channel is set up. `broadcast`: a job's end also goes to the channel; `mention`: it mentions people."""

    replies: ReplyMode = ReplyMode.EVERYONE
    broadcast: bool = False
    mention: bool = True
    posts: PostMode = PostMode.ALL


@dataclass(frozen=True)
class Projects:
    """All projects, and the channels with settings of their own; every other one is as `any_channel` says."""

    all: tuple[Project, ...]
    channels: Mapping[str, ChannelSettings] = field(default_factory=dict)
    any_channel: ChannelSettings = field(default_factory=ChannelSettings)

    @property
    def channel_ids(self) -> frozenset[str]:
        """The ids of all channels that are set up."""
        return frozenset(self.channels).union(*(project.channels for project in self.all))

    @property
    def told_who_asks(self) -> bool:
        """Whether any project's job API takes that."""
        return any(project.abilities.requester for project in self.all)

    def following(self, known_as: Mapping[str, str]) -> "Projects":
        """Returns the same with channels set up under the ids, too, that some of theirs are known as."""
        moved = {known_as[each]: settings for each, settings in self.channels.items() if each in known_as}
        projects = tuple(replace(each, channels=followed(each.channels, known_as)) for each in self.all)
        return replace(self, all=projects, channels={**self.channels, **moved})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all projects."""
        return tuple(project.name for project in self.all)

    def named(self, name: str) -> Project | None:
        """Returns the project of that name, in capitals or not, or else that of this id; None where there is none."""
        found = [project for project in self.all if project.name.casefold() == name.casefold()]
        found = found or [project for project in self.all if name and project.id == name]
        return found[0] if len(found) == 1 else None

    def channel(self, channel_id: str) -> ChannelSettings:
        """Returns how a channel is set up."""
        return self.channels.get(channel_id, self.any_channel)

    def replies(self, channel_id: str) -> ReplyMode:
        """Returns whose replies count in a channel."""
        return self.channel(channel_id).replies

    def posts(self, channel_id: str) -> PostMode:
        """Returns what of a job is posted in a channel."""
        return self.channel(channel_id).posts

    def abilities(self, name: str) -> JobApiAbilities:
        """Returns what a project's job API can do; nothing special where there is no such project any more."""
        project = self.named(name)
        return project.abilities if project else JobApiAbilities()


@dataclass(frozen=True)
class Routed:
    """The request is for this project."""

    project: str
    reason: ProjectReason


@dataclass(frozen=True)
class Ambiguous:
    """It could be for any of these: the person has to be asked."""

    candidates: tuple[str, ...]


@dataclass(frozen=True)
class UnknownProject:
    """There is no project that is called what the request says; these are the names."""

    said: str
    names: tuple[str, ...]


Route = Routed | Ambiguous | UnknownProject


def name_among(names: Sequence[str], said: str) -> str:
    """Returns the name as the settings have it, said in capitals or not; empty where it is none of them."""
    return next((name for name in names if name.casefold() == said.casefold()), "")


def followed(channel_ids: frozenset[str], known_as: Mapping[str, str]) -> frozenset[str]:
    """Returns ids of channels with those, besides, that some of them are known as."""
    return channel_ids | {known_as[each] for each in channel_ids & known_as.keys()}


def route(
    projects: Projects, *, said: str = "", of_thread: str = "", channel_id: str = "", prompt: str, of_person: str = ""
) -> Route:
    """Decides which project a request is for.

    Args:
        projects: All there are.
        said: The name that the request holds; empty for none, as with the other names.
        of_thread: The name of the project of the thread's earlier job.
        channel_id: Where it was asked.
        prompt: What was asked.
        of_person: The name of the person's own default.
    """
    if said:
        project = projects.named(said)
        return Routed(project.name, ProjectReason.SAID) if project else UnknownProject(said, projects.names)
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
    """Returns a text's words alone, in small letters, each between two spaces: so that whole words, and phrases of
    them, are found by a plain search.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(words)} " if words else ""
