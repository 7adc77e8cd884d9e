"""What somebody is told or asked before a request of theirs goes to the agent, or in place of that. Pure."""

from itertools import accumulate
from typing import assert_never

from bot.domain.notices.questions import HelpRequested, ProjectAsked, Question, ReplyHeld, RequestRefused, StopAsked
from bot.domain.permissions import Refusal
from bot.domain.requests import RequestKind
from bot.domain.thread_words import ThreadWord
from bot.domain.threads import Thread
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
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import ELLIPSIS, moment, one_line, opening, quote

_LABEL = 75
"""Slack's limit for the words on a button."""
_MAX_CHOICES = 9_000
"""Characters of all choices: Slack refuses blocks that are too long together (its limit is not documented)."""
_WHY = {
    Refusal.GUEST: "guests of this workspace may not use Pagehand here. To change that, ask {ask} to allow guests.",
    Refusal.OTHER_ORGANIZATION: "only people of the workspace that Pagehand belongs to may do that. Ask somebody there "
    "to do it for you.",
    Refusal.NOT_A_PERSON: "only people may do that, with an account that is not switched off.",
    Refusal.SHARED_CHANNEL: "people of other organizations are in this channel, and Pagehand is not set up for that. "
    "Do it in another channel, or ask {ask} to allow shared channels.",
    Refusal.NOT_ON_THE_LIST: "only certain people may, and you are not among them. Ask {ask} to add you, or a user "
    "group of yours.",
    Refusal.CHANNEL_NOT_ON_THE_LIST: "Pagehand is for certain channels only, and this is none of them. Do it in one of "
    "those, or ask {ask} to add this one.",
    Refusal.TOO_MANY: "you have asked for {limit} things within the last hour, and that is as much as one person may. "
    "Please ask again {later}.",
    Refusal.PERSON_UNKNOWN: "Slack does not say who you are, so Pagehand cannot tell whether you may. Try again in a "
    "while; if that does not help, ask {ask} to check that the app is granted the scope users:read.",
    Refusal.CHANNEL_UNKNOWN: "Slack does not say what kind of channel this is, so Pagehand cannot tell whether it may "
    "work here. Invite it with `/invite` {bot} and try again; if that does not help, ask {ask} to check that the app "
    "is granted the scopes channels:read and groups:read.",
    Refusal.NOT_A_PARTICIPANT: "only somebody who asked for this job or steered it can do that.",
    Refusal.NOT_THE_WRITER: "only the person who wrote the reply can.",
}
_WANTED = {
    RequestKind.START: "No job was started",
    RequestKind.RETRY: "No job was started",
    RequestKind.FOLLOW_UP: "Your reply was not sent",
    RequestKind.SEND_NEW_WORDS: "Your new words were not sent",
}


def question(thread: Thread, message: Question, message_context: MessageContext) -> Message:
    """What each of them says."""
    match message:
        case RequestRefused():
            return _refused(message, message_context)
        case ReplyHeld():
            return _held(message)
        case ProjectAsked():
            return _which_project(message)
        case StopAsked():
            return _whether_to_stop(thread)
        case HelpRequested(meant=ThreadWord() as meant):
            return paragraph(word_meant(meant))
        case HelpRequested():
            return paragraph(_help(thread, message_context))
        case _:
            assert_never(message)


def _refused(message: RequestRefused, message_context: MessageContext) -> Message:
    later = "in a while" if message.free_at is None else f"after {moment(message.free_at)}"
    why = _WHY[message.refusal].format(
        ask=message_context.ask, bot=message_context.bot, limit=message.limit, later=later
    )
    said = f"\nYou wrote:\n{_quoted(message.text)}" if message.text.strip() else ""
    return paragraph(f"{_WANTED.get(message.wanted, 'That was not done')}: {why}{said}")


def _held(message: ReplyHeld) -> Message:
    request = message.request_id[:MAX_VALUE]
    buttons = (
        button("Send", SEND_HELD, request),
        button("Send all of mine here", SEND_ALL_HELD, request),
        button("No", DISCARD_HELD, request),
    )
    ask = f"Send this to the agent?\n{_quoted(message.text)}"
    return paragraph(ask, *buttons) if request else paragraph(ask)


def _whether_to_stop(thread: Thread) -> Message:
    return paragraph("Stop this job? You have not taken part in it.", button("Stop it", STOP_JOB, thread.id))


def _which_project(message: ProjectAsked) -> Message:
    said = f"There is no project called {one_line(message.said, 100)}. " if message.said.strip() else ""
    words = f"{said}Which project is this for? It waits for your answer.\n{_quoted(message.text)}"
    choices = {name: f"{message.thread_id}/{name}" for name in message.projects if name.strip()}
    fitting = _with_room({name: value for name, value in choices.items() if len(value) <= MAX_OPTION_VALUE})
    if left_out := len(message.projects) - len(fitting):
        words = f"{words}\n{left_out} more have no room here. To choose one, ask again with `project:NAME` in front."
    return paragraph(words, *_choices(fitting)) if fitting else paragraph(words)


def _with_room(choices: dict[str, str]) -> dict[str, str]:
    """The first of them that are not too long together."""
    widths = accumulate(len(_label(name)) + len(value) for name, value in choices.items())
    return dict(each for each, used in zip(choices.items(), widths, strict=True) if used <= _MAX_CHOICES)


def _choices(values: dict[str, str]) -> tuple[Block, ...]:
    """A button each where there are few, and else a menu."""
    if len(values) <= len(CHOOSE_PROJECT_BUTTONS):
        ids = zip(CHOOSE_PROJECT_BUTTONS, values.items(), strict=False)
        return tuple(button(_label(name), action_id, value) for action_id, (name, value) in ids)
    return (select(CHOOSE_PROJECT, "Choose a project", {_label(name): value for name, value in values.items()}),)


def _label(name: str) -> str:
    return " ".join(displayable(name).split())[:_LABEL] or ELLIPSIS


def _help(thread: Thread, message_context: MessageContext) -> str:
    mention = f" that mention {message_context.bot}" if thread.origin == "conversation" else ""
    return "\n".join(
        (
            f"*In this thread,* replies{mention} go to the agent. By themselves, these words are for Pagehand:",
            "• `!status`: how the job is · `!stop`: stop it · `!retry`: start it again, if it failed",
            "• `!mute`: send no replies, and tell only failures and pull requests · `!unmute`",
            "• `!new` and a task: another job in this thread",
            "• What begins with `//` stays between people.",
        )
    )


def _quoted(text: str) -> str:
    shown, cut = opening(text, characters=300, lines=4)
    return quote(shown + (ELLIPSIS if cut else ""))
