"""The packages that only the job server and the demo need: pyproject.toml has them as extras."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal

import click

Extra = Literal["jobserver", "demo"]

_OF_JOB_SERVER = ("acp", "gidgethub", "h11", "jinja2", "mdit_py_plugins", "rapidfuzz", "yaml")
MODULES: Mapping[Extra, tuple[str, ...]] = {"jobserver": _OF_JOB_SERVER, "demo": _OF_JOB_SERVER}
"""What is imported of each extra. (The job server looks for the program `typos` when it is asked to fix spelling.)"""


def require_extra(command: Extra) -> None:
    """Ends the process with 2, and a sentence, where packages of the command's extra are missing."""
    if any(find_spec(module) is None for module in MODULES[command]):
        missing = f"`pagehand {command}` needs packages that are not installed"
        click.echo(f"{missing}: in Pagehand's directory, run pip install '.[{command}]'.", err=True)
        sys.exit(2)
