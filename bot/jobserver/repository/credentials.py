"""Gives git credentials for https without exposing them.

Other processes can read arguments and environments, and `.git` is permanent. So git's helper reads the credential from
a descriptor that it inherits, in memory if possible. The helper is configured for one origin, so that git finds no
credential after a redirect to another host.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from bot.jobserver import subprocesses
from bot.jobserver.errors import GitError, JobServerError

_REMOTE_COMMANDS = {"clone", "fetch", "ls-remote", "push"}
_REFUSALS = ("Authentication failed", "could not read Username", "could not read Password")


class TokenSource(Protocol):
    """Both methods raise JobServerError."""

    async def token(self) -> str: ...

    async def renew(self, refused: str) -> bool:
        """Discards a token that was refused; returns whether there is another one to try."""


@dataclass(frozen=True)
class GitCredentials:
    """What git logs in with at one origin, such as https://github.com."""

    origin: str
    tokens: TokenSource = field(repr=False)
    username: str = "x-access-token"


@dataclass(frozen=True)
class GitResult:
    """How a git command ended; `is_complete` is False if the output was cut off at 8 MB."""

    exit_code: int
    output: str
    errors: str
    is_complete: bool = True


Run = Callable[[Sequence[str], Sequence[int]], Awaitable[GitResult]]
"""Runs a git command with additional options, and descriptors that it inherits."""


def speaks_to_remote(arguments: Sequence[str]) -> bool:
    """Tells whether a git command with these arguments connects to the remote repository."""
    return next((word for word in arguments if not word.startswith("-")), "") in _REMOTE_COMMANDS


async def run_with_credentials(credentials: GitCredentials, run: Run) -> GitResult:
    """Runs git with a token, and once more if that was refused and could be renewed.

    Raises:
        GitError: no token can be obtained.
    """
    tokens = credentials.tokens
    try:
        token = await tokens.token()
        with _given(credentials, token) as given:
            result = await run(*given)
        if result.exit_code and any(words in result.errors for words in _REFUSALS) and await tokens.renew(token):
            with _given(credentials, await tokens.token()) as given:
                result = await run(*given)
    except GitError:
        raise
    except JobServerError as error:
        raise GitError(str(error)) from error
    return result


@contextmanager
def _given(credentials: GitCredentials, token: str) -> Iterator[tuple[Sequence[str], Sequence[int]]]:
    """Provides the options of a helper, and the descriptor from which it reads the credential."""
    with subprocesses.in_memory(f"username={credentials.username}\npassword={token}\n".encode()) as file:
        helper = f'!f() {{ test "$1" = get && cat /dev/fd/{file.fileno()}; }}; f'
        options = ("-c", f"credential.{credentials.origin}.helper={helper}", "-c", "http.followRedirects=initial")
        yield options, (file.fileno(),)
