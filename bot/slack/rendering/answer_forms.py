"""What can be chosen as an answer to an agent's question: buttons, a list, or a modal with an input each. Pure.

All that is offered is what its words say: what does not fit into a button or a list is left to replies in words.
"""

import json
from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from bot.domain.jobs.details import LONGEST_LABEL, MOST_OPTIONS, FieldKind, QuestionField
from bot.domain.threads.thread import Thread
from bot.slack.rendering.blocks import (
    CHOOSE_ANSWER,
    FILL_IN_ANSWER,
    MAX_OPTION_VALUE,
    MAX_VALUE,
    SEND_ANSWERS,
    Block,
    button,
    select,
)
from bot.slack.rendering.text import width
from bot.slack.rendering.words import job_news as words

_MAX_CHOICES = 9_000
"""Characters of all choices: Slack refuses blocks that are too long together (its limit is not documented)."""
_Encoded = tuple[str, FieldKind, tuple[str, ...], bool, bool]
_ENCODED = TypeAdapter(tuple[_Encoded, ...])


def answer_choices(thread: Thread, fields: Sequence[QuestionField]) -> list[Block]:
    """Returns what a row offers to choose from; nothing where a question is answered in words alone."""
    if len(fields) == 1 and fields[0].kind not in {FieldKind.CHOICE, FieldKind.CHOICES, FieldKind.YES_OR_NO}:
        return []
    if len(fields) != 1 or fields[0].kind is FieldKind.CHOICES:
        value = f"{thread.id}/{encoded_fields(fields)}"
        return [button(words.ANSWER, FILL_IN_ANSWER, value)] if fields and width(value) <= MAX_VALUE else []
    values = {label: f"{thread.id}/{label}" for label in options_of(fields[0])}
    if not _fit(values):
        return []
    if len(values) > len(SEND_ANSWERS):
        return [select(CHOOSE_ANSWER, words.CHOOSE_ANSWER, values)]
    pairs = zip(SEND_ANSWERS, values.items(), strict=False)
    return [button(label, action_id, value) for action_id, (label, value) in pairs]


def fits_a_button(label: str) -> bool:
    """Whether all of a label can be seen, so that no more is sent than what a button or an option says."""
    return bool(label.strip()) and label.isprintable() and width(label) <= LONGEST_LABEL


def options_of(field: QuestionField) -> tuple[str, ...]:
    """Returns the labels to choose from."""
    return (words.YES, words.NO) if field.kind is FieldKind.YES_OR_NO else field.options


def _fit(values: Mapping[str, str]) -> bool:
    fit = all(fits_a_button(label) and width(value) <= MAX_OPTION_VALUE for label, value in values.items())
    return fit and 0 < len(values) <= MOST_OPTIONS and sum(map(width, (*values, *values.values()))) <= _MAX_CHOICES


def encoded_fields(fields: Sequence[QuestionField]) -> str:
    """Returns the fields as short as a button's value has to be."""
    lists = [[field.title, field.kind, field.options, field.own_words, field.required] for field in fields]
    return json.dumps(lists, ensure_ascii=False, separators=(",", ":"))


def decoded_fields(text: str) -> tuple[QuestionField, ...]:
    """Returns what was encoded; nothing where it is anything else."""
    try:
        return tuple(QuestionField(*each) for each in _ENCODED.validate_json(text))
    except ValidationError:
        return ()
