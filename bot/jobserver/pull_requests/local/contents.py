"""Reads the contents of a pull request from the mirror: commits, changed files and patches."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.jobserver.repository.git import printable
from bot.jobserver.repository.listings import ChangedFile, FileVersion, PullRequestChange, parse_totals
from bot.jobserver.repository.mirror import DIFF, Mirror

PATCH_BYTES = 200_000
"""The size limit of one file's patch."""
ALL_PATCH_BYTES = 2_000_000
"""The size limit of all patches that are read at once."""


@dataclass(frozen=True)
class Commit:
    """One commit of a pull request."""

    id: str
    author: str
    written_at: datetime
    subject: str


@dataclass(frozen=True)
class ContentsReader:
    """Reads commits, which never change: safe for concurrent use."""

    mirror: Mirror

    async def commits(self, start: str, end: str) -> tuple[Commit, ...]:
        """Returns the newest 250 commits, the oldest of them first, without merges."""
        log = await self.mirror.run(
            "log", "-z", "--reverse", "--no-merges", "--max-count=250",
            "--format=%H%x00%an%x00%cI%x00%s", f"{start}..{end}", "--",
        )  # fmt: skip
        return _parse_log(printable(log))

    async def commit_count(self, start: str, end: str) -> int:
        return int(await self.mirror.run("rev-list", "--count", "--no-merges", f"{start}..{end}", "--"))

    async def change(self, start: str, end: str) -> PullRequestChange:
        """Returns the changed files between two commits; git's list of them is cut off at 8 MB."""
        totals = await self.mirror.run(*DIFF, "--shortstat", start, end, "--")
        return PullRequestChange(start, end, await self.mirror.changed_files(start, end), *parse_totals(totals))

    async def patches(self, change: PullRequestChange, files: Sequence[ChangedFile]) -> tuple[str, ...]:
        """Returns each file's patch, cut at the end of a line if it is too long.

        The smallest get their room first, so that a huge file hides no other.
        """
        found = [await self._patch(change, file) for file in files]
        room = fair_shares([len(patch) for patch in found], each=PATCH_BYTES, total=ALL_PATCH_BYTES)
        return tuple(_cut(patch, limit) for patch, limit in zip(found, room, strict=True))

    async def texts(self, versions: Iterable[FileVersion], *, each: int, total: int) -> dict[str, bytes]:
        """Returns contents by blob id: files of at most `each` bytes, smallest first, up to `total` bytes."""
        sizes = await self._sizes({version.id for version in versions if version.mode.is_file})
        wanted: list[str] = []
        for blob, size in sorted(sizes.items(), key=lambda item: item[1]):
            total -= size
            if size <= each and total >= 0:
                wanted.append(blob)
        return await asyncio.to_thread(self._blobs, wanted)

    def _blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        with self.mirror.reader().blobs() as read:
            return {blob: read(blob) for blob in ids}

    async def _sizes(self, ids: set[str]) -> dict[str, int]:
        listed = await self.mirror.run(
            "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin="\n".join(ids).encode()
        )
        words = (line.split(" ") for line in listed.splitlines())
        return {blob: int(size) for blob, size in words if size.isdigit()}

    async def _patch(self, change: PullRequestChange, file: ChangedFile) -> str:
        paths = {file.before.path, file.after.path}
        result = await self.mirror.try_run(*DIFF, change.start, change.end, "--", *sorted(paths))
        return result.output


def fair_shares(wanted: Sequence[int], *, each: int, total: int) -> list[int]:
    """Returns how much each gets: at most `each`, and all together at most `total`.

    The smallest come first, so that a huge one takes nothing from the others.
    """
    shares = [0] * len(wanted)
    for index in sorted(range(len(wanted)), key=wanted.__getitem__):
        shares[index] = min(wanted[index], each, total)
        total -= shares[index]
    return shares


def _cut(patch: str, limit: int) -> str:
    return patch if len(patch) <= limit else patch[:limit].rpartition("\n")[0]


def _parse_log(log: str) -> tuple[Commit, ...]:
    fields = log.rstrip("\0").split("\0") if log else []
    commits = [fields[start : start + 4] for start in range(0, len(fields) - 3, 4)]
    return tuple(
        Commit(commit, author, datetime.fromisoformat(written_at), subject)
        for commit, author, written_at, subject in commits
    )
