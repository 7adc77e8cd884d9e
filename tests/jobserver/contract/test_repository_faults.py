"""Problems of a repository: handled if that is safe, otherwise reported with a remedy."""

from pathlib import Path

import pytest
from pydantic import SecretStr
from support.servers.github_server import github_server
from support.worlds.github_world import jobs_at
from support.worlds.jobserver_world import git, make_bare, running

from bot.jobserver.errors import GitError, JobServerError
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.mirror import Mirror
from bot.jobserver.settings import JobServerSettings

pytestmark = pytest.mark.promise("repositories")

FILES = {"colours.md": "Every colour has a name.\n"}
FIRST, SECOND = 'Replace "colour" with "color"', 'Replace "name" with "code"'


def rename_base(repository: Path) -> None:
    git(repository, "branch", "-m", "main", "trunk")


async def test_a_renamed_base_branch_is_told_with_a_remedy(tmp_path: Path) -> None:
    """After the next start earlier jobs continue, new ones start from it, and a merge goes there."""
    bare = make_bare(tmp_path / "docs.git", FILES)
    async with running(bare, tmp_path / "data") as world:
        job = await world.done(FIRST)
        rename_base(bare)
        failed = await world.continued(job["id"], SECOND)
        assert failed["status"] == "failed"
        remedy = "if it was renamed, start the job server again, with another PAGEHAND_JOBSERVER_BASE_BRANCH if that is"
        assert f"the branch main is not in the repository: {remedy}" in failed["details"]["reason"]
    async with running(bare, tmp_path / "data") as world:
        continued = await world.continued(job["id"], SECOND)
        assert continued["status"] == "completed"
        await world.press(continued["prLink"], "merge")
        assert world.show("trunk", "colours.md") == "Every color has a code.\n"
        assert (await world.done('Replace "Every" with "Each"'))["source"]["ref"] == "trunk"
        assert "main" not in world.branches()


async def test_an_archived_repository_is_reported(tmp_path: Path) -> None:
    """The token's permissions are not blamed."""
    async with github_server(tmp_path / "github") as server, jobs_at(server, tmp_path) as world:
        server.repository.archived = True
        reason = (await world.done(FIRST))["details"]["reason"]
    assert "the repository is archived at its host: nobody can change it until it is unarchived there" in reason
    assert "permission" not in reason


async def test_a_shallow_clone_is_refused_at_start_with_a_remedy(tmp_path: Path) -> None:
    """Its history is incomplete, so git fetches nothing from it."""
    bare = make_bare(tmp_path / "docs.git", FILES)
    copy = tmp_path / "docs.git-copy"
    (copy / "more.md").write_text("More.\n")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "More")
    git(copy, "push", "--quiet", str(bare), "main")
    git(tmp_path, "clone", "--quiet", "--depth=1", bare.as_uri(), "shallow")
    with pytest.raises(JobServerError, match="is a shallow clone, without its whole history: run `git fetch --unsh"):
        async with running(tmp_path / "shallow", tmp_path / "data"):
            pass


async def test_a_shallow_remote_repository_is_reported(tmp_path: Path) -> None:
    """It looks like any other from here; git accepts none of its branches, and reports no error."""
    bare = make_bare(tmp_path / "docs.git", FILES)
    git(tmp_path / "docs.git-copy", "commit", "--quiet", "--allow-empty", "-m", "More")
    git(tmp_path / "docs.git-copy", "push", "--quiet", str(bare), "main")
    git(tmp_path, "clone", "--quiet", "--bare", "--depth=1", bare.as_uri(), "shallow.git")
    settings = JobServerSettings(repository=(tmp_path / "shallow.git").as_uri(), api_key=SecretStr("a" * 16))
    with pytest.raises(GitError, match="is a shallow clone, without its whole history"):
        await Mirror(Git.for_settings(settings), tmp_path / "mirror.git").fetch("main")


@pytest.mark.full
async def test_attributes_that_convert_files_do_not_prevent_a_change(tmp_path: Path) -> None:
    """An agent's `.gitattributes` may name any encoding; files are exported and imported unchanged."""
    program = tmp_path / "edit.sh"
    program.write_text(
        "#!/bin/sh\nprintf '*.md working-tree-encoding=UTF-16\\n' > .gitattributes\nprintf 'Ol\\303\\251\\n' > new.md\n"
    )
    program.chmod(0o700)
    bare = make_bare(tmp_path / "docs.git", FILES)
    paths = ("**", ".gitattributes")
    async with running(bare, tmp_path / "data", editor="command", command=(str(program),), paths=paths) as world:
        job = await world.done("go")
        assert (job["status"], job["details"]["reason"]) == ("completed", None)
        branch = f"pagehand/{job['id']}"
        assert world.show(branch, "new.md") == "Olé\n"
        await world.press(job["prLink"], "merge")
        again = await world.done("go")
        assert again["details"]["reason"] == "The agent changed no files."


@pytest.mark.parametrize("name", ["pagehand", "pagehand/{id}/theirs"])
async def test_a_branch_in_the_way_of_a_jobs_is_named(tmp_path: Path, name: str) -> None:
    """git keeps branches as files, and this one's name would be a folder, or the other way round."""
    bare = make_bare(tmp_path / "docs.git", FILES)
    async with running(bare, tmp_path / "data") as world:
        first = await world.done(FIRST)
        theirs = name.format(id=first["id"])
        git(bare, "update-ref", "-d", f"refs/heads/pagehand/{first['id']}")
        git(bare, "branch", theirs, "main")
        reason = (await world.continued(first["id"], SECOND))["details"]["reason"]
    assert "another branch is in its way" in reason
    assert f"'refs/heads/{theirs}' exists" in reason
    assert "keeps pushing" not in reason


@pytest.mark.parametrize("head", [("update-ref", "--no-deref"), ("symbolic-ref", "refs/heads/gone")])
async def test_a_head_without_a_branch_asks_for_the_setting(tmp_path: Path, head: tuple[str, str]) -> None:
    """It is detached, or names a branch that is not there."""
    bare = make_bare(tmp_path / "docs.git", FILES)
    command, argument = head
    detached = (command, argument, "HEAD", git(bare, "rev-parse", "main").strip())
    git(bare, *(detached if command == "update-ref" else (command, "HEAD", argument)))
    with pytest.raises(JobServerError, match=r"set PAGEHAND_JOBSERVER_BASE_BRANCH to that branch \(main\)"):
        async with running(bare, tmp_path / "data"):
            pass
    async with running(bare, tmp_path / "data", base_branch="main") as world:
        assert (await world.done(FIRST))["status"] == "completed"


async def test_a_repository_with_sha256_ids_works(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", "work")
    (tmp_path / "work" / "colours.md").write_text(FILES["colours.md"])
    git(tmp_path / "work", "add", "--all")
    git(tmp_path / "work", "commit", "--quiet", "-m", "Start")
    bare = tmp_path / "docs.git"
    git(tmp_path, "clone", "--quiet", "--bare", "work", str(bare))
    async with running(bare, tmp_path / "data") as world:
        job = await world.done(FIRST)
        assert (job["status"], job["details"]["reason"]) == ("completed", None)
        await world.press(job["prLink"], "merge")
        assert world.show("main", "colours.md") == "Every color has a name.\n"
