"""Decides how a request is handled after its reply was edited or deleted. Pure.

Text that was certainly not sent is replaced by the reply's new text, and its permission is checked again, even if it
was refused. Text that was sent, or may have been, is kept: the new text is stored beside it, and offered to the writer
once the outcome of sending is known. An edit gives no commands and takes none back:

| before the edit | now words for the agent | now a word for Pagehand, clear or not | now an aside, thanks, emoji |
|---|---|---|---|
| words, not sent | replace the earlier ones | withdraws them; told | withdraws them |
| words, sent | are offered | told | told that they were sent |
| a word, taken | told | told | |
| a job asked for with `!new`, not sent | withdraws it; told | withdraws it; told | withdraws it |
| an unclear word, an aside, thanks | as if just written | told | |

"Told": the writer is told once, privately, to write it in a new message.
"""

from dataclasses import replace

from bot.domain.commands import Options
from bot.domain.messages import beginning, same_words
from bot.domain.projects import ProjectReason
from bot.domain.requests.request import (
    NO_WORDS,
    NOT_SENT_YET,
    Attachments,
    RejectionReason,
    Reply,
    Request,
    RequestKind,
    RequestState,
    Surface,
    WayIn,
)
from bot.domain.threads.reply_rules import ReplyMeaning, in_direct_message, is_emoji_alone
from bot.domain.threads.thread import ThreadOptions
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import NewNotice, Reaction, ReactionChanged
from bot.notices.questions import EditWithoutEffect, ReplyEdited
from bot.notices.requests import ReplyNotFullySent

TAKEN_BACK_FOR = 86_400.0
"""Seconds after which somebody who deletes a message is no longer told that it was sent."""
MAX_QUOTED = 1_000
"""Characters of the new text that an offer quotes."""

_FOR_THE_AGENT = frozenset({ReplyMeaning.SEND, ReplyMeaning.ASK_FIRST, ReplyMeaning.MUTED})
_NEVER_TRIED = frozenset({NO_WORDS, RejectionReason.NOT_PERMITTED})
"""The problems of requests that were rejected before they could be sent."""


def revised(request: Request, reply: Reply) -> Request:
    """Returns the request after a new version of its reply. A version that is not newer, or by somebody else, is
    ignored.
    """
    if reply.edited_at <= request.edited_at or not (reply.withdrawn or reply.person.id == request.person_id):
        return request
    words = "" if reply.withdrawn else reply.text
    known = request.text if request.latest_text is None else request.latest_text
    request = replace(request, edited_at=reply.edited_at)
    if certainly_unsent(request) and not reply.withdrawn:
        request = _with_attachments(request, reply.attachments)
    if same_words(words, known) and not reply.withdrawn:
        return request
    if certainly_unsent(request):
        return _with_words(request, words, withdrawn=reply.withdrawn)
    return replace(request, latest_text=None if same_words(words, request.text) else words)


def for_the_agent(reply: Reply, request: Request, means: ReplyMeaning) -> Reply:
    """Returns a newer version of a reply. Thanks are not for the agent; emoji are if they may answer its question."""
    if means is ReplyMeaning.THANKS and certainly_unsent(request):
        return replace(reply, text="", withdrawn=True)
    held = means is ReplyMeaning.ASK_FIRST and request.state is RequestState.AWAITING_PERSON
    return replace(reply, withdrawn=False) if held and is_emoji_alone(reply) else reply


def revised_options(settled: ThreadOptions, said: Options) -> ThreadOptions:
    """Returns the options of an unsent job after an edit of the message that requested it.

    They are unchanged if the edit changes no option. Otherwise the project is determined again, unless it was chosen by
    a button.
    """
    chosen = settled.project_reason is ProjectReason.CHOSEN
    same = (said.quiet, said.agent) == (settled.quiet, settled.agent)
    if same and (chosen or said.project == settled.project_said):
        return settled
    settled = replace(settled, quiet=said.quiet, agent=said.agent)
    return settled if chosen else replace(settled, project_said=said.project, project_reason=None)


def project_too_late(request: Request, settled: ThreadOptions, said: Options) -> NewNotice | None:
    """Returns the answer to an edit that names another project, or another way to work, once the job is being sent;
    None for any other edit.
    """
    if request.state not in {RequestState.SENDING, RequestState.UNCERTAIN, RequestState.ACCEPTED}:
        return None
    same = said.project.casefold() in {"", settled.project_said.casefold()}
    if said.agent != settled.agent:
        told = ActionAnswer.SENT_AS_ASKED
    elif same or settled.project_reason is ProjectReason.CHOSEN:
        return None
    else:
        told = ActionAnswer.SENT_FOR_ITS_PROJECT
    return NewNotice(ActionAnswered.key_of_project(request), ActionAnswered(request.person_id, told))


def came_back(request: Request) -> Request:
    """Returns a request that goes back to waiting, with the text that its reply got while it was being sent."""
    if request.latest_text is None or not certainly_unsent(request):
        return request
    return _with_words(request, request.latest_text, withdrawn=not request.latest_text)


def offer(request: Request) -> NewNotice | None:
    """Returns the question whether to send a reply's new text, once per edit; None if there is nothing to ask."""
    settled = {RequestState.ACCEPTED, RequestState.REJECTED, RequestState.UNCERTAIN}
    if not request.latest_text or request.state not in settled or request.problem == RejectionReason.NOT_PERMITTED:
        return None
    text = beginning(request.latest_text, MAX_QUOTED)
    return NewNotice(ReplyEdited.key(request), ReplyEdited(request.person_id, request.id, text, request.state))


def without_effect(
    reply: Reply, before: Request | None, after: Request | None, means: ReplyMeaning
) -> NewNotice | None:
    """Returns the answer to an edit that does not do what the message now says, as in the table above; None to any
    other.

    Args:
        reply: The message after the edit.
        before: The last request made from it; None if there was none.
        after: The same since the edit.
        means: How the message would be handled if it had just been written.
    """
    was_word = before is not None and before.kind not in {RequestKind.START, RequestKind.FOLLOW_UP}
    was_new = before is not None and before.kind is RequestKind.START and before.way_in is WayIn.REPLY
    ends_now = before != after and after is not None and after.state is RequestState.WITHDRAWN
    if reply.word is not None:
        told = reply.withdrawn or was_word
    else:
        told = not reply.withdrawn and means in _FOR_THE_AGENT and (was_word or (was_new and ends_now))
    if not told:
        return None
    asked_on = Surface.TOP_LEVEL if in_direct_message(reply) and not reply.thread_ts else Surface.CONVERSATION
    text = beginning(reply.text, MAX_QUOTED)
    message = EditWithoutEffect(reply.person.id, reply.word, text, asked_on=asked_on)
    return NewNotice(EditWithoutEffect.key(reply), message)


def taken_back(request: Request) -> NewNotice | None:
    """Returns the answer to the deletion of a recent message that the agent already has; None for any other."""
    if request.latest_text != "" or request.state is not RequestState.ACCEPTED or not request.written_at:
        return None
    if float(request.edited_at) - float(request.written_at) > TAKEN_BACK_FOR:
        return None
    about = beginning(request.text, MAX_QUOTED)
    told = ActionAnswered(request.person_id, ActionAnswer.SENT_BEFORE_DELETED, about)
    return NewNotice(ActionAnswered.key_of_deletion(request), told)


def with_new_words(request: Request, now: float) -> Request:
    """Returns a request for the newest text of a reply whose earlier text was sent.

    It keeps its place among the replies, and needs no preparation, because the press of the button was prepared.
    """
    follow_up_id = f"{request.reply_id}.{request.edited_at}"
    return Request(
        id=follow_up_id,
        thread_id=request.thread_id,
        kind=RequestKind.FOLLOW_UP,
        source_key=f"edit/{follow_up_id}",
        person_id=request.person_id,
        text=request.latest_text or "",
        written_at=request.written_at,
        recorded_at=now,
        edited_at=request.edited_at,
        state=RequestState.WAITING,
        team_id=request.team_id,
        way_in=WayIn.BUTTON,
    )


def for_another_job(request: Request, thread_id: str, now: float) -> Request:
    """Returns a request for a reply's newest text to the job of this thread, which replaced the one that may have got
    it: another request, because the job API may know the first one's id. It is prepared like any other.
    """
    again = f"{request.id}.again"
    return replace(
        request,
        id=again,
        thread_id=thread_id,
        source_key=f"again/{again}",
        text=request.text if request.latest_text is None else request.latest_text,
        latest_text=None,
        recorded_at=now,
        state=RequestState.RECEIVED,
        attempts=0,
        first_tried_at=None,
        problem="",
        uncertain=False,
        requester=None,
        context=None,
        merged_into="",
    )


def not_fully_sent(request: Request, attachments: Attachments, *, words_sent: bool) -> NewNotice:
    """Returns the notice about a reply that contained more than text, or no text."""
    files, forwarded = len(attachments.files), bool(attachments.forwarded)
    message = ReplyNotFullySent(request.person_id, words_sent, files, forwarded=forwarded)
    return NewNotice(ReplyNotFullySent.key(request), message)


def reaction_of(state: RequestState) -> Reaction | None:
    """Returns the reaction on a reply whose request is in this state."""
    match state:
        case RequestState.RECEIVED | RequestState.PREPARING | RequestState.WAITING | RequestState.SENDING:
            return Reaction.RECORDED
        case RequestState.ACCEPTED:
            return Reaction.ACCEPTED
        case RequestState.REJECTED | RequestState.UNCERTAIN:
            return Reaction.PROBLEM
        case RequestState.WITHDRAWN | RequestState.AWAITING_PERSON:
            return None


def certainly_unsent(request: Request) -> bool:
    """Returns whether a request has certainly not reached the job API, and is not on its way there."""
    return (
        (request.state in NOT_SENT_YET and not request.uncertain)
        or request.state in {RequestState.WITHDRAWN, RequestState.AWAITING_PERSON}
        or (request.state is RequestState.REJECTED and request.problem in _NEVER_TRIED and not request.uncertain)
    )


def _with_attachments(request: Request, attachments: Attachments) -> Request:
    """Returns the request with the message's current attachments. If they have changed, it is prepared again."""
    if attachments == request.attachments:
        return request
    state = RequestState.RECEIVED if request.state is RequestState.WAITING else request.state
    return replace(request, attachments=attachments, state=state)


def _with_words(request: Request, words: str, *, withdrawn: bool) -> Request:
    nothing = not words and not request.attachments
    state = RequestState.RECEIVED  # one that was prepared is again, because its writer may be allowed less by now
    if withdrawn or nothing:
        state = RequestState.WITHDRAWN
    elif request.state in {RequestState.PREPARING, RequestState.AWAITING_PERSON}:
        state = request.state
    problem = request.problem if state is RequestState.AWAITING_PERSON else ""
    return replace(request, text=words, latest_text=None, state=state, problem=problem)


_SENT_SOON = 5.0
"""Seconds within which an unhindered reply is sent, by default: others are merged with it for three of them."""


def reaction_notice(request: Request, reaction: Reaction | None) -> NewNotice:
    """The notice that sets or removes a reply's reaction. A reply that is sent soon goes straight to the reaction for
    "sent": one call to Slack instead of three.
    """
    due_in = _SENT_SOON if reaction is Reaction.RECORDED else 0.0
    return NewNotice(ReactionChanged.key(request), ReactionChanged(request.written_at, reaction), due_in)
