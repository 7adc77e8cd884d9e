"""Runs git so that neither the machine's settings nor the repository's contents can run other programs."""

import errno
import os
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from bot.jobserver import subprocesses
from bot.jobserver.errors import GitError, OutputTooLongError, PushRejectedError
from bot.jobserver.repository.credentials import GitCredentials, GitResult, run_with_credentials, speaks_to_remote
from bot.jobserver.settings import JobServerSettings, is_branch_name, repository_protocol
from bot.jobserver.text import cut

_NOT_LET_IN = (
    "the repository's host does not accept the token or password: make a new token, or check that it has not expired "
    "and that its organisation allows it"
)
_MAY_NOT_WRITE = (
    "the token may not write to the repository: give it, or the App, the permission Contents: read and write for it"
)
IS_SHALLOW = (
    "the repository is a shallow clone, without its whole history: run `git fetch --unshallow` in it, "
    "or set PAGEHAND_JOBSERVER_REPOSITORY to what it was cloned from"
)
_BLOCKED = ("exists; cannot create", "refname conflict", "directory file conflict")
"""Phrases of git for a branch that cannot exist beside another one."""
_BEHIND = ("non-fast-forward", "fetch first", "cannot lock ref", "stale info")
"""Phrases of git for a branch that has other commits."""
_REASONS = (
    (_BLOCKED,
     ("another branch is in its way: git cannot keep a branch `pagehand` beside `pagehand/…`, nor `pagehand/a/b` "
     "beside `pagehand/a`: rename or delete that branch")),
    (("unstaged changes", "uncommitted", "Working directory"),
     "the repository's working copy of this branch has changes that are not committed: commit them, then try again"),
    (("was archived so it is read-only", "repository is archived"),
     "the repository is archived at its host: nobody can change it until it is unarchived there"),
    (("shallow update not allowed", "shallow roots are not allowed", "from a shallow repository"), IS_SHALLOW),
    (("GH006", "protected branch"),
     ("the branch is protected at its host: exempt branches that begin with pagehand/ from the protection, "
     "or allow the token's user or App to push to them")),
    (("GH013", "rule violations"),
     ("a rule of the repository forbids it: exempt branches that begin with pagehand/ from the rule, "
     "or add the token's user or App to those who may bypass it")),
    (("Authentication failed", "could not read Username", "could not read Password"), _NOT_LET_IN),
    (("returned error: 403", "Permission to ", "Write access to repository not granted"), _MAY_NOT_WRITE),
    (("Repository not found", "' not found"),
     "the host shows no such repository: check its address, and that the token or App has access to it"),
    (("returned error: 30", "HTTP 301", "HTTP 302", "HTTP 307", "HTTP 308",
      "unable to update url base from redirection"),
     "the repository has another address now: set PAGEHAND_JOBSERVER_REPOSITORY to it"),
    (("Could not resolve host", "Failed to connect", "Connection refused", "Connection timed out",
      "Connection reset", "Empty reply from server", "early EOF", "unexpected disconnect"),
     "the repository's host cannot be reached: check the network and its address, then try again"),
    (("dubious ownership",),
     ("the repository's directory belongs to another user, and git reads it only for its owner: give it to the user of "
     "this server (chown -R), or run the server as its owner")),
    (("does not appear to be a git repository",),
     "there is no git repository: check the directory or address, and that the server's user may read it"),
)  # fmt: skip
"""Phrases in the output of git or a code host, and the reasons that they indicate.

Sources: GitHub's documentation of its push errors (GH001 to GH013), and git's http.c and remote-curl.c.
"""
_LENGTH = 300
_MOST_NAMED = 5
_SHA256_DIGITS = 64
# Proxies, certificates and keys that reach the remote repository are the operator's business.
_PASSED_VARIABLES = (
    "PATH", "HOME", "TMPDIR", "SSH_AUTH_SOCK", "SSH_ASKPASS", "GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "all_proxy",
)  # fmt: skip
_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",  # a link is checked out as a small text file: nothing can be reached through it
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.quotePath=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "checkout.workers=0",  # as many as there are cores
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "credential.helper=",
    "diff.external=",
    "push.followTags=false",
)
# For a directory git itself starts the other side, which would run that repository's hooks. `updateInstead` lets
# a merge reach a branch that is checked out there, and is refused by git if that copy has uncommitted changes.
_RECEIVE_PACK = "git -c core.hooksPath=/dev/null -c receive.denyCurrentBranch=updateInstead receive-pack"
_TIME_LIMIT_S = 600.0
_OUTPUT_LIMIT = 8_000_000
_ERROR_LIMIT = 20_000
_READING_S = 60.0


def explain(errors: str) -> str | None:
    """Returns why the host refused git, with the host's own message; None if the reason is unknown."""
    for phrases, reason in _REASONS:
        if any(phrase in errors for phrase in phrases):
            lines = (line.removeprefix("remote:").strip() for line in errors.splitlines() if line.startswith("remote:"))
            words = " ".join(line.removeprefix("error:") for line in lines if line.strip("- "))
            said = cut(" ".join(words.split()), _LENGTH)
            return f"{reason} (it says: {said})" if said else reason
    return None


def _environment(settings: JobServerSettings) -> dict[str, str]:
    protocol = repository_protocol(settings.repository)
    allowed = "http:https" if protocol in {"http", "https"} else protocol
    name, _, address = settings.author.rstrip(">").rpartition("<")
    secrets = settings.api_key.values
    return {
        **{name: os.environ[name] for name in _PASSED_VARIABLES if os.environ.get(name) not in {None, *secrets}},
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": allowed,
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_EDITOR": "true",
        "GIT_PAGER": "cat",
        "GIT_AUTHOR_NAME": name.strip(),
        "GIT_AUTHOR_EMAIL": address,
        "GIT_COMMITTER_NAME": name.strip(),
        "GIT_COMMITTER_EMAIL": address,
    }


@dataclass(frozen=True)
class Git:
    """git for one configured repository. Branch names are validated before they are used in a command."""

    address: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    is_local: bool
    credentials: GitCredentials | None = field(default=None, repr=False)

    @classmethod
    def for_settings(cls, settings: JobServerSettings, credentials: GitCredentials | None = None) -> "Git":
        is_local = repository_protocol(settings.repository) == "file"
        return cls(settings.repository_address, _environment(settings), is_local, credentials)

    async def try_run(
        self, directory: Path, *arguments: str, stdin: bytes = b"", place: Mapping[str, str] | None = None
    ) -> GitResult:
        """Runs git and returns its result, whatever the exit code; `place` are variables that locate the repository.

        Raises:
            GitError: git cannot be started, took longer than ten minutes, or has no credentials for the remote.
        """

        async def run(options: Sequence[str] = (), inherited: Sequence[int] = ()) -> GitResult:
            command = self.command(directory, (*options, *arguments), stdin, place or {})
            return await self._run(arguments[0], replace(command, inherited=inherited))

        if self.credentials and speaks_to_remote(arguments):
            return await run_with_credentials(self.credentials, run)
        return await run()

    async def _run(self, name: str, command: subprocesses.Command) -> GitResult:
        output, errors = subprocesses.FirstBytes(_OUTPUT_LIMIT), subprocesses.FirstBytes(_ERROR_LIMIT)
        try:
            exit_code = await subprocesses.run(command, stdout=output.write, stderr=errors.write)
        except OSError as error:
            raise GitError("git cannot be started: is it installed?") from error
        except subprocesses.ProcessTimeoutError:
            raise GitError(f"git {name} took longer than ten minutes") from None
        words = printable(_text(errors)).replace(self.address, "the repository")
        return GitResult(exit_code, _text(output), words, output.is_complete)

    def command(
        self, directory: Path, arguments: tuple[str, ...], stdin: bytes, place: Mapping[str, str]
    ) -> subprocesses.Command:
        """Returns the command for these arguments."""
        # Without its own .git, a folder must not be taken for a part of a repository around it.
        environment = {**self.environment, "GIT_CEILING_DIRECTORIES": str(directory.parent), **place}
        options = [part for setting in _CONFIG for part in ("-c", setting)]
        return subprocesses.Command(("git", *options, *arguments), directory, environment, _TIME_LIMIT_S, stdin)

    async def run(
        self, directory: Path, *arguments: str, stdin: bytes = b"", place: Mapping[str, str] | None = None
    ) -> str:
        """Runs git and returns its standard output.

        Raises:
            GitError: git failed; the message has the end of its output.
            OutputTooLongError: that is more than 8 MB.
        """
        result = await self.try_run(directory, *arguments, stdin=stdin, place=place)
        if result.exit_code:
            words = explain(result.errors) or " ".join(result.errors.split())[-500:] or f"exit code {result.exit_code}"
            raise GitError(f"git {arguments[0]}: {words}")
        if not result.is_complete:
            raise OutputTooLongError(f"git {arguments[0]}: its output is too long to be read")
        return result.output

    async def default_branch(self, directory: Path) -> str:
        """Returns the branch that the repository's HEAD names.

        Raises:
            GitError: the repository cannot be read or has no commits.
        """
        output = await self.run(directory, "ls-remote", "--symref", "--", self.address, "HEAD", "refs/heads/*")
        first = output.split("\n", 1)[0]
        name = first.removeprefix("ref: refs/heads/").partition("\t")[0]
        if first.startswith("ref: refs/heads/") and is_branch_name(name):
            return name
        if branches := [line.partition("\trefs/heads/")[2] for line in output.splitlines() if "\trefs/heads/" in line]:
            raise GitError(
                "its HEAD is at no branch, so nothing says where jobs start: set PAGEHAND_JOBSERVER_BASE_BRANCH "
                f"to that branch ({', '.join(branches[:_MOST_NAMED])}{', …' * (len(branches) > _MOST_NAMED)})"
            )
        raise GitError("the repository has no commits on a branch yet")

    async def init(self, directory: Path) -> None:
        """Makes a bare repository in an empty place, with the repository's kind of object ids (SHA-1 or SHA-256).

        Raises:
            GitError: the repository cannot be read.
        """
        listed = await self.run(directory.parent, "ls-remote", "--", self.address, "HEAD", "refs/heads/*")
        kind = "sha256" if len(listed.partition("\t")[0]) == _SHA256_DIGITS else "sha1"
        await self.run(
            directory.parent, "init", "--quiet", "--bare", "--template=", f"--object-format={kind}", str(directory)
        )

    async def has_branch(self, directory: Path, branch: str) -> bool:
        ref = self._ref(branch)
        return bool(await self.run(directory, "ls-remote", "--", self.address, ref))

    def is_shallow(self) -> bool:
        """Tells whether the repository is a local shallow clone, from which git cannot fetch."""
        return any((folder / "shallow").exists() for folder in self._git_directories)

    def lacks_objects(self) -> bool:
        """Tells whether the repository is a local clone that is shallow or partial."""
        return self.is_shallow() or any(
            file for folder in self._git_directories for file in folder.glob("objects/pack/*.promisor")
        )

    @property
    def _git_directories(self) -> tuple[Path, ...]:
        """Where a local repository may keep its objects; nothing for one elsewhere."""
        place = self.local_directory
        return (place / ".git", place) if place else ()

    @property
    def local_directory(self) -> Path | None:
        """Where the repository is, if it is on this machine."""
        path = urlsplit(self.address).path if self.address.startswith("file:") else self.address
        return Path(path) if self.is_local else None

    async def push(self, directory: Path, revision: str, branch: str, expected: str | None = None) -> None:
        """Pushes so that nobody's commits are lost. `expected` is the branch's newest commit, empty if there is no such
        branch.

        Raises:
            PushRejectedError: somebody else's commits are in the way, or the branch is not as expected.
            GitError: it failed for another reason; the message is the host's.
        """
        ref, options = self._ref(branch), [f"--receive-pack={_RECEIVE_PACK}"] if self.is_local else []
        if expected:
            # Git overwrites what it finds as expected: nothing is lost only if it is among what is pushed.
            found = await self.try_run(directory, "merge-base", "--is-ancestor", expected, revision)
            if found.exit_code:
                raise PushRejectedError("the branch could not be pushed: it is not what the change is based on")
        if expected is not None:
            options.append(f"--force-with-lease={ref}:{expected}")
        pushed = await self.try_run(
            directory, "push", "--quiet", "--no-verify", "--recurse-submodules=no", *options, "--", self.address,
            f"{revision}:{ref}",
        )  # fmt: skip
        if pushed.exit_code:
            is_blocked = any(words in pushed.errors for words in _BLOCKED)  # somebody else's commits are not the cause
            is_behind = not is_blocked and any(words in pushed.errors for words in _BEHIND)
            kind = PushRejectedError if is_behind else GitError
            words = explain(pushed.errors) or " ".join(pushed.errors.split())[-300:]
            raise kind(f"the branch could not be pushed: {words}")

    @staticmethod
    def _ref(branch: str) -> str:
        if not is_branch_name(branch):
            raise GitError("this is not a branch name")
        return f"refs/heads/{branch}"


def printable(text: str) -> str:
    """Returns git's output for display: bytes that are not UTF-8 become question marks."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _text(output: subprocesses.FirstBytes) -> str:
    return output.getvalue().decode(errors="surrogateescape")


def short_name(repository: str) -> str:
    """Returns the last part of an address or a directory, without `.git`."""
    name = urlsplit(repository).path.rstrip("/").rsplit("/", 1)[-1]
    return name.removesuffix(".git") or repository


@dataclass(frozen=True)
class GitReader:
    """Runs git in a directory. All methods raise OSError if git fails."""

    command: Sequence[str]
    directory: Path
    environment: Mapping[str, str]

    def output(self, *arguments: str, accepted: Collection[int] = (0,)) -> bytes:
        """Runs git to its end, for at most 60 s; `accepted` are the exit codes that count as success."""
        try:
            done = subprocess.run(
                [*self.command, *arguments], cwd=self.directory, env=dict(self.environment), check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_READING_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise TimeoutError(errno.ETIMEDOUT, f"git {arguments[0]} took too long") from None
        if done.returncode not in accepted:
            raise OSError(errno.EIO, f"git {arguments[0]} ended with exit code {done.returncode}")
        return done.stdout

    @contextmanager
    def blobs(self) -> Iterator[Callable[[str], bytes]]:
        """Starts one process for many blobs; provides a function that returns the contents of a blob by its id."""
        with subprocess.Popen(
            [*self.command, "cat-file", "--batch=%(objectsize)"], cwd=self.directory, env=dict(self.environment),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            yield lambda blob: _read_blob(process, blob)


def _read_blob(process: subprocess.Popen[bytes], blob: str) -> bytes:
    """Asks `git cat-file --batch`, which answers with a line that has the size, the contents, and a line feed."""
    if process.stdin is None or process.stdout is None:
        raise OSError(errno.EIO, "git cannot be asked")
    process.stdin.write(f"{blob}\n".encode())
    process.stdin.flush()
    size = process.stdout.readline().strip()
    if not size.isdigit():
        raise OSError(errno.EIO, "git cannot read a file")
    data = process.stdout.read(int(size) + 1)
    if len(data) <= int(size):
        raise OSError(errno.EIO, "git ended early")
    return data[:-1]
