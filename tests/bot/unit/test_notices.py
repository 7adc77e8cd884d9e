"""Properties of every kind of notice: its recipient, its texts by people, and its key."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hypothesis_settings import examples
from support.worlds.any_notices import KINDS, messages_of

from bot.domain.notices import keys
from bot.domain.notices.content import Delivery
from bot.domain.notices.messages import (
    ActionAnswered,
    AnswerRequested,
    CardNotPosted,
    EditWithoutEffect,
    JobIdRequested,
    PostNotDelivered,
    PromptRequested,
    ReplyEdited,
    StatusRequested,
)
from bot.domain.notices.posts import (
    AccessDenied,
    ContextCut,
    JobArchived,
    OutageStarted,
    ReplyNotFullySent,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
    UnknownNotice,
)
from bot.domain.notices.questions import (
    HeldAsked,
    HelpRequested,
    JobOrReplyAsked,
    ProjectAsked,
    ReplyHeld,
    RequestRefused,
    StopAsked,
)
from bot.domain.requests.request import RejectionReason, Request, RequestKind
from bot.store.schema.rows import KINDS as STORED_KINDS

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
PERSONAL = (
    PostNotDelivered,
    CardNotPosted,
    ReplyEdited,
    EditWithoutEffect,
    PromptRequested,
    AnswerRequested,
    ActionAnswered,
    JobIdRequested,
    StatusRequested,
    RequestRefused,
    ReplyHeld,
    JobOrReplyAsked,
    HeldAsked,
    ProjectAsked,
    StopAsked,
    HelpRequested,
)
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
    assert (message.delivery is Delivery.EPHEMERAL) == (kind in PERSONAL)
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
    assert len(STORED_KINDS) == len(KINDS)


def test_notice_keys_match_stored_ones() -> None:
    """A notice with a changed key would be posted again."""
    made = [keys.job_active_again(1), keys.job_finished(2), keys.job_failed(0), keys.job_archived(0)]
    assert made == ["r1/active", "r2/completed", "r0/failed", "r0/archived"]
    once = (keys.CARD, keys.JOB_STARTED, keys.job_disappeared(1), keys.RECORD_DAMAGED, keys.CARD_NOT_POSTED)
    assert once == ("card", "started", "gone", "damaged", "cannot_post")
    assert keys.pull_request_found("https://example.org/pull/1") == "link/470459a013b5c298"
    assert (keys.outage_started(3), keys.outage_ended(3)) == ("out/3", "back/3")
    assert keys.tells_of_a_finish(keys.job_finished(7))
    assert not keys.tells_of_a_finish(keys.job_failed(7))
    follow_up = Request("r2.9.1", "t1", RequestKind.FOLLOW_UP, "k", "U1", "", "5.1", 0.0, attempts=3, edited_at="9.2")
    of_request = (keys.request_rejected(follow_up), keys.request_uncertain(follow_up), keys.request_delayed(follow_up))
    assert of_request == ("r2.9.1/refused/3", "r2.9.1/unsure/3", "r2.9.1/out")
    assert (keys.reply_edited(follow_up), keys.request_unreadable("r2")) == ("r2.9.1/edited/9.2", "r2/unreadable")
    assert (keys.reply_not_fully_sent(follow_up), keys.reaction(follow_up)) == ("r2/not_carried", "r2/mark")
    assert keys.action_answered("click/1") == "click/1"
    stored = keys.in_database("t1", keys.sent_privately(keys.JOB_STARTED))
    assert (stored, keys.within_thread("t1", stored)) == ("t1/started/told", "started/told")
