"""Properties of every kind of notice: its recipient, its texts by people, and its key."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hypothesis_settings import examples
from support.worlds.any_notices import KINDS, messages_of

from bot.domain.requests.request import RejectionReason, Request, RequestKind
from bot.notices.answers import ActionAnswered, CardNotPosted, PostNotDelivered, PromptRequested
from bot.notices.job import (
    JobActiveAgain,
    JobArchived,
    JobDisappeared,
    JobFailed,
    JobFinished,
    JobStarted,
    PullRequestFound,
    RecordDamaged,
    tells_of_a_finish,
)
from bot.notices.notice import (
    CardChanged,
    Delivery,
    NoticeContent,
    NoticeKey,
    ReactionChanged,
    ToPerson,
    UnknownNotice,
    in_database,
    within_thread,
)
from bot.notices.questions import (
    EditWithoutEffect,
    HeldAsked,
    JobOrReplyAsked,
    ProjectAsked,
    ReplyEdited,
    ReplyHeld,
    RequestRefused,
)
from bot.notices.requests import (
    AccessDenied,
    ContextCut,
    OutageEnded,
    OutageStarted,
    ReplyNotFullySent,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
)
from bot.store.schema.rows import FAMILIES

WRITTEN: dict[type[Any], set[str]] = {kind: set() for kind in KINDS} | {
    RequestRejected: {"request.text"},
    RequestUncertain: {"request.text"},
    OutageStarted: {"waiting.text"},
    AccessDenied: {"waiting.text"},
    ReplyNotFullySent: {"file_names"},
    ContextCut: {"link_only", "cut_files", "name_only"},
    RequestRefused: {"text"},
    ReplyHeld: {"text"},
    JobOrReplyAsked: {"text"},
    HeldAsked: {"text"},
    ProjectAsked: {"text"},
    ReplyEdited: {"text"},
    EditWithoutEffect: {"text"},
    ActionAnswered: {"text"},
    PromptRequested: {"prompt"},
}
"""The fields with texts by people; all others are ours, or a machine's."""
BEN = RequestSummary("r1", "UBEN", RequestKind.FOLLOW_UP, "More")


def texts_in(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Returns each non-empty text with the names of the fields that lead there."""
    if is_dataclass(value):
        for field in fields(value):
            yield from texts_in(getattr(value, field.name), f"{path}.{field.name}".removeprefix("."))
    elif isinstance(value, tuple):
        for item in value:
            yield from texts_in(item, path)
    elif isinstance(value, str) and value:
        yield path, value


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {PostNotDelivered, UnknownNotice}])
@settings(max_examples=examples(20))
@given(data=st.data())
def test_names_are_inserted_only_into_texts_by_people(kind: type[Any], data: st.DataObject) -> None:
    message = data.draw(messages_of(kind, st.just("words")))
    before, after = list(texts_in(message)), list(texts_in(message.with_texts(lambda text: f"{text}, named")))
    assert [path for path, _ in before] == [path for path, _ in after]
    changed = {path for (path, text), (_, now) in zip(before, after, strict=True) if text != now}
    assert changed == {path for path, _ in before if path in WRITTEN[kind]}
    assert message.texts == [text for path, text in before if path in WRITTEN[kind]]


def test_names_are_inserted_into_an_undeliverable_posts_texts() -> None:
    told = PostNotDelivered("UANA", RequestUncertain(BEN), may_be_posted=False)
    assert told.texts == ["More"]
    assert told.with_texts(str.upper).texts == ["MORE"]


def test_names_are_inserted_into_texts_of_newer_versions() -> None:
    unknown = UnknownNotice("shrug", {"text": "a", "more": {"texts": ["b", 1, None]}})
    assert unknown.with_texts(str.upper) == UnknownNotice("shrug", {"text": "A", "more": {"texts": ["B", 1, None]}})


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_a_private_notice_names_its_person(kind: type[Any], data: st.DataObject) -> None:
    message = data.draw(messages_of(kind, st.just("UANA")))
    if kind is UnknownNotice:
        assert message.about == message.fields.get("person_id", "")
        return
    assert (message.delivery is Delivery.EPHEMERAL) == issubclass(kind, ToPerson)
    people = {path: text for path, text in texts_in(message) if path.rpartition(".")[2] == "person_id"}
    outer = people.get("person_id") or next(iter(people.values()), "")
    assert message.about == outer


def test_a_post_redirected_to_a_person_addresses_them() -> None:
    rejected = RequestRejected(BEN, RejectionReason.API)
    assert rejected.addressed_to("UANA").about == "UANA"
    assert ReplyNotFullySent("UBEN", words_sent=True).addressed_to("UANA").about == "UANA"
    for post in (AccessDenied(401, waiting=BEN), JobArchived()):
        assert post.addressed_to("UANA") == post


def test_each_kind_keeps_its_unique_stored_name() -> None:
    """A row has the name; its family is imported by whoever reads rows."""
    named = {kind.kind: re.sub("(?<!^)([A-Z])", r"_\1", kind.__name__).lower() for kind in KINDS}
    assert {stored for stored, name in named.items() if stored != name} == {"unknown"}
    assert {kind.__module__ for kind in KINDS} == {NoticeContent.__module__, *(each.__name__ for each in FAMILIES)}


def test_notice_keys_match_stored_ones() -> None:
    """A notice with a changed key would be posted again."""
    made = [JobActiveAgain.key(1), JobFinished.key(2), JobFailed.key(0), JobArchived.key(0)]
    assert made == ["r1/active", "r2/completed", "r0/failed", "r0/archived"]
    once = (CardChanged.KEY, JobStarted.KEY, JobDisappeared.key(1), RecordDamaged.KEY, CardNotPosted.KEY)
    assert once == ("card", "started", "gone", "damaged", "cannot_post")
    assert PullRequestFound.key("https://example.org/pull/1") == "link/470459a013b5c298"
    assert (OutageStarted.key(3), OutageEnded.key(3)) == ("out/3", "back/3")
    assert tells_of_a_finish(JobFinished.key(7))
    assert not tells_of_a_finish(JobFailed.key(7))
    follow_up = Request("r2.9.1", "t1", RequestKind.FOLLOW_UP, "k", "U1", "", "5.1", 0.0, attempts=3, edited_at="9.2")
    of_request = (RequestRejected.key(follow_up), RequestUncertain.key(follow_up), OutageStarted.delay_key(follow_up))
    assert of_request == ("r2.9.1/refused/3", "r2.9.1/unsure/3", "r2.9.1/out")
    assert (ReplyEdited.key(follow_up), RequestRejected.unreadable_key("r2")) == ("r2.9.1/edited/9.2", "r2/unreadable")
    assert (ReplyNotFullySent.key(follow_up), ReactionChanged.key(follow_up)) == ("r2/not_carried", "r2/mark")
    assert NoticeKey("click/1") == "click/1"
    stored = in_database("t1", PostNotDelivered.key(JobStarted.KEY))
    assert (stored, within_thread("t1", stored)) == ("t1/started/told", "started/told")
