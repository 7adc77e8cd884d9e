"""Files attached to an instruction, from the agent's view: listed, linked, shown, and allowed to be copied."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from acp.schema import ToolCallUpdate
from support.worlds.agent_world import AgentWorld, agent_world

from bot.jobserver.agents.permissions import CopyPaths, PermissionPolicy, ToolCall, merged, only_takes_attachments
from bot.jobserver.editors.interface import TaskFile

PNG = b"\x89PNG\r\n\x1a\n..."
SAYS = """
def turn(agent, text):
    agent.say("Seen.")
"""
RESUMES = 'capabilities = {"sessionCapabilities": {"resume": {}}}\n'
COPIES = """
def turn(agent, text):
    import re, shutil
    path = re.search(r"^- (/\\S+) ", text, re.MULTILINE)[1]
    agent.call("1", "Read it", kind="read", locations=[{"path": path}])
    agent.call("2", "Bash", kind="execute", rawInput={"command": f"mkdir -p img && cp {path} img/"})
    agent.call("3", "Bash", kind="execute", rawInput={"command": f"cp {path} img/ && curl http://x"})
    assert [agent.ask(number) for number in "123"] == ["allow_once", "allow_once", "reject_once"]
    Path("img").mkdir()
    shutil.copy(path, "img/")
    agent.say("Copied.")
"""


def given(world: AgentWorld, **files: bytes) -> list[TaskFile]:
    """Puts files into the folder of attachments: `a_png` is `a.png`."""
    folder = world.workspace.attachments
    assert folder is not None
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    return [_described(name.replace("_", "."), content) for name, content in files.items()]


def _described(name: str, content: bytes) -> TaskFile:
    return TaskFile(name, name, "application/octet-stream", len(content))


def blocks(world: AgentWorld, kind: str) -> list[dict[str, Any]]:
    return [block for params in world.received("session/prompt") for block in params["prompt"] if block["type"] == kind]


async def test_an_agent_gets_links_to_files(tmp_path: Path) -> None:
    """It opens them itself."""
    world = agent_world(tmp_path, SAYS)
    files = given(world, a_png=PNG, b_txt=b"words")
    await world.edit("Look", attachments=files)
    folder = tmp_path / "attachments"
    links = [(block["name"], block["uri"], block["size"]) for block in blocks(world, "resource_link")]
    assert links == [(file.name, (folder / file.name).as_uri(), file.size) for file in files]
    (told,) = world.prompts()
    assert f"- {folder / 'a.png'} (application/octet-stream, {len(PNG)} bytes)" in told
    assert told.endswith("This is the instruction now:\n\nLook")


TAKES_MORE = 'capabilities = {"sessionCapabilities": {"additionalDirectories": {}, "resume": {}}}\n'


async def test_the_attachment_folder_is_separate_where_the_agent_takes_several(tmp_path: Path) -> None:
    """As long as there are files, including those of an earlier instruction in a resumed session."""
    world = agent_world(tmp_path, TAKES_MORE + SAYS)
    await world.edit("Without")
    files = given(world, a_png=PNG)
    await world.edit("With", attachments=files)
    await world.edit("Again")
    assert [params.get("additionalDirectories") for params in world.received("session/new")] == [None]
    folder = str(tmp_path / "attachments")
    assert [params.get("additionalDirectories") for params in world.received("session/resume")] == [[folder], [folder]]
    assert {params["cwd"] for params in world.received("session/resume")} == {str(world.copy)}


async def test_an_agent_that_takes_one_folder_gets_one(tmp_path: Path) -> None:
    """It is still told the paths."""
    world = agent_world(tmp_path, RESUMES + SAYS)
    files = given(world, a_png=PNG)
    await world.edit("Look", attachments=files)
    await world.edit("Look again", attachments=files)
    for method in ("session/new", "session/resume"):
        assert ["additionalDirectories" in params for params in world.received(method)] == [False]


async def test_a_follow_up_lists_only_its_own_files(tmp_path: Path) -> None:
    """A resumed session remembers the others."""
    world = agent_world(tmp_path, RESUMES + SAYS)
    await world.edit("one", attachments=given(world, a_png=PNG))
    await world.edit("two")
    await world.edit("three", attachments=given(world, b_png=PNG))
    assert [block["name"] for block in blocks(world, "resource_link")] == ["a.png", "b.png"]
    assert ["came with the instruction" in told for told in world.prompts()] == [True, False, True]


async def test_an_agent_may_read_the_files_and_copy_them_into_the_docs(tmp_path: Path) -> None:
    """Nothing else is allowed in the same command."""
    world = agent_world(tmp_path, COPIES)
    result = await world.edit("Add it", attachments=given(world, a_png=PNG))
    assert result.summary == "Copied."
    assert (world.copy / "img" / "a.png").read_bytes() == PNG


def executed(command: str) -> ToolCall:
    return ToolCall("Bash", "execute", (), command, command=command)


FOLDER, COPY = Path("/workspace/attachments"), Path("/workspace/copy")
FILE = f"{FOLDER}/a.png"


@pytest.fixture
def paths(tmp_path: Path) -> CopyPaths:
    real = tmp_path / "copy"
    (real / "docs").mkdir(parents=True)
    (real / "up").symlink_to("..")
    return CopyPaths(COPY, real)


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
