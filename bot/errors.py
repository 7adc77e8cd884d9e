"""Every error that Pagehand raises deliberately. The class says what to do about it.

Errors of libraries (httpx, slack-sdk, SQLAlchemy) are translated at the edge, and become one of these::

    PagehandError
    ├── ConfigError              missing or malformed settings: tell the operator about all of them at once
    ├── CannotStart              Slack or the machine prevents the start: tell the operator what to check
    ├── JobApiError
    │   ├── JobApiUnreachable    certainly did not arrive: retry automatically
    │   │   ├── JobApiBusy       429, 503 with Retry-After, 409, 423: retry at that time
    │   │   └── NotTheJobApi     404 that is no JSON: something else answers at its address; retry
    │   ├── JobApiRejected       400, 422 and the like, a firewall's 403: give the person the words, do not retry
    │   ├── JobApiNotAllowed     401, 403: a problem with our key; say whom to ask, requests wait
    │   ├── NoSuchProject        404 to a create: tell the person
    │   ├── JobGone              404 to a message or a get
    │   └── JobApiUncertain      may have arrived: never repeat a create or a message automatically
    │       ├── JobApiFailed     5xx: the server itself says that it failed
    │       └── JobApiUnreadable the response is not an Agent job
    ├── ChatError
    │   ├── ChatUnreachable      certainly did not arrive: retry
    │   │   └── ChatRateLimited  429, or not sent because Slack would answer so: wait; it counts as no attempt
    │   ├── ChatUncertain        may have arrived: look for it before retrying
    │   ├── ChatNotInChannel     join, or say how to invite the bot
    │   ├── ChatRejected         Slack refuses this one message: record why, go on with the others
    │   │   ├── ChatTooRich      it refuses its blocks, and the next attempt has plainer ones
    │   │   └── ChatMissingScope the same until the app is reinstalled with the scope: name it to the operator
    │   └── ChatNotAllowed       a problem with our token: everything waits for the operator
    ├── StoreError
    │   ├── StoreUnavailable     locked, restarting or disconnected: retry
    │   ├── UnreadableRow        one damaged row: set it aside, go on with the others
    │   └── SchemaMismatch       the schema is older or newer than this program: tell the operator
    ├── AuthorUnknown            let Slack send the event again, by when its author was looked up
    └── NotRecorded              an unexpected error, which the log has: let Slack send the event again
"""


class PagehandError(Exception):
    """The base class: anything that Pagehand expects to go wrong."""


class ConfigError(PagehandError):
    """Settings are missing or malformed; `faults` has a sentence about each."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


class CannotStart(PagehandError):
    """The settings are well-formed but do not work; the message says which one, and what to do."""


class JobApiError(PagehandError):
    """A call of the job API failed. The message is safe to log; `words` is the API's own text."""

    def __init__(self, message: str, *, words: str = "") -> None:
        self.words = words
        super().__init__(message)


class JobApiUnreachable(JobApiError):
    """Certainly did not arrive (no connection, DNS, TLS); `retry_after` is in seconds, if known."""

    def __init__(self, message: str, *, words: str = "", retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message, words=words)


class JobApiBusy(JobApiUnreachable):
    """429, 503 with Retry-After, or for one job 409 or 423 (`status`): the server certainly did not process the
    request.
    """

    def __init__(self, message: str, *, words: str = "", status: int = 429, retry_after: float | None = None) -> None:
        self.status = status
        super().__init__(message, words=words, retry_after=retry_after)


class NotTheJobApi(JobApiUnreachable):
    """What answered is no job API, such as a proxy that does not know where it is, so the request did not arrive."""


class JobApiRejected(JobApiError):
    """The API refused the request; `words` says why. `status` is None if it was not even asked. 3xx: our URL is wrong;
    402: the operator has to pay; 403: a firewall in front of it refused these words.
    """

    def __init__(self, message: str, *, words: str = "", status: int | None = None) -> None:
        self.status = status
        super().__init__(message, words=words)


class JobApiNotAllowed(JobApiError):
    """`status` 401: the key is wrong or expired; 403: it lacks a scope, or our IP address is not allowed. `is_page`: it
    came as a page or text, and so perhaps from a firewall in front of the API.
    """

    def __init__(self, message: str, *, status: int, words: str = "", is_page: bool = False) -> None:
        self.status = status
        self.is_page = is_page
        super().__init__(message, words=words)


class NoSuchProject(JobApiError):
    """404 when creating a job, in the job API's own words."""


class JobGone(JobApiError):
    """404 when reading a job or sending it a message, in the job API's own words. It may be temporary."""


class JobApiUncertain(JobApiError):
    """May have arrived: a timeout after sending, a connection lost while waiting, a 5xx."""


class JobApiFailed(JobApiUncertain):
    """5xx: the server failed, before or after it accepted the request."""


class JobApiUnreadable(JobApiUncertain):
    """The response reports success but is not an Agent job (HTML, empty, truncated, too long, an error in `words`)."""


class ChatError(PagehandError):
    """A call of Slack failed; `reason` is Slack's own error code, if it gave one. The message is for the log;
    `retry_after` is in seconds, if Slack gave it.
    """

    is_failure = True
    """Whether it counts, as an attempt and as an outage."""

    def __init__(self, reason: str, *, words: str = "", retry_after: float | None = None) -> None:
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(words or reason)


class ChatUnreachable(ChatError):
    """Certainly did not arrive."""


class ChatRateLimited(ChatUnreachable):
    """429 or the equivalent error code; or the call was not sent, because our share of calls is used up for now. The
    call waits for its turn, at least `retry_after` seconds (thirty if Slack does not say), which is neither a failure
    of Slack nor an attempt. `method` is the Slack method that is limited, empty if unknown.
    """

    is_failure = False
    retry_after: float

    def __init__(self, reason: str, *, retry_after: float | None = None, method: str = "") -> None:
        self.method = method
        super().__init__(reason, retry_after=30.0 if retry_after is None else max(retry_after, 1.0))


class ChatUncertain(ChatError):
    """May have arrived: a timeout, a lost connection, a 5xx."""


class ChatNotInChannel(ChatError):
    """The bot is not a member. It can join a public channel, but must be invited to a private one."""


class ChatRejected(ChatError):
    """Slack refuses this message; retrying does not help."""


class ChatTooRich(ChatRejected):
    """Slack refuses this message for its blocks; the next attempt sends plainer ones."""


class ChatMissingScope(ChatRejected):
    """The app lacks `scopes` (Slack's names; empty if it named none); retrying does not help."""

    def __init__(self, scopes: tuple[str, ...]) -> None:
        self.scopes = scopes
        super().__init__("missing_scope")


class ChatNotAllowed(ChatError):
    """The token is invalid or revoked, or an administrator has blocked the app in the whole workspace. The message
    explains the code, and names the token's setting.
    """


class StoreError(PagehandError):
    """A database operation failed."""


class StoreUnavailable(StoreError):
    """Locked, restarting, disconnected or full: nothing was recorded, and the operation can be retried."""


class UnreadableRow(StoreError):
    """A row holds something that this program cannot have written."""


class SchemaMismatch(StoreError):
    """The database's schema is not the one this program expects."""


class AuthorUnknown(PagehandError):
    """Nobody knows yet whether a person wrote a message."""


class NotRecorded(PagehandError):
    """What a person asked for could not be recorded, for a reason that nobody expected."""
