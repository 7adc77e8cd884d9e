"""The real PgBouncer in transaction mode, in front of the tests' PostgreSQL."""

import asyncio
import os
import pwd
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer

POOL_SIZE = 2
_CONFIGURATION = """
[databases]
* = host={socket_directory} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
; each transaction gets the server's connection that has rested longest: so clients really change
server_round_robin = 1
"""
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@dataclass
class PgBouncer:
    """A PgBouncer that can be killed and started again."""

    configuration: Path
    port: int
    user: str
    _processes: list[Process] = field(default_factory=list)

    def url(self, database: str) -> str:
        return f"postgresql://anyone@127.0.0.1:{self.port}/{database}"

    async def start(self) -> None:
        """Starts it, and waits until it accepts connections."""
        # It refuses to run as root; the server's socket is only for the server's own user.
        as_user = ["-u", self.user] if os.geteuid() == 0 else []
        command = [str(PROGRAM), "-q", *as_user, str(self.configuration)]
        process = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
        self._processes.append(process)
        while not await self._answers():
            assert process.returncode is None, "PgBouncer does not start"
            await asyncio.sleep(0.01)

    async def _answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    async def kill(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


@asynccontextmanager
async def pgbouncer(server: PostgresServer) -> AsyncIterator[PgBouncer]:
    """Starts one in front of this server."""
    with tempfile.TemporaryDirectory(prefix="pagehand-pgbouncer-") as directory:
        port, configuration = free_port(), Path(directory) / "pgbouncer.ini"
        configuration.parent.chmod(0o755)
        given = {"socket_directory": server.directory, "port": port, "pool_size": POOL_SIZE}
        configuration.write_text(_CONFIGURATION.format(**given))
        owner = pwd.getpwuid(server.directory.stat().st_uid).pw_name
        running = PgBouncer(configuration, port, owner)
        await running.start()
        try:
            yield running
        finally:
            await running.kill()
