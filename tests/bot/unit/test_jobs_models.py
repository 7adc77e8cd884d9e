"""Job APIs' answers are read tolerantly: malformed details leave the job readable, and everything kept is bounded."""

import gzip
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from support.any_json import any_json

from bot.domain.jobs.job import JobReport, report_of
from bot.errors import JobApiUnreadable
from bot.jobapi import models
from bot.jobapi.models import AgentJob, FileChange, Job, JobDetails, PromptCall, Requester
from bot.jobapi.wire import MAX_BODY, error_message_in, parse_job, parse_upload, prompt_body, unzipped
from bot.runtime.text import printable_line
from bot.runtime.untrusted_json import object_at, objects_at, text_at


def parsed(details: Any) -> JobDetails | None:
    return parse_job(json.dumps({"id": "j1", "status": "active", "details": details}).encode()).details


def reported(details: Any) -> JobReport:
    read = parsed(details)
    assert read is not None
    return report_of(read, unchanged=None)


WHOLE: dict[str, Any] = {
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
        "files": [{"path": "a.md", "kind": "added", "added": 3, "title": "A"}],
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
    "mode": "plan",
    "proposal": {
        "id": "p1",
        "state": "accepted",
        "text": "I would **move** it.\n\n- one",
        "pages": [{"path": "a.md", "reason": "it links there"}, {"path": "b.md"}],
        "acceptedBy": "Ana",
    },
    "pagesRead": ["a.md", "b.md"],
}


def test_all_details_of_our_job_server_are_read() -> None:
    details = parsed(WHOLE)
    assert details is not None
    assert details.model_dump(mode="json", by_alias=True, exclude_defaults=True) == WHOLE
    assert details.plan[2].status is models.StepStatus.PENDING


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
    assert told.pull_request == models.PullRequestDetails(
        state=models.PullRequestState.PENDING, reason="GitHub is away"
    )


@pytest.mark.parametrize("details", [None, 1, "text", [], [1], True])
def test_details_that_are_not_an_object_are_ignored(details: Any) -> None:
    assert parsed(details) is None


JSON = any_json(st.sampled_from([*WHOLE, "files", "title"]))


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
        models.MAX_SUMMARY,
        models.MAX_WORDS,
        models.MAX_LINE,
    ]
    assert (len(found.plan), max(len(step.title) for step in found.plan)) == (models.MAX_STEPS, models.MAX_LINE)
    assert len(found.pull_request.checks[0].problems) == models.MAX_PROBLEMS


def test_of_a_hundred_thousand_files_the_first_and_their_count_are_kept() -> None:
    found = parsed({"changes": {"files": [{"path": "a"}] * 100_000, "fileCount": 100_000, "added": -1, "removed": 1e9}})
    assert found is not None
    assert found.changes is not None
    assert (len(found.changes.files), found.changes.file_count) == (models.MAX_CHANGED_FILES, 100_000)
    assert (found.changes.added, found.changes.removed) == (0, 0)


@pytest.mark.parametrize("depth", [150, 100_000])
def test_deep_nesting_yields_a_job_or_our_error(depth: int) -> None:
    body = b'{"id": "j1", "status": "active", "details": {"plan": ' + b"[" * depth + b"]" * depth + b"}}"
    try:
        assert parse_job(body).details == JobDetails()
    except JobApiUnreadable:
        assert depth > 150


def test_control_and_misleading_characters_are_removed_but_not_newlines() -> None:
    found = parsed({"summary": "a\x00\x1b[31m\u202eb\r\n\tc", "activity": "one\ntwo\u2028three"})
    assert found is not None
    assert (found.summary, found.activity) == ("a[31mb\n\tc", "one two three")


def test_a_secret_in_any_text_is_masked_before_it_is_cut() -> None:
    text = (
        json.dumps(WHOLE).replace("Which?", "x" * (models.MAX_WORDS - 5) + "SECRET9").replace("links", "SECRET9 links")
    )
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


def test_what_was_chosen_is_in_the_body_only_if_it_is_not_the_default() -> None:
    """So that job APIs that know no modes see nothing new."""
    chosen = {"mode": "plan", "model": "opus", "effort": "high"}
    planned = PromptCall("Do it", "k", mode=models.Mode.PLAN, model="opus", effort="high")
    assert json.loads(prompt_body(planned)) == {"prompt": "Do it"} | chosen
    assert json.loads(prompt_body(PromptCall("Go", "k", proposal="p1"))) == {"prompt": "Go", "proposal": "p1"}


@pytest.mark.parametrize("wrong", [{"id": ""}, {"state": "no"}, {"text": " "}, {"text": None}, {"id": 7}])
def test_a_plan_that_could_not_be_shown_or_accepted_counts_as_missing(wrong: dict[str, Any]) -> None:
    told = parsed({"summary": "Said", "mode": "no mode", "proposal": WHOLE["proposal"] | wrong})
    assert told == JobDetails(summary="Said")


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


WHOLE_JOB: dict[str, Any] = {
    "id": "job_1",
    "status": "completed",
    "source": {"repository": "acme/docs", "ref": "main", "depth": 1},
    "model": "writer-2",
    "prLink": "https://git.example/acme/docs/pull/7",
    "createdAt": "2025-03-01T10:00:00Z",
    "archivedAt": "2025-03-02T10:00:00Z",
    "novelty": [1, 2],
}
BARE = Job(id="job_1", status="active")
FIELDS = ("id", "status", "source", "model", "prLink", "createdAt", "archivedAt")
json_values = any_json(st.sampled_from([*FIELDS, "ref"]))


def body(**fields: Any) -> bytes:
    return json.dumps({"id": "job_1", "status": "active", **fields}).encode()


def test_every_field_is_read_and_unknown_ones_are_ignored() -> None:
    assert parse_job(json.dumps(WHOLE_JOB).encode()) == Job(
        id="job_1",
        status="completed",
        pr_link="https://git.example/acme/docs/pull/7",
        repository="acme/docs",
        ref="main",
        model="writer-2",
        created_at="2025-03-01T10:00:00Z",
        archived_at="2025-03-02T10:00:00Z",
    )


def test_an_id_and_a_status_are_enough() -> None:
    assert parse_job(body()) == BARE
    assert parse_job(b"\xef\xbb\xbf" + body()) == BARE


@pytest.mark.parametrize("wrong", [None, 7, True, [], {}, "", " \n", {"repository": 3, "ref": ["x"]}])
@pytest.mark.parametrize("field", FIELDS[2:])
def test_optional_fields_of_the_wrong_type_count_as_missing(field: str, wrong: object) -> None:
    assert parse_job(body(**{field: wrong})) == BARE


@pytest.mark.parametrize(
    ("given_id", "text"), [(42, "42"), (10**400, "1" + "0" * 400), (1.5, "1.5"), ("a b/ü", "a b/ü")]
)
def test_a_numeric_id_becomes_text_and_text_is_never_altered(given_id: object, text: str) -> None:
    assert parse_job(body(id=given_id)).id == text


@pytest.mark.parametrize(
    "bad_id", [None, "", "  ", True, [], {"id": 1}, ".", "..", "a\nb", "a\u202eb", "x" * (models.MAX_ID + 1)]
)
def test_an_id_that_cannot_address_a_job_is_unreadable(bad_id: object) -> None:
    with pytest.raises(JobApiUnreadable, match="no usable id"):
        parse_job(body(id=bad_id))


@pytest.mark.parametrize("number", [b"1" * 5000, b"1e999", b"NaN", b"-Infinity"])
def test_an_invalid_number_is_unreadable(number: bytes) -> None:
    with pytest.raises(JobApiUnreadable):
        parse_job(b'{"id": %s, "status": "active"}' % number)


@pytest.mark.parametrize("bad", [None, "", "\t", 1, True, ["active"], "\u200b\u202e"])
def test_a_status_that_is_not_a_word_is_unreadable(bad: object) -> None:
    with pytest.raises(JobApiUnreadable, match="no usable status"):
        parse_job(body(status=bad))


@pytest.mark.parametrize("status", ["queued", "Completed", "待機中", "in review"])
def test_an_unknown_status_is_kept_as_received(status: str) -> None:
    assert parse_job(body(status=status)).status == status


def test_displayed_text_is_bounded_and_printable() -> None:
    job = parse_job(
        body(status="s" * 9999, model="a\x00b\x1b[31m\u202e", source={"ref": "r" * 9999, "repository": "x\r\ny"})
    )
    assert job.status == "s" * 99 + "…"
    assert job.model == "ab[31m"
    assert job.ref is not None
    assert len(job.ref) == 300
    assert job.repository == "x y"


def test_a_link_is_never_shortened() -> None:
    long = "https://git.example/" + "x" * models.MAX_LINK
    assert parse_job(body(prLink=long)).pr_link is None
    assert parse_job(body(prLink=long[: models.MAX_LINK])).pr_link == long[: models.MAX_LINK]


def test_credentials_in_a_repository_url_are_removed() -> None:
    job = parse_job(body(source={"repository": "https://bot:ghp_secret@git.example/acme/docs"}))
    assert job.repository == "https://git.example/acme/docs"
    assert parse_job(body(source={"repository": "git@git.example:acme/docs"})).repository == "git@git.example:acme/docs"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "empty"),
        (b"<!doctype html><p>Bad gateway", "web page"),
        (b'{"id": "job_1", "sta', "no complete JSON"),
        (b"[]", "no complete JSON"),
        (b"\xff\xfe", "no complete JSON"),
        (b"[" * 100_000, "no complete JSON"),
        (b"{}", "no usable id and no usable status"),
        (b" " * (MAX_BODY + 1), "longer than"),
    ],
)
def test_an_unreadable_answer_is_explained_without_quoting_it(answer: bytes, problem: str) -> None:
    with pytest.raises(JobApiUnreadable, match=problem) as caught:
        parse_job(answer)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_job_or_unreadable(answer: bytes) -> None:
    """They may also hold an error's message."""
    assert isinstance(error_message_in(answer), str)
    try:
        job = parse_job(answer)
    except JobApiUnreadable:
        return
    assert job.id
    assert job.status
    assert all(text is None or text.isprintable() for text in vars(job).values())


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS[2:], json_values)))
def test_no_optional_field_makes_a_job_unreadable(fields: dict[str, Any]) -> None:
    job = parse_job(json.dumps({**fields, "id": "job_1", "status": "active"}).encode())
    assert (job.id, job.status) == ("job_1", "active")


NO_JSON = {
    "half a pair": rb'"a\ud83d"',
    "half a pair, encoded": b'"a\xed\xa0\xbd"',
    "control character": b'"a\x00\n\x1f"',
    "latin-1": b'"caf\xe9"',
    "huge": b"1" * 10_000,
    "huge and negative": b"-" + b"1" * 10_000,
    "not a number": b"NaN",
    "infinite": b"[-Infinity, 1e999]",
    "twice": b'{"a": 1, "a": "\xff"}',
}


@pytest.mark.parametrize("bad", NO_JSON.values(), ids=NO_JSON)
@pytest.mark.parametrize("field", [*FIELDS, "details", "novelty"])
def test_what_no_json_may_contain_costs_only_its_field(field: str, bad: bytes) -> None:
    fields = {name: json.dumps(value).encode() for name, value in WHOLE_JOB.items()} | {field: bad}
    raw = b"{%s}" % b",".join(b'"%s": %s' % (name.encode(), value) for name, value in fields.items())
    try:
        job = parse_job(raw, asked_id="job_1")
    except JobApiUnreadable:
        assert field == "status"
        assert not bad.startswith(b'"'), "what is readable of a text is read"
        return
    whole, own = parse_job(json.dumps(WHOLE_JOB).encode()), {"prLink": "pr_link", "createdAt": "created_at"}
    kept = vars(whole).keys() - {own.get(field, field), *(("repository", "ref") if field == "source" else ())}
    kept -= {"archived_at"} if field == "archivedAt" else set()
    assert {name: getattr(job, name) for name in kept} == {name: getattr(whole, name) for name in kept}
    assert job.id == "job_1"
    assert job.pr_link in {whole.pr_link, None}
    assert all(text.isprintable() for text in vars(job).values() if isinstance(text, str))


@pytest.mark.parametrize("bad", NO_JSON.values(), ids=NO_JSON)
def test_other_answers_are_read_as_leniently(bad: bytes) -> None:
    assert error_message_in(b'{"novelty": %s, "error": "Too long"}' % bad) == "Too long"
    assert parse_upload(b'{"novelty": %s, "id": "f1"}' % bad) == "f1"


def test_a_new_job_needs_an_id_of_its_own() -> None:
    for raw in (b'{"id": "caf\xe9", "status": "active"}', b'{"id": "a\x01", "status": "active"}'):
        with pytest.raises(JobApiUnreadable, match="no usable id"):
            parse_job(raw)
    with pytest.raises(JobApiUnreadable, match="no usable id"):
        parse_job(b'{"status": "active"}', asked_id="job_1")


@pytest.mark.parametrize("link", [b"https://git.example/caf\xe9", b"https://git.example/\x01", rb"https://x/\ud83d"])
def test_an_incomplete_link_counts_as_missing(link: bytes) -> None:
    assert parse_job(b'{"id": "job_1", "status": "active", "prLink": "%s"}' % link) == BARE


def test_gzip_is_read_within_a_bound() -> None:
    assert unzipped(gzip.compress(body())) == body()
    assert unzipped(body()) == body()
    assert len(unzipped(gzip.compress(bytes(50 * MAX_BODY)))) == MAX_BODY + 1


@given(st.text(), st.text(min_size=1).map(lambda text: printable_line(text, 90)).filter(bool))
@example("0 \ud7fc\r0", "active")
def test_encoded_jobs_round_trip(repository: str, status: str) -> None:
    written = AgentJob(
        id="7", status=status, source=models.Source(repository=repository, ref=None), pr_link="https://x/1"
    )
    raw = written.model_dump_json(by_alias=True)
    assert set(json.loads(raw)) == set(FIELDS)
    assert parse_job(raw.encode()) == replace(written.as_job(), repository=printable_line(repository, 500) or None)


@given(st.text(st.characters()))
def test_any_prompt_is_sent_as_written(prompt: str) -> None:
    """As far as it can be: half a pair of surrogates cannot."""
    sent = json.loads(prompt_body(PromptCall(prompt, "k")))
    assert len(sent["prompt"]) <= len(prompt)
    if not re.search("[\ud800-\udfff]", prompt):
        assert sent == {"prompt": prompt}


def test_a_lone_surrogate_is_replaced_and_a_pair_joined() -> None:
    assert json.loads(prompt_body(PromptCall("a\ud83d b\ud83d\ude00", "k"))) == {"prompt": "a\ufffd b😀"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": "Prompt is too long"}, "Prompt is too long"),
        ({"error": {"code": 3, "message": "No such branch"}}, "No such branch"),
        ({"detail": [{"loc": ["body"], "msg": "too short"}, {"msg": "no"}]}, "too short; no"),
        ({"error": "", "message": "second"}, "second"),
        ({"error": "invalid_request", "error_description": "No prompt given"}, "No prompt given"),
        ({"errors": [{"code": "x", "detail": "Too long"}, {"detail": "Too rude"}]}, "Too long; Too rude"),
        ({"statusCode": 400, "error": "Bad Request", "message": "Too long"}, "Too long"),
        ({"error": "prompt_too_long", "message": "Shorten it, please"}, "Shorten it, please"),
        ({"data": {"error": {"errors": [{"message": "Too long"}]}}}, "Too long"),
        ({"error": "not_found", "message": "Not Found"}, ""),
        ({"title": "I'm a Teapot", "detail": "Error: Conflict"}, ""),
        ({"error": "<html><body>nginx</body></html>"}, ""),
        ({"error": "branch <main> is protected"}, "branch <main> is protected"),
        ([], ""),
    ],
)
def test_the_apis_error_message_is_found(answer: object, words: str) -> None:
    assert error_message_in(json.dumps(answer).encode()) == words


@pytest.mark.parametrize("answer", [b"", b"<html>no</html>", b"plain", b'{"error": "cut', b"\xff", b"[" * 100_000])
def test_other_bodies_have_no_message(answer: bytes) -> None:
    assert error_message_in(answer) == ""


anything = any_json(st.sampled_from("ab"))


@given(anything)
def test_reading_json_fields_never_raises(body: Any) -> None:
    assert isinstance(text_at(body, "a", "b"), str)
    assert isinstance(object_at(body, "a"), dict)
    assert all(isinstance(item, dict) for item in objects_at(body, "a"))
