"""How every command ends when something goes wrong: with a sentence, and never with a traceback."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NoReturn

import click

from bot.errors import ConfigError, PagehandError


@contextmanager
def exit_on_error(misconfigured: str, failed: str) -> Iterator[None]:
    """Ends the process with 2 for settings, 130 for Ctrl-C, and 1 for anything else that is expected.

    `misconfigured` begins the list of what is wrong with the settings, `failed` the sentence for all else.
    """
    if find_spec("fcntl") is None:
        _exit("Pagehand needs Linux or macOS. On Windows, run it in WSL: https://aka.ms/wsl", 1)
    try:
        yield
    except ConfigError as error:
        _exit("\n".join([f"{misconfigured}. Please set in the environment:\n", *(f"  {f}" for f in error.faults)]), 2)
    except PagehandError as error:
        _exit(f"{failed}: {error}", 1)
    except OSError as error:
        named = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        _exit(f"{failed}: {named}.", 1)
    except KeyboardInterrupt:
        _exit("\nInterrupted.", 128 + signal.SIGINT)


def _exit(message: str, code: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)
