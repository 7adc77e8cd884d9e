"""Details are read tolerantly: malformed ones leave the job readable, and everything kept is bounded."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from bot.domain.jobs.details import JobReport, report_of
from bot.errors import JobApiUnreadable
from bot.jobapi.models import (
    MAX_CHANGED_FILES,
    MAX_LINE,
    MAX_PROBLEMS,
    MAX_STEPS,
    MAX_SUMMARY,
    MAX_WORDS,
    ChangeKind,
    Changes,
    CheckResult,
    CheckStatus,
    FieldKind,
    FileChange,
    JobDetails,
    PartialWork,
    PlanStep,
    PromptCall,
    PullRequestDetails,
    PullRequestState,
    QuestionField,
    QuestionOption,
    Requester,
    StepStatus,
)
from bot.jobapi.wire import MAX_BODY, parse_job, prompt_body


def parsed(details: Any) -> JobDetails | None:
    return parse_job(json.dumps({"id": "j1", "status": "active", "details": details}).encode()).details


def reported(details: Any) -> JobReport:
    read = parsed(details)
    assert read is not None
    return report_of(read, unchanged=None)


WHOLE = {
    "summary": "I did **it**.\n\n- one",
    "reason": "because",
    "plan": [{"title": "Read", "status": "completed"}, {"title": "Write", "status": "in_progress"}, {"title": "Check"}],
    "activity": "Writing",
    "question": "Which?",
    "questionFields": [
        {
            "title": "Page",
            "kind": "choice",
            "options": [{"label": "A"}, {"label": "B", "description": "b"}],
            "ownWords": True,
        },
        {"title": "Sure?", "kind": "yes_or_no", "required": True},
    ],
    "examples": ["Fix it", "Mend it"],
    "changes": {
        "files": [{"path": "a.md", "kind": "added", "added": 3, "removed": None, "title": "A"}],
        "fileCount": 12,
        "added": 30,
        "removed": 4,
    },
    "pullRequest": {
        "number": 7,
        "state": "merged",
        "checks": [{"name": "links", "status": "failed", "problems": ["a.md:3 leads nowhere", "b"]}],
    },
    "revision": "abc123",
    "partialWork": {"files": 3},
}


def test_all_details_of_our_job_server_are_read() -> None:
    assert parsed(WHOLE) == JobDetails(
        summary="I did **it**.\n\n- one",
        reason="because",
        plan=(
            PlanStep(title="Read", status=StepStatus.COMPLETED),
            PlanStep(title="Write", status=StepStatus.IN_PROGRESS),
            PlanStep(title="Check", status=StepStatus.PENDING),
        ),
        activity="Writing",
        question="Which?",
        question_fields=(
            QuestionField(
                title="Page",
                kind=FieldKind.CHOICE,
                options=(QuestionOption(label="A"), QuestionOption(label="B", description="b")),
                own_words=True,
            ),
            QuestionField(title="Sure?", kind=FieldKind.YES_OR_NO, required=True),
        ),
        examples=("Fix it", "Mend it"),
        changes=Changes(
            files=(FileChange(path="a.md", kind=ChangeKind.ADDED, added=3, removed=None, title="A"),),
            file_count=12,
            added=30,
            removed=4,
        ),
        pull_request=PullRequestDetails(
            number=7,
            state=PullRequestState.MERGED,
            checks=(CheckResult(name="links", status=CheckStatus.FAILED, problems=("a.md:3 leads nowhere", "b")),),
        ),
        revision="abc123",
        partial_work=PartialWork(files=3),
    )


def test_what_is_stored_keeps_its_form() -> None:
    """During an upgrade, the version before reads these rows, too."""
    stored = TypeAdapter(JobReport).dump_python(reported(WHOLE), mode="json")
    file = {"path": "a.md", "kind": "added", "added": 3, "removed": None, "title": "A"}
    assert stored["changes"] == {"files": [file], "file_count": 12, "added": 30, "removed": 4}
    assert stored["failed_checks"] == [
        {"name": "links", "status": "failed", "problems": ["a.md:3 leads nowhere", "b"], "problem_count": 2}
    ]
    assert stored["question_fields"][0] == {
        "title": "Page", "kind": "choice", "options": ["A", "B"], "own_words": True, "required": False,
    }  # fmt: skip
    untitled = FileChange(path="a.md").model_dump(mode="json")
    assert untitled == {"path": "a.md", "kind": "changed", "added": None, "removed": None}


def test_a_pending_pull_request_is_read_with_its_reason() -> None:
    told = parsed({"pullRequest": {"number": None, "state": "pending", "reason": "GitHub is\u202e away"}})
    assert told is not None
    assert told.pull_request == PullRequestDetails(state=PullRequestState.PENDING, reason="GitHub is away")


@pytest.mark.parametrize("details", [None, 1, "text", [], [1], True])
def test_details_that_are_not_an_object_are_ignored(details: Any) -> None:
    assert parsed(details) is None


def test_a_job_without_details_has_none() -> None:
    assert parse_job(b'{"id": "j1", "status": "active"}').details is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*WHOLE, "files", "title"]), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from([*WHOLE]), JSON))
def test_no_details_make_a_job_unreadable(details: dict[str, Any]) -> None:
    assert parsed(details) is not None


def test_long_texts_and_lists_are_bounded() -> None:
    found = parsed(
        {
            "summary": "e" * 1_000_000,
            "reason": "x" * 9_000,
            "activity": "y" * 9_000,
            "plan": [{"title": "z" * 900}] * 1_000,
            "pullRequest": {"checks": [{"name": "n", "status": "failed", "problems": ["p"] * 9_000}]},
        }
    )
    assert found is not None
    assert found.pull_request is not None
    assert [len(each or "") for each in (found.summary, found.reason, found.activity)] == [
        MAX_SUMMARY,
        MAX_WORDS,
        MAX_LINE,
    ]
    assert (len(found.plan), max(len(step.title) for step in found.plan)) == (MAX_STEPS, MAX_LINE)
    assert len(found.pull_request.checks[0].problems) == MAX_PROBLEMS


def test_of_a_hundred_thousand_files_the_first_and_their_count_are_kept() -> None:
    found = parsed({"changes": {"files": [{"path": "a"}] * 100_000, "fileCount": 100_000, "added": -1, "removed": 1e9}})
    assert found is not None
    assert found.changes is not None
    assert (len(found.changes.files), found.changes.file_count) == (MAX_CHANGED_FILES, 100_000)
    assert (found.changes.added, found.changes.removed) == (0, 0)


@pytest.mark.parametrize("depth", [150, 100_000])
def test_deep_nesting_yields_a_job_or_our_error(depth: int) -> None:
    body = b'{"id": "j1", "status": "active", "details": {"plan": ' + b"[" * depth + b"]" * depth + b"}}"
    try:
        assert parse_job(body).details == JobDetails()
    except JobApiUnreadable:
        assert depth > 150


def test_an_oversized_body_is_not_read() -> None:
    with pytest.raises(JobApiUnreadable):
        parse_job(json.dumps({"id": "j", "status": "active", "details": {"summary": "x" * MAX_BODY}}).encode())


def test_control_and_misleading_characters_are_removed_but_not_newlines() -> None:
    found = parsed({"summary": "a\x00\x1b[31m\u202eb\r\n\tc", "activity": "one\ntwo\u2028three"})
    assert found is not None
    assert (found.summary, found.activity) == ("a[31mb\n\tc", "one two three")


def test_a_secret_in_any_text_is_masked_before_it_is_cut() -> None:
    text = json.dumps(WHOLE).replace("Which?", "x" * (MAX_WORDS - 5) + "SECRET9").replace("links", "SECRET9 links")
    body = f'{{"id": "j1", "status": "active", "details": {text}}}'.encode()
    found = parse_job(body, lambda words: words.replace("SECRET9", "***")).details
    assert "SECRET" not in repr(found)
    assert "*** links" in repr(found)


def test_the_requester_is_in_the_body_only_if_given() -> None:
    assert json.loads(prompt_body(PromptCall("Do it", "k"))) == {"prompt": "Do it"}
    asked = Requester("Ana", "U0ANA", "https://slack.example/p1")
    assert json.loads(prompt_body(PromptCall("Do it", "k", asked))) == {
        "prompt": "Do it",
        "requestedBy": {"name": "Ana", "id": "U0ANA", "url": "https://slack.example/p1"},
    }
    assert json.loads(prompt_body(PromptCall("Do it", "k", Requester("Ana", "U0ANA"))))["requestedBy"] == {
        "name": "Ana",
        "id": "U0ANA",
    }


def test_the_instruction_is_in_the_body_only_if_given() -> None:
    """An empty one, too: all of the prompt is context then."""
    for instruction in ("Do it", ""):
        body = json.loads(prompt_body(PromptCall("Do it\n\nContext", "k", instruction=instruction)))
        assert body == {"prompt": "Do it\n\nContext", "instruction": instruction}
    odd = json.loads(prompt_body(PromptCall("a\ud83d\n\nContext", "k", instruction="a\ud83d")))
    assert odd["prompt"].startswith(odd["instruction"]), "our job server requires that"


@pytest.mark.parametrize("kept", [None, 3, [], {}, {"files": -1}, {"files": "3"}, {"files": True}, {"files": 10**12}])
def test_partial_work_without_files_is_none(kept: Any) -> None:
    """Then discarding is not offered."""
    details = parsed({"partialWork": kept})
    assert details is not None
    assert details.partial_files == 0


def test_an_example_too_long_for_a_button_is_dropped() -> None:
    """No more is sent than is visible; duplicates are removed."""
    fits = "x" * 75
    assert reported({"examples": ["x" * 76, fits, "Fix it", "Fix it", "", 7, None, "two\nlines"]}).examples == (
        fits,
        "Fix it",
        "two lines",
    )
    for wrong in ("Fix it", {"a": 1}, None, 7):
        assert parsed({"examples": wrong}) == JobDetails()


CHOICE = {"title": "Page", "kind": "choice", "options": [{"label": "A"}, {"label": "B"}]}


@pytest.mark.parametrize(
    "fields",
    [
        [CHOICE | {"options": []}],
        [CHOICE | {"options": [{"label": "A"}, {"label": "A"}]}],
        [CHOICE | {"options": [{"label": "x" * 76}]}],
        [CHOICE | {"options": [{"label": "A\u202eB"}]}],
        [CHOICE | {"options": [{"label": f"{n}"} for n in range(101)]}],
        [CHOICE | {"kind": "colour"}],
        [CHOICE | {"title": "x" * 201}],
        [CHOICE | {"kind": "text"}],
        [CHOICE, CHOICE],
        [CHOICE, CHOICE | {"title": ""}],
        [CHOICE | {"title": f"{n}"} for n in range(11)],
        "Which?",
        None,
    ],
)
def test_a_form_that_cannot_be_shown_whole_is_asked_in_text(fields: Any) -> None:
    """Half of it could not be sent, and shortened values would not be recognized."""
    report = reported({"question": "Which?", "questionFields": fields})
    assert (report.question, report.question_fields) == ("Which?", ())
