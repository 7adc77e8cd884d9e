"""Pagehand's modals: for a job, a message that is handed over, a follow-up, a person's preferences. Pure."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from bot.domain.context.thread_context import ContextNotes
from bot.domain.jobs.details import QuestionField
from bot.domain.people.members import Preference
from bot.notices.said import Markup
from bot.slack.rendering.blocks import Block, context_block, plain_text, section
from bot.slack.rendering.modal_inputs import (
    MAX_INPUT,
    MAX_PROMPT,
    Input,
    answer_input,
    channel_input,
    choice_input,
    option,
    project_input,
    prompt_input,
    telling_input,
    text_input,
)
from bot.slack.rendering.text import channel, escape, fitting, one_line

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
    """

    channel_id: str = ""
    thread_ts: str = ""
    message_ts: str = ""
    thread_id: str = ""
    scope: str = ""
    files: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()

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
        text: The text, without secrets.
        masked: The secrets that were masked.
        notes: What else was left out.
        has_thread: Whether the conversation has more than this message.
        unreadable: Whether Pagehand cannot read the rest because it is not in the channel.
        file_names: The files of the message.
    """

    text: str
    masked: tuple[str, ...] = ()
    notes: ContextNotes = field(default_factory=ContextNotes)
    has_thread: bool = False
    unreadable: bool = False
    file_names: tuple[str, ...] = ()


def new_job_modal(place: ModalPlace, drafted: Drafted, projects: Sequence[str]) -> View:
    """Returns the modal for a new job; without a channel it asks for one."""
    where = f"The job's thread will be in {channel(place.channel_id)}."
    chosen = context_block([where]) if place.channel_id else channel_input()
    blocks = [
        prompt_input(_WHAT_TO_DO, drafted.prompt),
        *project_input(projects, drafted.preference.project),
        chosen,
        telling_input(drafted.preference),
    ]
    return _modal(Callback.NEW_JOB, "New job", "Start", place, blocks)


def hand_over_modal(place: ModalPlace, drafted: Drafted, projects: Sequence[str], context: ShownContext) -> View:
    """Returns the modal for a message that is handed over, with the context that will be sent, for editing."""
    scope = ContextScope(place.scope or ContextScope.MESSAGE)
    options = {each: option(label, each) for each, label in _SCOPES.items()}
    choice = [choice_input(Input.SCOPE, "What goes along?", [*options.values()], options[scope])]
    blocks = [
        prompt_input(_WHAT_TO_DO, drafted.prompt),
        *(choice if context.has_thread else []),
        *_context_inputs(scope, context.text),
        *(context_block([remark]) for remark in _remarks(context)),
        *project_input(projects, drafted.preference.project),
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
    for number, content in enumerate(fields, 1):
        label = "Context, as the agent gets it" + (f" ({number} of {len(fields)})" if len(fields) > 1 else "")
        made.append(text_input(f"{Input.CONTEXT}/{scope}/{number}", label, content, optional=True))
    return made


def _remarks(context: ShownContext) -> list[str]:
    """Returns remarks about the context for the person."""
    remarks = []
    if context.masked:
        remarks.append(f"Hidden, so that it stays in Slack: {escape(', '.join(context.masked))}.")
    if context.unreadable:
        remarks.append("I'm not in this channel, so I can't read the thread: only this message goes along.")
    if context.notes.messages_left_out or context.notes.words_left_out:
        remarks.append("The conversation is too long to go along as a whole: its latest part is kept.")
    if context.file_names:
        names = ", ".join(name or "one without a name" for name in context.file_names)
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
