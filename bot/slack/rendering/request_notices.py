"""Messages about requests that wait, were rejected, may have been accepted, contained more than text or were edited
late; and about outages of the job API. Pure.
"""

from typing import assert_never

from bot.domain.jobs.job import Problem
from bot.domain.requests.request import Doubt, RejectionReason, RequestKind
from bot.notices.requests import (
    AccessDenied,
    ContextCut,
    OutageEnded,
    OutageStarted,
    ReplyNotFullySent,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
)
from bot.slack.rendering.blocks import (
    MAX_REASON,
    SEND_AGAIN,
    Block,
    ChatMessage,
    button,
    confirmation,
    paragraph,
)
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import NOTHING, Markup, joined, moment, one_line, opening, person, pieces, quote
from bot.slack.rendering.words import requests as words

RequestNews = (
    OutageStarted | AccessDenied | OutageEnded | RequestRejected | RequestUncertain | ReplyNotFullySent | ContextCut
)
_QUOTED = 60
_FORBIDDEN = 403


def about_request(news: RequestNews, message_context: MessageContext) -> ChatMessage:  # noqa: PLR0911 - one for each kind
    """Returns a message about a request, or about the job API, for which requests wait."""
    match news:
        case RequestRejected():
            return _rejected(news, message_context)
        case RequestUncertain():
            return _doubted(news)
        case OutageStarted():
            return _outage_started(news)
        case AccessDenied():
            return _access_denied(news, message_context)
        case OutageEnded():
            return _outage_ended(news)
        case ReplyNotFullySent():
            return _not_fully_sent(news)
        case ContextCut():
            return _context_cut(news)
        case _:
            assert_never(news)


def _rejected(message: RequestRejected, message_context: MessageContext) -> ChatMessage:
    """Of a request that was not accepted, or to no purpose."""
    answered, status = message.reason in {RejectionReason.API, RejectionReason.HANDED_BACK}, message.status or 0
    said = words.REJECTED[status if answered and status in words.REJECTED else message.reason](
        It=_capital(_named(message.request)),
        who=person(message.stopped_by) or words.SOMEBODY,
        ask=message_context.ask,
        slash=message_context.slash,
    )
    buttons = _send_again(message.request) if message.reason is RejectionReason.HANDED_BACK else ()
    return paragraph(_in_its_words(_to(message.request, said), message.api_text), *buttons)


def _doubted(message: RequestUncertain) -> ChatMessage:
    """Of a request that may have been accepted: what can be seen of that, and where."""
    said = _in_its_words(_to(message.request, _uncertain(message)), message.api_text)
    return paragraph(said, *_send_again(message.request))


def _uncertain(message: RequestUncertain) -> Markup:
    it, failed = _named(message.request), message.doubt is Doubt.SERVER_FAILED
    if message.request.kind is RequestKind.START:
        return words.START_UNCERTAIN_SERVER_FAILED if failed else words.START_UNCERTAIN
    if message.job_ended:
        return words.UNCERTAIN_SERVER_FAILED(it=it) if failed else words.UNCERTAIN(it=it)
    return words.UNCERTAIN_SERVER_FAILED_WHILE_AT_WORK(it=it) if failed else words.UNCERTAIN_WHILE_AT_WORK(it=it)


def _outage_started(message: OutageStarted) -> ChatMessage:
    """Of a job API that could not be asked."""
    waiting = message.waiting
    meaning = words.GOES_OUT_LATER(It=_capital(_waiting(waiting))) if waiting else words.NEWS_LATER
    until = NOTHING if message.until is None else words.AT_LEAST_UNTIL(time=moment(message.until))
    if message.problem is Problem.RATE_LIMITED and waiting:
        said = words.HOURLY_LIMIT_REACHED(until=until, meaning=meaning)
    else:
        problem = message.problem if message.problem in words.OUTAGES else Problem.OUT_OF_REACH
        said = words.OUTAGES[problem](until=until, meaning=meaning)
    return paragraph(_in_its_words(said, message.problem_text))


def _access_denied(message: AccessDenied, message_context: MessageContext) -> ChatMessage:
    """Of a key that the job API does not accept."""
    meaning = words.NEWS_WAITS if message.waiting is None else words.WAITS(it=_waiting(message.waiting))
    if message.status == _FORBIDDEN:
        return paragraph(words.KEY_NOT_ALLOWED(meaning=meaning, ask=message_context.ask))
    return paragraph(words.KEY_REFUSED(meaning=meaning, ask=message_context.ask))


def _outage_ended(message: OutageEnded) -> ChatMessage:
    """Of an outage that is over."""
    if message.problem is Problem.GONE:
        return paragraph(words.AGENT_HAS_JOB_AGAIN)
    limited = message.problem in {Problem.RATE_LIMITED, Problem.BUSY}
    return paragraph(words.AGENT_HAS_ROOM if limited else words.AGENT_IS_BACK)


def _send_again(request: RequestSummary) -> tuple[Block, ...]:
    if not request.request_id:
        return ()
    ask = confirmation(words.SEND_AGAIN_TITLE, words.SEND_AGAIN_RISK, words.SEND_AGAIN, words.LEAVE_IT)
    return (button(words.SEND_AGAIN, SEND_AGAIN, request.request_id[:2_000], confirm=ask),)


def _named(request: RequestSummary) -> Markup:
    if request.kind is RequestKind.STOP:
        return words.YOUR_STOP
    if request.kind is RequestKind.DISCARD:
        return words.YOUR_DISCARD
    if request.kind is not RequestKind.FOLLOW_UP:
        return words.YOUR_REQUEST
    text = one_line(request.text, _QUOTED)
    return words.YOUR_FOLLOW_UP_QUOTED(text=text) if text else words.YOUR_FOLLOW_UP


def _waiting(request: RequestSummary) -> Markup:
    return _named(request) if request.kind else words.WHAT_YOU_ASKED_FOR


def _capital(text: Markup) -> Markup:
    return Markup(text[0].upper() + text[1:])


def _to(request: RequestSummary, said: Markup) -> Markup:
    return words.TO(who=person(request.person_id), words=said) if request.person_id else said


def _in_its_words(said: Markup, text: str) -> Markup:
    own = opening(text, characters=MAX_REASON, lines=10)[0]
    return words.AGENT_SAID(words=said, text=quote(pieces(own, 1_500)[0])) if own else said


_MAX_NAME, _MOST_NAMES = 100, 5


def _not_fully_sent(message: ReplyNotFullySent) -> ChatMessage:
    """Returns which parts of a reply were not sent, and what to do about it."""
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


def _context_cut(message: ContextCut) -> ChatMessage:
    """Returns which parts of a request's context the agent does not get."""
    lines = [
        *([words.LINK_ONLY(names=_names(message.link_only))] if message.link_only else []),
        *([words.NAME_ONLY(names=_names(message.name_only))] if message.name_only else []),
        *([words.THREAD_UNREAD] if message.thread_unread else []),
        *([words.CUT_FILES(names=_names(message.cut_files))] if message.cut_files else []),
        *([words.LEFT_OUT] if message.left_out else []),
        *([words.MASKED(kinds=_kinds(message.masked))] if message.masked else []),
    ]
    return paragraph(words.NOT_ALL_SENT(who=person(message.person_id), list=joined(lines, "\n")).strip())


def _kinds(masked: tuple[str, ...]) -> Markup:
    return joined((one_line(kind, 40) for kind in masked), ", ")


def _names(names: tuple[str, ...]) -> Markup:
    shown = joined((one_line(name, _MAX_NAME) or words.UNNAMED_FILE for name in names[:_MOST_NAMES]), ", ")
    left = len(names) - _MOST_NAMES
    return words.AND_MORE(names=shown, count=left) if left > 0 else shown


def _files(message: ReplyNotFullySent) -> Markup:
    """Returns how many files a reply has, with the known names; empty if none."""
    if not message.file_count:
        return NOTHING
    count = words.ONE_FILE if message.file_count == 1 else words.FILES(count=message.file_count)
    names = [one_line(name, _MAX_NAME) for name in message.file_names if name.strip()]
    if not names:
        return count
    shown, left = joined(names, ", "), message.file_count - len(names)
    return words.FILES_NAMED(files=count, names=words.AND_MORE(names=shown, count=left) if left > 0 else shown)
