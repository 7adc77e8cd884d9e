"""How the one reaction on a reply comes about, one call of Slack's at a time. Pure."""

from dataclasses import dataclass

from bot.domain.notices.messages import Notice, Reaction, ReactionChanged


@dataclass(frozen=True)
class AddReaction:
    """Puts a reaction on the reply."""

    reaction: Reaction


@dataclass(frozen=True)
class RemoveReaction:
    """Takes one off the reply that was replaced."""

    reaction: Reaction


ReactionCall = AddReaction | RemoveReaction


@dataclass(frozen=True)
class ReactionProgress:
    """How far a notice came: the reactions that may be on the reply, and whether it carries the right one alone."""

    shown: tuple[Reaction, ...]
    done: bool


def next_call(notice: Notice, wanted: ReactionChanged) -> ReactionCall | None:
    """Returns the next call for a notice; None where the reply carries what it should.

    The new reaction comes before the old one goes, so that a reply never looks as though nobody had seen it.
    """
    if wanted.reaction is not None and not notice.reaction_added:
        return AddReaction(wanted.reaction)
    replaced = _replaced(notice, wanted)
    return RemoveReaction(replaced[0]) if replaced else None


def after_call(notice: Notice, wanted: ReactionChanged, call: ReactionCall | None) -> ReactionProgress:
    """Returns how far a notice came by a call that Slack took."""
    left = _replaced(notice, wanted)
    match call:
        case AddReaction():
            return ReactionProgress((*left, call.reaction), done=not left)
        case _:
            kept = () if wanted.reaction is None else (wanted.reaction,)
            return ReactionProgress((*left[1:], *kept), done=not left[1:])


def _replaced(notice: Notice, wanted: ReactionChanged) -> tuple[Reaction, ...]:
    """The others that may be there. Slack limits how often one can be taken away, so none is tried in vain."""
    may_be_there = tuple(Reaction) if notice.reactions_shown is None else notice.reactions_shown
    return tuple(other for other in may_be_there if other is not wanted.reaction)
