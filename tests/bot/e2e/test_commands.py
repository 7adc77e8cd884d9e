"""The commands as a person or a platform runs them: real processes, signals, exit codes, what they print."""

import asyncio
import os
import pty
import re
import signal
import socket
import sqlite3
import sys
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from support.oracles.leaks import leaks
from support.programs import Program, Programs
from support.servers.free_ports import free_port
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.jobserver_world import make_bare, until
from support.worlds.store_world import StoreWorld, a_follow_up, a_post, a_start, a_thread

from bot import __version__
from bot.cli.demo_services import manifest
from bot.cli.starting import HOW_TO_BEGIN
from bot.runtime.env_file import read_env_file
from bot.store.schema.migration import migrate
from bot.store.store import Store, open_store
from bot.workspace import Credentials, WorkspaceServer

BOT_TOKEN, APP_TOKEN = "xoxb-planted-bot-token", "xapp-1-planted-app-token"
SIGNING_SECRET, JOB_KEY = "planted-signing-secret", "planted-key-of-the-job-server"
PATIENCE = 300.0
STOP_WITHIN = 10.0
"""Seconds that the product promises for its shutdown, however much is in progress."""


class Shell:
    """Runs commands in their own directory, with only the given environment; none may print a secret."""

    def __init__(self, directory: Path, pagehand: Sequence[str]) -> None:
        self.directory = directory
        self._pagehand = pagehand
        self.scratch = directory / "scratch"
        self.scratch.mkdir()
        self._programs = Programs()

    async def start(self, *arguments: str, typed: str = "", **environment: str) -> Program:
        given = self._environment(environment)
        return await self._programs.start(
            *self._pagehand, *arguments, directory=self.directory, environment=given, typed=typed
        )

    async def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Runs a command to its end: exit code and output."""
        program = await self.start(*arguments, **environment)
        return await program.end(), program.output

    async def close(self) -> None:
        await self._programs.kill()
        printed = "\n".join(program.output for program in self._programs.started)
        assert leaks((BOT_TOKEN, APP_TOKEN, SIGNING_SECRET, JOB_KEY), {"the output": printed.encode()}) == []
        assert "Traceback" not in printed, printed
        assert "Unclosed" not in printed, printed

    def _environment(self, given: Mapping[str, str]) -> dict[str, str]:
        here = Path(__file__).parents[3]
        kept = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "TMPDIR": str(self.scratch)}
        return kept | {"PYTHONPATH": str(here), "PYTHONUNBUFFERED": "1", **given}


@pytest_asyncio.fixture
async def shell(tmp_path: Path, pagehand: Sequence[str]) -> AsyncIterator[Shell]:
    shell = Shell(tmp_path, pagehand)
    yield shell
    await shell.close()


@pytest.mark.full
async def test_settings_come_from_env_files_unless_the_environment_has_them(shell: Shell) -> None:
    made = {name: shell.directory / f"{name}.sqlite3" for name in ("default", "given", "environment")}
    (shell.directory / ".env").write_text(f"DATABASE_URL=sqlite:///{made['default']}\n")
    (shell.directory / "other.env").write_text(f"DATABASE_URL=sqlite:///{made['given']}\n")
    (shell.directory / "other.env").chmod(0o600)
    code, said = await shell.run("migrate")
    assert code == 0
    assert "chmod 600 .env" in said
    assert await shell.run("--env-file", "other.env", "migrate") == (0, "The database is up to date.\n")
    await shell.run("migrate", DATABASE_URL=f"sqlite:///{made['environment']}")
    assert [name for name, path in made.items() if not path.exists()] == []
    (shell.directory / "jobserver.env").write_text("PAGEHAND_JOBSERVER_REPOSITORY: planted\n")
    assert await shell.run("jobserver") == (2, "jobserver.env: line 1 is not NAME=value.\n")


@pytest.mark.full
async def test_each_command_explains_its_failures(shell: Shell) -> None:
    (shell.directory / "taken.sqlite3").touch()
    of_no_database = {"DATABASE_URL": "oracle://someone:planted-key-of-the-job-server@host/name"}
    tried: dict[tuple[str, ...], tuple[dict[str, str], str]] = {
        ("run",): ({}, "Pagehand cannot start. Please set in the environment:"),
        ("jobserver",): ({}, "The job server cannot start. Please set in the environment:"),
        ("migrate",): (of_no_database, "The database cannot be brought up to date. Please set in the environment:"),
        ("forget", "--user", "UANA", "--yes"): (of_no_database, "Nothing can be deleted. Please set in the"),
        ("forget", "--user", "UANA"): (of_no_database, "Nothing can be deleted. Please set in the"),
        ("forget", "--user", "UBEN"): ({}, "Nothing can be deleted. Please set in the"),
        ("forget", "--user", "@ana"): ({}, "Usage:"),
        ("forget", "--channel", "docs"): ({}, "Usage:"),
        ("backup", "new.sqlite3"): (of_no_database, "Nothing can be copied. Please set in the environment:"),
        ("export",): (of_no_database, "Nothing can be exported. Please set in the environment:"),
        ("export", "--since", "yesterday"): ({}, "Usage:"),
        ("restored",): (of_no_database, "Nothing can be put in doubt. Please set in the environment:"),
        ("backup", "taken.sqlite3"): ({}, "Usage:"),
    }
    answers = await asyncio.gather(*(shell.run(*command, **given) for command, (given, _) in tried.items()))
    for (code, said), (_, words) in zip(answers, tried.values(), strict=True):
        assert (code, said[: len(words)]) == (2, words)
    assert answers[0][1].endswith(f"\n{HOW_TO_BEGIN}\n")
    assert "pagehand setup" not in answers[2][1]
    assert "environment" not in answers[-1][1]
    assert not (shell.directory / "pagehand.sqlite3").exists()
    assert "taken.sqlite3 already exists: name a new file." in answers[-1][1]


WITHOUT_FCNTL = "import sys; sys.modules['fcntl'] = None; from bot.cli.main import main; main()"


@pytest.mark.first(arguments=1)
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        *((command, 1, "Pagehand needs Linux or macOS.") for command in (("run",), ("backup", "x.sqlite3"))),
        (("--version",), 0, f"pagehand, version {__version__}"),
        *((command, 1, "Pagehand needs Linux or macOS.") for command in (("demo",), ("jobserver",), ("migrate",))),
        (("--help",), 0, "Usage:"),
        (("run", "--help"), 0, "Usage:"),
    ],
)
async def test_a_missing_module_is_explained(shell: Shell, arguments: tuple[str, ...], code: int, words: str) -> None:
    """As on Windows."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WITHOUT_FCNTL, *arguments),
        cwd=shell.directory,
        env=shell._environment({}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert (process.returncode, said.decode()[: len(words)]) == (code, words)


@dataclass
class Kept:
    """A database with rows as the bot leaves them, and the commands that work on it."""

    shell: Shell
    store: Store
    name: str = "pagehand.sqlite3"

    async def run(self, *arguments: str, typed: str = "") -> tuple[int, str]:
        return await self.shell.run(*arguments, typed=typed, DATABASE_URL=f"sqlite:///{self.name}")

    def rows(self, statement: str, name: str = "") -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.shell.directory / (name or self.name))) as database:
            return database.execute(statement).fetchall()

    def texts(self) -> set[object]:
        """Returns all texts written by people."""
        return {text for (text,) in self.rows("SELECT prompt FROM threads UNION SELECT text FROM requests")}


@pytest_asyncio.fixture
async def kept(shell: Shell) -> AsyncIterator[Kept]:
    url = f"sqlite:///{shell.directory}/{Kept.name}"
    await migrate(url)
    store = await open_store(url)
    yield Kept(shell, store)
    await store.close()


async def test_forgetting_asks_for_confirmation(kept: Kept) -> None:
    store = StoreWorld(kept.store)
    await store.add(a_thread("hers", prompt="planted prompt of Ana"), a_start("hers", text="planted prompt of Ana"))
    await store.add(
        a_thread("his", channel_id="C2", requester_id="UBEN", prompt="planted prompt of Ben"),
        a_start("his", person_id="UBEN", text="planted prompt of Ben"),
        a_follow_up("6.1", "his", person_id="UANA", text="planted reply of Ana"),
    )
    all_of_it = kept.texts()
    for code, said in await asyncio.gather(*(kept.run("forget", "--user", "UANA", typed=t) for t in ("", "n\n"))):
        assert code == 1
        assert "Continue?" in said
        assert "Aborted!" in said
    assert kept.texts() == all_of_it
    code, said = await kept.run("forget", "--user", "UANA", typed="y\n")
    assert code == 0
    logged, printed, out_of_reach = said.splitlines()
    assert ("INFO" in logged, logged.endswith("forgotten: jobs: 1, requests: 2")) == (True, True)
    assert printed == "Deleted: jobs: 1, requests: 2."
    assert out_of_reach == "Out of reach: backups, the job API, its pull requests, and Slack itself."
    assert kept.texts() == {"planted prompt of Ben"}


async def test_a_backup_under_load_has_complete_threads(kept: Kept) -> None:
    written, stop = 0, asyncio.Event()

    async def write() -> None:
        nonlocal written
        while not stop.is_set():
            name = f"t{written:06}"
            await StoreWorld(kept.store).add(
                a_thread(name, ts=name), a_start(name), say=[a_post("started"), a_post("done")]
            )
            written += 1

    with closing(sqlite3.connect(kept.shell.directory / kept.name, isolation_level=None)) as reader:
        # While a reader uses an old snapshot, nothing moves from the write-ahead log to the file.
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM threads").fetchall() == [(0,)]
        writing = asyncio.create_task(write())
        async with asyncio.timeout(PATIENCE):
            while not written:  # noqa: ASYNC110 - the first row is the sign
                await asyncio.sleep(0.01)
        before = written
        code, said = await kept.run("backup", "copy.sqlite3")
        after = written
        stop.set()
        await writing
        reader.execute("COMMIT")
    assert (code, said.strip()) == (0, "Copied to copy.sqlite3.")

    copy = StoreWorld(await open_store(f"sqlite:///{kept.shell.directory}/copy.sqlite3"))
    names = [str(name) for (name,) in kept.rows("SELECT id FROM threads ORDER BY id", "copy.sqlite3")]
    assert before < len(names) < after
    assert names == [f"t{n:06}" for n in range(len(names))]
    for name in (names[0], names[-1]):
        assert (await copy.get_thread(name)).prompt == "Do it"
        assert (await copy.get_request(f"{name}-start")).text == "Do it"
    await copy.close()
    whole = "SELECT (SELECT count(*) FROM {} WHERE thread_id = threads.id) FROM threads"
    for table, each in (("requests", 1), ("polls", 1), ("notices", 2)):
        assert set(kept.rows(whole.format(table), "copy.sqlite3")) == {(each,)}


@pytest.fixture
async def slack() -> AsyncIterator[FaultyWorkspace]:
    workspace = FaultyWorkspace(credentials=Credentials(BOT_TOKEN, APP_TOKEN, signing_secret=SIGNING_SECRET))
    await workspace.start()
    yield workspace
    await workspace.stop()


def settings(slack: FaultyWorkspace, **more: str) -> dict[str, str]:
    """The job API is away."""
    return {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_API_URL": slack.api_url,
        "JOB_API_URL": "http://127.0.0.1:9",
        "JOB_API_KEY": JOB_KEY,
        "JOB_API_PROJECT": "docs",
        "PAGEHAND_LOG_LEVEL": "DEBUG",
        **more,
    }


@pytest.mark.full
async def test_start_up_failures_are_explained(shell: Shell, slack: FaultyWorkspace) -> None:
    given = settings(slack, SLACK_APP_TOKEN=APP_TOKEN)
    http = settings(slack, SLACK_SIGNING_SECRET=SIGNING_SECRET)
    with socket.create_server(("0.0.0.0", 0)) as taken:  # noqa: S104 - where the bot would listen
        port = str(taken.getsockname()[1])
        tried = (
            (given | {"SLACK_BOT_TOKEN": f"{BOT_TOKEN}-wrong"}, "Slack does not accept SLACK_BOT_TOKEN"),
            (given | {"SLACK_APP_TOKEN": f"{APP_TOKEN}-wrong"}, "Slack does not accept SLACK_APP_TOKEN"),
            (http | {"PORT": port}, f"port {port}: Address already in use"),
            (http | {"PAGEHAND_HOST": "1:2:3"}, "cannot listen on 1:2:3, port 3000: "),
        )
        runs = [shell.run("run", **env, DATABASE_URL=f"sqlite:///{n}") for n, (env, _) in enumerate(tried)]
        ends = await asyncio.gather(*runs)
    for (code, said), (_, words) in zip(ends, tried, strict=True):
        assert code == 1
        assert words in said.splitlines()[-1], said
        assert "Unknown error" not in said


@pytest.mark.first(served_at=1)
@pytest.mark.parametrize(
    ("served_at", "receiving", "refuses"),
    [
        ("PAGEHAND_HEALTH_PORT", {"SLACK_APP_TOKEN": APP_TOKEN}, True),
        ("PORT", {"SLACK_SIGNING_SECRET": SIGNING_SECRET}, False),
    ],
)
async def test_the_bot_waits_for_slack_at_start_and_is_alive_from_the_first_moment(
    shell: Shell, slack: FaultyWorkspace, served_at: str, receiving: dict[str, str], *, refuses: bool
) -> None:
    """It says so once, whether Slack is out of reach or answers 503, and is ready as soon as Slack is. No request for
    its liveness is refused, not even at the moment when Slack's are received from then on.
    """
    port = free_port()
    async with aiohttp.ClientSession() as asking:

        async def status(page: str) -> int:
            async with asking.get(f"http://127.0.0.1:{port}/health{page}") as answer:
                return answer.status

        async def always_alive() -> None:
            while True:
                assert await status("/live") == 200

        refused = slack.faults.server_error(method="auth.test", count=None)
        if refuses:
            await slack.begin_outage()
        bot = await shell.start("run", **settings(slack, **receiving), **{served_at: str(port)})
        await bot.prints("Slack cannot be reached")
        alive = asyncio.create_task(always_alive())
        assert (await status("/ready"), await status("")) == (503, 503)
        if refuses:
            await slack.end_outage()
        await slack.changes.wait_for(lambda: refused.hits >= 2, PATIENCE)
        slack.faults.clear()
        await bot.prints("Pagehand is at work")
        while await status("/ready") != 200:
            assert not alive.done()
        assert await bot.end(signal.SIGTERM, within=STOP_WITHIN) == 0
        with pytest.raises(aiohttp.ClientConnectionError):
            await alive
    assert bot.output.count("Slack cannot be reached") == 1


@pytest.mark.full
async def test_the_bot_can_be_stopped_while_waiting_for_slack(shell: Shell, slack: FaultyWorkspace) -> None:
    delayed = slack.faults.delay(60.0, method="auth.test", count=None)
    given = settings(slack, SLACK_APP_TOKEN=APP_TOKEN)
    runs = [await shell.start("run", **given, DATABASE_URL=f"sqlite:///{n}") for n in range(3)]
    await slack.changes.wait_for(lambda: delayed.hits == len(runs), PATIENCE)
    ends = zip(runs, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP), strict=True)
    assert await asyncio.gather(*(run.end(number, within=STOP_WITHIN / 2) for run, number in ends)) == [0, 0, 0]


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_the_job_server_stops_on_request(shell: Shell, number: signal.Signals) -> None:
    make_bare(shell.directory / "handbook.git", {"index.md": "Home\n"})
    prefix = "PAGEHAND_JOBSERVER_"
    given = {f"{prefix}REPOSITORY": "handbook.git", f"{prefix}API_KEY": JOB_KEY, f"{prefix}PORT": "0"}
    server = await shell.start("jobserver", **given)
    await server.prints("listens on http://127.0.0.1:")
    url = server.output.rpartition("listens on ")[2].split('"')[0].strip()
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {JOB_KEY}"}) as client:
        async with client.post(f"{url}/v2/agent/docs/job", json={"prompt": "Fix the spelling"}) as answer:
            assert answer.ok
        assert await server.end(number, within=STOP_WITHIN) == 0


@pytest.mark.full
async def test_a_job_server_of_several_projects_is_checked_and_started(shell: Shell) -> None:
    tables = []
    for name in ("docs", "site"):
        make_bare(shell.directory / f"{name}.git", {"index.md": "Home\n"})
        tables.append(f'[projects.{name}]\nrepository = "{name}.git"\napi_key = "{JOB_KEY}-of-{name}"\n')
    (shell.directory / "projects.toml").write_text("\n".join(tables))
    given = {"PAGEHAND_JOBSERVER_PORT": "0"}
    code, said = await shell.run("jobserver", "--check", "--config", "projects.toml", **given)
    assert code == 0, said
    for name in ("docs", "site"):
        assert "push           a branch was pushed and deleted again" in said.partition(f"project {name}\n")[2]
    server = await shell.start("jobserver", "--config", "projects.toml", **given)
    await server.prints("listens on http://127.0.0.1:")
    url = server.output.rpartition("listens on ")[2].split('"')[0].strip()
    async with aiohttp.ClientSession() as client:
        for name, key, status in (("docs", "docs", 201), ("site", "site", 201), ("docs", "site", 404)):
            headers = {"Authorization": f"Bearer {JOB_KEY}-of-{key}"}
            async with client.post(f"{url}/v2/agent/{name}/job", json={"prompt": "Hi"}, headers=headers) as answer:
                assert answer.status == status
    assert await server.end(signal.SIGTERM, within=STOP_WITHIN) == 0
    (shell.directory / "projects.toml").write_text(tables[0].replace("repository", "repositry"))
    code, said = await shell.run("jobserver", "--config", "projects.toml", **given)
    assert (code, "project docs: repositry is unknown: is repository meant?" in said) == (2, True)
    assert JOB_KEY not in said


@pytest.mark.full
async def test_a_job_server_that_cannot_start_explains_why(shell: Shell) -> None:
    prefix = "PAGEHAND_JOBSERVER_"
    code, said = await shell.run("jobserver", **{f"{prefix}REPOSITORY": "nowhere", f"{prefix}API_KEY": JOB_KEY})
    assert code == 1
    assert said.splitlines()[-1].startswith("The job server stopped: the repository nowhere cannot be used: ")


@pytest.mark.full
async def test_options_the_demo_cannot_use_are_explained(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        (code, said), (in_vain, vain_said), (kept, kept_said) = await asyncio.gather(
            shell.run("demo", "--port", port), shell.run("demo", "--once", " "), shell.run("demo", "--keep", "old.json")
        )
    assert (code, in_vain, kept) == (1, 2, 2)
    assert f"port {port}: Address already in use. Omit --port for a free port" in said
    assert "Error: --once needs a task, such as --once 'Fix the spelling'." in vain_said
    assert "Error: --keep is gone: each demo starts anew, and old.json is left as it is. Omit it." in kept_said


ONCE = (
    *("demo", "--once", 'Replace "colour" with "color"'),
    *("--reply", "Also add a page called FAQ with the text: Ask us anything."),
)


async def test_the_demo_runs_the_whole_loop(shell: Shell) -> None:
    code, said = await shell.run(*ONCE)
    assert code == 0
    assert "Pull request: http://127.0.0.1:" in said.splitlines()[-1]
    assert said.splitlines()[-1].endswith("/pulls/1")
    assert 'Replaced "colour" with "color".' in said
    assert "Added the page `docs/faq.md`." in said


@pytest.mark.full
async def test_a_demo_without_a_pull_request_says_so(shell: Shell) -> None:
    code, said = await shell.run("demo", "--once", "Make everything better")
    assert code == 1
    assert said.splitlines()[-1] == "Pagehand stopped: The job ended without a pull request."
    assert "You could try: Fix the typos slowly" in said


@pytest.mark.full
@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(other, marks=pytest.mark.full) for other in (signal.SIGTERM, signal.SIGHUP))],
)
async def test_the_demo_cleans_up(shell: Shell, number: signal.Signals) -> None:
    shown, busy = await asyncio.gather(shell.start("demo"), shell.start(*ONCE))
    await asyncio.gather(shown.prints("Ctrl-C ends the demo."), busy.prints("Active: the agent is at work"))
    codes = await asyncio.gather(*(run.end(number, within=STOP_WITHIN) for run in (shown, busy)))
    assert codes == [0, 130]
    assert list(shell.scratch.iterdir()) == []
    assert _processes_in(shell.directory) == []


@pytest.mark.skipif("sys.platform != 'linux'", reason="looks into /proc")
@pytest.mark.parametrize("reached", ["importing", *(pytest.param(at, marks=pytest.mark.full) for at in ("*", "*/*/*"))])
async def test_many_interrupts_while_the_demo_starts_end_it_in_one_line(tmp_path: Path, reached: str) -> None:
    """While it imports its libraries, and once there are first, and more, of its files."""
    shell = Shell(tmp_path, (sys.executable, "-m", "bot"))
    demo = await shell.start("demo")

    async def there() -> bool:
        maps = await asyncio.to_thread(Path(f"/proc/{demo.process.pid}/maps").read_text)
        return "pydantic_core" in maps if reached == "importing" else any(shell.scratch.glob(reached))

    await until(there)
    for _ in range(20):
        if demo.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(demo.process.pid, signal.SIGINT)  # Popen's own would take the exit code from the event loop
            await asyncio.sleep(0.01)  # at the same moment they would be one
    assert (await demo.end(within=STOP_WITHIN), demo.output) == (130, "\nInterrupted.\n")
    assert list(shell.scratch.iterdir()) == []
    await shell.close()


def _processes_in(directory: Path) -> list[str]:
    """Returns leftover processes with a working directory or open file in a directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(directory):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


PATIENCE_AT_A_TERMINAL = 60.0
CTRL_C = "\x03"


@dataclass
class Terminal:
    """A process at its own terminal."""

    process: asyncio.subprocess.Process
    controller: int
    shown: str = ""
    all: str = ""

    async def sees(self, words: str) -> None:
        """Waits for the words, and discards the output before them."""
        async with asyncio.timeout(PATIENCE_AT_A_TERMINAL):
            while words not in self.shown:
                read = await asyncio.to_thread(os.read, self.controller, 65_536)
                text = re.sub(r"\x1b\[[0-9;]*m", "", read.decode())
                self.shown, self.all = self.shown + text, self.all + text
        self.shown = self.shown.partition(words)[2]

    async def types(self, text: str) -> None:
        await asyncio.to_thread(os.write, self.controller, text.encode())

    async def answers(self, question: str, text: str) -> None:
        await self.sees(question)
        await self.types(f"{text}\n")

    async def asks_for_a_secret(self, question: str) -> None:
        """Waits for the question and for the echo to end: then the terminal discards earlier input."""
        await self.sees(question)
        async with asyncio.timeout(PATIENCE_AT_A_TERMINAL):
            while termios.tcgetattr(self.controller)[3] & termios.ECHO:  # noqa: ASYNC110 - a terminal notifies nobody
                await asyncio.sleep(0.01)

    async def interrupts(self, words: str) -> None:
        """Presses Ctrl-C until the words appear: Python misses a signal just before it starts to wait for input."""

        async def press() -> None:
            while True:
                await self.types(CTRL_C)
                await asyncio.sleep(PATIENCE_AT_A_TERMINAL / 6)

        pressing = asyncio.create_task(press())
        await self.sees(words)
        pressing.cancel()

    async def answers_secretly(self, question: str, text: str) -> None:
        await self.asks_for_a_secret(question)
        await self.types(f"{text}\n")


@pytest.fixture
async def workspace() -> AsyncIterator[WorkspaceServer]:
    workspace = WorkspaceServer(manifest(), is_installed=False)
    await workspace.start()
    yield workspace
    await workspace.stop()


@pytest.fixture
async def ended() -> AsyncIterator[AsyncExitStack]:
    """Ends what a failed test left at its terminals, so that nothing waits for their output."""
    async with AsyncExitStack() as stack:
        yield stack


async def start(directory: Path, ended: AsyncExitStack, *arguments: str, **environment: str) -> Terminal:
    """Starts it in its own session; the terminal that it opens first becomes the controlling one."""
    controller, terminal = pty.openpty()
    program = f"import os, runpy, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); sys.argv[1:] = {list(arguments)}; "
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"{program}runpy.run_module('bot', run_name='__main__')"),
        cwd=directory,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)

    async def end() -> None:
        if process.returncode is None:
            process.kill()
            await process.wait()

    ended.callback(os.close, controller)
    ended.push_async_callback(end)
    return Terminal(process, controller)


@pytest.mark.full
async def test_a_person_sets_up_the_app_interrupts_and_resumes(
    workspace: WorkspaceServer, tmp_path: Path, ended: AsyncExitStack
) -> None:
    credentials = workspace.credentials
    first = await start(tmp_path, ended, "setup", SLACK_API_URL=workspace.api_url)
    await first.answers_secretly("Configuration token (empty: by hand):", credentials.configuration_token)
    await first.sees("Install to Workspace")
    workspace.install()
    await first.answers_secretly("Bot token (xoxb-…):", credentials.bot_token)
    await first.asks_for_a_secret("App-level token (xapp-…):")
    await first.interrupts("All answers so far are in .env")
    assert await first.process.wait() == 130
    assert list(read_env_file(tmp_path / ".env")) == ["SLACK_API_URL", "SLACK_APP_ID", "SLACK_BOT_TOKEN"]
    second = await start(tmp_path, ended, "setup", SLACK_API_URL=workspace.api_url)
    await second.answers_secretly("App-level token (xapp-…):", credentials.app_token)
    await second.sees("Without one, its own job server can change your repository.")
    for terminal in (first, second):
        assert not [token for token in (credentials.bot_token, credentials.app_token) if token in terminal.all]


@pytest.mark.full
async def test_the_live_check_asks_at_a_terminal_and_cleans_up_after_an_interrupt(
    tmp_path: Path, ended: AsyncExitStack
) -> None:
    workspace = WorkspaceServer(manifest())
    await workspace.start()
    ended.push_async_callback(workspace.stop)
    credentials, docs = workspace.credentials, workspace.channels["docs"].id
    environ = {
        "SLACK_BOT_TOKEN": credentials.bot_token,
        "SLACK_APP_TOKEN": credentials.app_token,
        "SLACK_API_URL": workspace.api_url.rstrip("/"),
        "JOB_API_URL": "http://127.0.0.1:9",
        "JOB_API_KEY": "a-key-of-the-job-api",
        "JOB_API_PROJECT": "docs",
    }
    live = await start(tmp_path, ended, "doctor", "--live", "--channel", docs, **environ)
    await live.answers("Type the channel's name to begin:", "docs")
    await live.answers("below the new message in the channel. (Enter: skip this)", "")
    await live.sees("button and form because you went on")
    await live.sees("Write a reply in the thread")
    (card, _) = workspace.channels.messages("docs")
    await workspace.people["ana"].say("docs", "Hello", thread_ts=card.ts)
    await live.sees("ok: person's reply")
    await live.interrupts("Left for you to delete: your reply in the thread.")
    await live.sees("is what this found out.")
    assert await live.process.wait() == 130
    assert [message.text for message in workspace.channels.messages("docs") if message.bot_id] == []
    assert credentials.bot_token not in live.all


@pytest.mark.full
async def test_the_demo_keeps_its_link_alive_until_enter(tmp_path: Path, ended: AsyncExitStack) -> None:
    """Pressed before that, it is no answer."""
    demo = await start(tmp_path, ended, "demo", "--once", "Fix the typos")
    await demo.types("\n")
    await demo.sees("Its page stays until you press Enter.")
    link = re.search(r"Pull request: (\S+)\r\nIts page", demo.all)
    assert link is not None
    async with aiohttp.ClientSession() as session, session.get(link[1]) as page:
        assert page.status == 200
    await demo.types("\n")
    async with asyncio.timeout(PATIENCE_AT_A_TERMINAL):
        assert await demo.process.wait() == 0
