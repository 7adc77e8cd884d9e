"""What is said to one person only. Pure."""

from bot.domain.notices.messages import (
    ActionAnswered,
    AnswerRequested,
    CardNotPosted,
    PromptRequested,
)
from bot.domain.threads.thread import Thread
from bot.slack.rendering.agent_markdown import defused, markdown_pieces
from bot.slack.rendering.blocks import Message, markdown, paragraph, section
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import Markup, one_line, opening, pieces, quote, shorten
from bot.slack.rendering.words import answers as words

_PROMPT_PIECE, _PIECES_A_MESSAGE = 2_800, 3
"""Slack refuses messages whose blocks are too long together (its limit is not documented): stay under 9,000."""
_ANSWER_PIECE = 7_000
"""Characters of Markdown in one message: defusing makes it a little longer."""
_NOT_INVITED = frozenset(
    {"", "not_in_channel", "channel_not_found", "method_not_supported_for_channel_type", "private"}
)


def answer(message: ActionAnswered, message_context: MessageContext) -> Message:
    """The answer to a click, or to a reply that is not sent."""
    told = words.ANSWERS[message.answer](workspace=message_context.home_workspace)
    if not message.text:
        return paragraph(told)
    return paragraph(words.ABOUT(told=told, reply=quote(opening(message.text, characters=150, lines=2)[0])))


def job_id(thread: Thread) -> Message:
    """The job's id, as text to copy."""
    job = thread.state.job
    return paragraph(words.NO_JOB_ID if job is None else words.JOB_ID(id=one_line(job.id, 1_000)))


def in_doubt(message: Message) -> Message:
    """A message that may be in the thread already."""
    return Message(f"{words.MAY_BE_POSTED}\n{message.text}", (section(words.MAY_BE_POSTED), *message.blocks))


def card_not_posted(thread: Thread, message: CardNotPosted, message_context: MessageContext) -> Message:
    """Why no job was started, and what to do about it; with what was asked for, since no card keeps it."""
    asked = quote(opening(thread.prompt, characters=300, lines=4)[0])
    return paragraph(words.YOU_ASKED(why=_why_no_card(thread, message, message_context), request=asked))


def _why_no_card(thread: Thread, message: CardNotPosted, message_context: MessageContext) -> Markup:
    if message.reason in _NOT_INVITED:
        outside = thread.channel_id.startswith("D")
        return words.OUTSIDE_DIRECT_MESSAGE if outside else words.OUTSIDE_CHANNEL(bot=message_context.bot)
    if message.reason == "is_archived":
        return words.CHANNEL_ARCHIVED
    if message.missing_scopes:
        scopes = one_line(", ".join(message.missing_scopes), 200)
        if message.may_be_posted:
            return words.SCOPES_MISSING_CARD_IN_DOUBT(scopes=scopes, ask=message_context.ask)
        return words.SCOPES_MISSING(scopes=scopes, ask=message_context.ask)
    return words.MAY_NOT_POST(reason=one_line(message.reason, 100), ask=message_context.ask)


def whole_answer(message: AnswerRequested) -> list[Message]:
    """All that an agent answered, in as many messages as it takes; or why that cannot be shown."""
    if message.missing is not None:
        return [paragraph(words.WHOLE_ANSWER_MISSING[message.missing])]
    shown = [part for part in map(defused, markdown_pieces(message.text, _ANSWER_PIECE)) if part.strip()]
    made = []
    for number, part in enumerate(shown or [words.EMPTY]):
        title = words.CONTINUED if number else words.WHOLE_ANSWER
        made.append(Message(f"{title}\n{shorten(part, 3_000)}", (section(title), markdown(part))))
    return made


def whole_prompt(message: PromptRequested) -> list[Message]:
    """All that was asked for, in as many messages as it takes."""
    parts = pieces(message.prompt, _PROMPT_PIECE) or [words.EMPTY]
    made = []
    for start in range(0, len(parts), _PIECES_A_MESSAGE):
        group = parts[start : start + _PIECES_A_MESSAGE]
        title = words.WHOLE_REQUEST if start == 0 else words.CONTINUED
        made.append(
            Message(f"{title}\n{shorten(group[0], 3_000)}", (section(title), *(section(quote(p)) for p in group)))
        )
    return made
