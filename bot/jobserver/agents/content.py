"""What a prompt consists of: its words, a link to each file that came with it, and pictures that a model can see."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp.schema import ImageContentBlock, InitializeResponse, ResourceContentBlock, TextContentBlock

from bot.jobserver.editors.conversation import attachments_in_words
from bot.jobserver.editors.interface import AttachedFile
from bot.jobserver.errors import EditError

_PICTURE_BYTES = 3_500_000
"""Models take pictures of 5 MB at most, as base64, which is a third longer."""
_ALL_PICTURES_BYTES = 8_000_000
_MOST_PICTURES = 5
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}

Content = TextContentBlock | ImageContentBlock | ResourceContentBlock


@dataclass(frozen=True)
class GivenFiles:
    """The files that came with an instruction: `seen` is their folder for the agent, `real` the same folder here, where
    those of the job's earlier ones lie, too.
    """

    files: Sequence[AttachedFile]
    seen: Path
    real: Path | None

    def in_words(self) -> str:
        return attachments_in_words(self.files, self.seen) if self.files else ""

    def directories(self, capabilities: InitializeResponse) -> list[str]:
        """Returns their folder for an agent that takes it as one of its own to read; it looks whether it is there."""
        agent = capabilities.agent_capabilities
        sessions = agent.session_capabilities if agent else None
        takes_more = sessions is not None and sessions.additional_directories is not None
        return [str(self.seen)] if takes_more and self.real is not None and self.real.is_dir() else []

    def content(self, text: str, capabilities: InitializeResponse) -> list[Content]:
        """Returns the whole prompt; pictures are in it where the agent takes them. It reads files.

        Raises:
            EditError: one of them cannot be read.
        """
        agent = capabilities.agent_capabilities
        takes_pictures = bool(agent and agent.prompt_capabilities and agent.prompt_capabilities.image)
        pictures = self._pictures() if takes_pictures else ()
        return [TextContentBlock(type="text", text=text), *map(self._link, self.files), *pictures]

    def _link(self, file: AttachedFile) -> ResourceContentBlock:
        uri = (self.seen / file.name).as_uri()
        return ResourceContentBlock(
            type="resource_link", name=file.name, uri=uri, mime_type=file.mimetype, size=file.size
        )

    def _pictures(self) -> Iterator[ImageContentBlock]:
        """Yields the first few of moderate size; the others the agent can still open."""
        found = total = 0
        for file in self.files:
            if file.size > _PICTURE_BYTES or total + file.size > _ALL_PICTURES_BYTES or found == _MOST_PICTURES:
                continue
            contents = self._read(file)
            if (kind := _picture_type(contents)) is not None:
                found, total = found + 1, total + file.size
                uri = (self.seen / file.name).as_uri()
                data = base64.b64encode(contents).decode("ascii")
                yield ImageContentBlock(type="image", data=data, mime_type=kind, uri=uri)

    def _read(self, file: AttachedFile) -> bytes:
        try:
            return ((self.real or self.seen) / file.name).read_bytes()
        except OSError as error:
            raise EditError(f"the file {file.name} cannot be read: {error.strerror}") from error


def _picture_type(contents: bytes) -> str | None:
    """The first bytes say what it is, whatever it is called: a model refuses a request with a picture that is none."""
    if contents.startswith(b"RIFF") and contents[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _SIGNATURES.items() if contents.startswith(start)), None)
