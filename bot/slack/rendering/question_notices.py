"""What somebody is told or asked before a request of theirs goes to the agent, or in place of that. Pure."""

from itertools import accumulate
from typing import assert_never

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.notices.questions import (
    HelpRequested,
    JobOrReplyAsked,
    ProjectAsked,
    Question,
    ReplyHeld,
    RequestRefused,
    StopAsked,
)
from bot.domain.people.permissions import Refusal
from bot.domain.requests.request import RequestKind
from bot.domain.threads.thread import Thread
from bot.runtime.misleading_characters import displayable
from bot.slack.rendering.blocks import (
    CHOOSE_PROJECT,
    CHOOSE_PROJECT_BUTTONS,
    DISCARD_HELD,
    MAX_OPTION_VALUE,
    MAX_VALUE,
    SEND_ALL_HELD,
    SEND_HELD,
    STOP_JOB,
    Block,
    Message,
    button,
    paragraph,
    select,
)
from bot.slack.rendering.ephemeral_texts import word_meant
from bot.slack.rendering.help import help_in_thread
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import ELLIPSIS, Markup, moment, one_line, opening, quote
from bot.slack.rendering.words import questions as words

_LABEL = 75
"""Slack's limit for the words on a button."""
_MAX_CHOICES = 9_000
"""Characters of all choices: Slack refuses blocks that are too long together (its limit is not documented)."""


def question(thread: Thread, message: Question, message_context: MessageContext) -> Message:
    """What each of them says."""
    match message:
        case RequestRefused():
            return _refused(message, message_context)
        case ReplyHeld() | JobOrReplyAsked():
            return _held(message)
        case ProjectAsked():
            return _which_project(message)
        case StopAsked():
            return paragraph(words.STOP_AS_OUTSIDER, button(words.STOP_IT, STOP_JOB, thread.id))
        case HelpRequested(meant=ThreadWord() as meant):
            return paragraph(word_meant(meant))
        case HelpRequested():
            return paragraph(help_in_thread(thread, message_context))
        case _:
            assert_never(message)


def _refused(message: RequestRefused, message_context: MessageContext) -> Message:
    refused = refusal(message, message_context)
    said = message.text.strip()
    return paragraph(words.YOU_WROTE(why=refused, text=_quoted(message.text)) if said else refused)


def refusal(message: RequestRefused, message_context: MessageContext) -> Markup:
    """What did not happen, and why not."""
    what = words.REFUSED_KINDS.get(message.wanted, words.REFUSED_OTHERWISE)
    return words.REFUSED(what=what, why=_why(message, message_context))


def _why(message: RequestRefused, message_context: MessageContext) -> Markup:
    if message.refusal is Refusal.OTHER_ORGANIZATION and message.wanted is RequestKind.FOLLOW_UP:
        return words.OUTSIDER_REPLIES(workspace=message_context.home_workspace)
    return words.REFUSALS[message.refusal](
        ask=message_context.ask,
        bot=message_context.bot,
        later=words.IN_A_WHILE if message.free_at is None else words.AFTER(time=moment(message.free_at)),
        limit=message.limit,
        workspace=message_context.home_workspace,
    )


def _held(message: ReplyHeld | JobOrReplyAsked) -> Message:
    request = message.request_id[:MAX_VALUE]
    if isinstance(message, JobOrReplyAsked):
        choices = (button(words.NEW_JOB, DISCARD_HELD, request), button(words.ADD_TO_JOB, SEND_HELD, request))
        return paragraph(words.JOB_OR_REPLY(text=_quoted(message.text)), *(choices if request else ()))
    buttons = (
        button(words.SEND, SEND_HELD, request),
        button(words.SEND_ALL, SEND_ALL_HELD, request),
        button(words.DO_NOT_SEND, DISCARD_HELD, request),
    )
    return paragraph(words.SEND_TO_AGENT(text=_quoted(message.text)), *(buttons if request else ()))


def _which_project(message: ProjectAsked) -> Message:
    text = _quoted(message.text)
    ask = words.SWITCH_PROJECT(text=text) if message.current else words.WHICH_PROJECT(text=text)
    if message.said.strip():
        ask = words.NO_SUCH_PROJECT(name=one_line(message.said, 100), ask=ask)
    choices = {name: f"{message.thread_id}/{name}" for name in message.projects if name.strip()}
    fitting = _with_room({name: value for name, value in choices.items() if len(value) <= MAX_OPTION_VALUE})
    if left_out := len(message.projects) - len(fitting):
        ask = words.PROJECTS_LEFT_OUT(ask=ask, count=left_out)
    return paragraph(ask, *_choices(fitting)) if fitting else paragraph(ask)


def _with_room(choices: dict[str, str]) -> dict[str, str]:
    """The first of them that are not too long together."""
    widths = accumulate(len(_label(name)) + len(value) for name, value in choices.items())
    return dict(each for each, used in zip(choices.items(), widths, strict=True) if used <= _MAX_CHOICES)


def _choices(values: dict[str, str]) -> tuple[Block, ...]:
    """A button each where there are few, and else a menu."""
    if len(values) <= len(CHOOSE_PROJECT_BUTTONS):
        ids = zip(CHOOSE_PROJECT_BUTTONS, values.items(), strict=False)
        return tuple(button(_label(name), action_id, value) for action_id, (name, value) in ids)
    return (select(CHOOSE_PROJECT, words.CHOOSE_PROJECT, {_label(name): value for name, value in values.items()}),)


def _label(name: str) -> str:
    return " ".join(displayable(name).split())[:_LABEL] or ELLIPSIS


def _quoted(text: str) -> Markup:
    shown, cut = opening(text, characters=300, lines=4)
    return quote(shown + (ELLIPSIS if cut else ""))
