"""The card of a job, which always shows its newest state: a thread's first message, or a reply in another thread."""

from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread, ThreadState
from bot.notices.card import CardState, asked, facts, job_state, state_of
from bot.notices.job import changed_pages
from bot.notices.said import ELLIPSIS
from bot.slack.rendering.blocks import MAX_TEXT, ChatMessage, actions, context_block, section
from bot.slack.rendering.card_buttons import card_buttons
from bot.slack.rendering.message_context import MessageContext, SlackRenderer
from bot.slack.rendering.text import opening, pieces, quote, shorten

_SHOWN_CHARACTERS, _SHOWN_LINES = 300, 4


def card(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> ChatMessage:
    """The card of a thread as it is now."""
    show, several_projects = SlackRenderer(message_context), message_context.several_projects
    state = state_of(show, thread, several_projects=several_projects)
    shown, cut = opening(thread.prompt, characters=_SHOWN_CHARACTERS, lines=_SHOWN_LINES)
    prompt = quote(pieces(shown + (ELLIPSIS if cut else ""), 2_500)[0] if shown else ELLIPSIS)
    known = facts(show, thread, follow_ups, several_projects=several_projects)
    pages = changed_pages(show, thread.state.work.progress.changes)
    blocks = [
        section(state.shown(show)),
        section(f"{asked(show, thread)}\n{prompt}"),
        *([section(pages)] if pages else []),
        context_block(known),
        actions(*card_buttons(thread, several_projects=several_projects)),
    ]
    return ChatMessage(_text(show, thread, state, shown, [*known, *_sentences(pages)]), tuple(blocks))


def status_text(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts) -> str:
    """The same facts as the card's, as text of one paragraph."""
    show, several_projects = SlackRenderer(message_context), message_context.several_projects
    state = state_of(show, thread, several_projects=several_projects)
    return "\n".join([state.shown(show), *facts(show, thread, follow_ups, several_projects=several_projects)])


def state_line(state: ThreadState, message_context: MessageContext) -> str:
    """Returns the state of the job, claiming no more than the status that the job API reports."""
    show = SlackRenderer(message_context)
    return job_state(show, state).shown(show)


def _text(show: SlackRenderer, thread: Thread, state: CardState, prompt: str, rest: list[str]) -> str:
    """Returns the text for notifications and screen readers: the state, and as many other facts as fit."""
    text = f"{state.spoken(show)}\n{asked(show, thread)} {shorten(prompt, 1_200)}\n"
    for sentence in rest:
        if len(text) + len(sentence) + 2 <= MAX_TEXT:
            text += f"{sentence.rstrip('.')}. "
    return text.rstrip(" ")


def _sentences(pages: str) -> list[str]:
    """The changed pages as one sentence."""
    title, *listed = pages.split("\n")
    return [f"{title} {', '.join(line.removeprefix('• ') for line in listed)}"] if listed else [title] * bool(title)
