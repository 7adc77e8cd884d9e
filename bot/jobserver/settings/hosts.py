"""Which hosts programs may connect to, by name and port. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import idna

PRIVATE = "private:"
"""Before a name whose addresses may be private ones, such as a gateway's inside a company."""
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""With this at its end it is an address (url.spec.whatwg.org, "ends in a number")."""
_MAX_NAME = 253
_MAX_PORT = 65_535


@dataclass(frozen=True)
class AllowedHost:
    """A host that programs may connect to. `may_be_private`: also where its name leads to a private address."""

    name: str
    port: int
    may_be_private: bool = False


def host_name(text: str) -> str:
    """Returns a host's name as it is compared: in ASCII and small letters, without the dot at its end.

    Raises:
        ValueError: it is no name, or an address in one of its many spellings.
    """
    try:
        name = text if text.isascii() else idna.encode(text[:_MAX_NAME], uts46=True).decode()
    except idna.IDNAError:
        raise ValueError("is no host's name") from None
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _MAX_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("is no host's name")
    if _NUMBER.fullmatch(labels[-1]):
        raise ValueError("must be a name, not an address")
    return name


def host_and_port(text: str) -> tuple[str, int]:
    """Returns the two parts of `host:port`.

    Raises:
        ValueError: it is something else.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) <= _MAX_PORT:
        raise ValueError("must be a name and a port, such as registry.example.com:443")
    return host_name(host), int(port)


def allowed_host(text: str) -> AllowedHost:
    """Returns what `host:port` or `private:host:port` allows.

    Raises:
        ValueError: it is something else, in words.
    """
    name, port = host_and_port(text.removeprefix(PRIVATE))
    return AllowedHost(name, port, may_be_private=text.startswith(PRIVATE))


def find(allowed: Sequence[AllowedHost], name: str, port: int) -> AllowedHost | None:
    """Returns the entry that allows a connection."""
    return next((host for host in allowed if (host.name, host.port) == (name, port)), None)
