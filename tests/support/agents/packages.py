"""Programs from npm and PyPI that tests run, installed once into a cache outside the repository."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.jobserver.agents.named import Agent

_INSTALL_LIMIT_S = 300
"""Seconds; a test that waits for another's attempt still has time to report the failure."""
_TRY_AGAIN_S = 600


class NotInstalled(Exception):
    """The program is not available here; the message says why."""


@dataclass(frozen=True)
class Package:
    """A program in a package. A library has no program. `options` are npm's."""

    name: str
    version: str
    program: str = ""
    options: tuple[str, ...] = ()


def package_of(agent: Agent) -> Package:
    """Returns the package that the job server tells people to install, in the tested version."""
    _npm, _install, _global, package, *options = agent.install.split()
    name, _, version = package.rpartition("@")
    return Package(name, version, agent.command[0], tuple(options))


def cache() -> Path:
    """The folder that holds the installed packages."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pagehand-test-agents"


def program_folder(package: Package) -> Path:
    """Returns the folder with the package's programs, for a PATH. Installs the package if needed.

    Raises:
        NotInstalled: npm is missing, or could not install it in time.
    """
    return _with_program(package, installed_folder(package) / "node_modules" / ".bin")


def installed_folder(package: Package) -> Path:
    """Returns the folder in which a script finds the package. Installs the package if needed.

    Raises:
        NotInstalled: npm is missing, or could not install it in time.
    """
    folder = _folder_of(package)
    # Tests in other processes want the same package at the same time.
    with _locked(Path(f"{folder}.lock")):
        if not folder.exists():
            _install(package, folder, "npm", _run_npm)
    return folder


def cached_folder(package: Package) -> Path | None:
    """Returns the same folder if the package is installed already."""
    folder = _folder_of(package)
    return folder if folder.exists() else None


def _folder_of(package: Package) -> Path:
    return cache() / f"{package.name.replace('@', '').replace('/', '_')}-{package.version}"


def python_program_folder(package: Package) -> Path:
    """Does the same for a package from PyPI.

    Raises:
        NotInstalled: pip could not install it in time.
    """
    folder = cache() / f"pypi_{package.name}-{package.version}"
    with _locked(Path(f"{folder}.lock")):
        if not folder.exists():
            _install(package, folder, "pip", _run_pip)
    return _with_program(package, folder / "bin")


def _with_program(package: Package, programs: Path) -> Path:
    if not (programs / package.program).exists():
        raise NotInstalled(f"{package.name} {package.version} has no program {package.program}")
    return programs


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        yield


def _install(package: Package, folder: Path, installer: str, run: Callable[[Package, Path], None]) -> None:
    """Installs completely or not at all: the folder gets its name when it is complete. A
    recent failure is not retried.
    """
    failure = Path(f"{folder}.failed")
    if failure.exists() and time.time() - failure.stat().st_mtime < _TRY_AGAIN_S:
        raise NotInstalled(failure.read_text(encoding="utf-8"))
    try:
        run(package, folder)
    except (OSError, subprocess.SubprocessError) as error:
        reason = f"{installer} could not install {package.name} {package.version}: {error}"
        failure.write_text(reason, encoding="utf-8")
        raise NotInstalled(reason) from error


def _run_pip(package: Package, folder: Path) -> None:
    """Creates a virtual environment in place, since it contains its own path."""
    try:
        for command in (
            (sys.executable, "-m", "venv", str(folder)),
            (str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check",
             f"{package.name}=={package.version}"),
        ):  # fmt: skip
            subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_INSTALL_LIMIT_S)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run_npm(package: Package, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm is not installed")
    unfinished = Path(f"{folder}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    options = ("--no-package-lock", "--no-audit", "--no-fund", "--prefix", str(unfinished), *package.options)
    subprocess.run(
        (npm, "install", *options, f"{package.name}@{package.version}"),
        check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_INSTALL_LIMIT_S,
    )  # fmt: skip
    unfinished.rename(folder)
