"""The job server's keys are replaced while it runs: before, during and after."""

from pathlib import Path

import pytest
from support.secret_files import SecretFileWorld
from support.worlds.jobserver_world import JOB, make_bare, running

from bot.jobserver.settings.pages import reviewers_in

PAGES = {"docs/start.md": "# Start\n"}
OLD, NEW, BEN = "planted-old-key-0", "planted-new-key-0", "planted-key-of-ben"


async def test_clients_with_either_key_are_accepted(tmp_path: Path) -> None:
    file = SecretFileWorld(tmp_path / "key")
    file.put(OLD)
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", api_key=file.secret()) as world:

        async def statuses() -> list[int]:
            return [
                (await world.client.get(f"{JOB}/none", headers={"Authorization": f"Bearer {key}"})).status_code
                for key in (OLD, NEW)
            ]

        assert await statuses() == [404, 401]
        file.put(f"{NEW}\n{OLD}\n")
        assert await statuses() == [404, 404]
        file.put("short")
        assert await statuses() == [404, 404], "a malformed file changes nothing"
        file.put(NEW)
        assert await statuses() == [401, 404]


async def test_the_job_servers_metrics_are_served_for_either_token(tmp_path: Path) -> None:
    file = SecretFileWorld(tmp_path / "token")
    file.put(OLD)
    token = file.secret()
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", metrics_token=token) as world:

        async def statuses() -> list[int]:
            return [
                (await world.client.get("/metrics", headers={"Authorization": f"Bearer {given}"})).status_code
                for given in (OLD, NEW)
            ]

        assert await statuses() == [200, 401]
        file.put(f"{NEW}\n{OLD}\n")
        assert await statuses() == [200, 200]
        file.put(NEW)
        assert await statuses() == [401, 200]
    assert token in world.settings.rotating_secrets


async def test_a_reviewer_whose_key_was_removed_is_logged_out_at_once(tmp_path: Path) -> None:
    file = SecretFileWorld(tmp_path / "reviewers")
    file.put(f"Ada: {OLD}")
    reviewers = reviewers_in(file.text(), monotonic=file.monotonic)
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", reviewers=reviewers) as world:

        async def is_logged_in() -> bool:
            return "Ada" in (await world.client.get("/pulls")).text

        assert (await world.log_in(BEN)).status_code == 403
        assert (await world.log_in(OLD)).status_code == 303
        assert await is_logged_in()
        file.put(f"Ada: {NEW}\nAda: {OLD}\nBen: {BEN}")
        assert await is_logged_in()
        assert (await world.log_in(NEW)).status_code == 303
        file.put("Ada")
        assert await is_logged_in(), "a malformed file changes nothing"
        file.put(f"Ada: {NEW}\nBen: {BEN}")
        assert await is_logged_in()
        assert (await world.log_in(OLD)).status_code == 403
        file.put(f"Ben: {BEN}")
        assert not await is_logged_in()
        assert (await world.log_in(NEW)).status_code == 403
        assert (await world.log_in(BEN)).status_code == 303


async def test_an_emptied_file_leaves_no_reviewer_and_a_lost_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = SecretFileWorld(tmp_path / "reviewers")
    file.put(f"Ada: {OLD}")
    reviewers = reviewers_in(file.text(), monotonic=file.monotonic)
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", reviewers=reviewers) as world:

        async def is_logged_in() -> bool:
            return "Ada" in (await world.client.get("/pulls")).text

        assert (await world.log_in(OLD)).status_code == 303
        file.remove()
        assert await is_logged_in()
        caplog.clear()
        file.put("\n")
        assert not await is_logged_in()
        assert (await world.log_in(OLD)).status_code == 403
        (record,) = [record for record in caplog.records if "is empty now: nobody may merge" in record.message]
        assert record.levelname == "WARNING"
        file.put(f"Ada: {NEW}")
        assert (await world.log_in(NEW)).status_code == 303


async def test_a_session_ends_with_the_key_it_was_opened_with(tmp_path: Path) -> None:
    file = SecretFileWorld(tmp_path / "reviewers")
    file.put(f"Ada: {OLD}")
    reviewers = reviewers_in(file.text(), monotonic=file.monotonic)
    repository = make_bare(tmp_path / "manual.git", PAGES)
    async with running(repository, tmp_path / "data", reviewers=reviewers) as world:
        await world.log_in(OLD)
        assert "Ada" in (await world.client.get("/pulls")).text
        file.put(f"Ada: {NEW}")
        assert "Ada" not in (await world.client.get("/pulls")).text
        file.put(f"Ada: {OLD}")
        assert "Ada" not in (await world.client.get("/pulls")).text, "it has ended, even if the key comes back"
