"""The inputs of Pagehand's modals, whose ids identify the values of a submission; the choices of an agent's
question. Pure.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import assert_never

from pydantic import TypeAdapter, ValidationError

from bot.domain.jobs.details import LONGEST_LABEL, MOST_OPTIONS, QuestionField
from bot.domain.people.members import Preference
from bot.domain.projects import MOST_PROJECTS, name_among
from bot.domain.threads.thread import Thread
from bot.jobapi.models import FieldKind
from bot.notices import job
from bot.slack.rendering.blocks import (
    CHOOSE_ANSWER,
    FILL_IN_ANSWER,
    MAX_OPTION_VALUE,
    MAX_VALUE,
    SEND_ANSWERS,
    Block,
    button,
    context_block,
    plain_text,
    select,
)
from bot.slack.rendering.text import one_line, shorten_plain, width

# The choices for an agent's question: buttons, a list, or a modal with an input for each field. A choice always shows
# everything that it sends; if it does not fit on a button or in a list, people answer with a reply.

_MAX_CHOICES = 9_000
"""Characters of all choices: Slack rejects blocks that are too long in total (its limit is not documented)."""
_Encoded = tuple[str, FieldKind, tuple[str, ...], bool, bool]
_ENCODED = TypeAdapter(tuple[_Encoded, ...])


def answer_choices(thread: Thread, fields: Sequence[QuestionField]) -> list[Block]:
    """Returns the choices of a question; none if it can only be answered with a reply."""
    if len(fields) == 1 and fields[0].kind not in {FieldKind.CHOICE, FieldKind.CHOICES, FieldKind.YES_OR_NO}:
        return []
    if len(fields) != 1 or fields[0].kind is FieldKind.CHOICES:
        value = f"{thread.id}/{encoded_fields(fields)}"
        return [button(job.ANSWER, FILL_IN_ANSWER, value)] if fields and width(value) <= MAX_VALUE else []
    values = {label: f"{thread.id}/{label}" for label in options_of(fields[0])}
    if not _fit(values):
        return []
    if len(values) > len(SEND_ANSWERS):
        return [select(CHOOSE_ANSWER, job.CHOOSE_ANSWER, values)]
    pairs = zip(SEND_ANSWERS, values.items(), strict=False)
    return [button(label, action_id, value) for action_id, (label, value) in pairs]


def fits_a_button(label: str) -> bool:
    """Returns whether a label is shown in full, so that a button or an option sends no more than it says."""
    return bool(label.strip()) and label.isprintable() and width(label) <= LONGEST_LABEL


def options_of(field: QuestionField) -> tuple[str, ...]:
    """Returns the labels of the options."""
    return (job.YES, job.NO) if field.kind is FieldKind.YES_OR_NO else field.options


def _fit(values: Mapping[str, str]) -> bool:
    fit = all(fits_a_button(label) and width(value) <= MAX_OPTION_VALUE for label, value in values.items())
    return fit and 0 < len(values) <= MOST_OPTIONS and sum(map(width, (*values, *values.values()))) <= _MAX_CHOICES


def encoded_fields(fields: Sequence[QuestionField]) -> str:
    """Returns the fields in a form that is short enough for a button's value."""
    lists = [[field.title, field.kind, field.options, field.own_words, field.required] for field in fields]
    return json.dumps(lists, ensure_ascii=False, separators=(",", ":"))


def decoded_fields(text: str) -> tuple[QuestionField, ...]:
    """Returns the encoded fields; nothing for anything else."""
    try:
        return tuple(QuestionField(*each) for each in _ENCODED.validate_json(text))
    except ValidationError:
        return ()


MAX_INPUT = 3_000
"""The largest maximum length that Slack accepts for an input; without one, people can type more."""
MAX_PROMPT = 30_000
"""Characters of a prompt; the field of a longer one shows an error."""
MAX_ANSWER = 1_000
"""Characters of a one-line answer."""
_MAX_OPTION = 75
_MAX_SHOWN_OPTIONS = 10
"""The most options shown as radio buttons or check boxes; more become a list."""


class Input(StrEnum):
    """The block id and action id of an input. They stay the same when a view is updated, so that typed text is kept."""

    PROMPT = "prompt"
    PROJECT = "project"
    TELLING = "telling"
    CHANNEL = "channel"
    SCOPE = "scope"
    CONTEXT = "context"
    """Several inputs; each id ends with a number and the scope."""
    ANSWER = "answer"
    """Several inputs; each id ends with a number, as do the next two."""
    REQUIRED_ANSWER = "required_answer"
    OTHER_ANSWER = "other_answer"
    """An answer in the person's own words, instead of the choice with that number."""


class EndNotification(StrEnum):
    """How a person is notified when a job ends."""

    MENTION = "mention"
    QUIET = "quiet"


_END_NOTIFICATIONS = {EndNotification.MENTION: "Mention me", EndNotification.QUIET: "Mention nobody"}


def text_input(block_id: str, label: str, value: str, *, optional: bool = False) -> Block:
    """Returns an input of several lines. Slack rejects an initial value that exceeds the maximum length."""
    element = {"type": "plain_text_input", "action_id": block_id, "multiline": True, "max_length": MAX_INPUT}
    given = shorten_plain(value, MAX_INPUT)
    return _input(block_id, label, element | ({"initial_value": given} if given else {}), optional=optional)


def prompt_input(label: str, value: str) -> Block:
    """Returns the input for the prompt, without a maximum length. Changes are sent at once, to be kept as a draft."""
    block = text_input(Input.PROMPT, label, "")
    block["hint"] = plain_text("The agent gets your words exactly as you write them.")
    del block["element"]["max_length"]
    if given := shorten_plain(value, MAX_PROMPT):
        block["element"]["initial_value"] = given
    block["dispatch_action"] = True
    block["element"]["dispatch_action_config"] = {"trigger_actions_on": ["on_character_entered"]}
    block["element"]["focus_on_load"] = True
    return block


def project_input(projects: Sequence[str], chosen: str) -> list[Block]:
    """Returns the choice of a project; nothing if there is only one. A chosen name that is unknown is reported."""
    name = name_among(projects, chosen)
    unknown = bool(chosen.strip()) and not name
    if len(projects) <= 1:
        only = f"There is no project called {one_line(chosen, _MAX_OPTION)}. The job is for the only one there is."
        return [context_block([only])] if unknown else []
    options = [option(each, each) for each in projects[:MOST_PROJECTS]]
    element: Block = {"type": "static_select", "action_id": Input.PROJECT, "options": options}
    element["placeholder"] = plain_text("By the channel or by words in the request")
    if name:
        element["initial_option"] = option(name, name)
    block = _input(Input.PROJECT, "Project", element, optional=True)
    hint = f"There is no project called {shorten_plain(chosen, _MAX_OPTION)}. Please choose one of these."
    return [block | ({"hint": plain_text(hint)} if unknown else {})]


def telling_input(preference: Preference) -> Block:
    """Returns the choice of notification."""
    options = {value: option(label, value) for value, label in _END_NOTIFICATIONS.items()}
    chosen = options[EndNotification.QUIET if preference.quiet else EndNotification.MENTION]
    element = {"type": "radio_buttons", "action_id": Input.TELLING, "options": [*options.values()]}
    return _input(Input.TELLING, "When it ends", element | {"initial_option": chosen})


def channel_input() -> Block:
    """Returns the choice of a channel."""
    offered = {"include": ["public", "private"], "exclude_bot_users": True}
    element: Block = {"type": "conversations_select", "action_id": Input.CHANNEL, "filter": offered}
    element |= {"placeholder": plain_text("Choose a channel"), "default_to_current_conversation": True}
    return _input(Input.CHANNEL, "Channel", element)


def choice_input(block_id: str, label: str, options: Sequence[Block], chosen: Block) -> Block:
    """Returns a choice whose changes are sent at once."""
    element = {"type": "radio_buttons", "action_id": block_id, "options": [*options], "initial_option": chosen}
    return _input(block_id, label, element) | {"dispatch_action": True}


def answer_input(number: int, field: QuestionField, *, alone: bool) -> list[Block]:
    """Returns the input for a field of a question, and one for own words if they are allowed. Answers have one line
    each; `alone`: this is the only field, and its answer may have several lines.
    """
    block_id = f"{Input.REQUIRED_ANSWER if field.required else Input.ANSWER}/{number}"
    element = _answer_element(field) | {"action_id": block_id}
    made = _input(block_id, field.title, element, optional=field.own_words or not field.required)
    if not field.own_words:
        return [made]
    other = f"{Input.OTHER_ANSWER}/{number}"
    element = {"type": "plain_text_input", "action_id": other, "multiline": alone, "max_length": MAX_ANSWER}
    return [made, _input(other, "Another answer", element, optional=True)]


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
    """Returns an option."""
    return {"text": plain_text(shorten_plain(label, _MAX_OPTION)), "value": value}


def _input(block_id: str, label: str, element: Block, *, optional: bool = False) -> Block:
    return {
        "type": "input",
        "block_id": block_id,
        "label": plain_text(label),
        "element": element,
        "optional": optional,
    }
