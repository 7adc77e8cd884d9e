"""Any message of any kind, for tests that hold for all of them: built from the types, so that none is missing."""

from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from pydantic import BaseModel

import bot.store.schema.rows  # noqa: F401 - so that all families are known
from bot.domain.jobs.job import Answer, digest
from bot.notices.notice import KINDS as STORED
from bot.notices.notice import CardChanged, Delivery, NoticeContent, ReactionChanged, ToPerson, UnknownNotice
from bot.notices.pictures import PagePicture

KINDS: tuple[type[Any], ...] = tuple(STORED.values())
ANY_TEXT = st.text(st.characters(), max_size=40)
"""Lone surrogates and NUL are among these."""


def any_messages(texts: st.SearchStrategy[str] = ANY_TEXT) -> st.SearchStrategy[NoticeContent]:
    """Returns messages of all kinds with these texts."""
    return st.sampled_from(KINDS).flatmap(lambda kind: messages_of(kind, texts))


def messages_of(kind: type[Any], texts: st.SearchStrategy[str] = ANY_TEXT) -> st.SearchStrategy[Any]:
    """Messages of one kind."""
    if kind is UnknownNotice:
        held = st.dictionaries(st.sampled_from(["person_id", "text", "words"]), texts)
        return st.builds(UnknownNotice, texts, held, delivery=st.sampled_from([Delivery.POST, Delivery.EPHEMERAL]))
    if kind is Answer:
        return st.builds(Answer, texts, st.builds(digest, texts), cut=st.booleans())
    hints = get_type_hints(kind)
    if issubclass(kind, BaseModel):
        return st.builds(kind, **{name: _values(hints[name], texts) for name in kind.model_fields})
    values = {
        field.name: _values(hints[field.name], texts)
        for field in fields(kind)
        if field.name not in {"kind", "delivery"}
    }
    if kind is PagePicture:
        values["file"] = st.sampled_from(["", "F0PICTURE"])  # an id of Slack's
    return st.builds(kind, **values)


def _values(hint: Any, texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Returns values for a field of this type."""
    times = st.floats(0, 10**11 - 1)  # seconds since the epoch, from our own database
    simple = {
        str: texts,
        int: st.integers(0, 999),
        float: times,
    }
    if hint in simple:
        return simple[hint]
    if hint is NoticeContent:
        others = CardChanged | ReactionChanged | ToPerson | UnknownNotice
        posts = [each for each in KINDS if not issubclass(each, others)]
        return st.sampled_from(posts).flatmap(lambda kind: messages_of(kind, texts))
    if type(None) in get_args(hint):
        (some,) = (each for each in get_args(hint) if each is not type(None))
        return st.none() | (st.integers(0, 10**11 - 1) if some is int else _values(some, texts))
    if get_origin(hint) is tuple and Ellipsis in get_args(hint):
        return st.lists(_values(get_args(hint)[0], texts), max_size=4).map(tuple)
    is_built = isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, BaseModel))
    return messages_of(hint, texts) if is_built else st.from_type(hint)
