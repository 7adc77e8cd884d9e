import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.errors import JobApiUnreadable
from bot.jobapi.models import MAX_ID, MAX_LINK, AgentJob, Job, PromptCall, Source
from bot.jobapi.wire import MAX_BODY, error_message_in, parse_job, parse_upload, prompt_body, unzipped
from bot.runtime.text import printable_line

WHOLE: dict[str, Any] = {
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

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*FIELDS, "ref"]), inner, max_size=7),
    max_leaves=20,
)


def body(**fields: Any) -> bytes:
    return json.dumps({"id": "job_1", "status": "active", **fields}).encode()


def test_every_field_is_read_and_unknown_ones_are_ignored() -> None:
    assert parse_job(json.dumps(WHOLE).encode()) == Job(
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
    "bad_id", [None, "", "  ", True, [], {"id": 1}, ".", "..", "a\nb", "a\u202eb", "x" * (MAX_ID + 1)]
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
    long = "https://git.example/" + "x" * MAX_LINK
    assert parse_job(body(prLink=long)).pr_link is None
    assert parse_job(body(prLink=long[:MAX_LINK])).pr_link == long[:MAX_LINK]


def test_credentials_in_a_repository_url_are_removed() -> None:
    job = parse_job(body(source={"repository": "https://bot:ghp_secret@git.example/acme/docs"}))
    assert job.repository == "https://git.example/acme/docs"
    assert parse_job(body(source={"repository": "git@git.example:acme/docs"})).repository == "git@git.example:acme/docs"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<!doctype html><p>Bad gateway", "web page"),
        (b'{"id": "job_1", "sta', "no complete JSON"),
        (b"[]", "no complete JSON"),
        (b"null", "no complete JSON"),
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
    fields = {name: json.dumps(value).encode() for name, value in WHOLE.items()} | {field: bad}
    raw = b"{%s}" % b",".join(b'"%s": %s' % (name.encode(), value) for name, value in fields.items())
    try:
        job = parse_job(raw, asked_id="job_1")
    except JobApiUnreadable:
        assert field == "status"
        assert not bad.startswith(b'"'), "what is readable of a text is read"
        return
    whole, own = parse_job(json.dumps(WHOLE).encode()), {"prLink": "pr_link", "createdAt": "created_at"}
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
    written = AgentJob(id="7", status=status, source=Source(repository=repository, ref=None), pr_link="https://x/1")
    raw = written.model_dump_json(by_alias=True)
    assert set(json.loads(raw)) == set(FIELDS)
    assert parse_job(raw.encode()) == replace(written.as_job(), repository=printable_line(repository, 500) or None)


@given(st.text())
def test_a_prompt_is_sent_as_written(prompt: str) -> None:
    assert json.loads(prompt_body(PromptCall(prompt, "k"))) == {"prompt": prompt}


@given(st.text(st.characters()))
def test_any_prompt_can_be_sent(prompt: str) -> None:
    assert len(json.loads(prompt_body(PromptCall(prompt, "k")))["prompt"]) <= len(prompt)


def test_a_lone_surrogate_is_replaced_and_a_pair_joined() -> None:
    assert json.loads(prompt_body(PromptCall("a\ud83d b\ud83d\ude00", "k"))) == {"prompt": "a\ufffd b😀"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": "Prompt is too long"}, "Prompt is too long"),
        ({"error": {"code": 3, "message": "No such branch"}}, "No such branch"),
        ({"message": "Quota used up"}, "Quota used up"),
        ({"detail": "Not here"}, "Not here"),
        ({"detail": [{"loc": ["body"], "msg": "too short"}, {"msg": "no"}]}, "too short; no"),
        ({"type": "about:blank", "title": "Gone fishing"}, "Gone fishing"),
        ({"error": "", "message": "second"}, "second"),
        ({"error": 5}, ""),
        ({"error": "invalid_request", "error_description": "No prompt given"}, "No prompt given"),
        ({"errors": [{"code": "x", "detail": "Too long"}, {"detail": "Too rude"}]}, "Too long; Too rude"),
        ({"statusCode": 400, "error": "Bad Request", "message": "Too long"}, "Too long"),
        ({"error": "prompt_too_long", "message": "Shorten it, please"}, "Shorten it, please"),
        ({"error": "prompt_too_long", "message": "Bad Request"}, "prompt_too_long"),
        ({"data": {"error": {"errors": [{"message": "Too long"}]}}}, "Too long"),
        ({"error": "400 Bad Request"}, ""),
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


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_looking_for_a_message_never_fails(answer: bytes) -> None:
    error_message_in(answer)


@given(st.text(st.characters()), st.integers(1, 600))
def test_the_message_is_one_bounded_printable_line(text: str, limit: int) -> None:
    once = printable_line(text, limit)
    assert len(once) <= limit
    assert once.isprintable()
