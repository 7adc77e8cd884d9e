"""What a job told of how a round of it ended: the agent's answer, its question, the changed pages, failed checks. Pure.

All of it is foreign text: escaped, or Markdown that was defused.
"""

from bot.domain.job_details import (
    SHOWN_ANSWER,
    SHOWN_CHECKS,
    SHOWN_FILES,
    SHOWN_PROBLEMS,
    Answer,
    ChangeKind,
    Changes,
    CheckResult,
    FileChange,
    JobReport,
    shortened,
)
from bot.domain.notices.posts import QuestionAsked
from bot.domain.threads import Thread, ThreadOrigin
from bot.slack.rendering.agent_markdown import defused
from bot.slack.rendering.blocks import (
    MAX_TEXT,
    SHOW_ANSWER,
    Block,
    Message,
    actions,
    button,
    markdown,
    paragraph,
    section,
)
from bot.slack.rendering.text import one_line, person, pieces, quote, shorten

_MAX_NAME, _MAX_PROBLEM = 120, 120
_MAX_REASON, _MAX_QUESTION = 700, 1_500
_MINUS = "\N{MINUS SIGN}"
_KINDS = {ChangeKind.ADDED: "new", ChangeKind.RENAMED: "renamed", ChangeKind.DELETED: "deleted"}


def with_report(thread: Thread, message: Message, report: JobReport | None) -> Message:
    """The message of an end with what was told of it: one message, its buttons last."""
    if report is None:
        return message
    parts: list[tuple[str, Block]] = []
    answer = shortened(report.answer.text, SHOWN_ANSWER) if report.answer else ""
    if defused(answer).strip():
        parts.append((shorten(answer, 1_500), markdown(defused(answer))))
    asked = _question(thread, report.question)
    texts = [changed_pages(report.changes), _failed_checks(report.failed_checks), asked]
    parts += [(text, section(text)) for text in texts if text]
    buttons = [each for block in message.blocks if block["type"] == "actions" for each in block["elements"]]
    buttons += _show_all(thread, report.answer)
    blocks = [block for block in message.blocks if block["type"] != "actions"] + [block for _, block in parts]
    row = [actions(*buttons)] if buttons else []
    return Message(_text(message.text, [text for text, _ in parts]), (*blocks, *row))


def question_asked(thread: Thread, message: QuestionAsked) -> Message:
    """What the agent wants to know, to whoever asked it for something."""
    return paragraph(f"{person(message.person_id or thread.requester_id)} {_question(thread, message.question)}")


def reply_here(thread: Thread) -> str:
    """How people write to the agent in a thread, as the beginning of a sentence."""
    return "Mention Pagehand here" if thread.origin is ThreadOrigin.CONVERSATION else "Reply here"


def reason_quoted(report: JobReport) -> str:
    """The reason that was given, as a quotation of some lines."""
    return _quoted(report.reason, _MAX_REASON)


def _quoted(text: str, limit: int) -> str:
    return quote((pieces(text, limit) or [""])[0])


def _text(words: str, parts: list[str]) -> str:
    """What notifications and screen readers get: as many parts as there is room for."""
    for part in parts:
        if len(words) + len(part) < MAX_TEXT:
            words = f"{words}\n{part}"
    return words


def _show_all(thread: Thread, answer: Answer | None) -> list[Block]:
    return [button("Show all", SHOW_ANSWER, f"{thread.id}/{answer.id}")] if answer is not None and answer.cut else []


def _question(thread: Thread, question: str) -> str:
    if not question:
        return ""
    return f"The agent asks:\n{_quoted(question, _MAX_QUESTION)}\n{reply_here(thread)} to answer."


def changed_pages(changes: Changes | None) -> str:
    """What the pull request changes, a line each; empty where that is not told."""
    if changes is None or changes.file_count == 0:
        return ""
    count, lines = changes.file_count, _lines(changes.added, changes.removed)
    listed = [f"• {_file(file)}" for file in changes.files[:SHOWN_FILES]]
    left = count - len(listed)
    more = [f"• and {left} more"] if left > 0 and listed else []
    title = f"The pull request changes {count} file{'s' if count > 1 else ''}{lines}{':' if listed else '.'}"
    return "\n".join((title, *listed, *more))


def _file(file: FileChange) -> str:
    kind = f", {_KINDS[file.kind]}" if file.kind in _KINDS else ""
    return f"{one_line(file.title or file.path, _MAX_NAME)}{kind}{_lines(file.added, file.removed)}"


def _lines(added: int | None, removed: int | None) -> str:
    counts = [f"+{added}"] * bool(added) + [f"{_MINUS}{removed}"] * bool(removed)
    return f" ({' '.join(counts)})" if counts else ""


def _failed_checks(checks: tuple[CheckResult, ...]) -> str:
    return "\n".join(["Checks that failed:", *map(_check, checks[:SHOWN_CHECKS])]) if checks else ""


def _check(check: CheckResult) -> str:
    listed = [f"    {one_line(problem, _MAX_PROBLEM)}" for problem in check.problems[:SHOWN_PROBLEMS]]
    left = check.problem_count - len(listed)
    more = [f"    and {left} more"] if left > 0 and listed else []
    return "\n".join((f":warning: {one_line(check.name, _MAX_NAME)}", *listed, *more))
