"""How a change is described, in its commit and in its pull request."""

import re

from bot.jobserver.repository.references import without_references
from bot.jobserver.store.jobs import Instruction

TRAILER = "Pagehand-Instruction"
"""The commit trailer that names the instruction. It is always the last paragraph."""
_SUBJECT_LENGTH = 72


def subject(prompt: str) -> str:
    """Returns a prompt as one line of at most 72 characters, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in prompt).split()) or "Change the documentation"
    return line if len(line) <= _SUBJECT_LENGTH else f"{line[: _SUBJECT_LENGTH - 1].rstrip()}…"


def commit_message(instruction: Instruction) -> str:
    """Returns the prompt's first words, the whole prompt, and the trailer."""
    prompt = re.sub(r"[^\S\n]+|[\x00-\x08\x0b-\x1f\x7f]+", " ", without_references(instruction.prompt)).strip()
    title = without_references(subject(instruction.prompt))
    body = "" if title == prompt else f"{prompt}\n\n"
    return f"{title}\n\n{body}{TRAILER}: {trailer_value(instruction)}\n"


def trailer_value(instruction: Instruction) -> str:
    return f"{instruction.job_id}/{instruction.number}"


def pull_request_description(prompt: str, summary: str) -> str:
    """Returns what was asked for, as a quotation, and what the editor says it did."""
    quoted = "\n".join(f"> {line}" for line in prompt.strip().splitlines())
    return f"{quoted}\n\n{summary}".strip()
