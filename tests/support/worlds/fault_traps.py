"""What can go wrong with one call, for the state machine."""

from support.worlds.fault_world import Crash, Pause, Trap

from bot.errors import (
    ChatNotAllowed,
    ChatNotInChannel,
    ChatRateLimited,
    ChatRejected,
    ChatTooRich,
    ChatUncertain,
    ChatUnreachable,
    JobApiBusy,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUncertain,
    JobApiUnreachable,
    JobApiUnreadable,
    JobGone,
    NoSuchProject,
    NotTheJobApi,
    StoreUnavailable,
)

JOB_FAULTS: tuple[Exception, ...] = (
    JobApiUnreachable("down"),
    JobApiBusy("429", retry_after=70.0),
    JobApiBusy("409", status=409),
    NotTheJobApi("404"),
    JobApiNotAllowed("401", status=401),
    JobApiNotAllowed("403", status=403),
    JobApiRejected("402", words="out of credit", status=402),
    JobApiRejected("403", status=403),
    JobApiRejected("451", words="by order of a court", status=451),
    JobApiRejected("400", words="too vague"),
)
JOB_DOUBTS: tuple[Exception, ...] = (
    JobApiUncertain("timeout"),
    JobApiUnreadable("a web page"),
    JobApiUnreadable("no id", words="failed"),
)
MISSING: dict[str, Exception] = {
    "create": NoSuchProject("404", words="no project"),
    "message": JobGone("404"),
    "get": JobGone("404"),
    "cancel": JobGone("404"),
    "discard": JobGone("404"),
}
CHAT_FAULTS: tuple[Exception, ...] = (
    ChatUnreachable("no connection"),
    ChatRateLimited("ratelimited", retry_after=20.0),
    ChatUncertain("timeout"),
    ChatNotInChannel("not_in_channel"),
    ChatRejected("restricted_action"),
    ChatRejected("invalid_blocks"),
    ChatNotAllowed("token_revoked"),
)
TOO_RICH = ChatTooRich("invalid_blocks")
CHAT_CALLS = ("", "post_card", "update_card", "post", "update", "find", "mark", "unmark", "tell", "join")
BREAKS: tuple[type[Crash | Pause], ...] = (Crash, Pause)
TRAPS = [
    *(Trap("job", call, "before", does) for call in MISSING for does in (*JOB_FAULTS, *JOB_DOUBTS, MISSING[call])),
    *(Trap("job", call, "after", does) for call in ("create", "message", "cancel", "discard") for does in JOB_DOUBTS),
    *(Trap("job", call, moment, does) for call in MISSING for moment in ("before", "after") for does in BREAKS * 2),
    *(Trap("chat", call, "before", does) for call in CHAT_CALLS for does in CHAT_FAULTS),
    *(Trap("chat", call, "after", ChatUncertain("timeout")) for call in CHAT_CALLS),
    *(Trap("chat", call, "before", TOO_RICH) for call in ("post_card", "update_card")),
    *(Trap("chat", call, moment, does) for call in CHAT_CALLS for moment in ("before", "after") for does in BREAKS),
    *(Trap("host", "read", moment, does) for moment in ("before", "after") for does in BREAKS * 2),
    *(Trap("store", "", moment, Crash) for moment in ("before", "after") for _ in range(4)),
    *(Trap("store", "", "before", StoreUnavailable("locked")) for _ in range(4)),
]
"""Everything that can happen to one call."""
BAD_STARTS: list[tuple[Trap, ...]] = [
    (),
    (),
    *((Trap("chat", "post_card", "after", does),) for does in (Crash, Pause)),
    (Trap("job", "create", "after", Crash),),
    tuple(Trap("job", "create", "before", does) for does in (JOB_FAULTS[0], JOB_FAULTS[-1])),
]
