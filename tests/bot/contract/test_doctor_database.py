"""What `pagehand doctor` says about a database that is absent, damaged, old, out of reach or short of space."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from support.servers.postgres import PostgresServer
from support.servers.silent import black_hole_port, mute_port
from support.worlds.doctor_world import hurried, set_up
from support.worlds.store_world import Sql

from bot.app.checks.database import check_database, room_finding
from bot.app.checks.running import LIMIT, Check, run_all
from bot.cli.demo_services import manifest
from bot.domain.findings import Finding, FindingStatus
from bot.store.schema.migration import known_versions

pytestmark = pytest.mark.promise("doctor")

MB = 1 << 20
Port = Callable[[], AbstractContextManager[int]]


def check(url: str) -> Check:
    return Check("database", partial(check_database, url, command="/docs", by_socket=True, now=time.time))


async def found_in(url: str) -> dict[str, Finding]:
    return {finding.check: finding for finding in await run_all([check(url)])}


async def test_a_missing_database_is_not_a_fault_and_is_not_created(tmp_path: Path) -> None:
    async with set_up(manifest(), f"sqlite:///{tmp_path}/new.db") as setup:
        faults = await setup.faults()
        assert {check.partition(".")[0] for check in faults} == {"arrivals"}
        assert files_in(tmp_path) == []


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_damaged_database_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    file.write_text("This is no database. " * 1_000)
    async with set_up(manifest(), f"sqlite:///{file}") as setup:
        assert list(await setup.faults()) == ["database"]


@pytest.mark.parametrize(
    ("free", "status"),
    [(1024 * MB, FindingStatus.OK), (1023 * MB, FindingStatus.WARNING), (99 * MB, FindingStatus.ERROR)],
)
def test_a_nearly_full_disk_is_reported(free: int, status: FindingStatus) -> None:
    finding = room_finding(Path("/var/lib/pagehand"), free)
    assert finding.status is status
    assert f"{free // MB:,} MB free at /var/lib/pagehand" in finding.found
    assert finding.is_fault is ("Free some room" in finding.fix)


async def test_an_older_schema_is_reported_with_the_command_to_run(
    used: str, server: PostgresServer | None, sql: Sql
) -> None:
    newest = known_versions()[-1]
    for version in ("0018", newest):
        await sql(
            "UPDATE pagehand_schema SET version_num = :version, compatible_with = :oldest",
            version=version,
            oldest=version,
        )
        found = await found_in(used)
        assert [each.check for each in found.values() if each.is_fault] == (["database"] if version != newest else [])
        if version != newest:
            assert found["database"].status is (FindingStatus.WARNING if server is None else FindingStatus.ERROR)
            assert "older version" in found["database"].found
            assert "`pagehand migrate`" in found["database"].fix


@pytest.mark.parametrize("port", [mute_port, black_hole_port])
async def test_a_database_that_never_answers_times_out(port: Port) -> None:
    with port() as number:
        (found,) = await run_all(hurried([check(f"postgresql://pagehand@127.0.0.1:{number}/pagehand")]))
    assert (found.check, found.passing) == ("database", True)
    assert "There was no answer" in found.found


@pytest.mark.full
@pytest.mark.parametrize("port", [mute_port, black_hole_port])
async def test_an_unreachable_database_is_named_before_the_limit(port: Port) -> None:
    began = time.monotonic()
    with port() as number:
        found = await found_in(f"postgresql://pagehand@127.0.0.1:{number}/pagehand")
    assert time.monotonic() - began < LIMIT
    assert "The database cannot be reached (TimeoutError)." in found["database"].found
    assert "DATABASE_URL" in found["database"].fix
