"""What is said about replies that held more than words, or were changed after they were sent. Pure."""

from bot.domain.notices.messages import ReplyEdited
from bot.domain.notices.posts import ContextCut, ReplyNotFullySent
from bot.slack.rendering.blocks import SEND_NEW_WORDS, Message, button, paragraph
from bot.slack.rendering.text import ELLIPSIS, NOTHING, Markup, joined, one_line, opening, person, quote
from bot.slack.rendering.words import questions
from bot.slack.rendering.words import requests as words

_MAX_NAME, _MOST_NAMES = 100, 5


def not_fully_sent(message: ReplyNotFullySent) -> Message:
    """What of a reply was not sent, and what to do about it."""
    who, files = person(message.person_id), _files(message)
    held = files or words.FORWARDED_MESSAGE
    if files and message.forwarded:
        held = words.BOTH(one=files, other=words.FORWARDED_MESSAGE)
    if not (files or message.forwarded):
        said = words.NO_WORDS_TO_SEND(who=who)
    elif message.words_sent:
        said = words.TEXT_ONLY_SENT(who=who, held=held)
    else:
        said = words.NOTHING_TO_SEND(who=who, held=held)
    return paragraph(said.strip())


def context_cut(message: ContextCut) -> Message:
    """What of all that belongs to a request the agent does not get."""
    lines = [
        *([words.LINK_ONLY(names=_names(message.link_only))] if message.link_only else []),
        *([words.NAME_ONLY(names=_names(message.name_only))] if message.name_only else []),
        *([words.THREAD_UNREAD] if message.thread_unread else []),
        *([words.CUT_FILES(names=_names(message.cut_files))] if message.cut_files else []),
        *([words.LEFT_OUT] if message.left_out else []),
        *([words.MASKED(kinds=_kinds(message.masked))] if message.masked else []),
    ]
    return paragraph(words.NOT_ALL_SENT(who=person(message.person_id), list=joined(lines, "\n")).strip())


def edited(message: ReplyEdited) -> Message:
    """The offer to send what a reply says after it was changed."""
    shown, cut = opening(message.text, characters=300, lines=4)
    now = quote(shown + (ELLIPSIS if cut else ""))
    request = message.request_id[:2_000]
    buttons = (button(questions.SEND_NEW_VERSION, SEND_NEW_WORDS, request),) if request else ()
    return paragraph(questions.EDITED[message.earlier](text=now), *buttons)


def _kinds(masked: tuple[str, ...]) -> Markup:
    return joined((one_line(kind, 40) for kind in masked), ", ")


def _names(names: tuple[str, ...]) -> Markup:
    shown = joined((one_line(name, _MAX_NAME) or words.UNNAMED_FILE for name in names[:_MOST_NAMES]), ", ")
    left = len(names) - _MOST_NAMES
    return words.AND_MORE(names=shown, count=left) if left > 0 else shown


def _files(message: ReplyNotFullySent) -> Markup:
    """How many files a reply holds, with the names that are known; empty for none."""
    if not message.file_count:
        return NOTHING
    count = words.ONE_FILE if message.file_count == 1 else words.FILES(count=message.file_count)
    names = [one_line(name, _MAX_NAME) for name in message.file_names if name.strip()]
    if not names:
        return count
    shown, left = joined(names, ", "), message.file_count - len(names)
    return words.FILES_NAMED(files=count, names=words.AND_MORE(names=shown, count=left) if left > 0 else shown)
