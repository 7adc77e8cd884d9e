"""Three workers and two API processes over one PostgreSQL and one git repository, and what is done to them."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import make_url
from support.chaos import worker_target
from support.chaos.process_group import ProcessGroup, TargetProcess
from support.chaos.worker_target import AGENT, GIT, POINTS
from support.libfaketime import LIBFAKETIME
from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer
from support.worlds.agent_world import PROGRAM
from support.worlds.jobserver_world import KEY, make_bare

from bot.jobserver.settings import PREFIX
from bot.jobserver.store.claims import LEASE
from bot.runtime.tasks import BackgroundTasks

API, WORKER = ("jobserver", "--without-worker"), ("jobworker",)
APIS, WORKERS = ("api-1", "api-2"), ("worker-1", "worker-2", "worker-3")
TO_REACH = 8.0
"""Seconds for a worker to come to its point; then it is killed wherever it is."""
SLEEPS = LEASE.total_seconds() + 2.0
_FEW = 5
Step = tuple[Callable[[str, str], Awaitable[None]], str]
_SSH = '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n'
_END_LEASES = """
    UPDATE instructions SET claimed_until = '2000-01-01T00:00:00.000000Z' WHERE state = 'running' AND claimed_by LIKE $1
"""
_HELD = "SELECT number FROM instructions WHERE state = 'running' AND claimed_by LIKE $1"
_TAKEN = "SELECT number FROM instructions WHERE state = 'running' AND claimed_by NOT LIKE $1 AND number = ANY($2)"
_NOTE_WRITERS = """
    ALTER TABLE instructions ADD holder text, ADD trespasser text;
    CREATE FUNCTION note_writer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.attempts > OLD.attempts THEN NEW.holder := current_user;
        ELSIF current_user LIKE 'worker%' AND OLD.state = 'running' AND OLD.holder <> current_user
        THEN NEW.trespasser := current_user;
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER note_writer BEFORE UPDATE ON instructions FOR EACH ROW EXECUTE FUNCTION note_writer();
"""
"""Who claimed an instruction, and which other worker wrote while it was running: each has a role of its own."""


class Cable:
    """A network cable to a Unix socket. While it is cut, nothing arrives, and nobody is told."""

    def __init__(self, socket: Path) -> None:
        self._socket = str(socket)
        self._whole = asyncio.Event()
        self._whole.set()
        self._ends: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        """What was connected stays lost."""
        for writer in self._ends:
            writer.transport.abort()
        self._whole.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        await self._whole.wait()
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_unix_connection(self._socket)
            self._ends.add(back)
            await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
        writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                await self._whole.wait()
                writer.write(data)
        writer.close()


@dataclass
class Instance:
    """One of the processes. It is started again with the same folder, as a service manager does."""

    name: str
    group: ProcessGroup
    folder: Path
    environment: dict[str, str]
    target: TargetProcess = field(default_factory=lambda: TargetProcess(""))
    is_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def live(self) -> None:
        while True:
            (self.folder / "order").unlink(missing_ok=True)
            self.target = await self.group.start(self.name, self.environment)
            self.is_up.set()
            await self.target.ended.wait()
            self.is_up.clear()
            await asyncio.sleep(0.2)

    async def reaches(self, how: str, point: str) -> bool:
        """Gives the order, and returns whether it was carried out in time."""
        reached = self.folder / "reached"
        reached.unlink(missing_ok=True)
        (self.folder / "ordered").write_text(f"{how} {point}\n")
        (self.folder / "ordered").rename(self.folder / "order")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TO_REACH):
                while not reached.exists():  # noqa: ASYNC110 - it happens in another process
                    await asyncio.sleep(0.02)
        (self.folder / "order").unlink(missing_ok=True)
        return reached.exists()


@dataclass
class WorkerWorld:
    """`done` counts what was done to the processes, by name; a lease is waited for in a long round only."""

    server: PostgresServer
    url: str
    directory: Path
    repository: Path
    cable: Cable
    rng: random.Random
    is_long: bool
    instances: dict[str, Instance] = field(default_factory=dict)
    ports: list[int] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    is_calm: bool = True
    _postgres: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def fetch(self, statement: str, *arguments: object) -> list[dict[str, Any]]:
        async with self._postgres:
            connection = await asyncpg.connect(self.url)
            try:
                return [dict(row) for row in await connection.fetch(statement, *arguments)]
            finally:
                await connection.close()

    async def kill(self, name: str, point: str = "") -> None:
        """Kills a process, at a point of an instruction if one is named, and starts it again."""
        instance = self.instances[name]
        await instance.is_up.wait()
        killed, is_there = instance.target, bool(point) and await instance.reaches("KILL", point)
        killed.signal(signal.SIGKILL)
        await killed.ended.wait()
        self.done.append(f"kill {point if is_there else 'anywhere'}")
        await self._end_leases(killed)

    async def pause(self, name: str, point: str) -> None:
        """Stops a worker at a point, for longer than its lease: until another one works on what it held."""
        instance = self.instances[name]
        await instance.is_up.wait()
        if not await instance.reaches("STOP", point):
            return
        await asyncio.sleep(0.2)
        its = f"%-{instance.target.pid}-%"
        held = [row["number"] for row in await self.fetch(_HELD, its)]
        if not self.is_long:
            await self._end_leases(instance.target)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SLEEPS if self.is_long else 4.0):
                while not await self.fetch(_TAKEN, its, held):  # noqa: ASYNC110 - it happens in another process
                    await asyncio.sleep(0.02)
        instance.target.signal(signal.SIGCONT)
        self.done.append(f"pause {point}")

    async def cut_off(self, name: str) -> None:
        """Cuts the network between a worker and the database, for longer than its lease."""
        self.cable.cut()
        await asyncio.sleep(0.2)
        await (asyncio.sleep(SLEEPS) if self.is_long else self._end_leases(self.instances[name].target))
        await asyncio.sleep(self.rng.uniform(1.0, 4.0))
        self.cable.mend()
        self.done.append("cut off")

    async def restart_postgres(self) -> None:
        async with self._postgres:
            await asyncio.to_thread(self.server.stop)
            await asyncio.to_thread(self.server.start)
        self.done.append("restart")

    async def _end_leases(self, target: TargetProcess) -> None:
        """Ends them in the table: as if time had passed for everybody else."""
        await self.fetch(_END_LEASES, f"%-{target.pid}-%")

    async def disrupt(self, rounds: int) -> None:
        """Does some of it, or all of it several times, in some order: to the workers at the same time."""
        self.is_calm = False
        every: list[Step] = [(self.kill, point) for point in (*POINTS, "")]
        every += [(self.pause, point) for point in ("pushing", "pushed", "edited")]
        steps: list[Step] = []
        for _ in range(rounds):
            steps += self.rng.sample(every, len(every) if self.is_long else _FEW)

        async def to(worker: str) -> None:
            if worker == WORKERS[1]:
                await self.cut_off(worker)
            while steps:
                step, point = steps.pop()
                await step(worker, point)

        async def to_api_and_database() -> None:
            for name in APIS * rounds:
                await asyncio.sleep(self.rng.uniform(1.0, 3.0))
                await self.kill(name)
            await self.restart_postgres()

        async with asyncio.TaskGroup() as group:
            for worker in WORKERS:
                group.create_task(to(worker))
            group.create_task(to_api_and_database())


@asynccontextmanager
async def worker_world(
    forked: tuple[str, ...], server: PostgresServer, directory: Path, seed: int, *, is_long: bool = False
) -> AsyncIterator[WorkerWorld]:
    """Starts them. The second worker is behind the cable; in a long round, the third one's clock is two minutes off,
    either way: such a process is not forked.
    """
    rng = random.Random(seed)  # noqa: S311 - repeatable
    repository = await asyncio.to_thread(make_bare, directory / "served.git", {"docs/a.md": "A\n"})
    (directory / "ssh").write_text(_SSH)
    (directory / "ssh").chmod(0o755)
    (directory / "script.py").write_text(AGENT)
    cable = Cable(server.directory / ".s.PGSQL.5432")
    async with contextlib.AsyncExitStack() as stack:
        wired = await stack.enter_async_context(await asyncio.start_server(cable.serve, "127.0.0.1", 0))
        stack.callback(cable.mend)
        url = await stack.enter_async_context(server.empty_database())
        world = WorkerWorld(server, url, directory, repository, cable, rng, is_long)
        for name in (*APIS, *WORKERS):
            folder = directory / name
            folder.mkdir()
            (folder / "git").write_text(GIT)
            (folder / "git").chmod(0o755)
            port = free_port()
            world.ports += [port] if name in APIS else []
            await server.run(f'CREATE ROLE "{name}" LOGIN SUPERUSER')
            own = make_url(url).set(username=name)
            environment = _environment(folder, own.render_as_string(), repository, port)
            command = (*forked, worker_target.__name__)
            if name == WORKERS[1]:
                wire = own.set(host="127.0.0.1", port=wired.sockets[0].getsockname()[1], query={})
                environment[f"{PREFIX}DATABASE_URL"] = wire.render_as_string()
            if name == WORKERS[2] and LIBFAKETIME and is_long:
                command = (sys.executable, worker_target.__file__)
                # Its monotonic clock too: otherwise libfaketime lets Python's `time.sleep` fail.
                environment |= {"LD_PRELOAD": LIBFAKETIME, "FAKETIME": rng.choice(("+120", "-120"))}
            group = ProcessGroup((*command, *(API if name in APIS else WORKER)), directory)
            stack.push_async_callback(group.close)
            world.instances[name] = Instance(name, group, folder, environment)
        tasks = BackgroundTasks()
        stack.push_async_callback(tasks.cancel)
        for instance in world.instances.values():
            tasks.spawn(instance.live(), name=instance.name)
        await asyncio.gather(*(instance.is_up.wait() for instance in world.instances.values()))
        while not await world.fetch("SELECT FROM pg_tables WHERE tablename = 'instructions'"):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.1)
        await server.run(_NOTE_WRITERS, database=str(make_url(url).database))
        yield world


def _environment(folder: Path, url: str, repository: Path, port: int) -> dict[str, str]:
    settings = {
        "API_KEY": KEY,
        "REPOSITORY": f"ssh://git@repository{repository}",
        "DATABASE_URL": url,
        "PUBLIC_URL": "https://docs.example",
        "SESSION_KEY": "5" * 64,
        "DATA_DIRECTORY": str(folder / "data"),
        "PORT": str(port),
        "ALLOW_ROOT": "true",
        "SANDBOX": "none",
        "EGRESS": "open",
        "AGENT": f"{sys.executable} {PROGRAM} {folder.parent / 'script.py'}",
        "RATE_LIMIT": "100000",
    }
    own = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "GIT_SSH": str(folder.parent / "ssh")}
    return own | {f"{PREFIX}{name}": value for name, value in settings.items()}
