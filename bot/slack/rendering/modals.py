"""Pagehand's modals: for a job, a message that is handed over, a follow-up, an answer, a person's preferences. Their
inputs, whose ids identify the values of a submission; and the choices of an agent's question. Pure.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, TypeVar, assert_never

from pydantic import TypeAdapter, ValidationError

from bot.domain.commands import AgentOptions
from bot.domain.context import ContextText
from bot.domain.jobs.job import LONGEST_LABEL, MOST_OPTIONS, QuestionField
from bot.domain.people import Preference
from bot.domain.projects import MOST_PROJECTS, name_among
from bot.domain.threads.thread import Thread
from bot.jobapi.models import FieldKind, Mode
from bot.notices import job
from bot.notices.said import Markup
from bot.slack.rendering.blocks import (
    CHOOSE_ANSWER,
    FILL_IN_ANSWER,
    MAX_OPTION,
    MAX_OPTION_VALUE,
    MAX_VALUE,
    SEND_ANSWERS,
    Block,
    button,
    choices,
    context_block,
    option,
    plain_text,
    section,
    select,
)
from bot.slack.rendering.text import channel, escape, fitting, one_line, shorten_plain, width

# The choices for an agent's question: buttons, a list, or a modal with an input for each field. A choice always shows
# everything that it sends; if it does not fit on a button or in a list, people answer with a reply.

MAX_CHOICES = 9_000
"""Characters of all choices: Slack rejects blocks that are too long in total (its limit is not documented)."""
_ENCODED = TypeAdapter(tuple[tuple[str, FieldKind, tuple[str, ...], bool, bool], ...])


def answer_choices(thread: Thread, fields: Sequence[QuestionField]) -> list[Block]:
    """Returns the choices of a question; none if it can only be answered with a reply."""
    if len(fields) == 1 and fields[0].kind not in {FieldKind.CHOICE, FieldKind.CHOICES, FieldKind.YES_OR_NO}:
        return []
    if len(fields) != 1 or fields[0].kind is FieldKind.CHOICES:
        value = f"{thread.id}/{encoded_fields(fields)}"
        return [button(job.ANSWER, FILL_IN_ANSWER, value)] if fields and width(value) <= MAX_VALUE else []
    values = {label: f"{thread.id}/{label}" for label in options_of(fields[0])}
    return choices(SEND_ANSWERS, CHOOSE_ANSWER, job.CHOOSE_ANSWER, values) if _fit(values) else []


def fits_a_button(label: str) -> bool:
    """Returns whether a label is shown in full, so that a button or an option sends no more than it says."""
    return bool(label.strip()) and label.isprintable() and width(label) <= LONGEST_LABEL


def options_of(field: QuestionField) -> tuple[str, ...]:
    """Returns the labels of the options."""
    return (job.YES, job.NO) if field.kind is FieldKind.YES_OR_NO else field.options


def _fit(values: Mapping[str, str]) -> bool:
    fit = all(fits_a_button(label) and width(value) <= MAX_OPTION_VALUE for label, value in values.items())
    return fit and 0 < len(values) <= MOST_OPTIONS and sum(map(width, (*values, *values.values()))) <= MAX_CHOICES


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
_MAX_SHOWN_OPTIONS = 10
"""The most options shown as radio buttons or check boxes; more become a list."""


T = TypeVar("T", bound=str)


class Input(StrEnum):
    """The block id and action id of an input. They stay the same when a view is updated, so that typed text is kept."""

    PROMPT = "prompt"
    PROJECT = "project"
    PLAN = "plan"
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
        only = f"There is no project called {one_line(chosen, MAX_OPTION)}. The job is for the only one there is."
        return [context_block([only])] if unknown else []
    names = {each: each for each in projects[:MOST_PROJECTS]}
    element = select(Input.PROJECT, "By the channel or by words in the request", names)
    if name:
        element["initial_option"] = option(name, name)
    block = _input(Input.PROJECT, "Project", element, optional=True)
    hint = f"There is no project called {shorten_plain(chosen, MAX_OPTION)}. Please choose one of these."
    return [block | ({"hint": plain_text(hint)} if unknown else {})]


def telling_input(preference: Preference) -> Block:
    """Returns the choice of notification."""
    chosen = EndNotification.QUIET if preference.quiet else EndNotification.MENTION
    return choice_input(Input.TELLING, "When it ends", _END_NOTIFICATIONS, chosen)


def plan_input(place: "ModalPlace", first: bool | None) -> list[Block]:  # noqa: FBT001 - its name says it
    """Returns the box for a plan `first`, ticked or not; nothing where that cannot be had (None), or only an answer is
    wanted.
    """
    said = place.agent.mode
    if first is None or said is Mode.ASK:
        return [context_block([ONLY_ANSWERS])] if said is Mode.ASK else []
    box = option("Show me the plan first", Mode.PLAN)
    element: Block = {"type": "checkboxes", "action_id": Input.PLAN, "options": [box]}
    ticked = first if said is None else said is Mode.PLAN
    element |= {"initial_options": [box]} if ticked else {}
    return [_input(Input.PLAN, "Before anything is changed", element, optional=True)]


def channel_input() -> Block:
    """Returns the choice of a channel."""
    offered = {"include": ["public", "private"], "exclude_bot_users": True}
    element: Block = {"type": "conversations_select", "action_id": Input.CHANNEL, "filter": offered}
    element |= {"placeholder": plain_text("Choose a channel"), "default_to_current_conversation": True}
    return _input(Input.CHANNEL, "Channel", element)


def choice_input(block_id: str, label: str, labels: Mapping[T, str], chosen: T) -> Block:
    """Returns a choice between values, of which each has a label."""
    options = {value: option(shown, value) for value, shown in labels.items()}
    element = {"type": "radio_buttons", "action_id": block_id, "options": [*options.values()]}
    return _input(block_id, label, element | {"initial_option": options[chosen]})


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


def _input(block_id: str, label: str, element: Block, *, optional: bool = False) -> Block:
    return {
        "type": "input",
        "block_id": block_id,
        "label": plain_text(label),
        "element": element,
        "optional": optional,
    }


# The context of a modal is stored in the view itself (`private_metadata`), because a submission names no channel.

MAX_METADATA = 3_000
"""Slack's limit for `private_metadata`."""


@dataclass(frozen=True)
class ModalPlace:
    """Where a modal was opened. Every field can be empty.

    Attributes:
        channel_id: The channel; if empty, it is chosen in the modal.
        thread_ts: The thread for the job.
        message_ts: The message that is handed over.
        thread_id: Our id of the thread whose job gets the follow-up.
        scope: For a message that is handed over, how much of the conversation to include.
        files: The ids of the message's files.
        file_names: Their names.
        mode: What the command that opened it says of how the agent is to work, as the next two.
        model: A model's name.
        effort: A level of effort.
    """

    channel_id: str = ""
    thread_ts: str = ""
    message_ts: str = ""
    thread_id: str = ""
    scope: str = ""
    files: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()
    mode: str = ""
    model: str = ""
    effort: str = ""

    @property
    def agent(self) -> AgentOptions:
        """Returns how the agent is to work."""
        return AgentOptions(Mode(self.mode) if self.mode in set(Mode) else None, self.model, self.effort)

    @property
    def draft_key(self) -> str:
        """Returns the key under which typed text is kept as a draft."""
        if self.thread_id:
            return f"thread/{self.thread_id}"
        return f"message/{self.channel_id}/{self.message_ts}" if self.message_ts else f"job/{self.channel_id}"

    def encoded(self) -> str:
        """Returns it as text for Slack to keep; file names are left out if they do not fit."""
        given = {name: value for name, value in asdict(self).items() if value}
        text = json.dumps(given, separators=(",", ":"))
        return text if len(text) <= MAX_METADATA else replace(self, file_names=()).encoded()


def parse_place(text: str) -> ModalPlace:
    """Returns what was encoded; ignores anything else."""
    try:
        given = json.loads(text[: 2 * MAX_METADATA])
    except (ValueError, RecursionError):
        return ModalPlace()
    known = {field.name: given.get(field.name) for field in fields(ModalPlace)} if isinstance(given, dict) else {}
    return ModalPlace(**{name: _read(value) for name, value in known.items() if value})


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""


View = Block


class Callback(StrEnum):
    """The `callback_id` of each modal."""

    NEW_JOB = "new_job"
    HAND_OVER = "hand_over"
    FOLLOW_UP = "follow_up"
    ANSWER = "answer"
    SETTINGS = "settings"


class ContextScope(StrEnum):
    """How much of a conversation is sent to the agent."""

    MESSAGE = "message"
    THREAD = "thread"


_SCOPES = {ContextScope.MESSAGE: "This message only", ContextScope.THREAD: "The whole thread"}
_WHAT_TO_DO = "What should be done?"
PROMPT_MISSING = "Please write what the agent should do."
PROMPT_TOO_LONG = f"This is too long: at most {MAX_PROMPT:,} characters can be sent. Please shorten it."
OPTIONS_IN_FORM = "Options like plan: and model: only work in a message or after the command. Please leave them out."
NO_PLAN = "This project's agent can't show a plan first. Please untick this, or choose another project."
ONLY_ANSWERS = Markup("The agent only answers, and changes nothing.")
CHANNEL_MISSING = "Please choose a channel for the job's thread."
ANSWER_MISSING = "Please answer this."
NOT_RECORDED_HERE = (
    "I couldn't save that: my database isn't available. Your text is still here; please press the button again in a "
    "minute."
)
LOADING = Markup("One moment…")
COULD_NOT_OPEN = Markup("The form couldn't be opened. Please try again.")
COULD_NOT_FILL = Markup("The form couldn't be filled in. Please close it and try again.")
MAX_CONTEXT_INPUTS = 6
CONTEXT_CHARACTERS, CONTEXT_WIDTH = 13_500, 15_000
"""How much of a conversation is shown for editing, and its width including the remarks about it. The inputs have
room for that wherever the lines end.
"""


@dataclass(frozen=True)
class Drafted:
    """The initial content of a modal: what was typed there before, and the person's preferences."""

    prompt: str = ""
    preference: Preference = field(default_factory=Preference)


@dataclass(frozen=True)
class ShownContext:
    """The context of a message that is handed over, as it will be sent.

    Attributes:
        written: The text, without secrets, and what was left out.
        has_thread: Whether the conversation has more than this message.
        unreadable: Whether Pagehand cannot read the rest because it is not in the channel.
    """

    written: ContextText
    has_thread: bool = False
    unreadable: bool = False


def new_job_modal(
    place: ModalPlace, drafted: Drafted, projects: Sequence[str], *, plan_first: bool | None = None
) -> View:
    """Returns the modal for a new job; without a channel it asks for one."""
    where = f"The job's thread will be in {channel(place.channel_id)}."
    chosen = context_block([where]) if place.channel_id else channel_input()
    blocks = [
        prompt_input(_WHAT_TO_DO, drafted.prompt),
        *project_input(projects, drafted.preference.project),
        *plan_input(place, plan_first),
        chosen,
        telling_input(drafted.preference),
    ]
    return _modal(Callback.NEW_JOB, "New job", "Start", place, blocks)


def hand_over_modal(
    place: ModalPlace,
    drafted: Drafted,
    projects: Sequence[str],
    context: ShownContext,
    *,
    plan_first: bool | None = None,
) -> View:
    """Returns the modal for a message that is handed over, with the context that will be sent, for editing."""
    scope = ContextScope(place.scope or ContextScope.MESSAGE)
    choice = choice_input(Input.SCOPE, "What goes along?", _SCOPES, scope) | {"dispatch_action": True}
    blocks = [
        prompt_input(_WHAT_TO_DO, drafted.prompt),
        *([choice] if context.has_thread else []),
        *_context_inputs(scope, context.written.text),
        *(context_block([remark]) for remark in _remarks(context, place.file_names)),
        *project_input(projects, drafted.preference.project),
        *plan_input(place, plan_first),
        telling_input(drafted.preference),
    ]
    return _modal(Callback.HAND_OVER, "Hand to Pagehand", "Start", place, blocks)


def follow_up_modal(place: ModalPlace, drafted: Drafted) -> View:
    """Returns the modal for a follow-up to a job."""
    blocks = [prompt_input("What should the agent do next?", drafted.prompt)]
    return _modal(Callback.FOLLOW_UP, "Follow up", "Send", place, blocks)


def answer_modal(place: ModalPlace, fields: Sequence[QuestionField]) -> View:
    """Returns the modal for answering an agent's question: an input for each field, in order."""
    alone = len(fields) == 1
    blocks = [block for number, field in enumerate(fields, 1) for block in answer_input(number, field, alone=alone)]
    return _modal(Callback.ANSWER, "Your answer", "Send", place, blocks)


def settings_modal(preference: Preference, projects: Sequence[str]) -> View:
    """Returns the modal for a person's preferences."""
    blocks = [*project_input(projects, preference.project), telling_input(preference)]
    return _modal(Callback.SETTINGS, "Your defaults", "Save", ModalPlace(), blocks)


def message_modal(text: Markup) -> View:
    """Returns a modal with a message, which can only be closed."""
    return {
        "type": "modal",
        "title": plain_text("Pagehand"),
        "close": plain_text("Close"),
        "blocks": [section(text)],
    }


def secret_found(kinds: Sequence[str]) -> str:
    """Returns the error for a context that contains secrets after editing."""
    return f"This looks like a secret ({', '.join(kinds)}) and would leave Slack. Please take it out."


def context_fields(text: str) -> list[str]:
    """Returns the text in pieces that fit into inputs, cut at a nearby line break if possible. Joined by line breaks,
    they are the same text again.
    """
    fields: list[str] = []
    rest = text
    while rest and len(fields) < MAX_CONTEXT_INPUTS:
        head = fitting(rest, MAX_INPUT)
        at = head.rfind("\n", len(head) * 5 // 6) if len(head) < len(rest) else len(head)
        fields.append(head[:at] if at > 0 else head)
        rest = rest[at + 1 :] if at > 0 else rest[len(head) :]
    return fields


def _context_inputs(scope: ContextScope, text: str) -> list[Block]:
    fields = context_fields(text)
    made = []
    for number, content in enumerate(fields):
        label = "Context, as the agent gets it" + (f" ({number + 1} of {len(fields)})" if len(fields) > 1 else "")
        made.append(text_input(f"{Input.CONTEXT}/{scope}/{number}", label, content, optional=True))
    return made


def _remarks(context: ShownContext, file_names: Sequence[str]) -> list[str]:
    """Returns remarks about the context for the person."""
    remarks = []
    written = context.written
    if written.masked:
        remarks.append(f"Hidden, so that it stays in Slack: {escape(', '.join(written.masked))}.")
    if context.unreadable:
        remarks.append("I'm not in this channel, so I can't read the thread: only this message goes along.")
    if written.notes.messages_left_out or written.notes.words_left_out:
        remarks.append("The conversation is too long to go along as a whole: its latest part is kept.")
    if file_names:
        names = ", ".join(name or "one without a name" for name in file_names)
        remarks.append(f"Files that go along: {one_line(names, 1_000)}.")
    return remarks


def _modal(callback: Callback, title: str, submit: str, place: ModalPlace, blocks: list[Block]) -> View:
    return {
        "type": "modal",
        "callback_id": callback,
        "title": plain_text(title),
        "submit": plain_text(submit),
        "close": plain_text("Cancel"),
        "notify_on_close": True,
        "private_metadata": place.encoded(),
        "blocks": blocks,
    }
