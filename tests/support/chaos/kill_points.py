"""The points at which processes are killed or paused: before and after each remote call and each commit."""

from inspect import iscoroutinefunction

from bot.ports.code_hosts import CodeHosts
from bot.ports.job_api import JobApi
from bot.ports.slack import (
    ChannelReader,
    Chat,
    Conversations,
    CurrentMessages,
    FileReader,
    HomeViews,
    Members,
    PastMessages,
)

_TRANSACTIONS = ("committing", "committed")
_CALLS = ("before", "after")
_POLLING, _UPLOADING = "get", "upload"


def _calls(*ports: type) -> tuple[str, ...]:
    """The remote calls: everything awaited."""
    return tuple(name for port in ports for name, call in vars(port).items() if iscoroutinefunction(call))


CALLED = {
    "request_preparer": _calls(Members, ChannelReader, Conversations, FileReader),
    "file_uploader": ("read", _UPLOADING),
    "request_sender": (
        *(call for call in _calls(JobApi) if call not in {_POLLING, _UPLOADING, "picture"}),
        *_calls(CurrentMessages),
    ),
    "job_poller": (_POLLING,),
    "pull_request_poller": _calls(CodeHosts),
    "outbox": (*_calls(Chat), "channel", "picture"),
    "home_publisher": _calls(HomeViews),
    "history_reader": _calls(PastMessages),
}
"""The remote calls that each worker makes."""
POINTS = (
    *(f"{worker}.{call}.{moment}" for worker, calls in CALLED.items() for call in calls for moment in _CALLS),
    *(f"{worker}.{kind}.{moment}" for worker in CALLED for kind in ("take", "record") for moment in _TRANSACTIONS),
    *(f"listener.record.{moment}" for moment in _TRANSACTIONS),
)
"""Every point at which a process is killed."""
SELDOM = frozenset(
    {
        "create",
        "find",
        "tell",
        "update",
        "join",
        "member",
        "channel",
        "thread",
        "look_up",
        "read",
        "picture",
        _UPLOADING,
        "cancel",
        "discard",
        "versions",
        "messages",
        "channels",
    }
)
"""Calls so rare that a process ends at the first of them."""


def ending_at(how: str, point: str, occurrence: int) -> str:
    """Makes a process kill or pause itself at the given passing of a point; at the first one if that is rare."""
    _, call, _ = point.split(".")
    return f"{how}:{point}#{1 if call in SELDOM else occurrence}"
