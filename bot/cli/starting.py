"""What a command does before its own work: looks for missing packages, completes the environment, and puts errors into
words. Like bot.cli.main, it is imported with each command, and has to stay light.
"""

import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Literal, NoReturn

import click

from bot.errors import ConfigError, PagehandError

Extra = Literal["jobserver", "demo"]

MODULES = ("acp", "cryptography", "h11", "jinja2", "jwt", "mdit_py_plugins")
"""The modules that either provides. (The job server looks for the program `typos` only when it fixes spelling.)"""


def require_extra(command: Extra) -> None:
    """Exits with 2 and a message if packages of the command's extra are missing."""
    from importlib.util import find_spec

    if any(find_spec(module) is None for module in MODULES):
        pip = f"{sys.executable} -m pip install"
        how = f"in a checkout `{pip} -r requirements.txt`, otherwise the wheel with `{pip} 'PATH[{command}]'`"
        _exit(f"`pagehand {command}` needs packages that are not installed. Install them: {how}.", 2)


HOW_TO_BEGIN = "To begin, run `pagehand setup`: it asks for each setting, checks it at once, and writes .env."


def is_set_up(environ: Mapping[str, str]) -> bool:
    """Whether there is a bot token. Without one, nobody has begun to set Pagehand up."""
    return bool(environ.get("SLACK_BOT_TOKEN") or environ.get("SLACK_BOT_TOKEN_FILE"))


_INTERRUPTED, _INTERRUPTED_CODE = "\nInterrupted.", 128 + 2


@contextmanager
def exit_on_error(misconfigured: str, failed: str, *, needs_setup: bool = False) -> Iterator[None]:
    """Exits with 2 for wrong settings, 130 for Ctrl-C, and 1 for any other expected error.

    `misconfigured` introduces the list of wrong settings, and `failed` the message about any other error. With
    `needs_setup`, it says how to begin if nothing is set up.
    """
    try:
        import fcntl  # noqa: F401 - only systems that have it will do
    except ImportError:
        _exit("Pagehand needs Linux or macOS. On Windows, run it in WSL: https://aka.ms/wsl", 1)
    try:
        yield
    except ConfigError as error:
        lines = [f"{misconfigured}. Please set in the environment:\n", *(f"  {fault}" for fault in error.faults)]
        if needs_setup and not is_set_up(os.environ):
            lines += ["", HOW_TO_BEGIN]
        _exit("\n".join(lines), 2)
    except PagehandError as error:
        _exit(f"{failed}: {error}", 1)
    except OSError as error:
        named = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        _exit(f"{failed}: {named}.", 1)
    except KeyboardInterrupt:
        _exit(_INTERRUPTED, _INTERRUPTED_CODE)


def exit_on_interrupt() -> None:
    """Makes Ctrl-C end the process at once, before there is anything to clean up. A KeyboardInterrupt could be raised
    where it is dropped, such as in a callback of an import, or twice.
    """
    import signal

    def exit_at_once(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.write(sys.stderr.fileno(), f"{_INTERRUPTED}\n".encode())
        os._exit(_INTERRUPTED_CODE)

    signal.signal(signal.SIGINT, exit_at_once)


def _exit(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)


BOT_FILE, JOB_SERVER_FILE = ".env", "jobserver.env"
"""The files with settings. The job server has one of its own, so that neither it nor its agents know Slack's tokens."""


def environment(*names: str) -> MutableMapping[str, str]:
    """Returns the process's environment, completed from the files of --env-file or, if there are none, those of these
    names in the current directory. Exits with 2 if one cannot be read.
    """
    from pathlib import Path

    from bot.runtime.env_file import add_env_file

    given: tuple[str, ...] = click.get_current_context().find_root().obj
    for file in [*map(Path, given)] or [file for file in map(Path, names) if file.is_file()]:
        try:
            add_env_file(os.environ, file)
        except ConfigError as error:
            _exit(f"{error}.", 2)
        except OSError as error:
            _exit(f"{file} cannot be read: {error.strerror}.", 2)
    return os.environ
