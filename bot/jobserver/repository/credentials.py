"""Gives git credentials for https without exposing them.

Other processes can read arguments and environments, and `.git` is permanent. So git's own helper `credential-store`
reads the credential from a file that only this user can open, in a folder that exists only while git runs, in memory if
possible. The helper is configured for one origin, which the file also names, so that git finds no credential after a
redirect to another host.
"""

import asyncio
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from bot.jobserver.errors import GitError, JobServerError

_REMOTE_COMMANDS = {"clone", "fetch", "ls-remote", "push"}
_MEMORY = Path("/dev/shm")  # noqa: S108 - files go to a private folder in it
_PREFIX = "pagehand-git-"
_ABANDONED_S = 3600.0
"""Much longer than git may take: older folders were left by a server that was killed."""
_REFUSALS = ("Authentication failed", "could not read Username", "could not read Password")


class TokenSource(Protocol):
    """Both methods raise JobServerError."""

    async def token(self) -> str: ...

    async def renew(self, refused: str) -> bool:
        """Discards a token that was refused; returns whether there is another one to try."""
        ...


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


Run = Callable[[Sequence[str]], Awaitable[GitResult]]
"""Runs a git command with additional options."""


def speaks_to_remote(arguments: Sequence[str]) -> bool:
    """Tells whether a git command with these arguments connects to the remote repository."""
    return next((word for word in arguments if not word.startswith("-")), "") in _REMOTE_COMMANDS


async def run_with_credentials(credentials: GitCredentials, run: Run) -> GitResult:
    """Runs git with options that give it a token, and once more if that was refused and could be renewed.

    Raises:
        GitError: no token can be obtained.
    """
    tokens = credentials.tokens
    try:
        token = await tokens.token()
        async with _credential_file(credentials, token) as options:
            result = await run(options)
        if result.exit_code and any(words in result.errors for words in _REFUSALS) and await tokens.renew(token):
            async with _credential_file(credentials, await tokens.token()) as options:
                result = await run(options)
    except GitError:
        raise
    except JobServerError as error:
        raise GitError(str(error)) from error
    return result


def remove_abandoned() -> None:
    """Removes folders that any killed server left."""
    for folder in _parent_folder().glob(f"{_PREFIX}*"):
        try:
            is_abandoned = folder.stat().st_uid == os.getuid() and time.time() - folder.stat().st_mtime > _ABANDONED_S
        except OSError:
            continue
        if is_abandoned:
            shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _credential_file(credentials: GitCredentials, token: str) -> AsyncIterator[Sequence[str]]:
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=_PREFIX, dir=_parent_folder()))
    try:
        file = folder / "credentials"
        await asyncio.to_thread(_write, file, credentials, token)
        yield (
            "-c", f"credential.{credentials.origin}.helper=store --file={shlex.quote(str(file))}",
            "-c", "http.followRedirects=initial",
        )  # fmt: skip
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))


def _write(file: Path, credentials: GitCredentials, token: str) -> None:
    scheme, _, host = credentials.origin.partition("://")
    line = f"{scheme}://{quote(credentials.username, safe='')}:{quote(token, safe='')}@{host}\n"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(line)


def _parent_folder() -> Path:
    return _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
