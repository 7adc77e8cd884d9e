"""Settings: what foreign programs can see, reach and use up."""

from typing import Annotated, Literal

from pydantic import AfterValidator, ByteSize, Field

from bot.jobserver.settings.values import Folders
from bot.runtime.settings import Settings

_SMALLEST = 16 * 2**20


def _enough(value: ByteSize) -> ByteSize:
    if value < _SMALLEST:
        raise ValueError("must be at least 16MiB")
    return value


Size = Annotated[ByteSize, AfterValidator(_enough)]


class SandboxSettings(Settings):
    """What foreign programs can see, reach and use up."""

    sandbox: Literal["bubblewrap", "none"] = Field(
        "bubblewrap",
        description="what programs and agents run in; none lets them see and change what the server's user can",
    )
    sandbox_network: bool = Field(
        default=True, description="whether programs and agents reach the network; an agent needs it for its model"
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
