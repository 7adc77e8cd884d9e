"""Pagehand's modals: for a job, for a message that is handed over, for a follow-up, for one's defaults. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bot.domain.preferences import Preference
from bot.domain.thread_context import ContextNotes
from bot.slack.rendering.blocks import Block, context_block, plain_text, section
from bot.slack.rendering.modal_inputs import (
    MAX_INPUT,
    MAX_PROMPT,
    Input,
    channel_input,
    choice_input,
    fitting,
    option,
    project_input,
    prompt_input,
    telling_input,
    text_input,
)
from bot.slack.rendering.modal_places import ModalPlace
from bot.slack.rendering.text import one_line

View = Block


class Callback(StrEnum):
    """Which modal it is."""

    NEW_JOB = "new_job"
    HAND_OVER = "hand_over"
    FOLLOW_UP = "follow_up"
    SETTINGS = "settings"


class Scope(StrEnum):
    """How much of a conversation goes to the agent."""

    MESSAGE = "message"
    THREAD = "thread"


_SCOPES = {Scope.MESSAGE: "This message only", Scope.THREAD: "The whole thread"}
_PROMPT_HINT = "The agent gets these words as you write them."

PROMPT_MISSING = "Please write what the agent should do."
PROMPT_TOO_LONG = f"This is too long: at most {MAX_PROMPT:,} characters can be sent. Please shorten it."
CHANNEL_MISSING = "Please choose a channel: the job answers in a thread there."
COULD_NOT_OPEN = "The form could not be opened. Please try again."
COULD_NOT_FILL = "The form could not be filled in. Please close it and try again."
NOT_RECORDED_HERE = (
    "Pagehand could not note that down: its database is not available right now. Your text is still here; please press "
    "the button again in a minute."
)
MAX_CONTEXT_INPUTS = 6
CONTEXT_CHARACTERS, CONTEXT_WIDTH = 13_500, 15_000
"""How much of a conversation is shown for editing, and how wide it may be with what is said about it: the inputs have
room for that wherever its lines end.
"""


@dataclass(frozen=True)
class Drafted:
    """What a modal begins with: what was typed there before, and what the person prefers."""

    prompt: str = ""
    preference: Preference = field(default_factory=Preference)


@dataclass(frozen=True)
class ShownContext:
    """The context of a message that is handed over, as it will be sent.

    Attributes:
        text: The words, without secrets.
        masked: Which secrets were taken out.
        notes: What else is not in it.
        has_thread: There is more of the conversation than the message.
        unreadable: Pagehand cannot read the rest, since it is not in the channel.
        file_names: The files of the message.
    """

    text: str
    masked: tuple[str, ...] = ()
    notes: ContextNotes = field(default_factory=ContextNotes)
    has_thread: bool = False
    unreadable: bool = False
    file_names: tuple[str, ...] = ()


def new_job_modal(place: ModalPlace, drafted: Drafted, projects: Sequence[str]) -> View:
    """The modal for a new job; without a channel it asks for one."""
    where = f"The job answers in a thread in <#{place.channel_id}>."
    channel = context_block([where]) if place.channel_id else channel_input()
    blocks = [
        prompt_input("What should be done?", drafted.prompt, hint=_PROMPT_HINT),
        *project_input(projects, drafted.preference.project),
        channel,
        telling_input(drafted.preference),
    ]
    return _modal(Callback.NEW_JOB, "New job", "Start", place, blocks)


def hand_over_modal(place: ModalPlace, drafted: Drafted, projects: Sequence[str], context: ShownContext) -> View:
    """The modal for a message that is handed over: with the context as it will be sent, to be edited."""
    scope = Scope(place.scope or Scope.MESSAGE)
    options = {each: option(words, each) for each, words in _SCOPES.items()}
    choice = [choice_input(Input.SCOPE, "What goes along?", [*options.values()], options[scope])]
    blocks = [
        prompt_input("What should be done?", drafted.prompt, hint=_PROMPT_HINT),
        *(choice if context.has_thread else []),
        *_context_inputs(scope, context.text),
        *(context_block([words]) for words in _remarks(context)),
        *project_input(projects, drafted.preference.project),
        telling_input(drafted.preference),
    ]
    return _modal(Callback.HAND_OVER, "Hand to Pagehand", "Start", place, blocks)


def follow_up_modal(place: ModalPlace, drafted: Drafted) -> View:
    """The modal in which to steer a job."""
    blocks = [prompt_input("What should the agent do next?", drafted.prompt, hint=_PROMPT_HINT)]
    return _modal(Callback.FOLLOW_UP, "Follow up", "Send", place, blocks)


def settings_modal(preference: Preference, projects: Sequence[str]) -> View:
    """The modal for what somebody prefers."""
    blocks = [*project_input(projects, preference.project), telling_input(preference)]
    return _modal(Callback.SETTINGS, "Your defaults", "Save", ModalPlace(), blocks)


def loading_modal() -> View:
    """What is there at once, till the rest is known."""
    return message_modal("One moment…")


def message_modal(text: str) -> View:
    """A modal that says something, and can only be closed. `text` is escaped."""
    return {"type": "modal", "title": plain_text("Pagehand"), "close": plain_text("Close"), "blocks": [section(text)]}


def secret_found(kinds: Sequence[str]) -> str:
    """The error at a context that holds secrets after it was edited."""
    return f"This looks like it holds a secret ({', '.join(kinds)}). Please take it out: it would leave Slack."


def context_fields(text: str) -> list[str]:
    """Returns the text in pieces that fit into inputs, cut between lines where one ends near; joined by line breaks,
    they are the text again.
    """
    fields: list[str] = []
    rest = text
    while rest and len(fields) < MAX_CONTEXT_INPUTS:
        head = fitting(rest, MAX_INPUT)
        at = head.rfind("\n", len(head) * 5 // 6) if len(head) < len(rest) else len(head)
        fields.append(head[:at] if at > 0 else head)
        rest = rest[at + 1 :] if at > 0 else rest[len(head) :]
    return fields


def _context_inputs(scope: Scope, text: str) -> list[Block]:
    fields = context_fields(text) if text else []
    label = "Context, as the agent gets it"
    labels = [
        label if len(fields) == 1 else f"{label} ({number} of {len(fields)})" for number in range(1, 1 + len(fields))
    ]
    return [
        text_input(f"{Input.CONTEXT}/{scope}/{number}", label, field, optional=True)
        for number, (label, field) in enumerate(zip(labels, fields, strict=True))
    ]


def _remarks(context: ShownContext) -> list[str]:
    """What the person should know of the context."""
    remarks = []
    if context.masked:
        remarks.append(f"Masked, so that it stays in Slack: {', '.join(context.masked)}.")
    if context.unreadable:
        remarks.append("Pagehand is not in this channel, so it cannot read the thread: only this message goes along.")
    if context.notes.messages_left_out or context.notes.words_left_out:
        remarks.append("Not all of the conversation has room here: what came last is kept.")
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
