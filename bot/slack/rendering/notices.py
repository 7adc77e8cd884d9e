"""The messages of each notice: its words and buttons as blocks of Slack, and what only blocks can show. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from bot.domain.delivery import person_mentioned
from bot.domain.jobs.job import LONGEST_LABEL, Answer, JobReport, QuestionField
from bot.domain.projects import ChannelSettings
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread, ThreadOrigin
from bot.notices.answers import CONTINUED, EMPTY, AnswerRequested, PostNotDelivered, PromptRequested, StatusRequested
from bot.notices.job import SHOW_ALL, JobEnd, PullRequestFound, QuestionAsked, asked, failed_checks
from bot.notices.notice import Notice, NoticeContent
from bot.notices.pictures import PicturesShown
from bot.notices.proposals import ProposalMade
from bot.notices.pull_requests import PullRequestNews
from bot.notices.questions import CHOOSE_PROJECT as CHOOSE_LABEL
from bot.notices.questions import ProjectAsked
from bot.notices.said import ELLIPSIS, Said
from bot.runtime.text import displayable
from bot.slack.rendering import blocks
from bot.slack.rendering.agent_markdown import defused, markdown_pieces
from bot.slack.rendering.blocks import Block, ChatMessage
from bot.slack.rendering.cards import status_text
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modals import MAX_CHOICES, answer_choices, fits_a_button
from bot.slack.rendering.text import pieces, quote, shorten

_PROMPT_PIECE, _PIECES_A_MESSAGE = 2_800, 3
"""Slack refuses messages whose blocks are too long together (its limit is not documented): stay under 9,000."""
_ANSWER_PIECE, _MAX_ANSWER = 7_000, 1_500
"""Characters of Markdown in one message, and below an end: defusing makes it a little longer."""


def messages(
    thread: Thread,
    notice: Notice,
    message_context: MessageContext,
    *,
    follow_ups: FollowUpCounts = NO_FOLLOW_UPS,
    settings: ChannelSettings | None = None,
) -> list[ChatMessage]:
    """Returns the messages of a notice: one, except for long texts that somebody asked to see. Without `settings`,
    the default settings of channels apply.
    """
    among_others = thread.origin is ThreadOrigin.CONVERSATION
    message, show = notice.message, replace(message_context, among_others=among_others)
    may_be_posted = isinstance(message, PostNotDelivered) and message.may_be_posted
    if isinstance(message, PostNotDelivered):
        message = message.post
    if isinstance(message, JobEnd | PullRequestFound | PullRequestNews):
        mentioned = person_mentioned(thread, message, settings or ChannelSettings())
        show = replace(show, mentioned=mentioned)
    made = [blocks.paragraph(status_text(thread, message_context, follow_ups))]
    if not isinstance(message, StatusRequested):
        made = _made(thread, message, show)
    if may_be_posted:
        doubt = show(PostNotDelivered.words)
        made = [ChatMessage(f"{doubt}\n{each.text}", (blocks.section(doubt), *each.blocks)) for each in made]
    return [each.without_blocks() for each in made] if notice.without_blocks else made


def _made(thread: Thread, message: NoticeContent, show: MessageContext) -> list[ChatMessage]:
    match message:
        case PromptRequested():
            return _whole_prompt(message)
        case AnswerRequested():
            return _whole_answer(message)
        case _:
            return [_made_of_one(thread, message, show)]


def _made_of_one(thread: Thread, message: NoticeContent, show: MessageContext) -> ChatMessage:
    match message:
        case JobEnd():
            return _with_report(thread, message.tell(show, thread), message.report or JobReport(), show)
        case QuestionAsked():
            person = show.person(message.person_id or thread.requester_id)
            question, choices = _question(thread, message.question, message.fields, show)
            return blocks.paragraph(f"{person} {question}", *choices)
        case PicturesShown():
            return _with_pictures(message, show)
        case ProposalMade():
            return _with_answer(thread, message.tell(show, thread), message.text, [message.shown_pages(show)])
        case ProjectAsked():
            return _which_project(message, show)
        case _:
            said = message.tell(show, thread)
            return blocks.paragraph(said.words, *blocks.said_by(said.buttons))


def _with_report(thread: Thread, said: Said, report: JobReport, show: MessageContext) -> ChatMessage:
    """Returns the message about an end with its details as one message."""
    question, choices = _question(thread, report.question, report.question_fields, show)
    pairs = zip(blocks.SEND_EXAMPLES, filter(fits_a_button, report.examples), strict=False)
    examples = [blocks.button(prompt, action_id, f"{thread.id}/{prompt}") for action_id, prompt in pairs]
    sections = failed_checks(show, report.failed_checks), question
    return _with_answer(thread, said, report.answer, sections, [choices, examples])


def _with_answer(
    thread: Thread, said: Said, answer: Answer | None, sections: Sequence[str], rows: Sequence[list[Block]] = ()
) -> ChatMessage:
    """Returns words with the agent's below them, further paragraphs, and rows of buttons, those of the words last. Its
    text has the words, and those of the other parts that fit.
    """
    written, buttons = shorten(answer.text, _MAX_ANSWER) if answer else "", blocks.said_by(said.buttons)
    shown = defused(written)
    parts = [(written, blocks.markdown(shown))] if shown.strip() else []
    parts += [(each, blocks.section(each)) for each in sections if each]
    if answer is not None and answer.cut:
        buttons.append(blocks.button(SHOW_ALL, blocks.SHOW_ANSWER, f"{thread.id}/{answer.id}"))
    text = str(said.words)
    for part, _ in parts:
        text = f"{text}\n{part}" if len(text) + len(part) < blocks.MAX_TEXT else text
    below = [blocks.actions(*row) for row in (*rows, buttons) if row]
    return ChatMessage(text, (blocks.section(said.words), *(block for _, block in parts), *below))


def _with_pictures(message: PicturesShown, show: MessageContext) -> ChatMessage:
    """Returns the message with the pictures that Slack has; its text names them all."""
    shown = [each for each in message.pictures if each.file]
    images = (blocks.image(each.file, each.alt or each.path, each.path) for each in shown)
    return ChatMessage(message.words_beside(show, ()), (blocks.section(message.words_beside(show, shown)), *images))


def _question(
    thread: Thread, question: str, fields: Sequence[QuestionField], show: MessageContext
) -> tuple[str, list[Block]]:
    """Returns the agent's question, and what it can be answered with besides a reply; empty if there is none."""
    choices = answer_choices(thread, fields) if question else []
    return asked(show, question, choices=bool(choices)) if question else "", choices


def _which_project(message: ProjectAsked, show: MessageContext) -> ChatMessage:
    choices = {name: f"{message.thread_id}/{name}" for name in message.projects if name.strip()}
    fitting = _with_room({name: value for name, value in choices.items() if len(value) <= blocks.MAX_OPTION_VALUE})
    ask = message.asked(show, len(message.projects) - len(fitting))
    labelled = {_label(name): value for name, value in fitting.items()}
    shown = blocks.choices(blocks.CHOOSE_PROJECT_BUTTONS, blocks.CHOOSE_PROJECT, CHOOSE_LABEL, labelled)
    return blocks.paragraph(ask, *shown if fitting else ())


def _with_room(choices: dict[str, str]) -> dict[str, str]:
    """The first of them that are not too long together."""
    widths = accumulate(len(_label(name)) + len(value) for name, value in choices.items())
    return dict(each for each, used in zip(choices.items(), widths, strict=True) if used <= MAX_CHOICES)


def _label(name: str) -> str:
    return " ".join(displayable(name).split())[:LONGEST_LABEL] or ELLIPSIS


def _whole_answer(message: AnswerRequested) -> list[ChatMessage]:
    """Returns an agent's whole answer, in as many messages as it needs; or why it cannot be shown."""
    if message.missing is not None:
        return [blocks.paragraph(message.words_by_reason[message.missing])]
    shown = [part for part in map(defused, markdown_pieces(message.text, _ANSWER_PIECE)) if part.strip()]
    return _in_parts(message.words, [(part, [blocks.markdown(part)]) for part in shown or [EMPTY]])


def _whole_prompt(message: PromptRequested) -> list[ChatMessage]:
    """Returns a whole prompt, in as many messages as it needs."""
    parts = pieces(message.prompt, _PROMPT_PIECE) or [EMPTY]
    groups = (parts[start : start + _PIECES_A_MESSAGE] for start in range(0, len(parts), _PIECES_A_MESSAGE))
    return _in_parts(message.words, [(group[0], [blocks.section(quote(part)) for part in group]) for group in groups])


def _in_parts(words: str, parts: Sequence[tuple[str, list[Block]]]) -> list[ChatMessage]:
    """Returns a message for each part, which is a text and its blocks."""
    titles = (CONTINUED if number else words for number, _ in enumerate(parts))
    return [
        ChatMessage(f"{title}\n{shorten(text, 3_000)}", (blocks.section(title), *shown))
        for title, (text, shown) in zip(titles, parts, strict=True)
    ]
