"""What happens to a notice that could not be delivered."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.deliver import (
    MAX_ATTEMPTS,
    MOST_IN_DOUBT,
    NOT_ALLOWED_DELAY,
    DeliveryFailure,
    DeliveryFault,
    DeliveryRejected,
    DeliveryUncertain,
    GiveUp,
    NotAllowed,
    RetryLater,
    Unreachable,
    after_failure,
)
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.job import JobFailed
from bot.notices.notice import CARD_CHANGED, Notice

NOTICE = Notice(1, "t1/failed", "t1", JobFailed(), created_at=1_000.0, attempts=1)
TELL = replace(NOTICE, message=ActionAnswered("UANA", ActionAnswer.SENT_AGAIN))

waits = st.none() | st.floats(0.0, 100_000.0)
reasons = st.sampled_from(["timeout", "ratelimited", "invalid_blocks"])
failures: st.SearchStrategy[DeliveryFailure] = st.one_of(
    st.builds(Unreachable, reasons, waits),
    st.builds(DeliveryUncertain, reasons),
    st.builds(NotAllowed, reasons),
    st.builds(DeliveryRejected, reasons, st.booleans(), st.sampled_from([(), ("chat:write",)])),
    st.builds(DeliveryFault, reasons),
)
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
def test_every_failure_is_kept_and_retried_after_its_delay(
    notice: Notice, failure: DeliveryFailure, jitter: float
) -> None:
    decision = after_failure(notice, failure, jitter=jitter)
    assert decision.reason == failure.reason
    if isinstance(decision, RetryLater):
        asked = failure.retry_after if isinstance(failure, Unreachable) else None
        assert decision.due_in >= (asked or 0.0)
        assert decision.due_in > 0.0 or decision.without_blocks


@given(notices, failures)
def test_no_failure_is_retried_forever(notice: Notice, failure: DeliveryFailure) -> None:
    decision = after_failure(replace(notice, attempts=MAX_ATTEMPTS, without_blocks=True), failure)
    assert isinstance(decision, GiveUp)


@given(notices, failures)
def test_a_doubt_survives_later_failures(notice: Notice, failure: DeliveryFailure) -> None:
    """The store keeps a doubt; an abandoned notice mentions it."""
    decision = after_failure(notice, failure)
    doubtful = isinstance(failure, DeliveryUncertain | DeliveryFault)
    if isinstance(decision, RetryLater):
        assert decision.uncertain == doubtful
    else:
        assert decision.in_doubt == (notice.uncertain or isinstance(failure, DeliveryUncertain))


@given(notices, st.builds(DeliveryRejected, reasons, st.booleans()))
def test_a_refused_message_is_retried_only_without_its_blocks(notice: Notice, refused: DeliveryRejected) -> None:
    decision = after_failure(notice, refused)
    if refused.blocks_refused and not notice.without_blocks:
        assert decision == RetryLater(0.0, refused.reason, without_blocks=True)
    else:
        assert decision == GiveUp(refused.reason, in_doubt=notice.uncertain)


@pytest.mark.parametrize(
    ("failure", "due_in"),
    [
        (Unreachable("down"), 1.0),
        (Unreachable("down", 40.0), 40.0),
        (NotAllowed("token_revoked", "It was revoked."), NOT_ALLOWED_DELAY),
    ],
)
def test_a_first_attempt_that_certainly_did_not_arrive_is_repeated(failure: DeliveryFailure, due_in: float) -> None:
    assert after_failure(NOTICE, failure) == RetryLater(due_in, failure.reason)


def test_a_private_message_in_doubt_is_not_repeated_for_long() -> None:
    """Only a doubt that follows a doubt counts: the first one may be about the only attempt that got through."""
    uncertain = DeliveryUncertain("timeout")
    in_doubt = replace(TELL, uncertain=True, attempts=MOST_IN_DOUBT)
    assert isinstance(after_failure(replace(in_doubt, uncertain=False), uncertain), RetryLater)
    assert isinstance(after_failure(replace(in_doubt, attempts=MOST_IN_DOUBT - 1), uncertain), RetryLater)
    assert after_failure(in_doubt, uncertain) == GiveUp("timeout", in_doubt=True)
    assert isinstance(after_failure(in_doubt, Unreachable("down")), RetryLater)
    assert isinstance(after_failure(replace(in_doubt, message=JobFailed()), uncertain), RetryLater)


def test_an_abandoned_notice_names_the_missing_scopes() -> None:
    rejected = DeliveryRejected("missing_scope", missing_scopes=("chat:write",))
    assert after_failure(NOTICE, rejected) == GiveUp("missing_scope", missing_scopes=("chat:write",))


def test_the_number_of_attempts_is_an_argument() -> None:
    third = replace(NOTICE, attempts=3)
    assert after_failure(third, Unreachable("down"), max_attempts=3) == GiveUp("down")
