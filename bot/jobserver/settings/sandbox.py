"""Settings: what foreign programs can see, reach and use up."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, field_validator

from bot.jobserver.settings.hosts import AllowedHost, allowed_host
from bot.jobserver.settings.values import PREFIX, Folders
from bot.runtime.settings import Settings

_SMALLEST = 16 * 2**20


def _enough(value: ByteSize) -> ByteSize:
    if value < _SMALLEST:
        raise ValueError("must be at least 16MiB")
    return value


def _hosts(value: object) -> object:
    if not isinstance(value, str):
        return value
    words = value.replace(",", " ").split()
    return OPEN if words == [OPEN] else () if words == [_NONE] else tuple(map(allowed_host, words))


OPEN: Literal["open"] = "open"
"""Programs and agents reach whatever this machine reaches."""
_NONE = "none"
EgressSetting = Annotated[Literal["open"] | tuple[AllowedHost, ...], BeforeValidator(_hosts)]
Size = Annotated[ByteSize, AfterValidator(_enough)]


class SandboxSettings(Settings):
    """What foreign programs can see, reach and use up."""

    sandbox: Literal["bubblewrap", "none"] = Field(
        "bubblewrap",
        description="what programs and agents run in; none lets them see and change what the server's user can",
    )
    egress: EgressSetting = Field(
        (),
        description="the hosts that programs and agents may connect to besides their model, each as name:port, and as "
        "private:name:port where the name leads to a private address; none for no host at all, open for all that this "
        "machine reaches",
    )
    sandbox_network: str | None = Field(
        None, description=f"it is {PREFIX}EGRESS now: none where it was false, open where it was true"
    )
    sandbox_folders: Folders = Field(
        (),
        description="folders that programs and agents can read besides the system's and the program's own, "
        "as a JSON list or as words in shell quoting",
    )
    memory_limit: Size = Field(
        ByteSize(4 * 2**30), description="how much memory one run of a program or agent may use, such as 4GiB"
    )
    process_limit: int = Field(512, ge=8, description="how many processes one run of a program or agent may have")
    disk_limit: Size = Field(
        ByteSize(4 * 2**30), description="how much one run of a program or agent may write to the disk, such as 4GiB"
    )

    @field_validator("sandbox_network")
    @classmethod
    def _has_another_name(cls, value: str | None) -> str | None:
        if value is not None:
            raise ValueError("has ended")
        return value
