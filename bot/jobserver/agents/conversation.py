"""What an agent is told, and what its answer asks: the prompt is always data, and never all that it is told."""

from collections.abc import Sequence

from bot.jobserver.editors.conversation import with_conversation
from bot.jobserver.editors.interface import Exchange

_RULES = """\
You work on the documentation in the current directory, for somebody who reads your answer in a chat and cannot see \
your screen. Change files in this directory only, and leave version control alone: what you leave is committed for \
you. End with a short answer in Markdown that says what you changed. Where you cannot go on without an answer, change \
nothing and ask: with your tool for questions, if you have one, else at the end of your answer."""
_CHANGED_MEANWHILE = """\
This continues your earlier work. The files may have changed since: what is on the disk counts."""
_REQUEST = "This is the instruction now:"


def first_prompt(
    prompt: str, conversation: Sequence[Exchange] = (), granted: Sequence[str] = (), files: str = ""
) -> str:
    """Returns what a new session is told; `conversation` are the job's earlier exchanges, the oldest first.

    Like `next_prompt` it begins with words of ours: agents take what begins with a slash, or with other signs, for a
    command of their own. `granted` are the calls that a person has allowed, `files` tells of those that came with it.
    """
    asked = with_conversation(prompt, conversation) if conversation else f"{_REQUEST}\n\n{prompt}"
    return "\n\n".join([_RULES, *_grants(granted), *([files] if files else []), asked])


def next_prompt(prompt: str, granted: Sequence[str] = (), files: str = "") -> str:
    """Returns what a session is told that remembers what was before."""
    return "\n\n".join([_CHANGED_MEANWHILE, *_grants(granted), *([files] if files else []), _REQUEST, prompt])


def _grants(granted: Sequence[str]) -> list[str]:
    return [f"Allowed now, though it was refused before; try it again as it was:\n{what}" for what in granted]


def asks_something(answer: str) -> bool:
    """Whether an answer's last paragraph ends with a question mark."""
    paragraphs = answer.strip().rstrip("*_`\"')» ")
    return paragraphs.endswith(("?", "？", "؟"))  # noqa: RUF001 - Chinese and Arabic ask with these


def last_paragraph(text: str) -> str:
    return text.strip().rpartition("\n\n")[2].strip()
