"""What is said of a request that waits, was rejected, or may have been accepted; and of the job API's outages. Pure."""

from bot.domain.jobs import Problem
from bot.domain.notices.posts import (
    AccessDenied,
    OutageEnded,
    OutageStarted,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
)
from bot.domain.requests import RejectionReason, RequestKind
from bot.slack.rendering.blocks import MAX_REASON, SEND_AGAIN, Block, Message, button, confirmation, paragraph
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import moment, one_line, opening, person, pieces, quote

_QUOTED = 60

_REJECTIONS = {
    RejectionReason.API: "The job API refused {it}. Change it and send it again.",
    RejectionReason.ADDRESS: "{It} was not sent: the job API redirects to another address than Pagehand is set up "
    "for. Please ask {ask} to look into that, and send it again afterwards.",
    RejectionReason.PROJECT: "{It} was not sent: the job API does not know the project that Pagehand is set up for. "
    "Please ask {ask} to check the project id.",
    RejectionReason.GONE: "{It} was not sent: the job API no longer knows this job. Start a new one with {slash}.",
    RejectionReason.NOT_FOUND: "{It} was not sent: the job API answered that it does not know this job. That may pass: "
    "write it again later, or start a new one with {slash}.",
    RejectionReason.ARCHIVED: "{It} was not sent: this job is archived. Start a new one with {slash}.",
    RejectionReason.ACCEPTED_WHILE_ARCHIVED: "The job API took {it}, but says that this job is archived, so it may "
    "come to nothing. Start a new one with {slash}.",
    RejectionReason.NOT_STARTED: "{It} was not sent: this job was never started. Start a new one with {slash}.",
    RejectionReason.TOO_OLD: "{It} was not sent: for days, the job API did not take it. Send it again if it still "
    "matters.",
    RejectionReason.UNREADABLE: "{It} was not sent: Pagehand's own record of it is damaged. Please write it again.",
    RejectionReason.NOT_PERMITTED: "{It} was not sent: who wrote it may not ask for that here, and was told why.",
    RejectionReason.STOPPED: "{It} was not sent: {who} stopped the job before its turn came. Write it again if it "
    "still matters.",
    RejectionReason.REPLACED: "{It} was not sent: this job was started again already.",
    RejectionReason.NOTHING_TO_STOP: "There was nothing to stop: this job had ended.",
    RejectionReason.OTHER: "{It} was refused.",
}


def rejected(message: RequestRejected, message_context: MessageContext) -> Message:
    """Of a request that was not accepted, or to no purpose."""
    it = _named(message.request)
    form = _REJECTIONS[message.reason]
    who = person(message.stopped_by) if message.stopped_by else "somebody"
    text = form.format(it=it, It=_capital(it), who=who, ask=message_context.ask, slash=message_context.slash)
    buttons = _send_again(message.request) if message.reason is RejectionReason.TOO_OLD else ()
    return paragraph(f"{_to(message.request)}{text}{_in_its_words(message.api_text)}", *buttons)


def uncertain(message: RequestUncertain) -> Message:
    """Of a request that may have been accepted: what can be seen of that, and where."""
    request = message.request
    return paragraph(
        f"{_to(request)}It is not known whether the job API took {_named(request)}: no answer came that tells. "
        f"{_what_can_be_seen(message)}",
        *_send_again(request),
    )


def _what_can_be_seen(message: RequestUncertain) -> str:
    if message.request.kind is RequestKind.START:
        return (
            "If it did, a job is at work that Pagehand has no id of, so this thread cannot show it. Look at the job "
            "API's dashboard or the repository's pull requests, or send it again, at the risk of having it done twice. "
            "Replies in this thread are kept, and go to the agent once it is known to have started."
        )
    if message.job_ended:
        seen = "If the agent takes it up, this thread shows that in the next minutes. If not, send it again"
    else:
        seen = (
            "The job is under way in any case, so this thread cannot show whether the agent got this too. See what "
            "comes of it, or send it again"
        )
    return f"{seen}, at the risk that the agent gets it twice."


def outage_started(message: OutageStarted) -> Message:
    """Of a job API that could not be asked."""
    until = "" if message.until is None else f", at least until {moment(message.until)}"
    after = "as soon as there is room again"
    match message.problem:
        case Problem.RATE_LIMITED:
            hourly = "hourly " if message.waiting else ""
            text = f"The job API's {hourly}allowance is used up{until}."
        case Problem.BUSY:
            text = f"The job API is busy{until}."
        case _:
            why = one_line(message.reason, MAX_REASON) or "cannot be reached"
            text, after = f"The job API {why}.", "as soon as it answers again"
    meaning = f"{_waiting(message.waiting)} is kept and sent" if message.waiting else "News of this job comes"
    own = _in_its_words(message.problem_text)
    return paragraph(f"{text} {meaning} {after}; there is nothing for you to do.{own}")


def access_denied(message: AccessDenied, message_context: MessageContext) -> Message:
    """Of a key that the job API does not accept."""
    forbidden = message.status == 403  # noqa: PLR2004 - HTTP's own number
    why = "its key may not do this, or not from here (403)" if forbidden else "its key is not accepted (401)"
    if message.waiting is None:
        meaning = "News of this job comes by itself afterwards."
    else:
        meaning = f"{_waiting(message.waiting)} is kept and goes out by itself afterwards."
    return paragraph(
        f"The job API does not let Pagehand in: {why}. Please ask {message_context.ask} to put that right. {meaning}"
    )


def outage_ended(message: OutageEnded) -> Message:
    """Of an outage that is over."""
    limited = message.problem in {Problem.RATE_LIMITED, Problem.BUSY}
    what = "There is room at the job API" if limited else "The job API answers"
    return paragraph(f"{what} again. Everything goes on from there.")


def _send_again(request: RequestSummary) -> tuple[Block, ...]:
    if not request.request_id:
        return ()
    ask = confirmation(
        "Send it again?",
        "It may have arrived the first time; then the agent gets it twice.",
        "Send again",
        "Leave it",
    )
    return (button("Send again", SEND_AGAIN, request.request_id[:2_000], confirm=ask),)


def _named(request: RequestSummary) -> str:
    if request.kind is RequestKind.STOP:
        return "the request to stop"
    if request.kind is not RequestKind.FOLLOW_UP:
        return "this request"
    words = one_line(request.text, _QUOTED)
    return f'this follow-up ("{words}")' if words else "this follow-up"


def _waiting(request: RequestSummary) -> str:
    return _capital(_named(request) if request.kind else "what you asked for")


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _to(request: RequestSummary) -> str:
    return f"{person(request.person_id)} " if request.person_id else ""


def _in_its_words(text: str) -> str:
    own = opening(text, characters=MAX_REASON, lines=10)[0]
    return f"\nThe job API said:\n{quote(pieces(own, 1_500)[0])}" if own else ""
