"""The people in notices: whom each is for or about, and which of its texts people wrote.

A new kind does not pass the type checker till it stands in each of these functions, or in JobNews.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bot.domain.notices.messages import (
    ActionAnswered,
    AnswerRequested,
    CardChanged,
    CardNotPosted,
    JobIdRequested,
    NoticeMessage,
    PostNotDelivered,
    PromptRequested,
    ReactionChanged,
    ReplyEdited,
    StatusRequested,
)
from bot.domain.notices.posts import (
    AccessDenied,
    AgentAskedToStop,
    ContextCut,
    JobEnd,
    JobFailed,
    JobFinished,
    JobNews,
    JobStillStopping,
    JobStopped,
    OutageStarted,
    Post,
    QuestionAsked,
    ReplyNotFullySent,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
    UnknownNotice,
)
from bot.domain.notices.questions import (
    HelpRequested,
    JobOrReplyAsked,
    ProjectAsked,
    ReplyHeld,
    RequestRefused,
    StopAsked,
    ToPerson,
)
from bot.domain.threads.thread import Surface

Change = Callable[[str], str]


def person_of(message: NoticeMessage) -> str:
    """The id of the person whom a message is for or about; empty where there is none."""
    match message:
        case CardChanged() | ReactionChanged():
            return ""
        case (
            PostNotDelivered()
            | CardNotPosted()
            | ReplyEdited()
            | PromptRequested()
            | AnswerRequested()
            | JobFinished()
            | JobFailed()
            | JobStopped()
            | JobStillStopping()
            | AgentAskedToStop()
        ):
            return message.person_id
        case (
            ActionAnswered()
            | JobIdRequested()
            | StatusRequested()
            | UnknownNotice()
            | ReplyNotFullySent()
            | QuestionAsked()
            | ToPerson()
            | ContextCut()
        ):
            return message.person_id
        case RequestRejected() | RequestUncertain():
            return message.request.person_id
        case OutageStarted() | AccessDenied():
            return message.waiting.person_id if message.waiting else ""
        case _:
            _about_the_job: JobNews = message
            return ""


def addressed_to(post: Post, person_id: str) -> Post:
    """The message with this person in the place of whom it addresses, where it addresses somebody."""
    match post:
        case RequestRejected() | RequestUncertain():
            return replace(post, request=replace(post.request, person_id=person_id))
        case ReplyNotFullySent() | QuestionAsked() | ContextCut():
            return replace(post, person_id=person_id)
        case JobFinished() | JobFailed() | JobStopped() | JobStillStopping() | AgentAskedToStop():
            return replace(post, person_id=person_id)
        case OutageStarted() | AccessDenied() | UnknownNotice():
            return post
        case _:
            about_the_job: JobNews = post
            return about_the_job


def asked_on(message: NoticeMessage) -> Surface:
    """Where somebody asked for what they are told."""
    return message.asked_on if isinstance(message, ToPerson) else Surface.CONVERSATION


def texts_of(message: NoticeMessage) -> list[str]:
    """Returns each text of a message that people wrote."""
    texts: list[str] = []

    def noted(text: str) -> str:
        texts.append(text)
        return text

    map_texts(message, noted)
    return texts


def map_texts(message: NoticeMessage, change: Change) -> NoticeMessage:
    """The message with each text that people wrote as `change` makes it."""
    match message:
        case (
            CardChanged()
            | ReactionChanged()
            | CardNotPosted()
            | AnswerRequested()
            | JobIdRequested()
            | StatusRequested()
            | StopAsked()
            | HelpRequested()
        ):
            return message
        case ReplyEdited() | ActionAnswered() | RequestRefused() | ReplyHeld() | JobOrReplyAsked() | ProjectAsked():
            return replace(message, text=change(message.text))
        case PromptRequested():
            return replace(message, prompt=change(message.prompt))
        case PostNotDelivered():
            return replace(message, post=_map_post(message.post, change))
        case _:
            return _map_post(message, change)


def _map_post(post: Post, change: Change) -> Post:
    match post:
        case RequestRejected() | RequestUncertain():
            return replace(post, request=_map_request(post.request, change))
        case OutageStarted() | AccessDenied():
            return replace(post, waiting=_map_request(post.waiting, change) if post.waiting else None)
        case ReplyNotFullySent():
            return replace(post, file_names=tuple(map(change, post.file_names)))
        case ContextCut():
            link_only, name_only = tuple(map(change, post.link_only)), tuple(map(change, post.name_only))
            cut_files = tuple(map(change, post.cut_files))
            return replace(post, link_only=link_only, name_only=name_only, cut_files=cut_files)
        case UnknownNotice():
            return replace(post, fields={name: _map_unknown(value, change) for name, value in post.fields.items()})
        case _:
            without_texts: JobNews | JobEnd | QuestionAsked | JobStillStopping | AgentAskedToStop = post
            return without_texts


def _map_request(request: RequestSummary, change: Change) -> RequestSummary:
    return replace(request, text=change(request.text))


def _map_unknown(value: Any, change: Change) -> Any:
    """Nobody knows here which texts people wrote, or where they are."""
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [_map_unknown(item, change) for item in value]
        case dict():
            return {name: _map_unknown(item, change) for name, item in value.items()}
        case _:
            return value
