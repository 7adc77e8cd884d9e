"""Every kind of notice: its recipient, its texts by people, its key, and how it is delivered."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hypothesis_settings import examples
from support.worlds.any_notices import KINDS, messages_of

from bot.domain.delivery import (
    MAX_ATTEMPTS,
    MOST_IN_DOUBT,
    DeliveryFailure,
    Directly,
    FailureKind,
    GiveUp,
    InConversation,
    RetryLater,
    after_failure,
    announced_though_muted,
    person_mentioned,
    private_place,
    shown_in_channel,
)
from bot.domain.jobs.job import digest
from bot.domain.projects import ChannelSettings
from bot.domain.requests.request import RejectionReason, Request, RequestKind, Surface
from bot.domain.threads.thread import Participation, Thread, ThreadOptions, ThreadState
from bot.notices.answers import (
    ActionAnswer,
    ActionAnswered,
    CardNotPosted,
    JobIdRequested,
    PostNotDelivered,
)
from bot.notices.job import (
    JobActiveAgain,
    JobArchived,
    JobDisappeared,
    JobFailed,
    JobFinished,
    JobStarted,
    JobStatusChanged,
    JobStopped,
    PullRequestFound,
    QuestionAsked,
    RecordDamaged,
    tells_of_a_finish,
)
from bot.notices.notice import (
    CARD_CHANGED,
    CardChanged,
    Delivery,
    Notice,
    NoticeContent,
    ReactionChanged,
    ToPerson,
    UnknownNotice,
    in_database,
    within_thread,
)
from bot.notices.pull_requests import PullRequestClosed
from bot.notices.questions import ReplyEdited, RequestRefused
from bot.notices.requests import (
    AccessDenied,
    OutageEnded,
    OutageStarted,
    ReplyNotFullySent,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
)
from bot.store.schema.rows import FAMILIES

TEXT = {"text"}
WRITTEN: dict[str, set[str]] = {
    "request_rejected": {"request.text"},
    "request_uncertain": {"request.text"},
    "outage_started": {"waiting.text"},
    "access_denied": {"waiting.text"},
    "reply_not_fully_sent": {"file_names"},
    "context_cut": {"link_only", "cut_files", "name_only"},
    "prompt_requested": {"prompt"},
    **dict.fromkeys(("request_refused", "reply_held", "reply_edited", "held_asked", "job_or_reply_asked"), TEXT),
    **dict.fromkeys(("project_asked", "edit_without_effect", "action_answered"), TEXT),
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
    message, written = data.draw(messages_of(kind, st.just("words"))), WRITTEN.get(kind.kind, set())
    before, after = list(texts_in(message)), list(texts_in(message.with_texts(lambda text: f"{text}, named")))
    assert [path for path, _ in before] == [path for path, _ in after]
    changed = {path for (path, text), (_, now) in zip(before, after, strict=True) if text != now}
    assert changed == {path for path, _ in before if path in written}
    assert message.texts == [text for path, text in before if path in written]


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
    assert PullRequestFound.key(digest("https://example.org/pull/1")) == "link/470459a013b5c298"
    assert (OutageStarted.key(3), OutageEnded.key(3)) == ("out/3", "back/3")
    assert tells_of_a_finish(JobFinished.key(7))
    assert not tells_of_a_finish(JobFailed.key(7))
    follow_up = Request("r2.9.1", "t1", RequestKind.FOLLOW_UP, "k", "U1", "", "5.1", 0.0, attempts=3, edited_at="9.2")
    of_request = (RequestRejected.key(follow_up), RequestUncertain.key(follow_up), OutageStarted.delay_key(follow_up))
    assert of_request == ("r2.9.1/refused/3", "r2.9.1/unsure/3", "r2.9.1/out")
    assert (ReplyEdited.key(follow_up), RequestRejected.unreadable_key("r2")) == ("r2.9.1/edited/9.2", "r2/unreadable")
    assert (ReplyNotFullySent.key(follow_up), ReactionChanged.key(follow_up)) == ("r2/not_carried", "r2/mark")
    assert RequestRefused.key(follow_up) == "r2.9.1/refused/9.2"
    stored = in_database("t1", PostNotDelivered.key(JobStarted.KEY))
    assert (stored, within_thread("t1", stored)) == ("t1/started/told", "started/told")


NOTICE = Notice(1, "t1/failed", "t1", JobFailed(), created_at=1_000.0, attempts=1)
TELL = replace(NOTICE, message=ActionAnswered("UANA", ActionAnswer.SENT_AGAIN))
reasons = st.sampled_from(["timeout", "ratelimited", "invalid_blocks"])
rejections = st.builds(
    DeliveryFailure,
    st.just(FailureKind.REJECTED),
    reasons,
    st.booleans(),
    st.booleans(),
    st.sampled_from([(), ("chat:write",)]),
)
others = st.sampled_from([kind for kind in FailureKind if kind is not FailureKind.REJECTED])
failures = st.one_of(st.builds(DeliveryFailure, others, reasons), rejections)
notices = st.builds(
    replace,
    st.just(NOTICE),
    message=st.sampled_from([NOTICE.message, TELL.message, CARD_CHANGED.message]),
    attempts=st.integers(1, 2 * MAX_ATTEMPTS),
    uncertain=st.booleans(),
    without_blocks=st.booleans(),
)
jitters = st.floats(0.0, 1.0)


@given(notices, failures, jitters)
def test_a_failure_is_kept_and_retried_after_a_delay(notice: Notice, failure: DeliveryFailure, jitter: float) -> None:
    decision = after_failure(notice, failure, jitter=jitter)
    assert decision.reason == failure.reason
    if isinstance(decision, RetryLater):
        assert decision.due_in > 0.0 or decision.without_blocks or failure.plainer


@given(notices, failures)
def test_no_failure_is_retried_forever(notice: Notice, failure: DeliveryFailure) -> None:
    decision = after_failure(replace(notice, attempts=MAX_ATTEMPTS, without_blocks=True), failure)
    assert isinstance(decision, GiveUp)


@given(notices, failures)
def test_a_doubt_survives_later_failures(notice: Notice, failure: DeliveryFailure) -> None:
    """The store keeps a doubt; an abandoned notice mentions it."""
    decision = after_failure(notice, failure)
    doubtful = failure.kind in {FailureKind.UNCERTAIN, FailureKind.FAULT}
    if isinstance(decision, RetryLater):
        assert decision.uncertain == doubtful
    else:
        assert decision.in_doubt == (notice.uncertain or failure.kind is FailureKind.UNCERTAIN)


@given(notices, rejections)
def test_a_refused_message_is_retried_only_with_plainer_blocks_or_none(
    notice: Notice, refused: DeliveryFailure
) -> None:
    decision = after_failure(notice, refused)
    if refused.blocks_refused and not notice.without_blocks:
        plain = not (refused.plainer and notice.attempts < MAX_ATTEMPTS)
        assert decision == RetryLater(0.0, refused.reason, without_blocks=plain)
    else:
        assert decision == GiveUp(refused.reason, notice.uncertain, refused.missing_scopes)


def test_a_private_message_in_doubt_is_not_repeated_for_long() -> None:
    """Only a doubt that follows a doubt counts: the first one may be about the only attempt that got through."""
    uncertain = DeliveryFailure(FailureKind.UNCERTAIN, "timeout")
    in_doubt = replace(TELL, uncertain=True, attempts=MOST_IN_DOUBT)
    assert isinstance(after_failure(replace(in_doubt, uncertain=False), uncertain), RetryLater)
    assert isinstance(after_failure(replace(in_doubt, attempts=MOST_IN_DOUBT - 1), uncertain), RetryLater)
    assert after_failure(in_doubt, uncertain) == GiveUp("timeout", in_doubt=True)
    assert isinstance(after_failure(in_doubt, DeliveryFailure(FailureKind.UNREACHABLE, "down")), RetryLater)
    assert isinstance(after_failure(replace(in_doubt, message=JobFailed()), uncertain), RetryLater)


def test_an_abandoned_notice_names_the_missing_scopes() -> None:
    rejected = DeliveryFailure(FailureKind.REJECTED, "missing_scope", missing_scopes=("chat:write",))
    assert after_failure(NOTICE, rejected) == GiveUp("missing_scope", missing_scopes=("chat:write",))


LINK = "https://git.example/pull/7"
END = JobFinished(LINK, new=True)
THREAD = Thread(
    "th1",
    "T1",
    "C1",
    "U0ANA",
    "Do it",
    "docs",
    0.0,
    state=ThreadState(people=Participation(participants=("U0BEN", "U0CAI"))),
)
LOUD = ChannelSettings(broadcast=True)
QUIET = replace(THREAD, options=ThreadOptions(quiet=True))
MUTED = replace(THREAD, state=replace(THREAD.state, people=replace(THREAD.state.people, muted_by="U0BEN")))


@pytest.mark.parametrize(
    ("thread", "place"),
    [
        (replace(THREAD, ts="1.1", card_ts="1.1"), InConversation()),
        (replace(THREAD, ts="1.1", card_ts="1.1", has_replies=True), InConversation("1.1")),
        (replace(THREAD, ts="1.1", card_ts="2.1"), InConversation("1.1")),
        (replace(THREAD, root_ts="1.1"), InConversation()),
        (replace(THREAD, root_ts="1.1", has_replies=True), InConversation("1.1")),
        (replace(THREAD, has_replies=True), InConversation()),
    ],
)
def test_private_notices_go_to_threads_that_slack_shows(thread: Thread, place: InConversation) -> None:
    """If a reply or the card is below its root message; answers to Home go to the direct message."""
    assert private_place(thread, JobIdRequested("U0ANA")) == place
    assert private_place(thread, JobIdRequested("U0ANA", asked_on=Surface.HOME)) == Directly()


def test_an_end_mentions_the_waiting_person() -> None:
    """One person: the others have written in the thread, so Slack notifies them."""
    assert person_mentioned(THREAD, END, ChannelSettings()) == "U0ANA"
    assert person_mentioned(THREAD, replace(END, person_id="U0BEN"), ChannelSettings()) == "U0BEN"
    assert person_mentioned(THREAD, JobFailed(link=LINK, person_id="U0BEN"), ChannelSettings()) == "U0BEN"
    assert person_mentioned(THREAD, JobStopped("U0BEN"), ChannelSettings()) == "U0ANA"


def test_a_link_beside_an_end_mentions_nobody() -> None:
    """The end does. A job archived without an end has not mentioned anybody yet."""
    assert person_mentioned(THREAD, PullRequestFound(LINK), ChannelSettings()) == ""
    assert person_mentioned(THREAD, PullRequestFound(LINK, alone=True), ChannelSettings()) == "U0ANA"


@pytest.mark.parametrize("thread", [QUIET, MUTED])
def test_a_quiet_or_muted_job_mentions_nobody(thread: Thread) -> None:
    """Its end is not broadcast either."""
    assert person_mentioned(thread, END, LOUD) == ""
    assert not shown_in_channel(thread, END, LOUD)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (END, True),
        (JobFinished(LINK, new=True, again=True), True),
        (JobFinished(LINK, again=True), False),
        (JobFinished(), False),
        (JobFailed(), False),
        (PullRequestFound(LINK), False),
        (PullRequestClosed(LINK), False),
    ],
)
def test_only_the_first_end_with_its_pull_request_is_broadcast(message: NoticeContent, *, shown: bool) -> None:
    """Only if the channel is configured so."""
    assert shown_in_channel(THREAD, message, LOUD) is shown
    assert not shown_in_channel(THREAD, message, ChannelSettings())
    assert not shown_in_channel(replace(THREAD, channel_id="D1"), message, LOUD)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (END, True),
        (JobFinished(), False),
        (JobStopped("U0BEN"), True),
        (JobFailed(), True),
        (PullRequestFound(LINK), True),
        (JobStarted("j1"), False),
        (JobStatusChanged("paused"), False),
        (QuestionAsked("Which?"), False),
    ],
)
def test_a_muted_thread_still_gets_failures_and_pull_requests(message: NoticeContent, *, told: bool) -> None:
    """And a stop, which somebody has just requested."""
    assert announced_though_muted(message) is told
