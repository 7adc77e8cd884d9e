"""What every program gets of the server's environment, whatever sandbox it runs in."""

import os

from bot.jobserver.sandbox.interface import Program

_PASSED = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "TZ")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def environment_for(program: Program, **own: str) -> dict[str, str]:
    """Returns PATH, the language and the time zone, then the sandbox's own variables, then the program's."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {"PATH": _DEFAULT_PATH, **passed, "GIT_TERMINAL_PROMPT": "0", **own, **program.environment}
