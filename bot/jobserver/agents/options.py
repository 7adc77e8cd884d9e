"""The options that an agent offers for a session (model, effort, mode), and how to set them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from acp.schema import SessionConfigOptionBoolean, SessionConfigOptionSelect, SessionConfigSelectGroup

from bot.jobserver.errors import NotOfferedError
from bot.jobserver.settings import PREFIX
from bot.jobserver.text import one_line

_MOST_VALUES = 10
_MOST_CHARACTERS = 60
"""Length of a value when shown."""


class Category(Enum):
    """The protocol's categories with our names, in the order to set: the model determines the efforts and modes."""

    MODEL = "model", "model"
    EFFORT = "thought_level", "effort"
    MODE = "mode", "mode"

    def __init__(self, category: str, label: str) -> None:
        self.category = category
        self.label = label


@dataclass(frozen=True)
class SessionOption:
    """One option; `current` and `values` are ids that the agent defines."""

    id: str
    current: str
    values: tuple[str, ...]


Options = Mapping[Category, SessionOption]


@dataclass(frozen=True)
class AgentSession:
    """A session of the agent, with its options."""

    id: str
    options: Options


@dataclass(frozen=True)
class Wanted:
    """The options to set; None leaves the choice to the agent."""

    model: str | None = None
    effort: str | None = None
    mode: str | None = None

    def in_order(self) -> Iterator[tuple[Category, str]]:
        wanted = {Category.MODEL: self.model, Category.EFFORT: self.effort, Category.MODE: self.mode}
        yield from ((category, value) for category, value in wanted.items() if value)


def options_of(listed: Sequence[SessionConfigOptionSelect | SessionConfigOptionBoolean] | None) -> Options:
    """Returns the options of known categories; as for the agent, the first of a category counts."""
    found: dict[Category, SessionOption] = {}
    for option in listed or ():
        category = next((known for known in Category if known.category == option.category), None)
        if category and category not in found and isinstance(option, SessionConfigOptionSelect):
            found[category] = SessionOption(option.id, option.current_value, tuple(_values(option)))
    return found


def _values(option: SessionConfigOptionSelect) -> Iterator[str]:
    for entry in option.options:
        yield from (one.value for one in (entry.options if isinstance(entry, SessionConfigSelectGroup) else [entry]))


def option_to_set(agent: str, category: Category, value: str, options: Options) -> SessionOption | None:
    """Returns the option to set; None if it already has the value, or if the model was set at the agent's start.

    Raises:
        NotOfferedError: the agent does not offer the value.
    """
    option = options.get(category)
    if option is None:
        _refuse_without(agent, category)
        return None
    if option.current == value:
        return None
    if value in option.values:
        return option
    raise NotOfferedError(f"{agent} has no {category.label} “{_shown(value)}”: {_remedy(category, option)}")


def check_set(agent: str, category: Category, value: str, options: Options) -> None:
    """Raises NotOfferedError if the agent did not set the value."""
    if category not in options or options[category].current != value:
        raise NotOfferedError(f"{agent} did not accept the {category.label} “{_shown(value)}”, though it lists it")


def in_words(options: Options) -> str:
    """Returns each option's value and choices, in one line."""
    chosen = ((category.label, options[category]) for category in Category if category in options)
    return "; ".join(f"{words} {_shown(option.current)} (of {_listed(option)})" for words, option in chosen)


def current_in_words(options: Options) -> str:
    """Returns each option's value, in one line."""
    return ", ".join(
        f"{category.label} {_shown(options[category].current)}" for category in Category if category in options
    )


def _refuse_without(agent: str, category: Category) -> None:
    match category:
        case Category.MODEL:
            pass  # set at the agent's start
        case Category.EFFORT:
            raise NotOfferedError(f"{agent} offers no choice of effort with this model: leave {PREFIX}EFFORT out")
        case Category.MODE:
            raise NotOfferedError(
                f"{agent} does not list its modes, so it cannot be made to ask before it acts; its version may be "
                "too old"
            )


def _remedy(category: Category, option: SessionOption) -> str:
    match category:
        case Category.MODEL | Category.EFFORT:
            return f"set {PREFIX}{category.name} to one of {_listed(option)}"
        case Category.MODE:
            return f"its version may be too old or too new; it has {_listed(option)}"


def _listed(option: SessionOption) -> str:
    more = len(option.values) - _MOST_VALUES
    return ", ".join(map(_shown, option.values[:_MOST_VALUES])) + (f" and {more} more" if more > 0 else "")


def _shown(value: str) -> str:
    return one_line(value, _MOST_CHARACTERS)
