"""What an agent without a memory is told: the job's earlier exchanges, marked off, before the instruction."""

from collections.abc import Sequence

from bot.jobserver.editors.interface import Exchange

_PROMPT_CHARACTERS = 4000
_ANSWER_CHARACTERS = 2000
_EXCHANGES = 10


def with_conversation(prompt: str, conversation: Sequence[Exchange]) -> str:
    """Returns the prompt, with the last ten exchanges before it, each cut to a few thousand characters.

    Each of their lines begins with `> `: none of them can pass for the instruction, which comes last.
    """
    if not conversation:
        return prompt
    told = "\n\n".join(map(_told, conversation[-_EXCHANGES:]))
    return (
        "You have worked on these files before. This was asked and answered so far; it is done and only for your "
        f"information:\n\n{told}\n\nThis is the instruction now:\n\n{prompt}"
    )


def _told(exchange: Exchange) -> str:
    asked = _quoted(exchange.prompt, _PROMPT_CHARACTERS)
    answered = _quoted(exchange.answer or "(no answer)", _ANSWER_CHARACTERS)
    return f"Asked:\n{asked}\nAnswered:\n{answered}"


def _quoted(text: str, limit: int) -> str:
    shortened = text if len(text) <= limit else f"{text[:limit]}…"
    return "\n".join(f"> {line}" for line in shortened.splitlines())
