"""What may be a repository's address, and what a branch."""

import re

_PROTOCOLS = {"file": "file", "http": "http", "https": "https", "ssh": "ssh", "git+ssh": "ssh"}
_SCP_LIKE = re.compile(r"^(?:[\w.-]+@)?[\w.-]+:(?!/?/)[^:]", re.ASCII)
_BRANCH = re.compile(r"^(?!-)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+\Z")


def is_branch_name(name: str) -> bool:
    """Whether git would take it as a branch, and never as an option or a revision expression."""
    return bool(_BRANCH.match(name)) and name != "@" and not name.startswith(("/", "."))


def repository_protocol(repository: str) -> str:
    """The one protocol git may speak for this repository, as GIT_ALLOW_PROTOCOL names it.

    Raises:
        ValueError: for option-like text and for transports that run programs, such as ext::.
    """
    if not repository or repository.startswith("-") or any(ord(c) < ord(" ") for c in repository):
        raise ValueError("must be a directory or an address")
    scheme, separator, _ = repository.partition("://")
    if separator:
        if scheme.lower() not in _PROTOCOLS:
            raise ValueError("must be a directory, or a file, http, https or ssh address")
        return _PROTOCOLS[scheme.lower()]
    if "::" in repository.split("/", 1)[0]:
        raise ValueError("must not name a remote helper such as ext::")
    return "ssh" if _SCP_LIKE.match(repository) else "file"
