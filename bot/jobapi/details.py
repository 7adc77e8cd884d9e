"""Parses the `details` of a job, which a job API reports beyond its specification (ours does), leniently.

All of them are optional, so none makes a job unreadable: values of the wrong type count as missing, long texts are
shortened, and surplus items are left out.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

from bot.domain.jobs.details import (
    LONGEST_EXAMPLE,
    LONGEST_LABEL,
    LONGEST_TITLE,
    MOST_FIELDS,
    MOST_OPTIONS,
    ChangeKind,
    Changes,
    CheckResult,
    CheckStatus,
    FieldKind,
    FileChange,
    JobDetails,
    PlanStep,
    PullRequest,
    PullRequestState,
    QuestionField,
    StepStatus,
)
from bot.runtime.json_fields import object_at, objects_at, text_at
from bot.runtime.text import printable_text

MAX_SUMMARY = 40_000
"""Characters of an answer that are read."""
MAX_WORDS = 2_000
MAX_LINE = 200
MAX_STEPS = 20
MAX_FILES = 50
MAX_CHECKS, MAX_PROBLEMS = 20, 20
MAX_COUNT = 10**9

Hide = Callable[[str], str]
"""Masks secrets in a text."""
Kind = TypeVar("Kind", bound=StrEnum)


def details_from(value: Any, hide: Hide = str) -> JobDetails | None:
    """Returns the details of a job; None if there are none. `hide` masks secrets in each text."""
    if not isinstance(value, dict):
        return None
    return _Reader(hide).details(value)


class _Reader:
    def __init__(self, hide: Hide) -> None:
        self._hide = hide

    def details(self, value: dict[str, Any]) -> JobDetails:
        return JobDetails(
            summary=self._text(value, "summary", MAX_SUMMARY),
            reason=self._text(value, "reason", MAX_WORDS),
            plan=self._plan(value),
            activity=self._line(value, "activity"),
            question=self._text(value, "question", MAX_WORDS),
            question_fields=self._question_fields(value),
            examples=self._examples(value),
            changes=self._changes(value.get("changes")),
            pull_request=self._pull_request(value.get("pullRequest")),
            revision=self._line(value, "revision"),
            partial_files=_count(object_at(value, "partialWork").get("files")) or 0,
        )

    def _examples(self, value: dict[str, Any]) -> tuple[str, ...]:
        """Leaves out examples that do not fit on a button, because people would send text that they cannot see."""
        lines = self._lines(value.get("examples"))
        return tuple(dict.fromkeys(line for line in lines if len(line) <= LONGEST_EXAMPLE))

    def _question_fields(self, value: dict[str, Any]) -> tuple[QuestionField, ...]:
        """Returns all fields or none, because an incomplete form could not be submitted."""
        given = objects_at(value, "questionFields")
        fields = [self._question_field(each) for each in given[:MOST_FIELDS]] if len(given) <= MOST_FIELDS else []
        known = tuple(field for field in fields if field is not None)
        has_titles_of_its_own = len({field.title for field in known}) == len(fields)
        return known if has_titles_of_its_own else ()

    def _question_field(self, value: dict[str, Any]) -> QuestionField | None:
        """Returns None for a field that cannot be shown whole, because labels and titles identify the answers."""
        kind, title = _one_of(FieldKind, value.get("kind"), None), self._whole_line(value, "title", LONGEST_TITLE)
        given = objects_at(value, "options")
        labels = [self._whole_line(each, "label", LONGEST_LABEL) for each in given[:MOST_OPTIONS]]
        is_choice = kind in {FieldKind.CHOICE, FieldKind.CHOICES}
        is_whole = all(labels) and len(set(labels)) == len(given) and bool(given) == is_choice
        if kind is None or not title or not is_whole:
            return None
        return QuestionField(title, kind, tuple(labels), value.get("ownWords") is True, value.get("required") is True)

    def _whole_line(self, value: dict[str, Any], name: str, limit: int) -> str:
        """Returns a line unchanged; empty if it is too long, or would be displayed differently."""
        given = text_at(value, name)
        return given if len(given) <= limit and self._line(value, name) == given else ""

    def _plan(self, value: dict[str, Any]) -> tuple[PlanStep, ...]:
        steps = [
            PlanStep(self._line(step, "title"), _one_of(StepStatus, step.get("status"), StepStatus.PENDING))
            for step in objects_at(value, "plan")[:MAX_STEPS]
        ]
        return tuple(step for step in steps if step.title)

    def _changes(self, value: Any) -> Changes | None:
        if not isinstance(value, dict):
            return None
        files = tuple(each for each in map(self._file, objects_at(value, "files")[:MAX_FILES]) if each.path)
        count = max(_count(value.get("fileCount")) or 0, len(files))
        return Changes(files, count, _count(value.get("added")) or 0, _count(value.get("removed")) or 0)

    def _file(self, value: dict[str, Any]) -> FileChange:
        return FileChange(
            self._line(value, "path"),
            _one_of(ChangeKind, value.get("kind"), ChangeKind.CHANGED),
            _count(value.get("added")),
            _count(value.get("removed")),
            self._line(value, "title"),
        )

    def _pull_request(self, value: Any) -> PullRequest | None:
        if not isinstance(value, dict):
            return None
        checks = tuple(
            CheckResult(
                self._line(check, "name") or "check",
                _one_of(CheckStatus, check.get("status"), CheckStatus.SKIPPED),
                problems := self._lines(check.get("problems")),
                max(len(check["problems"]) if isinstance(check.get("problems"), list) else 0, len(problems)),
            )
            for check in objects_at(value, "checks")[:MAX_CHECKS]
        )
        return PullRequest(
            _one_of(PullRequestState, value.get("state"), None), checks, self._text(value, "reason", MAX_WORDS)
        )

    def _lines(self, value: Any) -> tuple[str, ...]:
        texts = value[:MAX_PROBLEMS] if isinstance(value, list) else []
        return tuple(line for line in (self._clean_line(each) for each in texts if isinstance(each, str)) if line)

    def _line(self, value: dict[str, Any], name: str) -> str:
        return self._clean_line(text_at(value, name))

    def _clean_line(self, text: str) -> str:
        return " ".join(printable_text(self._hide(text)[: 8 * MAX_LINE], 2 * MAX_LINE).split())[:MAX_LINE]

    def _text(self, value: dict[str, Any], name: str, limit: int) -> str:
        return printable_text(self._hide(text_at(value, name)), limit)


def _one_of(kind: type[Kind], value: Any, otherwise: Any) -> Any:
    return kind(value) if isinstance(value, str) and value in set(kind) else otherwise


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT
    return value if is_count else None
