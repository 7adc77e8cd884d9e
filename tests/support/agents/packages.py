"""The agents' programs from npm, installed once into a cache outside the repository."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.jobserver.agents.named import Agent

_INSTALL_LIMIT_S = 100


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
    with _locked(folder.with_suffix(".lock")):
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
    """Whole or not at all: it gets its name when it is complete."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm is not installed")
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    options = ("--no-package-lock", "--no-audit", "--no-fund", "--prefix", str(unfinished))
    try:
        subprocess.run(
            (npm, "install", *options, f"{package.name}@{package.version}"),
            check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_INSTALL_LIMIT_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise NotInstalled(f"npm could not install {package.name} {package.version}: {error}") from error
    unfinished.rename(folder)
