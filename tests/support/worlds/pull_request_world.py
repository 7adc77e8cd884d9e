"""A pull request with any contents, pushed by hand onto a job's branch."""

import base64
from pathlib import Path

from support.worlds.jobserver_world import JobServerWorld, git

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCRIPT = "<script>document.title='taken'</script>"
TURNED = "user\u202e\u2066// admin\u2069"


async def open_pull_request(world: JobServerWorld, copy: Path, files: dict[str, bytes | None]) -> str:
    """Returns the page's address. None deletes a file; the job's own change is among the contents."""
    job = await world.done("Add a page called Of The Job with the text: x")
    push_to(world, copy, f"pagehand/{job['id']}", files)
    return str(job["prLink"])


def push_to(world: JobServerWorld, copy: Path, branch: str, files: dict[str, bytes | None]) -> None:
    git(world.repository, "clone", "--quiet", "--branch", branch, str(world.repository), str(copy))
    for name, contents in files.items():
        path = copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if contents is None:
            path.unlink()
        else:
            path.write_bytes(contents)
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "-m", "By hand")
    git(copy, "push", "--quiet", "origin", f"HEAD:{branch}")


def hostile_files() -> dict[str, bytes | None]:
    """One change with everything: scripts, deceptive characters, and files that are too large or too many."""
    many: dict[str, bytes | None] = {f"many/{n:03}.md": f"# Page {n}\n\nText.\n".encode() for n in range(500)}
    return many | {
        "a-script.md": f"# {SCRIPT}\n\n{SCRIPT}\n\n[x](javascript:alert(1)) ![p](x.png) ![q](https://evil.example/q.png)\n".encode(),
        "a-turned.md": f"{TURNED}\n".encode(),
        "a-brackets.md": b"[" * 150_000,
        "a-huge-brackets.md": b"[" * 5_000_000,
        "a-huge.txt": b"0123456789abcde\n" * 440_000,
        "a-lines.txt": b"x\n" * 100_000,
        "a-one-line.txt": b"y" * 7_000_000,
        "a-binary.bin": bytes(range(256)) * 100,
        "a-<b>name&\"'.md": b"named\n",
        "x.png": PICTURE,
        "not-a.png": SCRIPT.encode(),
    }
