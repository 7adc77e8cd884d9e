"""Where a database that is a file would be lost, or be out of reach of other processes that need it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True)
class Platform:
    """A hosting platform with an ephemeral file system: a restart of a process deletes its files.

    `variable` is what the platform always sets; `has_disks`: what is on a persistent disk of the service is kept.
    """

    name: str
    variable: str
    has_disks: bool


PLATFORMS = (
    # devcenter.heroku.com/articles/dyno-startup-behavior, /articles/dynos ("Ephemeral filesystem")
    Platform("Heroku", "DYNO", has_disks=False),
    # cloud.google.com/run/docs/container-contract: in memory; its volumes are network file systems or buckets, and
    # SQLite's locks do not hold on those
    Platform("Google Cloud Run", "K_SERVICE", has_disks=False),
    # render.com/docs/environment-variables, /docs/disks
    Platform("Render", "RENDER", has_disks=True),
    # fly.io/docs/reference/runtime-environment, /docs/volumes
    Platform("Fly.io", "FLY_APP_NAME", has_disks=True),
    # docs.railway.com/reference/variables, /reference/volumes
    Platform("Railway", "RAILWAY_ENVIRONMENT_ID", has_disks=True),
)
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "overlay"})
_POSTGRES = "postgresql://USER:PASSWORD@HOST/NAME"


def unshared_file_fault(url: str, command: str) -> str | None:
    """Why a process that works beside others cannot have this database; None where it can."""
    if _file(url) is None:
        return None
    return (
        f"DATABASE_URL names a file (so it does where it is not set), but `pagehand {command}` works beside other "
        f"processes, and they need one database between them: set it to a PostgreSQL's, {_POSTGRES}. With a file, "
        "`pagehand run` does everything in one process."
    )


def lost_file_fault(url: str, environ: Mapping[str, str], mounts: str) -> str | None:
    """Why this database would be lost where this process runs; None where it is kept. `mounts`: the text of MOUNTS."""
    file = _file(url)
    platform = next((platform for platform in PLATFORMS if environ.get(platform.variable)), None)
    if file is None or platform is None or (platform.has_disks and _on_disk(file, mounts)):
        return None
    disk = ", or put the file on a persistent disk of this service: sqlite:////PATH/OF/THE/DISK/pagehand.sqlite3"
    return (
        f"DATABASE_URL names a file (so it does where it is not set), and {platform.name} deletes files when it "
        "restarts a process, with all that was acknowledged. Set it to a PostgreSQL's, "
        f"{_POSTGRES}{disk if platform.has_disks else ''}."
    )


def mounted_file_systems() -> str:
    """The file systems of this process; empty where the machine does not tell."""
    try:
        return MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _file(url: str) -> Path | None:
    if not url.lower().startswith("sqlite"):
        return None
    try:
        return Path(make_url(url).database or "").resolve()
    except ArgumentError:
        return Path.cwd()  # a file in any case; which one is for others to complain about


def _on_disk(file: Path, mounts: str) -> bool:
    """Whether the innermost file system that holds the file is neither the process's own root nor in memory."""
    kinds = {Path(at): kind for _, at, kind, *_ in map(str.split, mounts.splitlines())}
    inner = next((parent for parent in file.parents if parent in kinds), Path("/"))
    return inner != Path("/") and kinds[inner] not in _IN_MEMORY
