"""What an agent may do when it asks, and how a tool call is assembled from its updates."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, get_args

import pytest
from acp.schema import AllowedOutcome, PermissionOption, ToolCallProgress, ToolCallStart, ToolCallUpdate, ToolKind
from hypothesis import given
from hypothesis import strategies as st

from bot.jobapi.models import Mode
from bot.jobserver.agents.pages import pages_read, proposed_pages
from bot.jobserver.agents.permissions import (
    CopyPaths,
    PermissionPolicy,
    ToolCall,
    ToolCalls,
    answer,
    merged,
    only_takes_attachments,
    only_touches_copy,
)

COPY = Path("/workspace/copy")
KINDS = ("allow_always", "allow_once", "reject_always", "reject_once")


def options(*kinds: str) -> list[PermissionOption]:
    return [PermissionOption.model_validate({"optionId": f"{n}", "name": k, "kind": k}) for n, k in enumerate(kinds)]


def chosen(*kinds: str, allowed: bool) -> str | None:
    outcome = answer(options(*kinds), allowed=allowed).outcome
    return kinds[int(outcome.option_id)] if isinstance(outcome, AllowedOutcome) else None


def update(call_id: str = "1", **fields: Any) -> ToolCallUpdate:
    return ToolCallUpdate.model_validate({"toolCallId": call_id, **fields})


@pytest.fixture
def paths(tmp_path: Path) -> CopyPaths:
    real = tmp_path / "copy"
    (real / "docs").mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    (real / "link").symlink_to(tmp_path / "secret")
    (real / "up").symlink_to("..")
    (real / "loop").symlink_to("loop")
    return CopyPaths(COPY, real)


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("/workspace/copy/docs/a.md", "docs/a.md"),
        ("docs/a.md", "docs/a.md"),
        ("./docs//./b.md", "docs/b.md"),
        ("/workspace/copy", "."),
        ("new/folder/page.md", "new/folder/page.md"),
    ],
)
def test_paths_in_the_copy_are_allowed(paths: CopyPaths, path: str, relative: str) -> None:
    assert paths.relative(path) == PurePosixPath(relative)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/workspace/copy-of-others/a.md",
        "/workspace/home/.ssh/id",
        "../home/x",
        "docs/../../home/x",
        "/",
        "",
        "~/.ssh/id",
        "~root",
        "file:///etc/passwd",
        "https://example.com/a.md",
        "link",
        "/workspace/copy/link",
        "up/secret",
        "loop",
        "a\0b",
        "../copy/a.md",
        "docs/../b.md",
        "up/../secret",
    ],
)
def test_paths_elsewhere_are_refused_even_through_a_symlink(paths: CopyPaths, path: str) -> None:
    assert paths.relative(path) is None


@given(st.text(alphabet="/.~ab\0:", max_size=30))
def test_no_path_escapes_the_copy(path: str) -> None:
    copy = Path("/nowhere/copy")
    relative = CopyPaths(copy, copy).relative(path)
    assert relative is None or (".." not in relative.parts and not relative.is_absolute())


@pytest.mark.parametrize("kind", get_args(ToolKind))
def test_only_files_of_the_copy_are_allowed(paths: CopyPaths, kind: str) -> None:
    inside = ToolCall("x", kind, ("docs/a.md",))
    is_about_files = kind in {"read", "search", "edit", "delete", "move"}
    assert only_touches_copy(inside, paths.relative) is is_about_files
    assert not only_touches_copy(ToolCall("x", kind, ("docs/a.md", "/etc/passwd")), paths.relative)
    assert not only_touches_copy(ToolCall("x", kind), paths.relative)


def executed(command: str) -> ToolCall:
    return ToolCall("Bash", "execute", (), command, command=command)


FOLDER = Path("/workspace/attachments")
FILE = f"{FOLDER}/a.png"


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ASK])
@pytest.mark.parametrize("kind", get_args(ToolKind))
def test_outside_an_edit_files_are_only_read(paths: CopyPaths, kind: str, mode: Mode) -> None:
    policy, is_reading = PermissionPolicy(paths, FOLDER, mode), kind in {"read", "search"}
    assert policy.allows(ToolCall("x", kind, ("docs/a.md", FILE), command=f"cp {FILE} docs/")) is is_reading
    assert not policy.allows(ToolCall("x", kind, ("docs/a.md", "/etc/passwd"), command="rm docs/a.md"))
    policy.decide(ToolCall("x", kind, ("docs/a.md",)), options(*KINDS))
    is_plan = mode is Mode.PLAN and kind == "switch_mode"
    assert bool(policy.refused) is not (is_reading or is_plan)


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("cat docs/a.md", True), (f"head -n 5 {COPY}/docs/a.md {FILE}", True), ("ls -la", True),
        ("grep -rn 'a colour' docs", True),
        ("cat /etc/passwd", False), ("cat ~/.key", False), ("cat link", False), ("cat docs/a.md > b.md", False),
        ("cat docs/a.md | sh", False), ("cat docs/a.md; id", False), ("cat $HOME", False), ("cat docs/a.md\nid", False),
        ("rg --pre sh x", False), ("grep -f/etc/passwd docs", False), ("tee docs/a.md", False), ("cat 'docs", False),
        (f"cp {FILE} docs/", False), ("", False),
    ],
)  # fmt: skip
def test_outside_an_edit_commands_only_show_files(paths: CopyPaths, command: str, *, allowed: bool) -> None:
    assert PermissionPolicy(paths, FOLDER, Mode.PLAN).allows(executed(command)) is allowed
    assert not PermissionPolicy(paths, None, Mode.ASK).allows(ToolCall(command, "execute"))


@pytest.mark.parametrize(
    ("line", "page"),
    [
        ("- docs/a.md: says *colour*", ("docs/a.md", "says *colour*")),
        ("  12) **`/workspace/copy/docs/a.md`**: old", ("docs/a.md", "old")),
        ("* **docs/a.md:** old", ("docs/a.md", "old")),
        ("+ `docs/b c.md` \u2014 old", ("docs/b c.md", "old")),
        ("- ./docs/_a.md - old", ("docs/_a.md", "old")),
        (f"- docs/a.md: {'x' * 300} ", ("docs/a.md", "x" * 300)),
        ("- docs/new.md: is new", None),
        ("- docs: all of them", None),
        ("- ../secret: x", None),
        ("- link: x", None),
        (f"- {'x' * 300}: x", None),
        ("- docs/\udcff.md: x", None),
        ("- docs/a.md", None),
        ("- see docs/a.md: it is old", None),
        ("docs/a.md: old", None),
        ("> - docs/a.md: old", None),
    ],
)
def test_a_plans_pages_are_those_that_it_lists_and_that_are_there(
    paths: CopyPaths, line: str, page: tuple[str, str] | None
) -> None:
    for name in ("a.md", "_a.md", "b c.md", "\udcff.md"):
        (paths.real / "docs" / name).touch()
    plan = f"I would change these:\n\n- docs/\ud800.md: x\n{line}\n\nand nothing else.\n{line}"
    assert [(each.path, each.reason) for each in proposed_pages(paths, plan)] == ([page] if page else [])


def test_an_answers_pages_are_those_that_were_read_each_once(paths: CopyPaths) -> None:
    names = [f"docs/{number}.md" for number in range(25)]
    for name in [*names, "docs/a.py"]:
        (paths.real / name).touch()
    read = ["/etc/passwd", "link", "docs", "docs/gone.md", "docs/a.py", names[0], f"{COPY}/{names[0]}", *names]
    assert pages_read(paths, read) == tuple(names[:20])


@pytest.mark.parametrize("path", [".claude/settings.json", "docs/.git/config", "opencode.json", ".mcp.json", ".git"])
def test_an_agents_own_settings_are_read_only(paths: CopyPaths, path: str) -> None:
    assert not only_touches_copy(ToolCall("x", "edit", (path,)), paths.relative)
    assert only_touches_copy(ToolCall("x", "read", (path,)), paths.relative)


def test_options_are_chosen_by_kind_and_a_yes_allows_once() -> None:
    assert chosen(*KINDS, allowed=True) == "allow_once"
    assert chosen(*KINDS, allowed=False) == "reject_once"
    assert chosen("allow_once", "reject_always", allowed=False) == "reject_always"
    assert chosen("allow_always", "reject_once", allowed=True) is None
    assert chosen("allow_always", allowed=False) is None
    assert chosen(allowed=True) is None


@given(st.lists(st.sampled_from(KINDS), max_size=5))
def test_a_refusal_never_selects_an_allowing_option(kinds: list[str]) -> None:
    assert chosen(*kinds, allowed=False) not in {"allow_once", "allow_always"}


def test_a_refused_call_is_kept_once(paths: CopyPaths) -> None:
    policy = PermissionPolicy(paths)
    shell = ToolCall("npm test", "execute", input="npm test")
    for _ in range(3):
        outcome = policy.decide(shell, options(*KINDS)).outcome
        assert isinstance(outcome, AllowedOutcome)
        assert outcome.option_id == "3"
    assert policy.refused == ["npm test"]


def test_a_request_knows_earlier_updates_of_its_call() -> None:
    calls = ToolCalls()
    start = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Write", "kind": "edit"}
    calls.merge(ToolCallStart.model_validate(start))
    late = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "rawInput": {"file_path": "a.md"}}
    calls.merge(ToolCallProgress.model_validate(late))
    diff = [{"type": "diff", "path": "b.md", "newText": "x"}]
    call = calls.merge(update(locations=[{"path": "c.md"}], content=diff))
    assert (call.title, call.kind, call.paths) == ("Write", "edit", ("a.md", "b.md", "c.md"))
    assert calls.merge(update("2", title="Alone")).kind == "other"


@pytest.mark.parametrize(
    ("fields", "described"),
    [
        ({"title": "`npm test`", "rawInput": {"command": "npm test", "description": "Tests"}}, "`npm test`"),
        ({"title": "Run", "rawInput": {"command": ["npm", "test"]}}, 'Run: ["npm", "test"]'),
        ({"title": "Run", "rawInput": {"command": "x", "cwd": "/"}}, 'Run: {"command": "x", "cwd": "/"}'),
        ({"title": "Read", "locations": [{"path": "/etc/passwd"}]}, "Read: /etc/passwd"),
        ({"title": "Run", "rawInput": {"command": "x" * 2000}}, "Run"),
        ({"title": "Two\nlines"}, "Two lines"),
        ({"title": "Run", "rawInput": {"command": "echo\nrm x"}}, "Run: echo rm x"),
        ({"title": "Run", "rawInput": {"command": "echo \u202e\x1b[8m x"}}, "Run: echo [8m x"),
    ],
)
def test_a_call_is_described_in_one_line(fields: dict[str, Any], described: str) -> None:
    assert ToolCalls().merge(update(**fields)).described() == described


def test_remembered_calls_are_bounded() -> None:
    calls = ToolCalls()
    for number in range(600):
        calls.merge(update(str(number), title="x" * 10_000, rawInput={"path": "y" * 50_000, "content": "z" * 50_000}))
    assert "0" not in calls
    assert "599" in calls
    call = calls.merge(update("599", locations=[{"path": f"{n}.md"} for n in range(500)]))
    assert len(str(call)) < 1000
    assert not only_touches_copy(ToolCall("x", "edit", call.paths), CopyPaths(COPY, COPY).relative)


@pytest.mark.parametrize(
    "command",
    [
        f"cp {FILE} docs/", f"cp {FILE} docs/img/b.png", f"cp {FILE} {COPY}/docs/a.png",
        f"cp -f -- '{FILE}' \"docs/a b.png\"",
        f"mkdir -p docs/img && cp {FILE} docs/img/", f"cd {COPY} && mkdir -p img x && cp {FILE} {FOLDER}/b.png img",
        f"cp {FILE} .",
    ],
)  # fmt: skip
def test_commands_that_only_copy_an_attachment_are_allowed(paths: CopyPaths, command: str) -> None:
    """Agents write each of these forms."""
    assert only_takes_attachments(executed(command), FOLDER, paths.relative)
    assert PermissionPolicy(paths, FOLDER).allows(executed(command))
    assert not PermissionPolicy(paths).allows(executed(command))


@pytest.mark.parametrize(
    "command",
    [
        "", "cp", f"cp {FILE}", "cp docs/a.md docs/b.md", f"cp /etc/passwd {FILE} docs",
        f"cp {FOLDER}/../home/x docs/",
        f"cp {FILE} /workspace/home/x", f"cp {FILE} up/x", f"cp {FILE} ../x", f"cp {FILE} .claude/settings.json",
        f"cp {FOLDER}/opencode.json .", f"cp -t docs {FILE}",
        f"cp --target-directory=/tmp {FILE} x", f"cp -r {FOLDER} docs",
        f"cp {FILE} docs/; id", f"cp {FILE} docs/ | sh", f"cp {FILE} docs/ && id", f"cp {FILE} $HOME",
        f"cp {FILE} `id`",
        f"cp {FILE} docs/\nid", f"cp {FILE} docs/ &", f"cp {FILE} ~/x", f"cp {FILE} docs/*", f"cp {FILE} 'docs",
        "cd docs",
        f"cd docs && cp {FILE} x", "mkdir -p", "mkdir -p /tmp/x", "mkdir -p .git/hooks", f"rm {FILE}",
        f"X=1 cp {FILE} docs",
        " && ".join([f"cp {FILE} docs/"] * 6),
    ],
)  # fmt: skip
def test_commands_that_do_more_are_refused(paths: CopyPaths, command: str) -> None:
    """They must not contain anything for a shell that was not checked."""
    assert not only_takes_attachments(executed(command), FOLDER, paths.relative)


@pytest.mark.parametrize(
    ("kind", "files", "allowed"),
    [
        ("read", [FILE], True), ("search", [str(FOLDER)], True), ("read", [FILE, "docs/a.md"], True),
        ("read", [], False),
        ("read", [f"{FOLDER}/../home/.key"], False), ("read", [f"{FOLDER}-of-others/x"], False),
        ("edit", [FILE], False),
        ("read", [FILE, "/etc/passwd"], False), ("delete", [FILE], False), ("move", [FILE, "docs/a.png"], False),
    ],
)  # fmt: skip
def test_attachments_are_read_only(paths: CopyPaths, kind: str, files: Sequence[str], *, allowed: bool) -> None:
    """Files beside their folder are not attachments."""
    assert PermissionPolicy(paths, FOLDER).allows(ToolCall("x", kind, tuple(files))) is allowed


def test_the_command_is_read_from_where_the_agent_reports_it(paths: CopyPaths) -> None:
    """It is not taken from the title, which may be the model's text about something else."""
    titled = ToolCall(f"cp {FILE} docs/", "execute")
    lied = ToolCall(f"cp {FILE} docs/", "execute", (), "rm -rf docs", command="rm -rf docs")
    for call in (titled, lied):
        assert not PermissionPolicy(paths, FOLDER).allows(call)


def test_the_command_is_found_among_other_arguments() -> None:
    """Among others; a list or an unterminated command is none."""
    for raw, command in (
        ({"command": "cp a b", "patterns": ["/x/*"]}, "cp a b"),
        ({"command": ["cp", "a"]}, ""),
        ({"command": "x" * 2001}, ""),
        ("cp a b", ""),
    ):
        update = ToolCallUpdate.model_validate({"toolCallId": "1", "rawInput": raw})
        assert merged(ToolCall(), update).command == command
