"""Messages for one person: before a request of theirs is sent to the agent, instead of that, or about it. Pure."""

from itertools import accumulate

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.people.permissions import Refusal
from bot.domain.requests.request import HeldBecause, RequestKind
from bot.domain.threads.thread import FollowUpCounts, Thread
from bot.notices.answers import (
    ActionAnswered,
    AnswerRequested,
    CardNotPosted,
    HelpRequested,
    JobIdRequested,
    PromptRequested,
    StatusRequested,
)
from bot.notices.notice import ToPerson
from bot.notices.questions import (
    EditWithoutEffect,
    HeldAsked,
    HeldQuestion,
    JobOrReplyAsked,
    ProjectAsked,
    ReplyEdited,
    ReplyHeld,
    RequestRefused,
    StopAsked,
)
from bot.runtime.text import displayable
from bot.slack.rendering.agent_markdown import defused, markdown_pieces
from bot.slack.rendering.blocks import (
    CHOOSE_PROJECT,
    CHOOSE_PROJECT_BUTTONS,
    DISCARD_HELD,
    MAX_OPTION_VALUE,
    MAX_VALUE,
    SEND_ALL_HELD,
    SEND_HELD,
    SEND_NEW_WORDS,
    STOP_JOB,
    Block,
    ChatMessage,
    button,
    markdown,
    paragraph,
    section,
    select,
)
from bot.slack.rendering.cards import status_text
from bot.slack.rendering.ephemeral_texts import help_in_thread, word_meant
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import ELLIPSIS, Markup, escape, joined, moment, one_line, opening, pieces, quote, shorten
from bot.slack.rendering.words import answers, questions

_LABEL = 75
"""Slack's limit for the words on a button."""
_MAX_CHOICES = 9_000
"""Characters of all choices: Slack refuses blocks that are too long together (its limit is not documented)."""


def to_person(  # noqa: C901, PLR0912 - a branch for each kind
    thread: Thread, message: ToPerson, follow_ups: FollowUpCounts, message_context: MessageContext
) -> list[ChatMessage]:
    """Returns the messages for one person."""
    match message:
        case PromptRequested():
            made = _whole_prompt(message)
        case AnswerRequested():
            made = _whole_answer(message)
        case StatusRequested():
            made = [paragraph(status_text(thread, message_context, follow_ups))]
        case JobIdRequested():
            made = [_job_id(thread)]
        case HelpRequested():
            said = word_meant(message.meant) if message.meant else help_in_thread(thread, message_context)
            made = [paragraph(said)]
        case ActionAnswered():
            made = [_answer(message, message_context)]
        case CardNotPosted():
            made = [_card_not_posted(thread, message, message_context)]
        case RequestRefused():
            made = [_refused(message, message_context)]
        case ReplyEdited():
            made = [_edited(message)]
        case EditWithoutEffect():
            made = [_without_effect(message)]
        case ReplyHeld() | JobOrReplyAsked() | HeldAsked():
            made = [paragraph(held_question(message), *held_choices(message))]
        case ProjectAsked():
            made = [_which_project(message)]
        case StopAsked():
            made = [paragraph(questions.STOP_AS_OUTSIDER, button(questions.STOP_IT, STOP_JOB, thread.id))]
        case _:
            raise ValueError(f"{message.kind} is unknown")
    return made


def _refused(message: RequestRefused, message_context: MessageContext) -> ChatMessage:
    refused = refusal(message, message_context)
    said = message.text.strip()
    return paragraph(questions.YOU_WROTE(why=refused, text=_quoted(message.text)) if said else refused)


def refusal(message: RequestRefused, message_context: MessageContext) -> Markup:
    """Returns what was refused, and why."""
    what = questions.REFUSED_KINDS.get(message.wanted, questions.REFUSED_OTHERWISE)
    return questions.REFUSED(what=what, why=_why(message, message_context))


def _why(message: RequestRefused, message_context: MessageContext) -> Markup:
    if message.refusal is Refusal.OTHER_ORGANIZATION and message.wanted is RequestKind.FOLLOW_UP:
        return questions.OUTSIDER_REPLIES(workspace=message_context.home_workspace)
    return questions.REFUSALS[message.refusal](
        ask=message_context.ask,
        bot=message_context.bot,
        later=questions.IN_A_WHILE if message.free_at is None else questions.AFTER(time=moment(message.free_at)),
        limit=message.limit,
        workspace=message_context.home_workspace,
    )


def _edited(message: ReplyEdited) -> ChatMessage:
    """Returns the offer to send a reply's new text."""
    shown, cut = opening(message.text, characters=300, lines=4)
    now = quote(shown + (ELLIPSIS if cut else ""))
    request = message.request_id[:2_000]
    buttons = (button(questions.SEND_NEW_VERSION, SEND_NEW_WORDS, request),) if request else ()
    return paragraph(questions.EDITED[message.earlier](text=now), *buttons)


def _without_effect(message: EditWithoutEffect) -> ChatMessage:
    if message.word is None:
        told = questions.WORDS_BY_EDIT(text=quote(opening(message.text, characters=300, lines=4)[0]))
    elif message.word is ThreadWord.NEW:
        told = questions.NEW_BY_EDIT()
    else:
        told = questions.WORD_BY_EDIT(word=escape(message.word))
    return paragraph(told if message.before is None else joined([told, questions.WORDS_BEFORE[message.before]], " "))


def held_question(message: HeldQuestion) -> Markup:
    """Returns the question about a request that waits for its person."""
    match message:
        case ReplyHeld():
            return questions.SEND_TO_AGENT(text=_quoted(message.text))
        case JobOrReplyAsked():
            return questions.JOB_OR_REPLY(text=_quoted(message.text))
        case HeldAsked(because=HeldBecause.STOPPED):
            return questions.STOPPED_BEFORE(text=_quoted(message.text))
        case HeldAsked(wanted=RequestKind.STOP):
            return questions.LATE_STOP
        case HeldAsked(wanted=RequestKind.START | RequestKind.FOLLOW_UP):
            return questions.LATE(text=_quoted(message.text))
        case HeldAsked():
            return questions.LATE_WORD(word=questions.WORDS.get(message.wanted, questions.SOMETHING))
        case _:
            raise ValueError(f"{message.kind} is unknown")


def held_choices(message: HeldQuestion) -> tuple[Block, ...]:
    """Returns the buttons below such a question."""
    request = message.request_id[:MAX_VALUE]
    match message:
        case ReplyHeld():
            choices = {
                SEND_HELD: questions.SEND,
                SEND_ALL_HELD: questions.SEND_ALL,
                DISCARD_HELD: questions.DO_NOT_SEND,
            }
        case JobOrReplyAsked():
            choices = {DISCARD_HELD: questions.NEW_JOB, SEND_HELD: questions.ADD_TO_JOB}
        case HeldAsked(because=HeldBecause.STOPPED):
            choices = {SEND_HELD: questions.SEND_ANYWAY, DISCARD_HELD: questions.DO_NOT_SEND}
        case HeldAsked(wanted=RequestKind.STOP):
            choices = {SEND_HELD: questions.STOP_NOW, DISCARD_HELD: questions.DO_NOT_STOP}
        case HeldAsked(wanted=RequestKind.START | RequestKind.FOLLOW_UP):
            choices = {SEND_HELD: questions.SEND_IT, DISCARD_HELD: questions.DO_NOT_SEND}
        case HeldAsked():
            choices = {SEND_HELD: questions.DO_IT_NOW, DISCARD_HELD: questions.DO_NOT}
        case _:
            raise ValueError(f"{message.kind} is unknown")
    return tuple(button(label, action_id, request) for action_id, label in choices.items()) if request else ()


def _which_project(message: ProjectAsked) -> ChatMessage:
    text = _quoted(message.text)
    ask = questions.SWITCH_PROJECT(text=text) if message.current else questions.WHICH_PROJECT(text=text)
    if message.said.strip():
        ask = questions.NO_SUCH_PROJECT(name=one_line(message.said, 100), ask=ask)
    choices = {name: f"{message.thread_id}/{name}" for name in message.projects if name.strip()}
    fitting = _with_room({name: value for name, value in choices.items() if len(value) <= MAX_OPTION_VALUE})
    if left_out := len(message.projects) - len(fitting):
        ask = questions.PROJECTS_LEFT_OUT(ask=ask, count=left_out)
    return paragraph(ask, *_choices(fitting)) if fitting else paragraph(ask)


def _with_room(choices: dict[str, str]) -> dict[str, str]:
    """The first of them that are not too long together."""
    widths = accumulate(len(_label(name)) + len(value) for name, value in choices.items())
    return dict(each for each, used in zip(choices.items(), widths, strict=True) if used <= _MAX_CHOICES)


def _choices(values: dict[str, str]) -> tuple[Block, ...]:
    """Returns a button for each if there are few, otherwise a menu."""
    if len(values) <= len(CHOOSE_PROJECT_BUTTONS):
        ids = zip(CHOOSE_PROJECT_BUTTONS, values.items(), strict=False)
        return tuple(button(_label(name), action_id, value) for action_id, (name, value) in ids)
    return (select(CHOOSE_PROJECT, questions.CHOOSE_PROJECT, {_label(name): value for name, value in values.items()}),)


def _label(name: str) -> str:
    return " ".join(displayable(name).split())[:_LABEL] or ELLIPSIS


def _quoted(text: str) -> Markup:
    shown, cut = opening(text, characters=300, lines=4)
    return quote(shown + (ELLIPSIS if cut else ""))


_PROMPT_PIECE, _PIECES_A_MESSAGE = 2_800, 3
"""Slack refuses messages whose blocks are too long together (its limit is not documented): stay under 9,000."""
_ANSWER_PIECE = 7_000
"""Characters of Markdown in one message: defusing makes it a little longer."""
_NOT_INVITED = frozenset(
    {"", "not_in_channel", "channel_not_found", "method_not_supported_for_channel_type", "private"}
)


def _answer(message: ActionAnswered, message_context: MessageContext) -> ChatMessage:
    """The answer to a click, or to a reply that is not sent."""
    told = answers.ANSWERS[message.answer](workspace=message_context.home_workspace)
    if not message.text:
        return paragraph(told)
    return paragraph(answers.ABOUT(told=told, reply=quote(opening(message.text, characters=150, lines=2)[0])))


def _job_id(thread: Thread) -> ChatMessage:
    """The job's id, as text to copy."""
    job = thread.state.job
    return paragraph(answers.NO_JOB_ID if job is None else answers.JOB_ID(id=one_line(job.id, 1_000)))


def in_doubt(message: ChatMessage) -> ChatMessage:
    """A message that may be in the thread already."""
    return ChatMessage(f"{answers.MAY_BE_POSTED}\n{message.text}", (section(answers.MAY_BE_POSTED), *message.blocks))


def _card_not_posted(thread: Thread, message: CardNotPosted, message_context: MessageContext) -> ChatMessage:
    """Returns why no job was started, and what to do about it, with the prompt, because there is no card for it."""
    asked = quote(opening(thread.prompt, characters=300, lines=4)[0])
    return paragraph(answers.YOU_ASKED(why=_why_no_card(thread, message, message_context), request=asked))


def _why_no_card(thread: Thread, message: CardNotPosted, message_context: MessageContext) -> Markup:
    job = answers.JOB_STOPPED if message.may_have_job else answers.NO_JOB
    if message.reason in _NOT_INVITED:
        outside = thread.channel_id.startswith("D")
        return (
            answers.OUTSIDE_DIRECT_MESSAGE(job=job)
            if outside
            else answers.OUTSIDE_CHANNEL(job=job, bot=message_context.bot)
        )
    if message.reason == "is_archived":
        return answers.CHANNEL_ARCHIVED(job=job)
    if message.reason == "thread_not_found":
        return answers.THREAD_GONE(job=job)
    if message.missing_scopes:
        scopes = one_line(", ".join(message.missing_scopes), 200)
        if message.may_be_posted:
            return answers.SCOPES_MISSING_CARD_IN_DOUBT(job=job, scopes=scopes, ask=message_context.ask)
        return answers.SCOPES_MISSING(job=job, scopes=scopes, ask=message_context.ask)
    return answers.MAY_NOT_POST(job=job, reason=one_line(message.reason, 100), ask=message_context.ask)


def _whole_answer(message: AnswerRequested) -> list[ChatMessage]:
    """Returns an agent's whole answer, in as many messages as it needs; or why it cannot be shown."""
    if message.missing is not None:
        return [paragraph(answers.WHOLE_ANSWER_MISSING[message.missing])]
    shown = [part for part in map(defused, markdown_pieces(message.text, _ANSWER_PIECE)) if part.strip()]
    made = []
    for number, part in enumerate(shown or [answers.EMPTY]):
        title = answers.CONTINUED if number else answers.WHOLE_ANSWER
        made.append(ChatMessage(f"{title}\n{shorten(part, 3_000)}", (section(title), markdown(part))))
    return made


def _whole_prompt(message: PromptRequested) -> list[ChatMessage]:
    """Returns a whole prompt, in as many messages as it needs."""
    parts = pieces(message.prompt, _PROMPT_PIECE) or [answers.EMPTY]
    made = []
    for start in range(0, len(parts), _PIECES_A_MESSAGE):
        group = parts[start : start + _PIECES_A_MESSAGE]
        title = answers.WHOLE_REQUEST if start == 0 else answers.CONTINUED
        made.append(
            ChatMessage(f"{title}\n{shorten(group[0], 3_000)}", (section(title), *(section(quote(p)) for p in group)))
        )
    return made
