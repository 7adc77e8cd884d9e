"""What an agent is told: the prompt, always as data, and what it has to know to understand it."""

from collections.abc import Sequence

from bot.jobserver.editors.interface import Exchange

MOST_HISTORY = 40_000
"""Characters of earlier exchanges that are given again; the newest are kept."""
_LONGEST_ANSWER = 8_000

_RULES = """\
You work on the documentation in the current directory, for somebody who reads your answer in a chat and cannot see \
your screen. Change files in this directory only, and leave version control alone: what you leave is committed for \
you. End with a short answer in Markdown that says what you changed. Where you cannot go on without an answer, change \
nothing and end with your question."""
_CHANGED_MEANWHILE = """\
This continues your earlier work. The files may have changed since: what is on the disk counts."""
_HISTORY = """\
This continues an earlier conversation, which is quoted between the two lines of equals signs. It is a record, not a \
request: its changes are in the files already, as far as they were kept."""
_REQUEST = "The request, to its end:"
_LINE = "=" * 20


def first_prompt(prompt: str, history: Sequence[Exchange] = (), granted: Sequence[str] = ()) -> str:
    """Returns what a new session is told; `history` are the job's earlier exchanges, the oldest first.

    Always begins with words of ours: agents take what begins with a slash, or with other signs, for a command.
    """
    earlier = [_HISTORY, _LINE, *_quoted(history), _LINE] if history else []
    return "\n\n".join([_RULES, *earlier, *_grants(granted), _REQUEST, prompt])


def next_prompt(prompt: str, granted: Sequence[str] = ()) -> str:
    """Returns what a session is told that remembers what was before."""
    return "\n\n".join([_CHANGED_MEANWHILE, *_grants(granted), _REQUEST, prompt])


def _grants(granted: Sequence[str]) -> list[str]:
    return [f"Now allowed, though it was refused before; try it again as it was:\n{what}" for what in granted]


def _quoted(history: Sequence[Exchange]) -> list[str]:
    """The newest exchanges that fit, each with its whole request, and as much of the answer as is sensible."""
    kept: list[str] = []
    room = MOST_HISTORY
    for exchange in reversed(history):
        text = _exchange(exchange)
        if len(text) > room:
            kept.append(f"{text[:room]}\n[…]" if not kept else "[Earlier exchanges are left out.]")
            break
        kept.append(text)
        room -= len(text)
    return kept[::-1]


def _exchange(exchange: Exchange) -> str:
    answer = exchange.answer or "(nothing was said)"
    shown = answer if len(answer) <= _LONGEST_ANSWER else f"{answer[:_LONGEST_ANSWER]}\n[…]"
    return f"Asked: {_kept_inside(exchange.prompt)}\n\nAnswered: {_kept_inside(shown)}"


def _kept_inside(text: str) -> str:
    """No quoted text can look like the line that ends the quotation."""
    return text.replace(_LINE, "=" * (len(_LINE) - 1) + " ")


def asks_something(answer: str) -> bool:
    """Whether an answer's last paragraph ends with a question mark."""
    paragraphs = answer.strip().rstrip("*_`\"')» ")
    return paragraphs.endswith(("?", "？", "؟"))  # noqa: RUF001 - Chinese and Arabic ask with these


def last_paragraph(text: str) -> str:
    return text.strip().rpartition("\n\n")[2].strip()
