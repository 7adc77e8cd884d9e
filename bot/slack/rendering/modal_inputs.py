"""The inputs that Pagehand's modals are made of. Their ids say what a submission holds. Pure."""

from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

from bot.domain.jobs.details import FieldKind, QuestionField
from bot.domain.people.members import Preference
from bot.domain.projects import MOST_PROJECTS, name_among
from bot.runtime.misleading_characters import displayable
from bot.slack.rendering.answer_forms import options_of
from bot.slack.rendering.blocks import Block, context_block, plain_text
from bot.slack.rendering.text import ELLIPSIS, one_line, width
from bot.slack.rendering.words import forms as words

MAX_INPUT = 3_000
"""The largest bound that Slack takes for an input; without one, people can type more."""
MAX_PROMPT = 30_000
"""Characters of a prompt; more of it is refused at its field."""
MAX_ANSWER = 1_000
"""Characters of an answer in a line."""
_MAX_OPTION = 75
_MAX_SHOWN_OPTIONS = 10
"""Of radio buttons and check boxes; what is more becomes a list."""


class Input(StrEnum):
    """An input's block id and action id: the same on each update of a view, so that what was typed stays."""

    PROMPT = "prompt"
    PROJECT = "project"
    TELLING = "telling"
    CHANNEL = "channel"
    SCOPE = "scope"
    CONTEXT = "context"
    """Of several; each has a number and the scope behind it."""
    ANSWER = "answer"
    """Of several, each with a number behind it, as the next two."""
    REQUIRED_ANSWER = "required_answer"
    OTHER_ANSWER = "other_answer"
    """In own words, in place of the choice of that number."""


class Telling(StrEnum):
    """How somebody is told of a job's end."""

    MENTION = "mention"
    QUIET = "quiet"


_TELLING = {Telling.MENTION: words.MENTION_ME, Telling.QUIET: words.MENTION_NOBODY}


def text_input(block_id: str, label: str, value: str, *, hint: str = "", optional: bool = False) -> Block:
    """Returns an input of several lines. Slack refuses a value that is longer than what may be typed."""
    element = {"type": "plain_text_input", "action_id": block_id, "multiline": True, "max_length": MAX_INPUT}
    given = cut(value, MAX_INPUT)
    block = _input(block_id, label, element | ({"initial_value": given} if given else {}), optional=optional)
    return block | ({"hint": plain_text(hint)} if hint else {})


def prompt_input(label: str, value: str, *, hint: str = "") -> Block:
    """Returns the input for what the agent is to do, without a bound: whatever is typed comes at once, to be kept."""
    block = text_input(Input.PROMPT, label, "", hint=hint)
    del block["element"]["max_length"]
    if given := cut(value, MAX_PROMPT):
        block["element"]["initial_value"] = given
    block["dispatch_action"] = True
    block["element"]["dispatch_action_config"] = {"trigger_actions_on": ["on_character_entered"]}
    block["element"]["focus_on_load"] = True
    return block


def project_input(projects: Sequence[str], chosen: str) -> list[Block]:
    """Returns the choice of a project; nothing where there is only one. A chosen name that is none of them is said."""
    name = name_among(projects, chosen)
    unknown = bool(chosen.strip()) and not name
    if len(projects) <= 1:
        only = words.NO_SUCH_PROJECT_BUT_ONE(name=one_line(chosen, _MAX_OPTION))
        return [context_block([only])] if unknown else []
    options = [option(each, each) for each in projects[:MOST_PROJECTS]]
    element: Block = {"type": "static_select", "action_id": Input.PROJECT, "options": options}
    element["placeholder"] = plain_text(words.ANY_PROJECT)
    if name:
        element["initial_option"] = option(name, name)
    block = _input(Input.PROJECT, words.PROJECT, element, optional=True)
    hint = words.NO_SUCH_PROJECT(name=cut(chosen, _MAX_OPTION))
    return [block | ({"hint": plain_text(hint)} if unknown else {})]


def telling_input(preference: Preference) -> Block:
    """Returns the choice of how one is told."""
    options = {telling: option(label, telling) for telling, label in _TELLING.items()}
    chosen = options[Telling.QUIET if preference.quiet else Telling.MENTION]
    element = {"type": "radio_buttons", "action_id": Input.TELLING, "options": [*options.values()]}
    return _input(Input.TELLING, words.TELL_ME, element | {"initial_option": chosen})


def channel_input() -> Block:
    """Returns the choice of a channel."""
    offered = {"include": ["public", "private"], "exclude_bot_users": True}
    element: Block = {"type": "conversations_select", "action_id": Input.CHANNEL, "filter": offered}
    element |= {"placeholder": plain_text(words.CHOOSE_CHANNEL), "default_to_current_conversation": True}
    return _input(Input.CHANNEL, words.CHANNEL, element)


def choice_input(block_id: str, label: str, options: Sequence[Block], chosen: Block) -> Block:
    """Returns a choice whose change comes at once."""
    element = {"type": "radio_buttons", "action_id": block_id, "options": [*options], "initial_option": chosen}
    return _input(block_id, label, element) | {"dispatch_action": True}


def answer_input(number: int, field: QuestionField, *, alone: bool) -> list[Block]:
    """Returns the input for a field of a question, and one for own words where they will do. A form takes a line for
    each answer; `alone`: there is no other field, and the answer may have several lines.
    """
    block_id = f"{Input.REQUIRED_ANSWER if field.required else Input.ANSWER}/{number}"
    element = _answer_element(field) | {"action_id": block_id}
    made = _input(block_id, field.title, element, optional=field.own_words or not field.required)
    if not field.own_words:
        return [made]
    other = f"{Input.OTHER_ANSWER}/{number}"
    element = {"type": "plain_text_input", "action_id": other, "multiline": alone, "max_length": MAX_ANSWER}
    return [made, _input(other, words.OTHER_ANSWER, element, optional=True)]


def _answer_element(field: QuestionField) -> Block:
    options = [option(label, label) for label in options_of(field)]
    few = len(options) <= _MAX_SHOWN_OPTIONS
    match field.kind:
        case FieldKind.CHOICE | FieldKind.YES_OR_NO:
            return {"type": "radio_buttons" if few else "static_select", "options": options}
        case FieldKind.CHOICES:
            return {"type": "checkboxes" if few else "multi_static_select", "options": options}
        case FieldKind.NUMBER:
            return {"type": "number_input", "is_decimal_allowed": True}
        case FieldKind.TEXT:
            return {"type": "plain_text_input", "max_length": MAX_ANSWER}
        case _:
            assert_never(field.kind)


def option(label: str, value: str) -> Block:
    """Returns something that can be chosen."""
    return {"text": plain_text(cut(label, _MAX_OPTION)), "value": value}


def cut(text: str, limit: int) -> str:
    """Returns the text as it can be shown, at most `limit` wide as Slack counts."""
    shown = displayable(text)
    return shown if width(shown) <= limit else fitting(shown, limit - 1) + ELLIPSIS


def fitting(text: str, limit: int) -> str:
    """Returns as much of the beginning as is at most `limit` wide."""
    used = 0
    for index, character in enumerate(text[:limit]):
        used += width(character)
        if used > limit:
            return text[:index]
    return text[:limit]


def _input(block_id: str, label: str, element: Block, *, optional: bool = False) -> Block:
    return {
        "type": "input",
        "block_id": block_id,
        "label": plain_text(label),
        "element": element,
        "optional": optional,
    }
