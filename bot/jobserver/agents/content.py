"""Builds an agent's prompt: the text, links to attached files, and pictures that a model can see."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp.schema import ImageContentBlock, InitializeResponse, ResourceContentBlock, TextContentBlock

from bot.jobserver.documents.pictures import picture_type
from bot.jobserver.editors.conversation import attachments_in_words, with_conversation
from bot.jobserver.editors.interface import Exchange, TaskFile
from bot.jobserver.errors import EditError

_PICTURE_BYTES = 3_500_000
"""Models accept pictures of up to 5 MB in base64, which is a third longer."""
_ALL_PICTURES_BYTES = 8_000_000
_MOST_PICTURES = 5
Content = TextContentBlock | ImageContentBlock | ResourceContentBlock
_RULES = """\
You work on the documentation in the current directory, for somebody who reads your answer in a chat and cannot see \
your screen. Change files in this directory only, and leave version control alone: what you leave is committed for \
you. End with a short answer in Markdown that says what you changed. Where you cannot go on without an answer, change \
nothing and ask: with your tool for questions, if you have one, else at the end of your answer."""
_CHANGED_MEANWHILE = """\
This continues your earlier work. The files may have changed since: what is on the disk counts."""
_REQUEST = "This is the instruction now:"


@dataclass(frozen=True)
class AttachedFiles:
    """The files attached to an instruction. `seen` is their folder as the agent sees it, `real` the same folder here;
    it also contains the files of the job's earlier instructions.
    """

    files: Sequence[TaskFile]
    seen: Path
    real: Path | None

    def in_words(self) -> str:
        return attachments_in_words(self.files, self.seen) if self.files else ""

    def directories(self, capabilities: InitializeResponse) -> list[str]:
        """Returns the folder, if it exists, for an agent that accepts additional directories. Blocking."""
        agent = capabilities.agent_capabilities
        sessions = agent.session_capabilities if agent else None
        takes_more = sessions is not None and sessions.additional_directories is not None
        return [str(self.seen)] if takes_more and self.real is not None and self.real.is_dir() else []

    def content(self, text: str, capabilities: InitializeResponse) -> list[Content]:
        """Returns the whole prompt, with pictures if the agent accepts them. Blocking.

        Raises:
            EditError: a file cannot be read.
        """
        agent = capabilities.agent_capabilities
        takes_pictures = bool(agent and agent.prompt_capabilities and agent.prompt_capabilities.image)
        pictures = self._pictures() if takes_pictures else ()
        return [TextContentBlock(type="text", text=text), *map(self._link, self.files), *pictures]

    def _link(self, file: TaskFile) -> ResourceContentBlock:
        uri = (self.seen / file.name).as_uri()
        return ResourceContentBlock(
            type="resource_link", name=file.name, uri=uri, mime_type=file.mimetype, size=file.size
        )

    def _pictures(self) -> Iterator[ImageContentBlock]:
        """Yields the first few pictures of moderate size; the agent can still open the others."""
        found = total = 0
        for file in self.files:
            if file.size > _PICTURE_BYTES or total + file.size > _ALL_PICTURES_BYTES or found == _MOST_PICTURES:
                continue
            contents = self._read(file)
            if (kind := picture_type(contents)) is not None:
                found, total = found + 1, total + file.size
                uri = (self.seen / file.name).as_uri()
                data = base64.b64encode(contents).decode("ascii")
                yield ImageContentBlock(type="image", data=data, mime_type=kind, uri=uri)

    def _read(self, file: TaskFile) -> bytes:
        try:
            return ((self.real or self.seen) / file.name).read_bytes()
        except OSError as error:
            raise EditError(f"the file {file.name} cannot be read: {error.strerror}") from error


def first_prompt(
    prompt: str, conversation: Sequence[Exchange] = (), granted: Sequence[str] = (), files: str = ""
) -> str:
    """Returns the prompt of a new session. `conversation`: the job's earlier exchanges, oldest first.

    Like `next_prompt`, it begins with our own words, since agents take a prompt that begins with a slash or certain
    other characters for a command. `granted`: the calls that a person has allowed; `files` describes the attachments.
    """
    asked = with_conversation(prompt, conversation) if conversation else f"{_REQUEST}\n\n{prompt}"
    return "\n\n".join([_RULES, *_grants(granted), *([files] if files else []), asked])


def next_prompt(prompt: str, granted: Sequence[str] = (), files: str = "") -> str:
    """Returns the prompt of a session that remembers the earlier conversation."""
    return "\n\n".join([_CHANGED_MEANWHILE, *_grants(granted), *([files] if files else []), _REQUEST, prompt])


def _grants(granted: Sequence[str]) -> list[str]:
    return [f"Allowed now, though it was refused before; try it again unchanged:\n{what}" for what in granted]


def ends_with_question(answer: str) -> bool:
    """Whether an answer's last paragraph ends with a question mark."""
    paragraphs = answer.strip().rstrip("*_`\"')» ")
    return paragraphs.endswith(("?", "？", "؟"))  # noqa: RUF001 - Chinese and Arabic ask with these


def last_paragraph(text: str) -> str:
    return text.strip().rpartition("\n\n")[2].strip()
