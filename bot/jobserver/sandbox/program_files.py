"""Finds the files that a program needs: itself, its links, its interpreter, and files installed with it."""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from bot.jobserver.errors import EditError

_LINKS = 16
_INTERPRETERS = 3
_BESIDE_BIN = ("bin", "lib", "lib64", "libexec", "pyvenv.cfg")
_FIRST_LINE = 4096


def locate(name: str, search_path: str) -> Path:
    """Returns the path of a program.

    Raises:
        EditError: there is no such program.
    """
    found = shutil.which(name, path=search_path)
    if found is None:
        raise EditError(f"the editor's program cannot be started: there is no program {Path(name).name} on this server")
    return Path(os.path.abspath(found))  # noqa: PTH100 - links must stay as they are


def needed_paths(arguments: tuple[str, ...], search_path: str) -> set[Path]:
    """Returns the files and folders that a command needs.

    A program in a folder `bin` needs its siblings such as `lib`, one in `node_modules` that whole folder; any other
    only its file. Files that the command names by absolute path are included.

    Raises:
        EditError: there is no such program.
    """
    program = locate(arguments[0], search_path)
    files = (Path(name) for argument in arguments[1:] for name in _absolute_names(argument))
    needed = {path for file in files if file.is_file() for path in _links(file)}
    for _ in range(_INTERPRETERS):
        needed.update(found for path in _links(program) for found in _installed_with(path))
        interpreter = _interpreter(program)
        if interpreter is None:
            break
        program = locate(interpreter, search_path)
    return needed


def _absolute_names(argument: str) -> list[str]:
    """Returns absolute paths in an argument such as `/srv/agent.py` or `--config=/srv/agent.toml`."""
    return [name for name in (argument, argument.partition("=")[2]) if name.startswith("/")]


def _links(path: Path) -> Iterator[Path]:
    """Yields a path, then the target of each link in turn."""
    for _ in range(_LINKS):
        yield path
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))


def _installed_with(path: Path) -> Iterable[Path]:
    if "node_modules" in path.parts:
        return [Path(*path.parts[: path.parts.index("node_modules") + 1])]
    if path.parent.name == "bin":
        return [beside for name in _BESIDE_BIN if (beside := path.parent.parent / name).exists()]
    return [path]


def _interpreter(program: Path) -> str | None:
    """Returns the interpreter in the first line of a script."""
    try:
        with program.open("rb") as stream:
            first = stream.readline(_FIRST_LINE)
    except OSError:
        return None
    words = first.removeprefix(b"#!").decode(errors="replace").split() if first.startswith(b"#!") else []
    if len(words) > 1 and Path(words[0]).name == "env":
        return next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    return words[0] if words else None
