"""Looks at the arguments and environments of all processes for a text, as any process of the same user could.

`python process_watch.py <name of a file with the text>` prints a line when it looks, and when its standard input ends a
JSON object: `commands`, the arguments of the observed git processes, and `found`, where the text was.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Watched:
    commands: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)


@asynccontextmanager
async def watching(text: str, scratch: Path) -> AsyncIterator[Watched]:
    """Yields an object that holds the observations afterwards."""
    (scratch / "watched-text").write_text(text)
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        sys.executable, __file__, str(scratch / "watched-text"), stdin=pipe, stdout=pipe
    )
    assert child.stdout is not None
    assert await child.stdout.readline()
    watched = Watched()
    yield watched
    output, _ = await child.communicate(b"")
    seen = json.loads(output)
    watched.commands, watched.found = seen["commands"], seen["found"]


def _look(text: bytes, commands: set[str], found: set[str]) -> None:
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            arguments = (process / "cmdline").read_bytes()
            if b"git" in arguments.partition(b"\0")[0]:
                commands.add(arguments.replace(b"\0", b" ").decode(errors="replace").strip())
            for name in ("cmdline", "environ"):
                if text in (process / name).read_bytes():
                    found.add(f"{name} of {arguments[:200]!r}")


def _watch(text: bytes) -> None:
    commands: set[str] = set()
    found: set[str] = set()
    os.set_blocking(0, False)
    sys.stdout.write("looking\n")
    sys.stdout.flush()
    while True:
        _look(text, commands, found)
        with contextlib.suppress(BlockingIOError):
            if os.read(0, 1) == b"":
                break
    json.dump({"commands": sorted(commands), "found": sorted(found)}, sys.stdout)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]).read_bytes())
