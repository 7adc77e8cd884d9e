"""The details about the end of a round: the agent's answer and question, the changed pages, failed checks. Pure.

All of it is untrusted text, which is escaped, or Markdown that was made safe.
"""

import re

from bot.domain.jobs.details import (
    SHOWN_CHECKS,
    SHOWN_FILES,
    SHOWN_PROBLEMS,
    Answer,
    Changes,
    CheckResult,
    FileChange,
    JobReport,
)
from bot.domain.threads.thread import Thread, ThreadOrigin
from bot.notices.job import QuestionAsked
from bot.slack.rendering.agent_markdown import defused
from bot.slack.rendering.blocks import (
    MAX_TEXT,
    SEND_EXAMPLES,
    SHOW_ANSWER,
    Block,
    ChatMessage,
    actions,
    button,
    markdown,
    paragraph,
    section,
)
from bot.slack.rendering.modal_inputs import answer_choices, fits_a_button
from bot.slack.rendering.text import Markup, one_line, person, pieces, quote, shorten
from bot.slack.rendering.words import job_news as words

_MAX_NAME, _MAX_PROBLEM = 120, 120
_MAX_REASON, _MAX_QUESTION, _MAX_ANSWER = 700, 1_500, 1_500
_MINUS = "\N{MINUS SIGN}"


def with_report(thread: Thread, message: ChatMessage, report: JobReport | None) -> ChatMessage:
    """Returns the message about an end with its details as one message, buttons last."""
    if report is None:
        return message
    parts: list[tuple[str, Block]] = []
    answer = shorten(report.answer.text, _MAX_ANSWER) if report.answer else ""
    shown = defused(answer)
    if shown.strip():
        parts.append((answer, markdown(shown)))
    choices = answer_choices(thread, report.question_fields) if report.question else []
    asked = _question(thread, report.question, choices)
    texts = [_failed_checks(report.failed_checks), asked]
    parts += [(text, section(text)) for text in texts if text]
    buttons = [each for block in message.blocks if block["type"] == "actions" for each in block["elements"]]
    buttons += _show_all(thread, report.answer)
    blocks = [block for block in message.blocks if block["type"] != "actions"] + [block for _, block in parts]
    rows = [actions(*row) for row in (choices, _examples(thread, report.examples), buttons) if row]
    return ChatMessage(_text(message.text, [text for text, _ in parts]), (*blocks, *rows))


def question_asked(thread: Thread, message: QuestionAsked) -> ChatMessage:
    """Returns the agent's question to the person who wrote the request."""
    choices = answer_choices(thread, message.fields)
    asked = _question(thread, message.question, choices)
    return paragraph(f"{person(message.person_id or thread.requester_id)} {asked}", *choices)


def reply_here(thread: Thread) -> Markup:
    """How people write to the agent in a thread, as the beginning of a sentence."""
    return words.MENTION if thread.origin is ThreadOrigin.CONVERSATION else words.REPLY


def reason_quoted(report: JobReport) -> Markup:
    """Returns the reason as a quotation of a few lines."""
    return _quoted(report.reason, _MAX_REASON)


def reason_after(because: Markup, report: JobReport) -> Markup:
    """Returns the reason after a line that ends in a colon, without what it repeats of that line; empty if it says
    nothing more.
    """
    reason = report.reason.strip()
    for sentence in because.rstrip(":").split(". "):
        repeated = re.match(rf"{re.escape(sentence)}\s*(?:[.:;,!-]+\s*|\Z)", reason, re.IGNORECASE)
        reason = reason[repeated.end() :] if repeated else reason
    return _quoted(reason, _MAX_REASON) if reason else Markup("")


def _quoted(text: str, limit: int) -> Markup:
    return quote((pieces(text, limit) or [""])[0])


def _text(words: str, parts: list[str]) -> str:
    """Returns the text for notifications and screen readers: as many parts as fit."""
    for part in parts:
        if len(words) + len(part) < MAX_TEXT:
            words = f"{words}\n{part}"
    return words


def _show_all(thread: Thread, answer: Answer | None) -> list[Block]:
    return (
        [button(words.SHOW_ALL, SHOW_ANSWER, f"{thread.id}/{answer.id}")] if answer is not None and answer.cut else []
    )


def _examples(thread: Thread, prompts: tuple[str, ...]) -> list[Block]:
    """Returns buttons that show everything they send."""
    pairs = zip(SEND_EXAMPLES, filter(fits_a_button, prompts), strict=False)
    return [button(prompt, action_id, f"{thread.id}/{prompt}") for action_id, prompt in pairs]


def _question(thread: Thread, question: str, choices: list[Block]) -> str:
    if not question:
        return ""
    quoted, reply = _quoted(question, _MAX_QUESTION), reply_here(thread)
    if choices:
        return words.AGENT_ASKS_TO_CHOOSE(question=quoted, reply=reply)
    return words.AGENT_ASKS(question=quoted, reply=reply)


def count_changed(changes: Changes | None) -> Markup:
    """Returns the size of the change; empty if unknown. The card lists the files."""
    if changes is None or changes.file_count == 0:
        return Markup("")
    lines = Markup(_lines(changes.added, changes.removed))
    if changes.file_count == 1:
        return words.ONE_FILE_CHANGED(lines=lines)
    return words.FILES_CHANGED(count=changes.file_count, lines=lines)


def changed_pages(changes: Changes | None) -> str:
    """Returns the changes of the pull request, a line per file; empty if unknown."""
    if changes is None or changes.file_count == 0:
        return ""
    count, lines = changes.file_count, Markup(_lines(changes.added, changes.removed))
    listed = [f"• {_file(file)}" for file in changes.files[:SHOWN_FILES]]
    left = count - len(listed)
    more = [f"• {words.AND_MORE(count=left)}"] if left > 0 and listed else []
    title = words.CARD_ONE_FILE(lines=lines) if count == 1 else words.CARD_FILES(count=count, lines=lines)
    return "\n".join((f"{title}{':' if listed else '.'}", *listed, *more))


def _file(file: FileChange) -> str:
    kind = f", {words.KINDS[file.kind]}" if file.kind in words.KINDS else ""
    return f"{one_line(file.title or file.path, _MAX_NAME)}{kind}{_lines(file.added, file.removed)}"


def _lines(added: int | None, removed: int | None) -> str:
    counts = [f"+{added}"] * bool(added) + [f"{_MINUS}{removed}"] * bool(removed)
    return f" ({' '.join(counts)})" if counts else ""


def _failed_checks(checks: tuple[CheckResult, ...]) -> str:
    return "\n".join([words.CHECKS_FAILED, *map(_check, checks[:SHOWN_CHECKS])]) if checks else ""


def _check(check: CheckResult) -> str:
    listed = [f"    {one_line(problem, _MAX_PROBLEM)}" for problem in check.problems[:SHOWN_PROBLEMS]]
    left = check.problem_count - len(listed)
    more = [f"    {words.AND_MORE(count=left)}"] if left > 0 and listed else []
    return "\n".join((f":warning: {one_line(check.name, _MAX_NAME)}", *listed, *more))
