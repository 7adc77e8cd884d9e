"""The git half of a GitHub for tests: a real bare repository, served by git's own http-backend."""

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

_PROTECTING_HOOK = """#!/bin/sh
while read -r old new ref; do
    case "$ref" in refs/heads/%s)
        echo "error: GH006: Protected branch update failed for $ref." >&2
        echo "error: Changes must be made through a pull request." >&2
        exit 1
    esac
done
"""
_PERSON = {
    "GIT_AUTHOR_NAME": "Robin Field", "GIT_AUTHOR_EMAIL": "robin@example.com",
    "GIT_COMMITTER_NAME": "Robin Field", "GIT_COMMITTER_EMAIL": "robin@example.com",
}  # fmt: skip


def _environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", **more}


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


@dataclass(frozen=True)
class BareRepository:
    """A bare repository on disk."""

    path: Path

    @classmethod
    def make(cls, path: Path, files: Mapping[str, str]) -> "BareRepository":
        """Creates it with one commit on main."""
        repository = cls(path)
        path.mkdir(parents=True)
        repository.git("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
        repository.commit("main", files, "Start")
        return repository

    def git(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=_environment(**_PERSON, **environment),
            input=stdin,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def head(self, branch: str) -> str | None:
        found = self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
        return found or None

    def commit(self, branch: str, files: Mapping[str, str], message: str) -> str:
        """Makes a person's commit on a branch, which is created at main if needed."""
        heads = dict(
            line.split() for line in self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        )
        parent = heads.get(f"refs/heads/{branch}") or heads.get("refs/heads/main")
        changes = "".join(f"M 100644 inline {name}\n{_data(text)}" for name, text in files.items())
        start = f"from {parent}\n" if parent else ""
        who = f"committer Robin Field <robin@example.com> {int(time.time())} +0000"
        commit = f"commit refs/heads/{branch}\nmark :1\n{who}\n{_data(message)}{start}{changes}\nget-mark :1\n"
        return self.git("fast-import", "--quiet", "--force", stdin=commit)

    def merge(self, branch: str, base: str, message: str) -> str:
        """Makes a real merge, like the button; CalledProcessError on conflicts."""
        ours, theirs = self.head(base), self.head(branch)
        assert ours
        assert theirs
        tree = self.git("merge-tree", "--write-tree", ours, theirs)
        made = self.git("commit-tree", tree, "-p", ours, "-p", theirs, "-m", message)
        self.git("update-ref", f"refs/heads/{base}", made)
        return made

    def delete(self, branch: str) -> None:
        self.git("update-ref", "-d", f"refs/heads/{branch}")

    def adds_nothing(self, branch: str, base: str) -> bool:
        return self.git("rev-list", "--count", f"refs/heads/{base}..refs/heads/{branch}") == "0"

    def protect(self, pattern: str) -> None:
        """Refuses pushes to branches that match this shell pattern, in GitHub's words."""
        hook = self.path / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_PROTECTING_HOOK % pattern)
        hook.chmod(0o755)

    async def serve(self, request: web.Request, tail: str) -> web.Response:
        """Answers a git request of a permitted client."""
        given = await request.read()
        process = await asyncio.create_subprocess_exec(
            "git", "http-backend",
            env=_environment(**self._cgi(request, tail)),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            output, _ = await process.communicate(given)
        finally:
            if process.returncode is None:  # the client disconnected
                process.kill()
                await process.wait()
        head, _, body = output.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        return web.Response(status=status, body=body, headers=headers)

    def _cgi(self, request: web.Request, tail: str) -> dict[str, str]:
        return {
            "GIT_PROJECT_ROOT": str(self.path.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "pagehand-bot",
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": f"/{self.path.name}/{tail}",
            "QUERY_STRING": request.query_string,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "HTTP_GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        }
