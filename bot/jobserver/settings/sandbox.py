"""Settings for programs in the sandbox: what they can see, reach and use up, and the commands that check a change."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import idna
from pydantic import BeforeValidator, ByteSize, Field

from bot.jobserver.settings.values import Folders, Names, split_words
from bot.runtime.settings import Settings

PRIVATE = "private:"
"""Prefix of a host whose addresses may be private, such as a gateway inside a company."""
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A host whose last label matches is an address (url.spec.whatwg.org, "ends in a number")."""
_MAX_NAME = 253
_MAX_PORT = 65_535
OPEN: Literal["open"] = "open"
"""Programs and agents reach whatever this machine can reach."""
_NONE = "none"


@dataclass(frozen=True)
class AllowedHost:
    """A host that programs may connect to. `may_be_private`: even if its name resolves to a private address."""

    name: str
    port: int
    may_be_private: bool = False


def host_name(text: str) -> str:
    """Returns a host's name in canonical form: ASCII, lowercase, without a trailing dot.

    Raises:
        ValueError: it is not a name, or an address in one of its many spellings.
    """
    try:
        name = text if text.isascii() else idna.encode(text[:_MAX_NAME], uts46=True).decode()
    except idna.IDNAError:
        raise ValueError("is not a host name") from None
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _MAX_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("is not a host name")
    if _NUMBER.fullmatch(labels[-1]):
        raise ValueError("must be a name, not an address")
    return name


def host_and_port(text: str) -> tuple[str, int]:
    """Returns the two parts of `host:port`.

    Raises:
        ValueError: it does not have this form.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) <= _MAX_PORT:
        raise ValueError("must be a name and a port, such as registry.example.com:443")
    return host_name(host), int(port)


def allowed_host(text: str) -> AllowedHost:
    """Returns the host that `host:port` or `private:host:port` allows.

    Raises:
        ValueError: it does not have this form; the message is for people.
    """
    name, port = host_and_port(text.removeprefix(PRIVATE))
    return AllowedHost(name, port, may_be_private=text.startswith(PRIVATE))


def find_allowed(allowed: Sequence[AllowedHost], name: str, port: int) -> AllowedHost | None:
    """Returns the entry that allows a connection."""
    return next((host for host in allowed if (host.name, host.port) == (name, port)), None)


def _hosts(value: object) -> object:
    if not isinstance(value, str):
        return value
    words = value.replace(",", " ").split()
    return OPEN if words == [OPEN] else () if words == [_NONE] else tuple(map(allowed_host, words))


EgressSetting = Annotated[Literal["open"] | tuple[AllowedHost, ...], BeforeValidator(_hosts)]
Size = Annotated[ByteSize, Field(ge=16 * 2**20)]


class MachineSettings(Settings):
    """What keeps programs in the sandbox from this machine, for all projects of a server."""

    sandbox: Literal["bubblewrap", "none"] = Field(
        "bubblewrap",
        description="what isolates programs and agents; none lets them see and change whatever the server's user can",
    )
    allow_root: bool = Field(
        default=False,
        description="whether programs and agents may run though the server is root; what leaves a sandbox is root then",
    )


class SandboxSettings(MachineSettings):
    """What programs in the sandbox can see, reach and use up."""

    egress: EgressSetting = Field(
        (),
        description="the hosts that programs and agents may connect to besides their model, each as name:port, or as "
        "private:name:port if the name resolves to a private address; none for no host at all, open for everything "
        "that this machine can reach",
    )
    sandbox_folders: Folders = Field(
        (),
        description="more folders that programs and agents can read, as a JSON list or as words in shell quoting",
    )
    memory_limit: Size = Field(ByteSize(4 * 2**30), description="how much memory one run of a program or agent may use")
    process_limit: int = Field(512, ge=8, description="how many processes one run of a program or agent may have")
    disk_limit: Size = Field(
        ByteSize(4 * 2**30), description="how much one run of a program or agent may write to the disk"
    )


def _commands(value: object) -> object:
    """Reads one command a line, each as a JSON list or in shell quoting."""
    return [split_words(line) for line in value.splitlines() if line.strip()] if isinstance(value, str) else value


class CheckSettings(Settings):
    """Commands that check a change before it is proposed; they run in the sandbox."""

    checks: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_commands)] = Field(
        (), description="your own commands that check a change, one a line; a failure goes back to the editor"
    )
    checks_pass_environment: Names = Field(
        (), description="names of variables that these commands get besides PATH, HOME, language and the like"
    )
