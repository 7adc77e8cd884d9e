"""Which calls give a reply the one reaction that it should have."""

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.deliver import AddReaction, ReactionProgress, RemoveReaction, after_call, next_call
from bot.notices.notice import Notice, Reaction, ReactionChanged

REACTIONS = st.sampled_from(Reaction)


def a_notice(wanted: Reaction | None, shown: tuple[Reaction, ...] | None, *, added: bool = False) -> Notice:
    message = ReactionChanged("5.1", wanted)
    return Notice(1, "t1/m", "t1", message, 0.0, reactions_shown=shown, reaction_added=added)


@given(wanted=st.none() | REACTIONS, there=st.lists(REACTIONS, unique=True), is_known=st.sampled_from([False, True]))
def test_each_call_is_made_once_until_only_the_right_mark_is_left(
    wanted: Reaction | None, there: list[Reaction], *, is_known: bool
) -> None:
    shown, notice = set(there), a_notice(wanted, tuple(there) if is_known else None, added=wanted is None)
    message, calls, progress = ReactionChanged("5.1", wanted), [], ReactionProgress((), done=False)
    while not progress.done:
        call = next_call(notice, message)
        match call:
            case AddReaction(reaction):
                shown.add(reaction)
            case RemoveReaction(reaction):
                shown.discard(reaction)
        calls.append(call)
        progress = after_call(notice, message, call)
        notice = a_notice(wanted, progress.shown, added=True)
    assert shown == ({wanted} if wanted else set())
    assert set(progress.shown) == shown
    assert len(calls) == len(set(calls))
    removed = [call for call in calls if isinstance(call, RemoveReaction)]
    assert not is_known or len(removed) == len(set(there) - {wanted})


def test_a_mark_never_added_needs_no_call() -> None:
    assert next_call(a_notice(None, (), added=True), ReactionChanged("5.1", None)) is None


def test_a_mark_replaced_before_it_was_added_is_not_removed() -> None:
    message = ReactionChanged("5.1", Reaction.ACCEPTED)
    notice = a_notice(Reaction.ACCEPTED, ())
    assert next_call(notice, message) == AddReaction(Reaction.ACCEPTED)
    assert after_call(notice, message, AddReaction(Reaction.ACCEPTED)).done
