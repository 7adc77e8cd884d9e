"""The job server's keys are replaced while it runs: before, during and after."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.secret_files import SecretFileWorld
from support.worlds.jobserver_world import JOB, JobServerWorld, serving

from bot.jobserver.settings.server import reviewers_in

PAGES = {"docs/start.md": "# Start\n"}
OLD, NEW, BEN = "planted-old-key-0-0000000", "planted-new-key-0-0000000", "planted-key-of-ben-000000"


async def statuses(world: JobServerWorld, path: str) -> list[int]:
    """Returns how requests with the old and the new key are answered."""
    return [
        (await world.client.get(path, headers={"Authorization": f"Bearer {key}"})).status_code for key in (OLD, NEW)
    ]


@asynccontextmanager
async def with_reviewers(tmp_path: Path, file: SecretFileWorld) -> AsyncIterator[JobServerWorld]:
    file.put(f"Ada: {OLD}")
    reviewers = reviewers_in(file.text(), monotonic=file.monotonic)
    async with serving(tmp_path, PAGES, reviewers=reviewers, private_pages=True) as world:
        yield world


async def reads(world: JobServerWorld, name: str, key: str) -> bool:
    return (await world.client.get("/docs/pulls", auth=(name, key))).status_code == 200


@pytest.mark.parametrize(
    ("setting", "path", "known"), [("api_key", f"{JOB}/none", 404), ("metrics_token", "/metrics", 200)]
)
async def test_clients_and_the_metrics_readers_may_use_either_key(
    tmp_path: Path, setting: str, path: str, known: int
) -> None:
    file = SecretFileWorld(tmp_path / "key")
    file.put(OLD)
    secret = file.secret()
    async with serving(tmp_path, PAGES, **{setting: secret}) as world:
        assert await statuses(world, path) == [known, 401]
        file.put(f"{NEW}\n{OLD}\n")
        assert await statuses(world, path) == [known, known]
        file.put("short")
        assert await statuses(world, path) == [known, known], "a malformed file changes nothing"
        file.put(NEW)
        assert await statuses(world, path) == [401, known]
    assert secret in world.settings.rotating_secrets


async def test_a_reviewer_whose_key_was_removed_is_refused_at_once(tmp_path: Path) -> None:
    file = SecretFileWorld(tmp_path / "reviewers")
    async with with_reviewers(tmp_path, file) as world:
        assert not await reads(world, "Ben", BEN)
        assert await reads(world, "Ada", OLD)
        file.put(f"Ada: {NEW}\nAda: {OLD}\nBen: {BEN}")
        assert await reads(world, "Ada", OLD)
        assert await reads(world, "Ada", NEW)
        file.put("Ada")
        assert await reads(world, "Ada", OLD), "a malformed file changes nothing"
        file.put(f"Ada: {NEW}\nBen: {BEN}")
        assert not await reads(world, "Ada", OLD)
        assert await reads(world, "Ada", NEW)
        assert not await reads(world, "Ben", NEW)
        file.put(f"Ben: {BEN}")
        assert not await reads(world, "Ada", NEW)
        assert await reads(world, "Ben", BEN)
