"""The workflows that a code host runs by itself, as the base branch has them."""

from pathlib import Path, PurePosixPath

from bot.jobserver.repository.git import Git, printable

FOLDERS = (".github/workflows", ".gitea/workflows", ".forgejo/workflows")
_ENDINGS = frozenset({".yaml", ".yml"})
_MOST = 50


async def workflow_files(git: Git, directory: Path, branch: str) -> dict[str, str]:
    """Returns the texts of the workflows by their paths; `directory` is an empty one for this.

    Raises:
        GitError: the branch cannot be read.
    """
    await git.run(directory, "init", "--quiet", "--bare", "--template=", "workflows.git")
    place = directory / "workflows.git"
    await git.run(
        place, "fetch", "--quiet", "--no-tags", "--depth=1", "--filter=blob:limit=200k", "--no-write-fetch-head",
        "--", git.address, f"refs/heads/{branch}:refs/heads/base",
    )  # fmt: skip
    listed = await git.run(place, "ls-tree", "-r", "-z", "--full-tree", "refs/heads/base", "--", *FOLDERS)
    found = {}
    for line in listed.split("\0")[:_MOST]:
        facts, _, path = line.partition("\t")
        if PurePosixPath(path).suffix in _ENDINGS:
            found[printable(path)] = await git.run(place, "cat-file", "blob", facts.split()[2])
    return found
