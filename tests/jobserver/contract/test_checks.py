"""Checks that run programs: Vale, if installed, and a team's own commands, in the sandbox."""

import asyncio
import gc
import json
import os
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from support.fakes.job_ports import FakeSnapshot

from bot.jobapi.models import CheckResult, CheckStatus
from bot.jobserver.checks.checkers import VALE_REPORT, CheckProgram, parse_report
from bot.jobserver.checks.documentation_checks import DocumentationChecks, RepositoryCheckers
from bot.jobserver.egress.proxy import Egress
from bot.jobserver.sandbox.choice import NoSandbox
from bot.jobserver.sandbox.limits import RunLimits

BEFORE = {"docs/start.md": "# Start\n\nVery old.\n", ".vale.ini": "MinAlertLevel = warning\n"}
AFTER = {**BEFORE, "docs/start.md": "# Start\n\nVery old.\nVery new.\n"}
FAKE_VALE = f"""#!{sys.executable}
import json, pathlib, sys
print(json.dumps({{name: [
    {{"Check": "x.Very", "Line": number, "Message": "Avoid 'Very'.", "Severity": "warning", "Span": [1, 4]}}
    for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1) if "Very" in line
] for name in sys.argv[1:] if not name.startswith("--")}}))
"""
LIMITS = RunLimits(memory=2**30, processes=100, disk=2**30)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name, text in AFTER.items():
        path = tmp_path / "job" / "copy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "job" / "copy"


async def results(
    copy: Path, *commands: tuple[str, ...], time_limit: float = 30.0, more: Mapping[str, str] | None = None
) -> dict[str, CheckResult]:
    program = CheckProgram(NoSandbox(), LIMITS, Egress("open"), time_limit)
    checks = DocumentationChecks(program, RepositoryCheckers(program), commands)
    before, after = FakeSnapshot({**BEFORE, **(more or {})}), FakeSnapshot({**AFTER, **(more or {})})
    found = await checks.run(before, after, [PurePosixPath("docs/start.md")], copy)
    return {result.name: result for result in found}


class SlowSnapshot(FakeSnapshot):
    """Runs git, which blocks."""

    def paths(self) -> tuple[PurePosixPath, ...]:
        assert threading.current_thread() is not threading.main_thread()
        return super().paths()

    def read(self, path: PurePosixPath) -> bytes | None:
        assert threading.current_thread() is not threading.main_thread()
        return super().read(path)


async def test_reading_files_blocks_no_other_request(copy: Path) -> None:
    """Other jobs and requests continue in the server's thread, while files are listed and read in another one."""
    program = CheckProgram(NoSandbox(), LIMITS, Egress("open"), 30.0)
    checks = DocumentationChecks(program, RepositoryCheckers(program))
    found = await checks.run(SlowSnapshot(BEFORE), SlowSnapshot(AFTER), [PurePosixPath("docs/start.md")], copy)
    assert {result.status for result in found if result.name != "Vale"} == {CheckStatus.PASSED}


def put_vale(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.mkdir()
    (directory / "vale").write_text(script)
    (directory / "vale").chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")


async def test_vales_findings_on_new_lines_are_reported(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_vale(tmp_path / "bin", FAKE_VALE, monkeypatch)
    assert (await results(copy))["Vale"].problems == ("docs/start.md:4: Avoid 'Very'. (x.Very)",)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho 'no such style'; exit 2\n", "it ended with exit code 2: no such style"),
        ("#!/bin/sh\necho nonsense\n", "its report cannot be read"),
    ],
)
async def test_a_failing_vale_is_skipped_with_a_reason(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    put_vale(tmp_path / "bin", script, monkeypatch)
    assert (await results(copy))["Vale"] == CheckResult(name="Vale", status=CheckStatus.SKIPPED, problems=(words,))


async def test_the_real_vale_works(copy: Path) -> None:
    """Its wheel downloads the program when it is first called: without network access, it is not installed."""
    if shutil.which("vale") is None:
        pytest.skip("vale is not installed here")
    style = "extends: existence\nmessage: \"Avoid '%s'.\"\nlevel: warning\ntokens: [Very]\n"
    settings = "StylesPath = styles\nMinAlertLevel = warning\n[*.md]\nBasedOnStyles = Own\n"
    found = await results(copy, more={"styles/Own/Very.yml": style, ".vale.ini": settings})
    assert found["Vale"].problems == ("docs/start.md:4: Avoid 'Very'. (Own.Very)",)


async def test_vale_settings_without_vale_are_no_fault_of_the_change(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    if shutil.which("vale"):
        pytest.skip("vale is installed for the whole machine")
    assert (await results(copy))["Vale"].status is CheckStatus.SKIPPED


async def test_a_teams_commands_pass_fail_or_cannot_run(copy: Path) -> None:
    script = "import sys; print('docs/start.md: <@U1> \\x1b[31mred'); sys.exit(3)"
    found = await results(copy, ("true",), (sys.executable, "-c", script), ("no-such-program",))
    assert found["true"].status is CheckStatus.PASSED
    assert found[sys.executable].problems == ("docs/start.md: <@U1> [31mred",)
    assert found["no-such-program"].status is CheckStatus.SKIPPED


async def test_a_command_sees_the_changed_files_and_times_out(copy: Path) -> None:
    found = await results(copy, ("grep", "-q", "new", "docs/start.md"), ("sleep", "60"), time_limit=1.0)
    assert found["grep"].status is CheckStatus.PASSED
    assert found["sleep"].problems == ("it took longer than 1 s",)


async def test_cancelled_checks_leave_nothing_behind(copy: Path) -> None:
    checking = asyncio.create_task(results(copy, ("sleep", "60"), ("true",)))
    async with asyncio.timeout(10):
        while not list(copy.parent.glob("check-*")):  # noqa: ASYNC110 (the first command's HOME)
            await asyncio.sleep(0.01)
    checking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checking
    gc.collect()  # a coroutine that was never awaited would warn now
    assert not list(copy.parent.glob("check-*"))


async def test_a_thousand_problems_are_truncated_with_a_count(copy: Path) -> None:
    found = await results(copy, (sys.executable, "-c", "print('x' * 1000); raise SystemExit(1)"))
    assert [len(problem) for problem in found[sys.executable].problems] == [300]


def test_vales_report_format_is_the_real_one() -> None:
    """As in Vale's documentation of its JSON output."""
    alert = {"Action": {"Name": "", "Params": []}, "Check": "Vale.Spelling", "Description": "", "Line": 12, "Link": "",
             "Message": "Did you really mean 'teh'?", "Severity": "error", "Span": [5, 8], "Match": "teh"}  # fmt: skip
    assert parse_report(VALE_REPORT, json.dumps({"a.md": [alert]}))["a.md"][0].line == 12
