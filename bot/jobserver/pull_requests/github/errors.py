"""The errors of calls to GitHub, by their remedy.

CodeHostError
├── RefusedError      GitHub rejected the call: tell the person
├── BusyError         a long rate limit: tell the person when it ends
├── UncertainError    no valid answer: check whether the call was carried out, then retry
└── MovedError        the repository was renamed: the call was not carried out
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.jobserver.errors import CodeHostError
from bot.jobserver.settings import PREFIX

NOT_UNDERSTOOD = "GitHub's answer makes no sense; is the address of its API right?"
_APP_NOT_KNOWN = (
    f"GitHub does not know the App: check {PREFIX}GITHUB_APP_ID and {PREFIX}GITHUB_APP_PRIVATE_KEY, "
    "and that this machine's clock is right"
)


class RefusedError(CodeHostError):
    """A status from 400 to 499. `said` is GitHub's own message in one line, to distinguish cases."""

    def __init__(self, words: str, *, status: int, said: str) -> None:
        self.status = status
        self.said = said
        super().__init__(words)


class BusyError(CodeHostError):
    """A rate limit."""


class UncertainError(CodeHostError):
    """The call may have been carried out, or not."""


class MovedError(CodeHostError):
    """A redirect; `location` is a path of this API."""

    def __init__(self, location: str) -> None:
        self.location = location
        super().__init__("the repository has another name now")


@dataclass(frozen=True)
class Purpose:
    """The purpose of a call, as the end of "GitHub does not allow to …", and the permission that it needs."""

    doing: str
    permission: str
    not_found: str = (
        f"GitHub shows no such repository: check {PREFIX}REPOSITORY, and that the token or App has access to it"
    )
    not_known: str = (
        f"GitHub does not accept the token: make a new one, and give it as {PREFIX}GITHUB_TOKEN; "
        "a token can also have expired or been revoked"
    )


READ = Purpose("read the repository", "Metadata: read")
READ_PULL_REQUESTS = Purpose("read pull requests", "Pull requests: read and write")
OPEN = Purpose("open a pull request", "Pull requests: read and write")
UPDATE = Purpose("change a pull request", "Pull requests: read and write")
LABEL = Purpose("label a pull request", "Pull requests: read and write")
REQUEST_REVIEW = Purpose("ask for a review", "Pull requests: read and write")
READ_CHECKS = Purpose("read the checks of commits", "Checks: read")
READ_STATUSES = Purpose("read the statuses of commits", "Commit statuses: read")
FIND_INSTALLATION = Purpose(
    "find where the App is installed",
    "Metadata: read",
    not_found="the GitHub App is not installed for this repository: install it at GitHub, in the App's settings",
    not_known=_APP_NOT_KNOWN,
)
MAKE_TOKEN = Purpose(
    "make a token for the App",
    "Metadata: read",
    not_found="the GitHub App is no longer installed: install it at GitHub, in the App's settings",
    not_known=_APP_NOT_KNOWN,
)


def refusal(purpose: Purpose, status: int, said: str, headers: Mapping[str, str]) -> str:
    """Returns an explanation of a status from 400 to 499. `headers` have names in lower case."""
    match status:
        case 401:
            return purpose.not_known
        case 403:
            return _forbidden(purpose, said, headers)
        case 404:
            return purpose.not_found
        case _:
            return f"GitHub did not {purpose.doing}: {said}"


def _forbidden(purpose: Purpose, said: str, headers: Mapping[str, str]) -> str:
    if "x-github-sso" in headers:
        return (
            "the organisation at GitHub wants tokens to be authorised for its single sign-on: "
            "GitHub > Settings > Developer settings > the token > Configure SSO"
        )
    if "archived" in said:
        return "the repository is archived at GitHub: nobody can change it until it is unarchived"
    if "IP allow list" in said:
        return "the organisation at GitHub lets in listed addresses only: add the address of this server to its list"
    if "not accessible by" in said or "Must have" in said:
        return (
            f"the token or App may not {purpose.doing}: give it the permission {purpose.permission}, "
            "and accept it for the organisation where GitHub asks for that"
        )
    return f"GitHub does not allow to {purpose.doing}: {said}"
