"""Every error that Pagehand raises on purpose; each class names what is to be done about it.

Foreign errors (httpx, slack-sdk, SQLAlchemy) stop at the edge that meets them and become one of these::

    PagehandError
    ├── ConfigError              settings are missing or malformed: tell the operator, all of them at once
    ├── CannotStart              Slack or the machine turns Pagehand away at start-up: tell the operator what to check
    ├── JobApiError
    │   ├── JobApiUnreachable    certainly did not arrive: try again by itself
    │   │   └── JobApiBusy       429, or 503 with Retry-After: the same, but when it says
    │   ├── JobApiRejected        400, 422 and the like: give the person the API's own words, do not try again
    │   ├── JobApiNotAllowed     401, 403: our key; tell whom to ask, requests wait
    │   ├── NoSuchProject        404 to a create: tell the person
    │   ├── JobGone              404 to a message or a get
    │   └── JobApiUncertain      may have arrived: never repeat a create or message by itself
    │       ├── JobApiFailed     5xx: the server itself says that it failed
    │       └── JobApiUnreadable the answer is not an Agent job
    ├── ChatError
    │   ├── ChatUnreachable      certainly did not arrive: try again
    │   │   └── ChatRateLimited  429: the same, after Retry-After, for this method only
    │   │       └── ChatOverBudget not asked, since that would meet a 429: it counts as no try
    │   ├── ChatUncertain        may have arrived: look for it before trying again
    │   ├── ChatNotInChannel     join or say how to invite
    │   ├── ChatRejected          this one message cannot be had: record why, go on with the others
    │   │   └── ChatMissingScope the same, till the app is installed with the scope: name it to the operator
    │   └── ChatNotAllowed       our token: everything waits for the operator
    └── StoreError
        ├── StoreUnavailable     locked, restarting or cut off: try again
        └── SchemaMismatch       the database is older or newer than this program: tell the operator
"""


class PagehandError(Exception):
    """The root: anything that Pagehand expects can go wrong."""


class ConfigError(PagehandError):
    """Settings are missing or malformed; `faults` has a sentence for each."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


class CannotStart(PagehandError):
    """The settings are well-formed, but do not work; the message says which, and what to do about it."""


class JobApiError(PagehandError):
    """The job API did not do what was asked. The message is safe to log; `words` is the API's own text."""

    def __init__(self, message: str, *, words: str = "") -> None:
        self.words = words
        super().__init__(message)


class JobApiUnreachable(JobApiError):
    """Certainly did not arrive (no connection, DNS, TLS); `retry_after` is in seconds, where known."""

    def __init__(self, message: str, *, words: str = "", retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message, words=words)


class JobApiBusy(JobApiUnreachable):
    """429, or 503 with Retry-After (`status`): turned away at the door, so it certainly was not taken."""

    def __init__(self, message: str, *, words: str = "", status: int = 429, retry_after: float | None = None) -> None:
        self.status = status
        super().__init__(message, words=words, retry_after=retry_after)


class JobApiRejected(JobApiError):
    """The API understood and said no; `words` is why. `redirected`: it is somewhere else, so our address is wrong."""

    def __init__(self, message: str, *, words: str = "", redirected: bool = False) -> None:
        self.redirected = redirected
        super().__init__(message, words=words)


class JobApiNotAllowed(JobApiError):
    """401 (`status`): the key is wrong or expired; 403: it lacks a scope or this address is not allowed."""

    def __init__(self, message: str, *, status: int, words: str = "") -> None:
        self.status = status
        super().__init__(message, words=words)


class NoSuchProject(JobApiError):
    """404 to a create."""


class JobGone(JobApiError):
    """404 to a message or a get."""


class JobApiUncertain(JobApiError):
    """It may have arrived: a timeout after sending, a connection cut while waiting, a 5xx."""


class JobApiFailed(JobApiUncertain):
    """A 5xx: the server failed, before it took the request or after."""


class JobApiUnreadable(JobApiUncertain):
    """The answer says success, but is not an Agent job (HTML, empty, cut short, too long)."""


class ChatError(PagehandError):
    """Slack did not do what was asked; `reason` is Slack's own error code, where it gave one."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ChatUnreachable(ChatError):
    """Certainly did not arrive; `retry_after` is in seconds, where Slack said so."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(reason)


class ChatRateLimited(ChatUnreachable):
    """429 and its kind: this method asks to wait (Slack's name; empty: not known)."""

    def __init__(self, reason: str, *, retry_after: float | None = None, method: str = "") -> None:
        self.method = method
        super().__init__(reason, retry_after=retry_after)


class ChatOverBudget(ChatRateLimited):
    """Slack was not asked: what it allows of this method is used up for the moment."""


class ChatUncertain(ChatError):
    """It may have arrived: a timeout, a cut connection, a 5xx."""


class ChatNotInChannel(ChatError):
    """The bot is not a member: a public channel can be joined, a private one only by invitation."""


class ChatRejected(ChatError):
    """Slack will not take this, however often it is tried."""


class ChatMissingScope(ChatRejected):
    """The app is not granted `scopes` (Slack's names; empty where it named none): trying again cannot mend that."""

    def __init__(self, scopes: tuple[str, ...]) -> None:
        self.scopes = scopes
        super().__init__("missing_scope")


class ChatNotAllowed(ChatError):
    """The token is invalid or revoked, or an administrator keeps it out of the whole workspace."""


class StoreError(PagehandError):
    """The database did not do what was asked."""


class StoreUnavailable(StoreError):
    """Locked, restarting, cut off or full: the work was not recorded, and may be tried again."""


class UnreadableRow(StoreError):
    """A row holds what this program cannot have written."""


class SchemaMismatch(StoreError):
    """The database's schema is not the one that this program knows."""
