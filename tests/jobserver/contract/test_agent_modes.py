"""Plans and answers of agents: what they write is not kept, and after a yes the work goes on in the same session."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.worlds.agent_world import ENOUGH, AgentWorld, agent_world, cancel_once
from support.worlds.hostile_world import needs_bubblewrap

from bot.jobapi.models import Mode, ProposedPage
from bot.jobserver.agents.connection import Category
from bot.jobserver.agents.turn import ANSWER_LIMIT
from bot.jobserver.editors.interface import EditResult
from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.bubblewrap import Bubblewrap

pytestmark = [
    pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only"),
    pytest.mark.promise("sandbox"),
]
PAGE = "# Start\n\nA colour.\n"


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    needs_bubblewrap()


def confined(root: Path, script: str, **traits: Any) -> AgentWorld:
    """Returns a world with two pages, whose agent is in the sandbox."""
    world = agent_world(root, script, sandbox=Bubblewrap("bwrap", ENOUGH), **traits)
    (world.copy / "docs").mkdir(exist_ok=True)
    for name in ("docs/start.md", "docs/end.md"):
        (world.copy / name).write_text(PAGE)
    return world


def everything_in(folder: Path) -> Mapping[str, object]:
    """Returns all that is in a folder: kinds, permissions, times, contents."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        told = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (told.st_mode, told.st_mtime_ns, told.st_nlink, content)
    return found


HOSTILE = """
import ctypes, mmap, os, shutil

libc = ctypes.CDLL(None, use_errno=True)

def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")

def mapped():
    with open("docs/start.md", "rb") as file:
        mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_WRITE)[0] = 120

def turn(agent, text):
    home, page, found = Path.home(), "docs/start.md", {}
    (home / "own").write_text("x")
    (home / "copy").symlink_to("/workspace/copy")
    (home / "linked").symlink_to("/workspace/copy/docs/start.md")
    folder, file = os.open(".", os.O_RDONLY), os.open(page, os.O_RDONLY)
    places = ("/proc/self/cwd", "/proc/self/root/workspace/copy", "/proc/thread-self/cwd", "/proc/1/cwd",
              "/proc/1/root/workspace/copy", str(home / "copy"), "/workspace/copy/docs/..")
    tries = {
        "home": lambda: open(home / "kept", "x"),
        "tmp": lambda: open("/tmp/mine", "x"),
        "write": lambda: open(page, "a"),
        "add": lambda: open("new.md", "x"),
        "git": lambda: os.mkdir(".git"),
        "settings": lambda: os.mkdir(".claude"),
        "link": lambda: os.symlink("/etc/passwd", "link"),
        "permissions": lambda: os.chmod(page, 0o777),
        "times": lambda: os.utime(page, (0, 0)),
        "through a link": lambda: open(home / "linked", "a"),
        "by its folder": lambda: os.open("docs/end.md", os.O_WRONLY, dir_fd=folder),
        "by its open folder": lambda: open(f"/proc/self/fd/{folder}/docs/end.md", "a"),
        "by its descriptor": lambda: open(f"/proc/self/fd/{file}", "r+"),
        **{place: lambda place=place: open(f"{place}/docs/end.md", "a") for place in places},
        "hard link out": lambda: os.link(page, home / "page.md"),
        "hard link in": lambda: os.link(home / "own", "own"),
        "take out": lambda: os.rename(page, home / "page.md"),
        "by memory": mapped,
        "remount": lambda: called(libc.mount(b"none", b"/workspace/copy", None, 0x1020, None)),
        "bind": lambda: called(libc.mount(b"/workspace", b"/tmp", None, 0x1000, None)),
        "unmount": lambda: called(libc.umount2(b"/workspace/copy", 2)),
        "namespace": lambda: called(libc.unshare(0x10020000)),
        "attachment": lambda: open("/workspace/attachments/a.txt", "a"),
        "cut": lambda: os.truncate(page, 0),
        "rename": lambda: os.rename(page, "moved.md"),
        "remove": lambda: os.unlink("docs/end.md"),
        "remove all": lambda: shutil.rmtree("docs"),
    }
    for name, attempt in tries.items():
        try:
            attempt()
            found[name] = "done"
        except OSError as error:
            found[name] = "refused"
    agent.say(repr(found))
"""


NEVER = {
    "hard link out", "hard link in", "take out", "by memory", "remount", "bind", "unmount", "namespace", "attachment",
}  # fmt: skip
"""What fails in an edit, too; that the rest succeeds there shows that its failure elsewhere proves something."""


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ASK, pytest.param(Mode.EDIT, marks=pytest.mark.full)])
async def test_a_hostile_agent_writes_nothing_that_is_kept(tmp_path: Path, mode: Mode) -> None:
    """Outside an edit. Agents need their HOME and /tmp."""
    world = confined(tmp_path, HOSTILE)
    attachments = world.root / "attachments"
    attachments.mkdir()
    (attachments / "a.txt").write_text("x")
    before = everything_in(world.copy), everything_in(attachments)
    found = ast.literal_eval((await world.edit("go", mode=mode)).summary)
    if mode is Mode.EDIT:
        assert {name for name, how in found.items() if how == "refused"} == NEVER
    else:
        assert {name for name, how in found.items() if how == "done"} == {"home", "tmp"}
        assert (everything_in(world.copy), everything_in(attachments)) == before


async def test_without_a_sandbox_no_agent_is_started(tmp_path: Path) -> None:
    """Nothing would enforce it."""
    world = agent_world(tmp_path, "def started(agent):\n    Path('started').touch()")
    for mode in (Mode.PLAN, Mode.ASK):
        with pytest.raises(EditError, match="without a sandbox, nothing keeps a program from changing files"):
            await world.edit("go", mode=mode)
    assert not (world.copy / "started").exists()


PLAN = (
    "I would say *color*.\n\n- docs/start.md: it says colour\n- `docs/end.md` - so does it\n- docs/new.md: will be new"
)
PAGES = (
    ProposedPage(path="docs/start.md", reason="it says colour"),
    ProposedPage(path="docs/end.md", reason="so does it"),
)
PLANS = f"""
options = [{{"id": "the-mode", "name": "X", "category": "mode", "type": "select", "currentValue": "default",
            "options": [{{"value": value, "name": value}} for value in ("default", "plan")]}}]

def turn(agent, text):
    if text.endswith("Do it"):
        Path("docs/start.md").write_text("# Start\\n\\nA color.\\n")
        agent.say("Done.")
        return
    agent.say("I looked at it.")
    agent.call("1", "Approve Plan", kind="switch_mode")
    agent.update("tool_call_update", toolCallId="1", rawInput={{"plan": {PLAN!r}}})
    assert agent.ask("1") == "reject_once"
    agent.call("2", "Task", kind="think", rawInput={{"plan": "something else"}})
    return "cancelled"
"""
MODES: dict[str, Any] = {"plan_mode": "plan", "wanted": {Category.MODE: "default"}}


def chosen(world: AgentWorld) -> list[tuple[str, str]]:
    return [(one["configId"], one["value"]) for one in world.received("session/set_config_option")]


GOES_ON = """
    agent.call("2", "Write", rawInput={"file_path": "docs/start.md"})
    assert agent.ask("2") == "reject_once"
    agent.say("So be it.")
"""


@pytest.mark.parametrize("end", ['return "cancelled"', GOES_ON])
async def test_a_plan_is_the_request_to_leave_the_plan_mode_and_never_granted(tmp_path: Path, end: str) -> None:
    """Some agents end with the refusal, others go on. After the yes, another process continues the session."""
    world = confined(tmp_path, PLANS.replace('return "cancelled"', end), **MODES)
    result = await world.edit("Plan it", mode=Mode.PLAN)
    assert (result.proposal, result.proposed_pages, result.question, result.closing_question) == (PLAN, PAGES, "", "")
    assert result.reason == "", "nothing was to be changed"
    assert ('[refused] edit: Write: {"file_path": "docs/start.md"}' in world.log) is (end == GOES_ON)
    assert chosen(world) == [("the-mode", "plan")]

    again = confined(tmp_path, PLANS.replace('"currentValue": "default"', '"currentValue": "plan"'), **MODES)
    again.progress.sessions = world.progress.sessions
    done = await again.edit("Do it")
    assert (done.summary, done.proposal, done.proposed_pages) == ("Done.", "", ())
    assert (world.copy / "docs/start.md").read_text() == "# Start\n\nA color.\n"
    assert chosen(world) == [("the-mode", "plan"), ("the-mode", "default")]
    assert [params["sessionId"] for params in world.received("session/resume")] == ["session-1"]
    await again.edit("Plan that", mode=Mode.PLAN)
    told = [("Change nothing" in prompt, "Change files in this directory only" in prompt) for prompt in world.prompts()]
    assert told == [(True, False), (False, True), (True, False)]


SAYS = f"""
def turn(agent, text):
    agent.say("Looking.")
    agent.call("1", "Read", kind="read", locations=[{{"path": "/workspace/copy/docs/end.md"}}, {{"path": "/etc/x.md"}}])
    agent.call("2", "Search", kind="search", rawInput={{"path": "docs"}})
    agent.call("3", "Read", kind="read", rawInput={{"file_path": "docs/start.md"}})
    agent.call("3", "Read", kind="read", rawInput={{"file_path": "docs/gone.md"}})
    agent.say({PLAN!r})
    agent.say("\\n\\nShall I?")
"""


@pytest.mark.parametrize(
    ("mode", "result"),
    [
        (Mode.PLAN, EditResult(f"{PLAN}\n\nShall I?", proposal=f"{PLAN}\n\nShall I?", proposed_pages=PAGES)),
        (Mode.ASK, EditResult(f"{PLAN}\n\nShall I?", pages_read=("docs/end.md", "docs/start.md"))),
        (Mode.EDIT, EditResult(f"{PLAN}\n\nShall I?", closing_question="Shall I?")),
    ],
)
async def test_an_agent_without_a_plan_mode_plans_in_words(tmp_path: Path, mode: Mode, result: EditResult) -> None:
    """Its last words are the plan, even if they end with a polite question; an answer tells which pages it read."""
    world = confined(tmp_path, SAYS)
    assert await world.edit("go", mode=mode) == result


@pytest.mark.parametrize("said", ["", "\0\x1b\u200b \U000e0041"])
@pytest.mark.parametrize(("mode", "what"), [(Mode.PLAN, "a plan"), (Mode.ASK, "an answer")])
async def test_what_nobody_can_read_is_no_plan_or_answer(tmp_path: Path, mode: Mode, what: str, said: str) -> None:
    script = f"""
    def turn(agent, text):
        agent.call("1", "Write", rawInput={{"path": "a.md"}})
        agent.ask("1")
        agent.call("2", "Approve Plan", kind="switch_mode", rawInput={{"plan": {said!r}}})
        agent.say({said!r})
    """
    with pytest.raises(EditError, match=rf"without {what}\. It wanted to do what is not allowed here: `Write"):
        await confined(tmp_path, script).edit("go", mode=mode)


async def test_a_plan_is_bounded_and_shows_no_key_of_its_agent(tmp_path: Path) -> None:
    script = """
    import os

    def turn(agent, text):
        plan = f"- docs/start.md: {os.environ['A_KEY']}\\n" + 200_000 * "x"
        agent.call("1", "Approve Plan", kind="switch_mode", rawInput={"plan": plan})
        agent.ask("1")
        return "cancelled"
    """
    key = "planted-key-of-the-agent"
    planned = await confined(tmp_path, script, passed={"A_KEY": key}).edit("go", mode=Mode.PLAN)
    assert key not in repr(planned)
    assert len(planned.proposal) <= ANSWER_LIMIT + len("[masked: Pagehand's own credential]")
    assert [page.path for page in planned.proposed_pages] == ["docs/start.md"]


async def test_a_planning_agent_that_is_stopped_gets_its_request_withdrawn(tmp_path: Path) -> None:
    script = """
    def turn(agent, text):
        agent.call("1", "Approve Plan", kind="switch_mode")
        agent.cancelled.wait(60)
        Path.home().joinpath("answer").write_text(agent.ask("1", rawInput={"plan": "x"}))
        return "cancelled"
    """
    world = confined(tmp_path, script)
    await cancel_once(world, lambda: bool(world.progress.activities), mode=Mode.PLAN)
    assert (world.workspace.home / "answer").read_text() == "cancelled"


async def test_an_unanswered_question_comes_before_the_plan(tmp_path: Path) -> None:
    script = """
    def turn(agent, text):
        form = {"type": "object", "properties": {"port": {"type": "string", "title": "port"}}}
        params = {"sessionId": agent.session_id, "mode": "form", "message": "Which port?", "requestedSchema": form}
        agent.request("elicitation/create", params)
        agent.say("I would change it.")
    """
    world = confined(tmp_path, script)
    result = await world.edit("go", mode=Mode.PLAN)
    assert (result.question, result.proposal) == ("Which port?", "")
