"""The agents' programs from npm, installed once into a cache outside the repository."""

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.jobserver.agents.named import Agent

_INSTALL_LIMIT_S = 60
"""A test that waits for another's attempt still has the time to say that it failed."""
_TRY_AGAIN_S = 600


class NotInstalled(Exception):
    """The program cannot be had here, with the reason."""


@dataclass(frozen=True)
class Package:
    """A program in a package of npm."""

    name: str
    version: str
    program: str


def package_of(agent: Agent) -> Package:
    """What the job server tells people to install, in the version that it was tried with."""
    name, _, version = agent.install.rpartition(" ")[2].rpartition("@")
    return Package(name, version, agent.command[0])


def cache() -> Path:
    """The folder that holds the installed packages."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pagehand-test-agents"


def program_folder(package: Package) -> Path:
    """The folder with the package's programs, for a PATH; installs the package first where that was not done before.

    Raises:
        NotInstalled: npm is missing, or could not install it in time.
    """
    folder = cache() / f"{package.name.replace('@', '').replace('/', '_')}-{package.version}"
    programs = folder / "node_modules" / ".bin"
    # Tests in other processes want the same package at the same time.
    with _locked(Path(f"{folder}.lock")):
        if not folder.exists():
            _install(package, folder)
    if not (programs / package.program).exists():
        raise NotInstalled(f"{package.name} {package.version} has no program {package.program}")
    return programs


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        yield


def _install(package: Package, folder: Path) -> None:
    """Whole or not at all: it gets its name when it is complete. What failed just now is not tried again at once."""
    failure = Path(f"{folder}.failed")
    if failure.exists() and time.time() - failure.stat().st_mtime < _TRY_AGAIN_S:
        raise NotInstalled(failure.read_text(encoding="utf-8"))
    try:
        _run_npm(f"{package.name}@{package.version}", folder)
    except (OSError, subprocess.SubprocessError) as error:
        reason = f"npm could not install {package.name} {package.version}: {error}"
        failure.write_text(reason, encoding="utf-8")
        raise NotInstalled(reason) from error


def _run_npm(name: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm is not installed")
    unfinished = Path(f"{folder}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    options = ("--no-package-lock", "--no-audit", "--no-fund", "--prefix", str(unfinished))
    subprocess.run(
        (npm, "install", *options, name),
        check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_INSTALL_LIMIT_S,
    )  # fmt: skip
    unfinished.rename(folder)
